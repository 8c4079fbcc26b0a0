// Results: past evaluations side by side, and solved boards.

import { get, query } from "../api.js";
import { el, fill } from "../dom.js";
import { sizeText } from "../game.js";
import { drawDetails } from "./results/details.js";
import { drawEvaluations, isColumn, newest } from "./results/evaluations.js";
import { drawBoards } from "./results/solved_boards.js";

export const TITLE = "Results";
export const KEYS = [
  ["Tab", "through the tables"],
  ["Enter", "sort by a column, show a survey"],
  ["space", "tick a row, to compare it"],
];

export function open(root, params, hash, page) {
  const view = {
    page,
    rows: [], // one per player and evaluation
    solved: null, // the tables, and the jobs in progress
    sort: "made", // the column, and whether the largest comes first
    down: true,
    only: "", // the board whose rows are shown; "" for all
    chosen: [], // the rows that are ticked
    survey: "", // the table whose survey is open
    detailed: null, // identifies the last call of drawDetails
    alive: true,
  };
  view.parts = layOut(root, (board) => {
    view.only = board;
    changed(view);
  });
  readAddress(view, params);
  load(view);
  return {
    arrive(newParams) {
      readAddress(view, newParams);
      if (view.solved) draw(view);
    },
    leave() {
      view.alive = false;
    },
  };
}

function layOut(root, chooseBoard) {
  const filter = el("select", {
    "aria-label": "Board",
    onchange: () => chooseBoard(filter.value),
  });
  const parts = {
    filter,
    table: el("div", { class: "wide" }),
    details: el("div", { class: "details" }),
    boards: el("section"),
  };
  const head = el(
    "div",
    { class: "head" },
    el("h1", {}, "Results"),
    el("div", { class: "row" }, el("label", { class: "field" }, el("span", {}, "board"), filter)),
  );
  fill(root, head, parts.table, parts.details, parts.boards);
  return parts;
}

// -- the address --------------------------------------------------------------------------------

function readAddress(view, params) {
  const sort = params.get("sort");
  Object.assign(view, {
    sort: isColumn(sort) ? sort : "made",
    down: params.get("order") !== "up",
    only: params.get("board") ?? "",
    chosen: params.getAll("show"),
    survey: params.get("table") ?? "",
  });
}

function setAddress({ page, sort, down, only, chosen, survey }) {
  page.setAddress(
    query("/results", {
      sort: sort === "made" ? null : sort,
      order: down ? null : "up",
      board: only || null,
      show: chosen,
      table: survey || null,
    }).replace(/\?$/, ""),
  );
}

// -- what is shown ------------------------------------------------------------------------------

async function load(view) {
  const { parts } = view;
  fill(parts.table, el("p", { class: "dim" }, "Loading…"));
  try {
    const [results, solved] = await Promise.all([get("/api/results"), get("/api/tables")]);
    if (!view.alive) return;
    view.rows = results.flatMap(({ name, made, command, results: each }) =>
      each.map((row, place) => ({ ...row, name, made, command, place })),
    );
    view.solved = solved;
    fillFilter(view);
    if (!view.chosen.length && view.rows.length) view.chosen = newest(view.rows);
    draw(view);
  } catch (error) {
    fill(parts.table, el("p", { class: "trouble" }, error.message));
  }
}

function fillFilter({ rows, only, parts }) {
  const boards = [...new Set(rows.map((row) => row.board))].sort();
  fill(
    parts.filter,
    el("option", { value: "" }, "all boards"),
    boards.map((name) => el("option", { value: name, selected: name === only }, sizeText(name))),
  );
}

function draw(view) {
  drawRows(view);
  drawBoards(view, () => setAddress(view));
}

function drawRows(view) {
  drawEvaluations(view, () => changed(view));
  drawDetails(view);
}

// Redraw the evaluations after another order, board or row was chosen.
function changed(view) {
  setAddress(view);
  drawRows(view);
}
