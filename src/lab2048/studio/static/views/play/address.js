// The address of a game: its rules, its seed, and after the # its moves.

import { rulesIn, seedIn } from "../../addresses.js";
import { query } from "../../api.js";
import { setting } from "../../browser_storage.js";
import { AUTO } from "../../fields.js";
import { Game, fromHex, hex, newSeed, packMoves, sizeText, unpackMoves } from "../../game.js";
import { whole } from "../../numbers.js";

// The game of an address, and whether all its moves are legal.
export function gameOf(params, hash) {
  const rules = rulesIn(params, setting("size", "4x4"));
  const start = params.get("start") ? fromHex(params.get("start")) : null;
  if (start && start.length !== rules.cells)
    throw new Error("the position in this address is of another board");
  const game = new Game(rules, seedIn(params) ?? newSeed(), { start });
  return { game, legal: unpackMoves(hash).every((d) => game.play(d)) };
}

export function addressOf({ rules, seed, start, moves }, judge) {
  const found = query("/play", {
    ...rules.query,
    seed: String(seed),
    start: start ? hex(start) : null,
    judge: judge === AUTO ? null : judge || "table",
  });
  return moves.length ? `${found}#${packMoves(moves)}` : found;
}

// The question to ask before leaving the game of an address; null if it is not in progress.
export function unfinished(address) {
  const { searchParams, hash } = new URL(address, location.href);
  const { game } = gameOf(searchParams, hash.slice(1));
  const count = game.moves.length;
  if (!count || game.over) return null;
  return {
    title: "Leave the running game?",
    text: `${count === 1 ? "One move has" : `${whole(count)} moves have`} been made on ${sizeText(game.rules.name)}, for ${whole(game.score)} points.`,
    yes: "Start another",
    no: "Keep this one",
  };
}
