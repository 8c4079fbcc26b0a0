// Addresses: links between views, and parameters that several views share.

import { query } from "./api.js";
import { Rules, hex, newSeed, packMoves, parseSeed } from "./game.js";

// -- what an address says -----------------------------------------------------------------------

export const rulesIn = (params, usual) =>
  Rules.parse(params.get("rules") ?? usual, params.get("p4") ?? 0.1);
export const seedIn = (params) => (params.get("seed") ? parseSeed(params.get("seed")) : null);
export const rulesOf = ({ rules: { rows, cols, p4 } }) => new Rules(rows, cols, p4);

// -- where a link leads -------------------------------------------------------------------------

// The analysis of a position.
export const analysisOf = (ranks, rules) =>
  query("/analyse", { board: hex(ranks), ...rules.query });

// A game that begins at a position.
export const practiceFrom = (ranks, rules) =>
  query("/play", { ...rules.query, start: hex(ranks), seed: String(newSeed()) });

// The review of a game; `fragment` has its moves, and its spawns unless they follow from the seed.
export function reviewOf(record, { fragment = movesOf(record), judge = "", at = 0 } = {}) {
  const { seed, index, start, player } = record;
  const facts = {
    ...rulesOf(record).query,
    seed: seed === null ? null : String(seed),
    index: index || null,
    start: start ?? null,
    by: player,
    judge: judge || null,
    at: at || null,
  };
  return `${query("/review", facts)}#${fragment}`;
}

export const movesOf = ({ moves }) => packMoves([...moves].map(Number));
