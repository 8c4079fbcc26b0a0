// The frame of the page: addresses, keys, light and dark, messages.
//
// Each view is a module in views/, with a folder of its own for its parts. board.js draws boards,
// game.js plays the game, api.js asks the server.

import { el, fill } from "./dom.js";

const VIEWS = {
  play: () => import("./views/play.js"),
  watch: () => import("./views/watch.js"),
  analyse: () => import("./views/analyse.js"),
  review: () => import("./views/review.js"),
  results: () => import("./views/results.js"),
};
const main = document.getElementById("main");
const live = document.getElementById("live");
const toast = document.getElementById("toast");
const dialog = document.getElementById("keys");

const loaded = {}; // the modules of views that have been shown: these are shown again at once
let current = null; // what is shown: { name, view, keys }
const last = {}; // the address that each view was left at
let turn = 0;

// -- messages ---------------------------------------------------------------------------------

function say(text) {
  live.textContent = text;
}

let hiding = 0;
function fail(error) {
  toast.textContent = error?.message ?? String(error);
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => {
    toast.hidden = true;
  }, 8000);
}
toast.addEventListener("click", () => {
  toast.hidden = true;
});

// Ask before something is lost. Escape, and going elsewhere in the history, mean no.
let question = null; // the one that is being asked
async function confirmed({ title, text, yes, no }) {
  const heading = el("h2", { id: "ask-title" }, title);
  const about = el("p", { id: "ask-text" }, text);
  const answers = el(
    "form",
    { method: "dialog", class: "row buttons" },
    el("button", { class: "primary", autofocus: true }, no),
    el("button", { value: "yes" }, yes),
  );
  const names = { "aria-labelledby": heading.id, "aria-describedby": about.id };
  question = el("dialog", { role: "alertdialog", ...names }, heading, about, answers);
  document.body.append(question);
  question.showModal();
  await new Promise((resolve) => {
    question.addEventListener("close", resolve);
  });
  const answer = question.returnValue;
  question.remove();
  question = null;
  return answer === "yes";
}

// -- addresses --------------------------------------------------------------------------------

// Change the address without leaving what is shown. Browsers allow only so many changes in a while,
// so those that come quickly are written once.
let written = 0;
function write(url) {
  clearTimeout(written);
  written = 0;
  if (url !== location.pathname + location.search + location.hash)
    history.replaceState(null, "", url);
}
function setAddress(url, { push = false } = {}) {
  if (push && url !== last[current.name]) {
    write(last[current.name]);
    history.pushState(null, "", url);
  } else written ||= setTimeout(() => write(last[current.name]), 300);
  last[current.name] = url;
}

function named({ pathname } = location) {
  const name = pathname.slice(1);
  return name in VIEWS ? name : "play";
}

async function show() {
  const mine = ++turn;
  const name = named();
  if (current?.name === name && current.view.arrive) {
    // the same view at another address
    current.view.arrive(new URLSearchParams(location.search), location.hash.slice(1));
    return;
  }
  if (!loaded[name]) {
    try {
      loaded[name] = await VIEWS[name]();
    } catch {
      fail("the studio does not answer; is it still running?");
      if (mine === turn && current) write(last[current.name]);
      return;
    }
    if (mine !== turn) return;
  }
  const module = loaded[name];
  current?.view.leave?.();
  const root = el("div", { class: `view ${name}` });
  const shown = { name, keys: module.KEYS, view: null };
  current = shown;
  // what a view does late, when another one is shown, changes nothing
  const page = {
    say,
    fail,
    tell: fail,
    go: async (url) => current === shown && go(url),
    setAddress: (url, how) => {
      if (current === shown) setAddress(url, how);
    },
  };
  last[name] = location.pathname + location.search + location.hash;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${module.TITLE} – lab2048`;
  fill(main, root);
  current.view = module.open(
    root,
    new URLSearchParams(location.search),
    location.hash.slice(1),
    page,
  );
}

// Go to an address; returns whether that was done. What is unfinished in the view that it is of
// is left only by someone who says so.
async function go(url) {
  const name = named(new URL(url, location.href));
  const left = last[name];
  const lost = left && left !== url ? loaded[name]?.unfinished?.(left) : null;
  if (lost && !(await confirmed(lost))) return false;
  if (current) write(last[current.name]);
  history.pushState(null, "", url);
  show();
  return true;
}

addEventListener("popstate", () => {
  question?.close();
  clearTimeout(written);
  written = 0;
  show();
});
addEventListener("pagehide", () => {
  if (current) write(last[current.name]);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view], a[data-inside]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const name = link.dataset.view;
  go(
    name
      ? name === current?.name
        ? `/${name}`
        : (last[name] ?? `/${name}`)
      : link.getAttribute("href"),
  );
});

// -- keys ---------------------------------------------------------------------------------------

const COMMON = [
  ["1 … 5", "Play, Watch, Analyse, Review, Results"],
  ["t", "light or dark"],
  ["?", "these keys"],
];

function showKeys() {
  const list = (pairs) =>
    el(
      "dl",
      { class: "keys" },
      pairs.flatMap(([keys, what]) => [
        el(
          "dt",
          {},
          keys
            .split(" ")
            .map((key) => (key === "…" || key === "or" ? ` ${key} ` : el("kbd", {}, key))),
        ),
        el("dd", {}, what),
      ]),
    );
  fill(
    document.getElementById("keys-body"),
    el("h3", {}, current?.name ?? ""),
    list(current?.keys ?? []),
    el("h3", {}, "everywhere"),
    list(COMMON),
  );
  dialog.showModal();
}

// The number field that is being edited: something was typed that does not count yet.
let edited = null;
addEventListener("input", (event) => {
  edited = event.target;
});
for (const done of ["change", "focusout"])
  addEventListener(done, () => {
    edited = null;
  });

// Whether a key is for the field that has the focus. A list that is closed and a number that is not
// being edited leave the arrows to the view: else a move would change the board, or p4.
const CLOSED = CSS.supports("selector(:open)") ? "select:not(:open)" : "select";
function typing({ target, key }) {
  const field = target.closest("input:not([type=checkbox]):not([type=range]), textarea, select");
  if (!field) return false;
  const idle = field.matches(`${CLOSED}, input[type=number]`) && field !== edited;
  return !(idle && key.startsWith("Arrow"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || question?.open) return;
  if (typing(event)) return;
  if (event.key === "?") showKeys();
  else if (event.key === "t") switchTheme();
  else if (/^[1-5]$/.test(event.key) && !event.target.closest(".editor")) {
    const name = Object.keys(VIEWS)[Number(event.key) - 1];
    if (name !== current?.name) go(last[name] ?? `/${name}`);
  } else if (current?.name !== named())
    return; // a view that is still coming takes no keys
  else if (!current.view?.key?.(event)) return;
  event.preventDefault();
});
document.getElementById("help").addEventListener("click", showKeys);

// Whoever chooses with the mouse wants the arrow keys for the game, not for the list.
let pointing = false;
addEventListener(
  "pointerdown",
  () => {
    pointing = true;
  },
  true,
);
addEventListener(
  "keydown",
  () => {
    pointing = false;
  },
  true,
);
addEventListener("change", (event) => {
  if (pointing && event.target.matches("select")) event.target.blur();
});

// -- light and dark -----------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
function paint(theme) {
  document.documentElement.dataset.theme = theme ?? (dark.matches ? "dark" : "light");
}
function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("lab2048.theme", theme);
  paint(theme);
}
dark.addEventListener("change", () => paint(localStorage.getItem("lab2048.theme")));
document.getElementById("theme").addEventListener("click", switchTheme);
paint(localStorage.getItem("lab2048.theme"));

if (location.pathname !== "/" && !(location.pathname.slice(1) in VIEWS)) {
  fail(`there is no page ${location.pathname}; this is Play`);
  history.replaceState(null, "", "/play");
}
show();
