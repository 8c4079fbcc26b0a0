// The rows that are ticked, side by side: scores, tiles, regret, and the largest mistakes.

import { analysisOf } from "../../addresses.js";
import { get } from "../../api.js";
import { el, fill } from "../../dom.js";
import { Rules, parseBoard } from "../../game.js";
import { number, whole } from "../../numbers.js";
import { SHARE, card } from "./chart_card.js";
import { idOf } from "./evaluations.js";

const MISTAKES = 2; // listed per player
const SPREAD = 20; // the ratio of scores above which their axis is logarithmic

// Draw the ticked rows. Only the last call counts, as answers may arrive out of order.
export async function drawDetails(view) {
  const { rows, chosen, page, parts } = view;
  const mine = (view.detailed = {});
  if (!rows.length) {
    fill(parts.details);
    return;
  }
  const picked = rows.filter((row) => chosen.includes(idOf(row)));
  if (!picked.length) {
    fill(parts.details, el("p", { class: "dim" }, "Tick rows to see their scores and tiles."));
    return;
  }
  let full;
  try {
    full = await wholeRows(picked);
  } catch (error) {
    page.fail(error);
    return;
  }
  if (!view.alive || mine !== view.detailed) return;
  const judged = full.filter((row) => row.optimal);
  const cards = [scores(full), tiles(full), regrets(judged)].filter(Boolean);
  fill(parts.details, el("div", { class: "charts" }, cards), mistakes(judged));
}

// Rows with their full results, and a label that tells them apart.
async function wholeRows(picked) {
  const files = new Map();
  for (const name of new Set(picked.map((row) => row.name)))
    files.set(name, await get(`/api/results/${name}`));
  const isTwice = (row) => picked.filter((other) => other.player === row.player).length > 1;
  return picked.map((row) => ({
    ...files.get(row.name).results[row.place],
    label: isTwice(row) ? `${row.player} (${row.board}, ${row.games})` : row.player,
  }));
}

// -- charts -------------------------------------------------------------------------------------

function scores(full) {
  const highest = Math.max(...full.map((row) => row.quantiles[100]));
  const middle = Math.max(1, Math.min(...full.map((row) => row.quantiles[50])));
  return card("Scores", "the share of games with at most this score", {
    series: full.map((row) => ({
      name: row.label,
      points: row.quantiles.map((score, i) => [Math.max(score, 1), i / 100]),
    })),
    log: highest > SPREAD * middle,
    xLabel: "score",
    yLabel: "games",
    ...SHARE,
    label: "Distribution of scores",
  });
}

function tiles(full) {
  const made = (row) => Object.keys(row.reach).map(Number);
  const names = [...new Set(full.flatMap(made))].sort((a, b) => a - b);
  const rate = (row, name) => row.reach[name]?.rate ?? (name < Math.min(...made(row)) ? 1 : 0);
  return card("Tiles", "the share of games that made each tile", {
    series: full.map((row) => ({
      name: row.label,
      marks: true,
      points: names.map((name, i) => [i, rate(row, name)]),
    })),
    names: names.map(String),
    xLabel: "tile",
    yLabel: "games",
    ...SHARE,
    label: "Tiles reached",
  });
}

function regrets(judged) {
  const bins = judged[0]?.optimal.by_gap.slice(1) ?? [];
  if (!bins.length) return null;
  const binName = ({ above, to }) =>
    to === null ? `above ${whole(above)}` : `${whole(above)}–${whole(to)}`;
  const about = "points lost per move, by what is at stake: d(s) is the best move less the worst";
  return card("Regret by d(s)", about, {
    series: judged.map((row) => ({
      name: row.label,
      marks: true,
      points: row.optimal.by_gap.slice(1).map((bin, i) => [i, bin.regret_per_move]),
    })),
    names: bins.map(binName),
    xLabel: "d(s), in score",
    yLabel: "points lost per move",
    yMin: 0,
    label: "Regret by gap",
  });
}

// -- mistakes -----------------------------------------------------------------------------------

function mistakes(judged) {
  const found = judged.flatMap((row) =>
    row.optimal.worst.slice(0, MISTAKES).map((each) => ({ ...each, row })),
  );
  if (!found.length) return null;
  return el(
    "section",
    {},
    el("h2", {}, "Largest mistakes"),
    el("ul", { class: "plain" }, found.map(mistake)),
  );
}

function mistake({ board, move, regret, row }) {
  const rules = Rules.parse(row.board, row.p4);
  const href = analysisOf(parseBoard(board, rules).ranks, rules);
  return el(
    "li",
    {},
    el("a", { href, "data-inside": "" }, board),
    ` – ${row.label} played ${move} and lost ${number(regret)}`,
  );
}
