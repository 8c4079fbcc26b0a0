// Keys: those of the page, and those of the view that is shown.

import { el, fill } from "./dom.js";
import { isAsking } from "./messages.js";
import { switchTheme } from "./theme.js";

const FIELDS = "input:not([type=checkbox]):not([type=range]), textarea, select";
const CLOSED = CSS.supports("selector(:open)") ? "select:not(:open)" : "select";

export function listenForKeys(router) {
  const isTyping = watchFields();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isAsking() || isTyping(event)) return;
    if (pressed(router, event)) event.preventDefault();
  });
  leaveListsAfterAClick();
}

// Handle a key; returns whether it was used.
function pressed(router, event) {
  const view = router.views[Number(event.key) - 1];
  if (event.key === "?") showKeys(router);
  else if (event.key === "t") switchTheme();
  else if (view && !event.target.closest(".editor")) {
    if (view !== router.name) router.goBackTo(view);
  } else return router.press(event);
  return true;
}

// -- fields ---------------------------------------------------------------------------------------

// Returns a function that says whether a key is for the focused field. A closed list, and a number
// not being edited, leave the arrows to the view: else a move would change the board size or p4.
function watchFields() {
  let edited = null; // the field with input that is not committed yet
  addEventListener("input", (event) => {
    edited = event.target;
  });
  for (const done of ["change", "focusout"])
    addEventListener(done, () => {
      edited = null;
    });
  return ({ target, key }) => {
    const field = target.closest(FIELDS);
    if (!field) return false;
    const idle = field.matches(`${CLOSED}, input[type=number]`) && field !== edited;
    return !(idle && key.startsWith("Arrow"));
  };
}

// After a choice with the mouse, the arrow keys are for the game, not for the list.
function leaveListsAfterAClick() {
  let pointing = false;
  const note = (is) => () => {
    pointing = is;
  };
  addEventListener("pointerdown", note(true), true);
  addEventListener("keydown", note(false), true);
  addEventListener("change", (event) => {
    if (pointing && event.target.matches("select")) event.target.blur();
  });
}

// -- help -----------------------------------------------------------------------------------------

export function showKeys(router) {
  const everywhere = [
    [`1 … ${router.views.length}`, router.titles.join(", ")],
    ["t", "light or dark"],
    ["?", "these keys"],
  ];
  fill(
    document.getElementById("keys-body"),
    el("h3", {}, router.name ?? ""),
    keyList(router.keys),
    el("h3", {}, "everywhere"),
    keyList(everywhere),
  );
  document.getElementById("keys").showModal();
}

const keyList = (pairs) =>
  el(
    "dl",
    { class: "keys" },
    pairs.flatMap(([keys, what]) => [el("dt", {}, keys.split(" ").map(keyName)), el("dd", {}, what)]),
  );

const keyName = (key) => (key === "…" || key === "or" ? ` ${key} ` : el("kbd", {}, key));
