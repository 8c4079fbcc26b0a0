// The answer about a position: a verdict, and a table of the four moves.

import { el, fill, nameParts } from "../../dom.js";
import { ARROWS, DIRECTIONS } from "../../game.js";
import { loss, number } from "../../numbers.js";

const capital = (name) => (name ? name[0].toUpperCase() + name.slice(1) : "–");

export function showAnswer(view, found, troubles) {
  const { verdict, grid, note } = view.parts;
  fill(verdict, verdictOn(found));
  fill(grid, table(view, found));
  const meanings = Object.entries(found.players)
    .filter(([, thinks]) => thinks.meaning)
    .map(([spec, thinks]) => el("p", {}, `${spec}: ${thinks.meaning}`));
  fill(
    note,
    troubles.map((text) => el("p", { class: "trouble" }, text)),
    meanings,
    found.note ? el("p", {}, found.note) : null,
  );
}

// -- in words -----------------------------------------------------------------------------------

function verdictOn(found) {
  if (found.terminal) return ["No move is legal here: the game is over."];
  const [first] = Object.entries(found.players);
  if (found.value !== null) {
    const best = DIRECTIONS.filter((name) => found.moves[name].optimal);
    const are = best.length > 1 ? "are" : "is";
    return [
      el("strong", {}, `${best.map(capital).join(" or ")} ${are} best`),
      `: ${number(found.value, 2)} more points on average under perfect play. `,
      why(found, best[0]),
    ];
  }
  if (!first) return ["Add a player to see what it thinks."];
  return [
    el("strong", {}, `${capital(first[1].choice)} is ${first[0]}’s move`),
    ". The exact answer is not known here.",
  ];
}

// Why the best move is better than the next best.
function why(found, best) {
  const [next] = DIRECTIONS.filter(
    (name) => found.moves[name].legal && !found.moves[name].optimal,
  ).sort((a, b) => found.moves[a].regret - found.moves[b].regret);
  if (!next) return null;
  const a = found.moves[best];
  const b = found.moves[next];
  if (b.regret < 0.05)
    return el("span", { class: "dim" }, `${capital(next)} is practically as good.`);
  const signed = (value) => `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`;
  const parts =
    a.reward === b.reward
      ? ""
      : ` (${signed(a.reward - b.reward)} now, ${signed(a.after_value - b.after_value)} later)`;
  return el(
    "span",
    { class: "dim" },
    `That is ${number(b.regret)} more than ${next}, the next best${parts}.`,
  );
}

// -- in numbers ---------------------------------------------------------------------------------

function table(view, found) {
  const exact = found.value !== null;
  const players = Object.entries(found.players);
  const column = (name, more = {}) => el("th", { scope: "col", ...more }, name);
  const head = el(
    "tr",
    {},
    column("move"),
    column("reward"),
    exact ? ["after", "q", "regret"].map((name) => column(name, { class: name })) : null,
    players.map(([spec, thinks]) =>
      el("th", { scope: "col", class: "player", title: thinks.meaning }, nameParts(spec)),
    ),
  );
  const rows = DIRECTIONS.map((name, d) => row(view, found.moves[name], d, exact, players));
  const columns = players.length + (exact ? 5 : 2);
  const many = columns > 8 ? " many most" : columns > 4 ? " many" : "";
  return el("table", { class: `moves${many}` }, el("thead", {}, head), el("tbody", {}, rows));
}

function row({ after, actions }, move, d, exact, players) {
  const name = DIRECTIONS[d];
  const open = after === d;
  return el(
    "tr",
    {
      class: `${move.optimal ? "best" : ""}${move.legal ? "" : " illegal"}${open ? " open" : ""}`,
      "data-move": name,
      onclick: (event) => {
        if (move.legal && !event.target.closest("button")) actions.pickMove(d);
      },
    },
    el("th", { scope: "row" }, moveButton(move, d, open, actions)),
    el("td", {}, move.legal ? String(move.reward) : "illegal"),
    exact ? exactCells(move) : null,
    players.map(([, thinks]) => playerCell(thinks, name)),
  );
}

const moveButton = (move, d, open, actions) =>
  el(
    "button",
    {
      type: "button",
      class: "link",
      disabled: !move.legal,
      "aria-expanded": String(open),
      onclick: () => actions.pickMove(d),
    },
    el("span", { "aria-hidden": "true" }, `${ARROWS[d]} `),
    DIRECTIONS[d],
  );

function exactCells(move) {
  const cells = {
    after: number(move.after_value, 2),
    q: number(move.q, 2),
    regret: move.optimal ? el("span", { class: "grade best" }, "✓ best") : loss(move.regret, 2),
  };
  return Object.entries(cells).map(([column, value]) =>
    el("td", { class: column }, move.legal ? value : ""),
  );
}

const playerCell = (thinks, name) =>
  el(
    "td",
    { class: "player" },
    thinks.values[name] === null ? "" : number(thinks.values[name], 1),
    thinks.choice === name ? el("span", { class: "choice", title: "its move" }, " ★") : "",
  );
