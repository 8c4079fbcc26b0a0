// A game in an address: the rules and the seed, and after the # its moves.

import { movesOf, rulesIn, rulesOf, seedIn } from "../../addresses.js";
import { Game, fromHex, makeRecord, parseSeed, replay, unpackMoves } from "../../game.js";

// The part of an address after the #: the moves, and the spawns unless they follow from the seed.
export function fragmentOf(record) {
  const moves = movesOf(record);
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
  const [packed, spawns] = fragment.split(".");
  const found = {
    rules: rulesIn(params),
    player: params.get("by") ?? "you",
    index: Number(params.get("index") ?? 0),
    start: params.get("start"),
    moves: unpackMoves(packed).join(""),
  };
  if (!spawns) return played({ ...found, seed: parseSeed(params.get("seed")) });
  const game = { ...found, seed: seedIn(params), spawns };
  return makeRecord({ ...game, ...replay(game) });
}

// A game whose spawns follow from its seed.
function played({ rules, player, seed, index, start, moves }) {
  const game = new Game(rules, seed, { index, start: start ? fromHex(start) : null });
  for (const digit of moves)
    if (!game.play(Number(digit))) throw new Error("the moves in this address are not legal");
  return game.record(player);
}
