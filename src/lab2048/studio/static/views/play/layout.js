// The elements of Play and their layout.

import { BoardView } from "../../board.js";
import { button, el, fill, stage } from "../../dom.js";
import { AUTO, PlayerPicker } from "../../fields.js";
import { MoveBars } from "../../marks.js";

// Create the elements and put them into the page. `actions` are their handlers.
export function layOut(root, hints, actions) {
  const parts = elements(hints, actions);
  const { settings, practice, mark, trail, hintLabel, bars, note, solve } = parts;
  fill(
    root,
    stage(
      ["Game", boardSide(parts), buttons(parts, actions)],
      ["Play", [settings, practice, mark, trail, hintLabel, bars.element, note, solve], "Hints"],
    ),
  );
  return parts;
}

function elements(hints, actions) {
  const [score, best, moves] = ["score", "best score", "moves"].map((name) =>
    el("output", { class: "big", "aria-label": name }),
  );
  const hintBox = el("input", {
    type: "checkbox",
    checked: hints,
    onchange: () => actions.showHints(hintBox.checked),
  });
  return {
    board: new BoardView(),
    score,
    best,
    moves,
    bars: new MoveBars({ onPick: actions.move }),
    mark: el("p", { class: "mark", "data-testid": "mark" }),
    note: el("p", { class: "note" }),
    ending: el("div", { class: "ending", hidden: true }),
    trail: el("div", { class: "marks", role: "img", "aria-label": "Marks of the last moves" }),
    solve: el("div"),
    practice: el(
      "p",
      { class: "practice", hidden: true },
      "Practice from a position; it does not count for the best score. ",
      button("Try again", actions.retry, "Once more from there (y)"),
    ),
    settings: el("div", { class: "row" }),
    picker: new PlayerPicker({
      label: "Judge",
      extra: [
        [AUTO, "auto"],
        ["", "exact table"],
      ],
      onchange: actions.chooseJudge,
    }),
    hintBox,
    hintLabel: el("label", { class: "check" }, hintBox, " Show hints"),
    undo: button("Undo", actions.undo, "Take a move back (u)"),
  };
}

const boardSide = ({ score, best, moves, board, ending }) => [
  el(
    "div",
    { class: "scores" },
    el("div", {}, el("span", {}, "score"), score),
    el("div", {}, el("span", {}, "best"), best),
    el("div", {}, el("span", {}, "moves"), moves),
  ),
  el("div", { class: "board-frame" }, board.element, ending),
];

const buttons = ({ undo }, actions) => [
  button("New game", actions.fresh, "New game (n)", { class: "primary" }),
  undo,
  button("Review", actions.review, "Go through this game (r)"),
  button("Analyse", actions.analyse, "Analyse this position (x)"),
];
