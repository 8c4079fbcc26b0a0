// A game and its address: the rules and the seed, and after the # its moves.

import { Game, Rules, fromHex, packMoves, parseSeed, replay, unpackMoves } from "../../game.js";

export const rulesOf = ({ rules: { rows, cols, p4 } }) => new Rules(rows, cols, p4);

// The part of an address after the #: the moves, and the spawns unless they follow from the seed.
export function fragmentOf(record) {
  const moves = packMoves([...record.moves].map(Number));
  return spawnsFollow(record) ? moves : `${moves}.${record.spawns}`;
}

function spawnsFollow({ rules, seed, index, start, moves, spawns }) {
  if (seed === null) return false;
  const from = start ? fromHex(start) : null;
  const game = new Game(rulesOf({ rules }), seed, { index: index ?? 0, start: from });
  for (const digit of moves) if (!game.play(Number(digit))) return false;
  return game.record().spawns === spawns;
}

// The game of an address.
export function recordOf(params, fragment) {
  const rules = Rules.parse(params.get("rules"), params.get("p4") ?? 0.1);
  const [packed, spawns] = fragment.split(".");
  const moves = unpackMoves(packed);
  const index = Number(params.get("index") ?? 0);
  const start = params.get("start");
  const by = params.get("by") ?? "you";
  if (spawns) {
    const seed = params.get("seed") ? parseSeed(params.get("seed")) : null;
    return withSpawns({ rules, by, seed, index, start, moves, spawns });
  }
  const from = start ? fromHex(start) : null;
  const game = new Game(rules, parseSeed(params.get("seed")), { index, start: from });
  for (const d of moves)
    if (!game.play(d)) throw new Error("the moves in this address are not legal");
  return game.record(by);
}

function withSpawns({ rules: { rows, cols, p4 }, by, seed, index, start, moves, spawns }) {
  const record = {
    format: 1,
    rules: { rows, cols, p4 },
    player: by,
    seed,
    index,
    moves: moves.join(""),
    spawns,
    ...(start ? { start } : {}),
  };
  const end = replay(record);
  return { ...record, score: end.score, max_tile: 2 ** Math.max(...end.board) };
}
