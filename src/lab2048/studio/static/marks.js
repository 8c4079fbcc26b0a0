// How good a move is: the marks, what a judge says of the four moves, and bars for them.

import { el } from "./dom.js";
import { ARROWS, DIRECTIONS } from "./game.js";
import { loss, number, percent } from "./numbers.js";

export const GRADES = {
  best: { sign: "✓", word: "best" },
  good: { sign: "·", word: "good" },
  slip: { sign: "?!", word: "slip" },
  mistake: { sign: "?", word: "mistake" },
  blunder: { sign: "??", word: "blunder" },
  other: { sign: "≠", word: "not the judge's move" },
};
export const isMistake = (mark) => ["slip", "mistake", "blunder"].includes(mark);

export const gradeSign = (mark, title = null) =>
  el("span", { class: `grade ${mark}`, title }, GRADES[mark].sign);

// A mark in words and, unless the move was best, a better one; `made` comes before the word.
export const markSentence = (mark, better, lost, made = "") => [
  gradeSign(mark),
  ` ${made}${GRADES[mark].word}`,
  mark === "best"
    ? null
    : el("span", { class: "dim" }, ` · better ${better}${lost && `, ${lost}`}`),
];

// What a move lost: points if the judge is exact, else the approximate share of the value.
export function lostText(mark, regret, best, exact) {
  if (exact) return regret < 0.05 ? "hardly anything lost" : `lost ${number(regret)} points`;
  return isMistake(mark) ? `about ${percent(regret / Math.max(best, 1), 0)} less` : "";
}

// A player's opinion of the four moves: value, mark and regret by direction.
export function thoughtsOf(thinks, legal) {
  const values = DIRECTIONS.map((name) => thinks.values[name]);
  const known = values.filter((value) => value !== null);
  const best = Math.max(...known);
  const marks = DIRECTIONS.map((name) => thinks.marks[name]);
  const optimal = DIRECTIONS.map((name, d) =>
    known.length ? marks[d] === "best" : thinks.choice === name,
  );
  return {
    values,
    legal,
    marks,
    optimal,
    best,
    better: thinks.choice,
    gap: known.length ? best - Math.min(...known) : 0,
    choice: thinks.choice,
    exact: false,
    points: thinks.points,
    regrets: values.map((value, d) => (value === null ? null : optimal[d] ? 0 : best - value)),
    empty: !known.length && !thinks.choice,
  };
}

// The same for an analysis: by the table or, with a spec, by the player that was asked.
export function verdict(analysis, spec = "") {
  const moves = DIRECTIONS.map((name) => analysis.moves[name]);
  const legal = moves.map((move) => move.legal);
  if (spec) return thoughtsOf(Object.values(analysis.players)[0], legal);
  const values = moves.map((move) => move.q);
  const known = values.filter((value) => value !== null);
  const optimal = moves.map((move) => move.mark === "best");
  return {
    values,
    legal,
    marks: moves.map((move) => move.mark),
    optimal,
    better: DIRECTIONS[optimal.indexOf(true)],
    best: Math.max(...known),
    gap: Math.max(...known) - Math.min(...known),
    regrets: moves.map((move) => (move.mark === "best" ? 0 : move.regret)),
    choice: null,
    exact: true,
    points: true,
    empty: !known.length,
  };
}

// -- four bars -----------------------------------------------------------------------------------

export class MoveBars {
  constructor({ onPick = null } = {}) {
    this.rows = DIRECTIONS.map((name, d) => {
      const bar = el("span", { class: "bar" });
      const value = el("span", { class: "value" });
      const lost = el("span", { class: "lost" });
      const head = el(
        "span",
        { class: "move" },
        el("span", { "aria-hidden": "true" }, ARROWS[d]),
        ` ${name}`,
      );
      const row = el(
        onPick ? "button" : "div",
        { class: "bar-row", ...(onPick ? { type: "button", onclick: () => onPick(d) } : {}) },
        head,
        el("span", { class: "track" }, bar),
        value,
        lost,
      );
      return { row, bar, value, lost };
    });
    this.element = el(
      "div",
      { class: "bars" },
      this.rows.map(({ row }) => row),
    );
    this.clear();
  }
  clear(text = "") {
    for (const { row, bar, value, lost } of this.rows) {
      row.className = "bar-row waiting";
      bar.style.width = "0";
      value.textContent = text;
      lost.textContent = "";
    }
  }
  // Scale the bars from the worst move to the best; negligible differences look small.
  show({ values, legal, regrets, optimal, best, gap, choice, points, sign = "✓ best", marks, exact }) {
    const span = Math.max(gap, points ? 0.02 * Math.abs(best) : 0);
    this.rows.forEach(({ row, bar, value, lost }, d) => {
      const known = values[d] !== null;
      row.className = `bar-row${optimal[d] ? " best" : ""}${legal[d] ? "" : " illegal"}`;
      const share = !known ? 0 : span > 0 ? 0.08 + 0.92 * (1 - (best - values[d]) / span) : 1;
      bar.style.width = `${100 * share}%`;
      value.textContent = known
        ? number(values[d], 1)
        : legal[d]
          ? choice === DIRECTIONS[d]
            ? "its move"
            : ""
          : "illegal";
      const short = !exact && isMistake(marks[d]);
      const less = short ? `−${percent(regrets[d] / Math.max(best, 1), 0)}` : loss(regrets[d]);
      const equal = choice && choice !== DIRECTIONS[d]; // as good, as far as the judge can tell
      const praise = equal ? "≈ best" : sign;
      lost.textContent = optimal[d] && legal[d] ? praise : regrets[d] ? less : "";
    });
  }
}
