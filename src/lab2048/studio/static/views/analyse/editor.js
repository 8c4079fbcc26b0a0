// The board editor: its cells, the palette of tiles, and its keys.

import { tileFace } from "../../board.js";
import { el, fill } from "../../dom.js";
import { boardText, tile } from "../../game.js";

const HIGHEST = 17; // the rank of 131072

// Draw the cells of the editor, and the same position as text.
export function drawEditor(view) {
  const { rules, ranks } = view;
  const { editor, text } = view.parts;
  editor.style.setProperty("--rows", rules.rows);
  editor.style.setProperty("--cols", rules.cols);
  const active = document.activeElement;
  const old = editor.contains(active) ? Number(active.dataset.cell) : null;
  fill(
    editor,
    Array.from({ length: rules.rows }, (_, r) =>
      el(
        "div",
        { class: "editor-row", role: "row" },
        Array.from({ length: rules.cols }, (__, c) => cell(view, r * rules.cols + c)),
      ),
    ),
  );
  if (old !== null) cellOf(view, Math.min(old, rules.cells - 1))?.focus();
  if (document.activeElement !== text) text.value = boardText(ranks, rules.cols);
}

const cellOf = ({ parts }, number) => parts.editor.querySelector(`[data-cell="${number}"]`);

function cell(view, number) {
  const { rules, ranks } = view;
  const rank = ranks[number];
  const where = `row ${Math.floor(number / rules.cols) + 1}, column ${(number % rules.cols) + 1}`;
  return el(
    "button",
    {
      type: "button",
      class: "editor-cell",
      role: "gridcell",
      tabIndex: number === view.focused ? 0 : -1,
      onfocus: (event) => focusCell(view, number, event.target),
      "data-cell": number,
      "aria-label": `${where}: ${rank ? tile(rank) : "empty"}`,
      onclick: () => put(view, number, rank === view.paint ? 0 : view.paint),
      oncontextmenu: (event) => {
        event.preventDefault();
        put(view, number, 0);
      },
    },
    tileFace(rank),
  );
}

// Tab goes to the cell that had the focus last.
function focusCell(view, number, target) {
  view.focused = number;
  for (const each of view.parts.editor.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
  target.tabIndex = 0;
}

function put(view, number, rank) {
  view.actions.setPosition(view.ranks.with(number, Math.max(0, Math.min(HIGHEST, rank))));
}

// Draw the palette: the tiles to choose from, and which one is chosen.
export function drawPalette(view) {
  const most = Math.min(HIGHEST, Math.max(11, view.rules.cells + 1));
  fill(
    view.parts.palette,
    Array.from({ length: most + 1 }, (_, rank) => swatch(view, rank)),
  );
}

function swatch(view, rank) {
  return el(
    "button",
    {
      type: "button",
      role: "radio",
      class: "swatch",
      "aria-checked": String(rank === view.paint),
      "aria-label": rank ? String(tile(rank)) : "empty",
      onclick: () => {
        view.paint = rank;
        drawPalette(view);
      },
    },
    tileFace(rank, { none: "×" }),
  );
}

// Handle a key in the cell that has the focus; returns whether it was used.
export function editorKey(view, event) {
  const number = Number(event.target.dataset.cell);
  const { cols } = view.rules;
  const go = {
    ArrowUp: number - cols,
    ArrowDown: number + cols,
    ArrowLeft: number % cols ? number - 1 : -1,
    ArrowRight: (number + 1) % cols ? number + 1 : -1,
  }[event.key];
  if (go !== undefined) cellOf(view, go)?.focus();
  else if (event.key === "+" || event.key === "=") put(view, number, view.ranks[number] + 1);
  else if (event.key === "-") put(view, number, view.ranks[number] - 1);
  else if (event.key === "Delete" || event.key === "0") put(view, number, 0);
  else return false;
  return true;
}
