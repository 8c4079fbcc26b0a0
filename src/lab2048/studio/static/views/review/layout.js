// The elements of Review and their layout.

import { BoardView } from "../../board.js";
import { button, el, field, fill, stage } from "../../dom.js";
import { AUTO, PlayerPicker } from "../../fields.js";

// Create the elements. `actions` are their handlers.
export function makeParts(actions) {
  const slider = el("input", {
    type: "range",
    min: 0,
    value: 0,
    "aria-label": "Move",
    oninput: () => actions.step(Number(slider.value)),
  });
  return {
    shell: el("div"),
    board: new BoardView(),
    picker: new PlayerPicker({
      label: "Judge",
      extra: [[AUTO, "auto"]],
      onchange: actions.chooseJudge,
    }),
    head: el("p", { class: "verdict" }),
    facts: el("div", { class: "scores" }),
    counts: el("p", { class: "counts", "data-testid": "counts" }),
    caveat: el("p", { class: "note" }),
    told: el("p", { class: "mark" }),
    graph: el("div", { class: "graphs" }),
    worst: el("div", { class: "worst" }),
    list: el("div", { class: "movelist", tabIndex: 0, "aria-label": "All moves" }),
    bar: el("progress", { max: 1, value: 0, "aria-label": "Moves judged", hidden: true }),
    slider,
  };
}

// Put the elements of a game into the page.
export function layOut(parts, actions) {
  const { board, told, slider, picker, head, bar, facts, counts, caveat, graph, worst, list } = parts;
  const judged = el(
    "div",
    { class: "row" },
    field("judge", picker.element),
    el("button", { type: "button", onclick: actions.choose }, "Another game"),
  );
  fill(
    parts.shell,
    stage(
      [
        "Position",
        [el("div", { class: "board-frame" }, board.element), told, slider],
        [
          button("←", actions.back, "One move back (←)", { "aria-label": "One move back" }),
          button("→", actions.on, "One move on (→)", { "aria-label": "One move on" }),
          button("Next mistake", actions.nextMistake, "The next mistake (m)"),
          button("Practise this", actions.practise, "Try again from here (p)", { class: "primary" }),
          button("Analyse", actions.analyse, "Analyse this position (x)"),
        ],
      ],
      ["Review", [judged, head, bar, facts, counts, caveat, graph, worst, list]],
    ),
  );
}
