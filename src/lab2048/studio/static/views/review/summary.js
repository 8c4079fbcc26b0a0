// What a review found: figures, graphs, the worst moves, all moves.

import { smallBoard } from "../../board.js";
import { chart } from "../../chart.js";
import { el, fill } from "../../dom.js";
import { ARROWS, DIRECTIONS } from "../../game.js";
import { GRADES, gradeSign, isMistake, lostText } from "../../marks.js";
import { number, percent, whole } from "../../numbers.js";

const DRAWN = 1500; // approximate number of points in a graph

// Show everything. `step` goes to a move.
export function showSummary(view, step) {
  const { record, judgeName, parts } = view;
  fill(
    parts.head,
    el("strong", {}, `${record.player}: ${whole(record.score)} points`),
    `, judged by ${judgeName}.`,
  );
  fill(parts.facts, figures(view));
  fill(parts.counts, Object.entries(view.summary.marks).map(countOf));
  fill(parts.worst, el("h2", {}, "The worst moves"), worstMoves(view, step));
  fill(parts.list, el("h2", {}, "All moves"), allMoves(view, step));
  fill(parts.graph, graphs(view, step));
}

// -- figures ------------------------------------------------------------------------------------

const figure = (name, value, title) =>
  el("div", { title }, el("span", {}, name), el("output", { class: "big" }, value));

function figures({ summary, exact }) {
  const accuracy = "Mean of (move − worst) / (best − worst), where it matters";
  const lost = "Expected score given away, all moves together";
  return [
    figure("accuracy", percent(summary.accuracy), accuracy),
    figure("best moves", percent(summary.agreement), "Share of moves that are best"),
    exact ? figure("points lost", number(summary.loss), lost) : null,
    figure("moves", whole(summary.moves), ""),
  ];
}

const countOf = ([name, count]) =>
  el(
    "span",
    { class: "count" },
    gradeSign(name),
    ` ${whole(count)} ${GRADES[name].word}${isMistake(name) && count !== 1 ? "s" : ""}`,
  );

// -- moves --------------------------------------------------------------------------------------

function worstMoves(view, step) {
  const { worst } = view.summary;
  if (!worst.length) return el("p", {}, "None: every move was best, as far as the judge can tell.");
  return el(
    "ol",
    { class: "mistakes" },
    worst.map((each) => el("li", {}, mistakeCard(view, each, step))),
  );
}

function mistakeCard({ played, steps, record, exact }, { move, mark, made, better, regret }, step) {
  const { rows, cols } = record.rules;
  const lost = lostText(mark, regret, steps[move - 1].value, exact);
  return el(
    "button",
    {
      type: "button",
      class: "mistake-card",
      "data-move": move,
      onclick: () => step(move - 1),
    },
    smallBoard(played.turns[move - 1].board, rows, cols),
    el(
      "span",
      {},
      el("strong", {}, `Move ${move} `),
      gradeSign(mark),
      el("br"),
      `${made}, better ${better}`,
      el("br"),
      el("span", { class: "dim" }, lost),
    ),
  );
}

const allMoves = ({ steps }, step) =>
  el(
    "div",
    { class: "chips" },
    steps.map(({ move, mark }, i) =>
      el(
        "button",
        {
          type: "button",
          class: `chip ${mark}`,
          "data-index": i,
          tabIndex: -1,
          title: `${i + 1}: ${move}, ${GRADES[mark].word}`,
          onclick: () => step(i),
        },
        ARROWS[DIRECTIONS.indexOf(move)],
        isMistake(mark) ? GRADES[mark].sign : "",
      ),
    ),
  );

// -- graphs -------------------------------------------------------------------------------------

function graphs({ steps, summary, at, points, exact }, step) {
  const thin = Math.ceil(steps.length / DRAWN);
  const drawn = steps.filter((each, i) => i % thin === 0 || i === steps.length - 1);
  const line = (name) => drawn.map((each) => [each.number, each[name]]);
  const marked = (name) =>
    summary.worst
      .filter((each) => isMistake(each.mark))
      .map(({ move, mark, made, better }) => ({
        x: move,
        y: steps[move - 1][name],
        className: mark,
        title: `move ${move}: ${made}, better ${better}`,
      }));
  const shared = {
    xLabel: "move",
    onPick: (x) => step(Math.max(0, Math.min(steps.length - 1, x - 1))),
    cursor: at + 1,
  };
  const value = chart({
    ...shared,
    series: [{ name: "value", points: line("value") }],
    yLabel: points ? "points to come" : "value to the judge",
    events: marked("value"),
    height: 190,
    label: "Value of each position",
  });
  if (!exact) return [value];
  const lost = chart({
    ...shared,
    series: [{ name: "lost so far", points: line("loss"), area: true, colour: 1 }],
    yLabel: "points lost so far",
    yMin: 0,
    events: marked("loss"),
    height: 170,
    label: "Loss so far",
  });
  return [value, lost];
}
