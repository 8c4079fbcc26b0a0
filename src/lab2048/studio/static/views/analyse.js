// Analyse: set up a position, see what every move is worth, and walk through the tree of the game.

import { practiceFrom } from "../addresses.js";
import { query } from "../api.js";
import {
  DIRECTIONS,
  Game,
  Rules,
  boardText,
  fromHex,
  hex,
  legalMoves,
  newSeed,
  parseBoard,
} from "../game.js";
import { serverFacts, usualPlayer } from "../server_facts.js";
import { ask } from "./analyse/ask.js";
import { drawEditor, drawPalette, editorKey } from "./analyse/editor.js";
import { fillSettings, layOut } from "./analyse/layout.js";

export const TITLE = "Analyse";
export const KEYS = [
  ["↑ → ↓ ←", "the spawns after a move"],
  ["Enter", "the spawns after the best move"],
  ["Backspace", "back"],
  ["c", "clear the board"],
  ["g", "a position out of a random game"],
  ["p", "play on from here"],
  ["+ or -", "raise or lower the tile of the cell that has the focus; arrows go to another cell"],
  ["Delete or 0", "empty that cell"],
];
const MOVES = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3 };
const EXAMPLE = { board: "643512114", rules: "3x3" };
const ADDED = ["expectimax", "mcts", "montecarlo", "greedy"]; // players that + Player offers in turn

export function open(root, params, hash, page) {
  const view = {
    page,
    rules: null,
    ranks: null,
    specs: [], // the players that are asked besides the table
    after: null, // the move whose spawns are shown
    paint: 1, // the rank that a click puts into a cell
    focused: 0, // the cell that the Tab key leads to
    shown: null, // the analysis on the page
    solving: null, // the panel that offers to solve the board, and then shows how far that is
    most: 4, // players at a time
    small: 8, // boards of up to this many cells are solved on first use
    asking: new AbortController(),
    alive: true,
  };
  view.actions = actionsOf(view);
  view.parts = layOut(root, view.actions);
  learnLimits(view);
  arrive(view, params);
  return {
    arrive: (newParams) => arrive(view, newParams),
    key: (event) => pressed(view, event),
    leave() {
      view.alive = false;
      view.asking.abort();
    },
  };
}

// What the buttons and fields of the page do.
const actionsOf = (view) => ({
  clear: () => setPosition(view, emptyBoard(view.rules)),
  random: () => setPosition(view, randomPosition(view.rules)),
  play: () => play(view),
  copy: () => copy(view),
  readText: (text) => readText(view, text),
  readLines: (text) => {
    readText(view, text);
    view.parts.text.value = boardText(view.ranks, view.rules.cols);
  },
  setPosition: (ranks) => setPosition(view, ranks, { push: false }),
  pickMove: (d) => pickMove(view, d),
  walk: (ranks) => {
    setPosition(view, ranks);
    view.page.say(`position ${boardText(ranks, view.rules.cols)}`);
  },
  chooseSize: (size) => resize(view, size),
  chooseFour: (p4) => {
    view.rules = new Rules(view.rules.rows, view.rules.cols, p4);
    changed(view);
  },
  addPlayer: async () => {
    view.specs.push(await another(view));
    changed(view);
  },
  choosePlayer: (i, spec) => {
    view.specs[i] = spec;
    changed(view);
  },
  removePlayer: (i) => {
    view.specs.splice(i, 1);
    changed(view);
  },
});

function pressed(view, event) {
  if (event.target.closest(".editor") && editorKey(view, event)) return true;
  const { shown, actions } = view;
  const d = MOVES[event.key];
  if (d !== undefined) {
    if (shown?.moves[DIRECTIONS[d]].legal) pickMove(view, d);
  } else if (event.key === "Enter" && !event.target.closest("button, a")) {
    const best = bestMove(shown);
    if (best >= 0 && view.after !== best) pickMove(view, best);
  } else if (event.key === "Backspace") history.back();
  else if (event.key === "c") actions.clear();
  else if (event.key === "g") actions.random();
  else if (event.key === "p") actions.play();
  else return false;
  return true;
}

// -- arriving -----------------------------------------------------------------------------------

async function learnLimits(view) {
  try {
    const facts = await serverFacts();
    view.most = facts.most_players;
    view.small = facts.solved_at_once;
  } catch (error) {
    view.page.fail(error);
  }
}

async function arrive(view, params) {
  try {
    const wanted = params.get("board") ? params : new URLSearchParams(EXAMPLE);
    const size = wanted.get("rules");
    const found = parseBoard(wanted.get("board"), size ? Rules.parse(size) : null);
    view.rules = Rules.parse(`${found.rows}x${found.cols}`, params.get("p4") ?? 0.1);
    view.ranks = found.ranks;
    const after = DIRECTIONS.indexOf(params.get("after"));
    view.after = after === -1 ? null : after;
    const named = params.getAll("player").filter((spec) => spec !== "none");
    view.specs = params.has("player") ? named.slice(0, 4) : [await usualPlayer(view.rules)];
    if (!view.alive) return;
  } catch (error) {
    view.page.fail(error);
    const ranks = fromHex(EXAMPLE.board);
    Object.assign(view, { rules: new Rules(3, 3), ranks, after: null, specs: [] });
  }
  changed(view, { push: false });
}

// -- the position -------------------------------------------------------------------------------

const emptyBoard = (rules) => new Array(rules.cells).fill(0);

function randomPosition(rules) {
  const game = new Game(rules, newSeed());
  const length = 5 + Math.floor(Math.random() * 8 * rules.cells);
  while (game.moves.length < length && !game.over) {
    const moves = legalMoves(game.board, rules.rows, rules.cols);
    game.play(moves[Math.floor(Math.random() * moves.length)]);
  }
  if (game.over) game.undo();
  return game.board;
}

function setPosition(view, ranks, how) {
  Object.assign(view, { ranks, after: null });
  changed(view, how);
}

function readText(view, text) {
  try {
    const found = parseBoard(text, view.rules);
    view.rules = new Rules(found.rows, found.cols, view.rules.p4);
    setPosition(view, found.ranks);
  } catch (error) {
    view.page.fail(error);
    view.parts.text.value = boardText(view.ranks, view.rules.cols);
  }
}

async function resize(view, size) {
  const before = await usualPlayer(view.rules);
  view.rules = Rules.parse(size, view.rules.p4);
  view.ranks = emptyBoard(view.rules).with(0, 1).with(-1, 1);
  view.after = null;
  const usual = await usualPlayer(view.rules); // the default of another board is of no use here
  view.specs = [...new Set(view.specs.map((spec) => (spec === before ? usual : spec)))];
  changed(view);
}

async function another({ rules, specs }) {
  const nameOf = (spec) => spec.split(":")[0];
  const asked = specs.map(nameOf);
  const usual = await usualPlayer(rules);
  return [usual, ...ADDED].find((spec) => !asked.includes(nameOf(spec))) ?? "random";
}

// -- what is shown ------------------------------------------------------------------------------

function setAddress({ page, ranks, rules, specs, after }, push) {
  page.setAddress(
    query("/analyse", {
      board: hex(ranks),
      ...rules.query,
      player: specs.length ? specs : "none",
      after: after === null ? null : DIRECTIONS[after],
    }),
    { push },
  );
}

// Show the position and ask about it, after a change.
function changed(view, { push = true } = {}) {
  setAddress(view, push);
  fillSettings(view);
  view.focused = Math.min(view.focused, view.rules.cells - 1);
  drawEditor(view);
  drawPalette(view);
  ask(view);
}

// Show the spawns after a move, or hide them.
function pickMove(view, d) {
  view.after = view.after === d ? null : d;
  setAddress(view, true);
  ask(view);
}

// The best move by the table, else the choice of the first player; -1 if neither is known.
function bestMove(shown) {
  const [first] = Object.values(shown?.players ?? {});
  return DIRECTIONS.findIndex((name) =>
    shown?.value === null ? first?.choice === name : shown?.moves[name].optimal,
  );
}

// -- elsewhere ----------------------------------------------------------------------------------

function play({ ranks, rules, page }) {
  if (!legalMoves(ranks, rules.rows, rules.cols).length) {
    page.fail("no move is legal here, so there is nothing to play");
    return;
  }
  page.go(practiceFrom(ranks, rules));
}

async function copy({ page }) {
  try {
    await navigator.clipboard.writeText(location.href);
    page.tell("The address is on the clipboard.");
  } catch {
    page.fail(`Copy it from the address bar: ${location.href}`);
  }
}
