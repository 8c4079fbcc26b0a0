// Elements of the page, and parts that several views share.

// An element with properties, listeners (on…) and children; text is never parsed as markup.
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && name !== "list" && name !== "form") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return made;
}

// The name of a player, which may be broken into lines after a colon or a comma.
export const nameParts = (spec) =>
  spec.split(/(?<=[:,])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

// A button; its title names the key that does the same.
export function button(text, onclick, title, more = {}) {
  return el("button", { type: "button", onclick, title, ...more }, text);
}

// The layout of a view: a board with its buttons, and a panel beside it.
export function stage([name, board, buttons], [title, panel, label = title]) {
  return el(
    "div",
    { class: "stage" },
    el(
      "section",
      { class: "board-side", "aria-label": name },
      board,
      el("div", { class: "row buttons" }, buttons),
    ),
    el("section", { class: "panel", "aria-label": label }, el("h1", {}, title), panel),
  );
}

// Replace the content of an element (null children are left out). If an element in it had the
// focus, the new element of the same name gets it, if there is one.
export function fill(place, ...children) {
  const old =
    place.contains(document.activeElement) && document.activeElement !== place
      ? nameOf(document.activeElement)
      : null;
  place.replaceChildren(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  if (!old || place.contains(document.activeElement)) return;
  const same = [...place.querySelectorAll("button, input, select, a")].find(
    (each) => nameOf(each) === old,
  );
  same?.focus({ preventScroll: true });
}
const nameOf = (each) =>
  each.dataset.key ??
  each.dataset.cell ??
  each.getAttribute("aria-label") ??
  each.textContent.trim();

export const field = (label, ...inside) =>
  el("label", { class: "field" }, el("span", {}, label), ...inside);
