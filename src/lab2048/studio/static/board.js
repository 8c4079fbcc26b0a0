// A board on the page: tiles that slide, merge and appear.

import { el } from "./dom.js";
import { boardText, tile } from "./game.js";

const SLIDE = 110;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// A tile; `none` is the text of an empty cell.
export function tileFace(rank, { how = "", none = "" } = {}) {
  if (!rank) return el("span", { class: "face none" }, none);
  const text = String(tile(rank));
  return el("span", { class: `face r${rank} d${text.length} ${how}` }, text);
}

export class BoardView {
  constructor({ small = false, label = "Board" } = {}) {
    this.cells = el("div", { class: "cells", "aria-hidden": "true" });
    this.layer = el("div", { class: "tiles", "aria-hidden": "true" });
    this.element = el(
      "div",
      { class: small ? "board small" : "board", role: "img" },
      this.cells,
      this.layer,
    );
    this.label = label;
    this.tiles = new Map();
    this.pending = null;
  }

  #shape(rows, cols) {
    if (this.rows === rows && this.cols === cols) return;
    Object.assign(this, { rows, cols });
    this.element.style.setProperty("--rows", rows);
    this.element.style.setProperty("--cols", cols);
    this.cells.replaceChildren(
      ...Array.from({ length: rows * cols }, () => el("div", { class: "cell" })),
    );
  }

  #tile(cell, rank, how = "") {
    const made = el("div", { class: "tile" }, tileFace(rank, { how }));
    this.#place(made, cell);
    this.layer.append(made);
    return made;
  }

  #place(made, cell) {
    made.style.transform = `translate(${(cell % this.cols) * 100}%, ${Math.floor(cell / this.cols) * 100}%)`;
  }

  // Show a board without animation.
  show(ranks, rows, cols) {
    this.#drop();
    this.#shape(rows, cols);
    this.layer.replaceChildren();
    this.tiles = new Map();
    ranks.forEach((rank, cell) => {
      if (rank) this.tiles.set(cell, this.#tile(cell, rank));
    });
    this.#describe(ranks);
  }

  // Animate a move: `made` is what Game.play returns, `ranks` the board after the spawn.
  move(made, ranks) {
    this.finish();
    this.#describe(ranks);
    const moved = new Map();
    const gone = [];
    for (const { from, to, merges } of made.paths) {
      const each = this.tiles.get(from);
      if (!each) {
        this.show(ranks, this.rows, this.cols);
        return;
      }
      this.#place(each, to);
      if (merges) {
        gone.push(each, moved.get(to));
        moved.delete(to);
      } else moved.set(to, each);
    }
    const end = () => {
      for (const each of gone) each?.remove();
      this.tiles = moved;
      made.after.forEach((rank, cell) => {
        if (rank && !moved.has(cell)) moved.set(cell, this.#tile(cell, rank, "pop"));
      });
      moved.set(made.spawn.cell, this.#tile(made.spawn.cell, made.spawn.rank, "new"));
    };
    if (calm.matches) end();
    else this.pending = { end, timer: setTimeout(() => this.finish(), SLIDE) };
  }

  // End the animation of a move.
  finish() {
    if (!this.pending) return;
    const { end, timer } = this.pending;
    clearTimeout(timer);
    this.pending = null;
    end();
  }

  #drop() {
    if (this.pending) clearTimeout(this.pending.timer);
    this.pending = null;
  }

  #describe(ranks) {
    this.element.setAttribute(
      "aria-label",
      `${this.label}: ${boardText(ranks, this.cols).replaceAll(".", "empty").replaceAll(" / ", "; ")}`,
    );
    this.element.dataset.ranks = ranks.join(" ");
  }
}

export function smallBoard(ranks, rows, cols) {
  const view = new BoardView({ small: true });
  view.show(ranks, rows, cols);
  return view.element;
}

// Call `move` with the direction of each swipe, by finger, pen or mouse.
export function onSwipe(element, move) {
  let start = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    start = { x: event.clientX, y: event.clientY, id: event.pointerId };
    element.setPointerCapture?.(event.pointerId);
  });
  element.addEventListener("pointerup", (event) => {
    if (!start || start.id !== event.pointerId) return;
    const dx = event.clientX - start.x;
    const dy = event.clientY - start.y;
    start = null;
    if (Math.max(Math.abs(dx), Math.abs(dy)) < 24) return;
    move(Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? 1 : 3) : dy > 0 ? 2 : 0);
  });
  element.addEventListener("pointercancel", () => {
    start = null;
  });
}
