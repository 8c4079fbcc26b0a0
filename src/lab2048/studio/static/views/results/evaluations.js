// The table of past evaluations, one row per player; rows can be sorted and ticked.

import { el, fill, nameParts } from "../../dom.js";
import { sizeText } from "../../game.js";
import { number, percent, whole } from "../../numbers.js";

const largest = (row) => Number(Object.keys(row.reach ?? {}).at(-1) ?? 0);
const COLUMNS = [
  ["player", "player", (row) => row.player],
  ["mean", "mean score", (row) => row.exact_value ?? row.score.mean],
  ["loss", "lost per game", (row) => row.exact_regret ?? row.regret_per_game?.mean ?? null],
  ["agreement", "best moves", (row) => row.agreement],
  ["board", "board", (row) => row.board],
  ["games", "games", (row) => row.games],
  ["max", "best", (row) => row.score.max],
  ["tile", "largest tiles", largest],
  ["speed", "moves/s", (row) => row.moves_per_second],
  ["made", "made", (row) => row.made],
];
// Classes of columns where there is little room: the name, figures shown first; the rest is "more".
const KINDS = { player: "name", mean: "first", loss: "first", agreement: "first" };
const SHOW = {
  player: nameParts,
  board: sizeText,
  games: whole,
  mean: (v, row) => figure(row.exact_value, row.score),
  max: whole,
  loss: (v, row) => figure(row.exact_regret, row.regret_per_game),
  agreement: (v) => percent(v),
  speed: whole,
  made: (v) =>
    new Date(v).toLocaleString("en", {
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
      hour12: false,
    }),
  tile: (v, row) =>
    Object.entries(row.reach ?? {})
      .slice(-2)
      .map(([name, { rate }]) => `${name}:\u00a0${percent(rate, rate < 0.1 ? 1 : 0)}`)
      .join(", "),
};
const SHOWN = 6; // the most rows ticked at a time

export const isColumn = (name) => COLUMNS.some(([key]) => key === name);
export const idOf = (row) => `${row.name}/${row.place}`;

// The rows that are ticked by default: those of the newest evaluation.
export const newest = (rows) =>
  rows
    .filter((row) => row.name === rows[0].name)
    .slice(0, SHOWN)
    .map(idOf);

// A figure: the exact one if it is known, and the mean over games with half its 95% interval.
function figure(exact, played) {
  if (!played) return "–";
  const under = (text) => (text ? el("span", { class: "under" }, text) : null);
  const within = played.ci95 ? `± ${number((played.ci95[1] - played.ci95[0]) / 2)}` : "";
  if (exact === null) return [number(played.mean), under(within)];
  return [number(exact, 2), under("exact"), under(`played: ${number(played.mean)} ${within}`)];
}

// Draw the table. `changed` is called when another order or other rows are chosen.
export function drawEvaluations(view, changed) {
  const { rows, sort, down, only, parts } = view;
  if (!rows.length) {
    fill(parts.table, noEvaluations());
    return;
  }
  // leave out figures that no row has
  const columns = COLUMNS.filter(
    ([key, , value]) =>
      !["loss", "agreement"].includes(key) || rows.some((row) => (value(row) ?? null) !== null),
  );
  const value = COLUMNS.find(([key]) => key === sort)[2];
  const shown = rows
    .filter((row) => !only || row.board === only)
    .sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
  const box = el("th", { scope: "col" }, el("span", { class: "unseen" }, "show"));
  const head = columns.map(([key, name]) => heading(view, key, name, changed));
  const body = shown.map((row) => line(view, row, columns, changed));
  fill(
    parts.table,
    el(
      "table",
      { class: "results evals cards" },
      el("thead", {}, el("tr", {}, box, head)),
      el("tbody", {}, body),
    ),
  );
}

const noEvaluations = () =>
  el(
    "div",
    { class: "empty" },
    el("p", {}, "No player has been evaluated yet. Try:"),
    el("pre", {}, "lab2048 evaluate greedy expectimax ntuple --board 3x3 --games 200"),
    el("p", { class: "dim" }, "Every evaluation is kept, and shown here."),
  );

function compare(a, b) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function heading(view, key, name, changed) {
  const { sort, down } = view;
  const chosen = key === sort;
  const choose = () => {
    view.down = chosen ? !down : key !== "player" && key !== "board";
    view.sort = key;
    changed();
  };
  return el(
    "th",
    { scope: "col", "aria-sort": chosen ? (down ? "descending" : "ascending") : null },
    el(
      "button",
      { type: "button", class: "link", "data-key": key, onclick: choose },
      name,
      chosen ? (down ? " ▾" : " ▴") : "",
    ),
  );
}

function line(view, row, columns, changed) {
  const { chosen } = view;
  const key = idOf(row);
  const on = chosen.includes(key);
  const box = el("input", {
    type: "checkbox",
    checked: on,
    "aria-label": `Show ${row.player}`,
    onchange: () => {
      view.chosen = on ? chosen.filter((each) => each !== key) : [...chosen, key].slice(-SHOWN);
      changed();
    },
  });
  return el(
    "tr",
    { class: on ? "open" : "", title: row.command },
    el("td", { class: "box" }, box),
    columns.map(([column, title, value]) =>
      el(
        "td",
        { class: KINDS[column] ?? "more", "data-label": title },
        (SHOW[column] ?? String)(value(row), row) ?? "–",
      ),
    ),
  );
}
