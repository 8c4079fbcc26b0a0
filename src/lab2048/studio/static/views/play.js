// Play: a game by keyboard or finger, with hints and a mark for every move.

import { analysisOf, reviewOf } from "../addresses.js";
import { onSwipe } from "../board.js";
import { bestScore, keepGame, keepSetting, offerBest, setting } from "../browser_storage.js";
import { el, field, fill } from "../dom.js";
import { AUTO, fourInput, sizeSelect } from "../fields.js";
import { DIRECTIONS, Game, Rules, newSeed } from "../game.js";
import { whole } from "../numbers.js";
import { addressOf, gameOf, unfinished } from "./play/address.js";
import { ask, judgeMove, paintMarks } from "./play/hints.js";
import { layOut } from "./play/layout.js";

export { unfinished };
export const TITLE = "Play";
export const KEYS = [
  ["↑ → ↓ ←", "move; also W A S D or H J K L"],
  ["u", "take a move back"],
  ["n", "new game"],
  ["y", "once more, in practice"],
  ["i", "hints on or off"],
  ["r", "review this game"],
  ["x", "analyse this position"],
];
const MOVES = {
  ArrowUp: 0,
  ArrowRight: 1,
  ArrowDown: 2,
  ArrowLeft: 3,
  w: 0,
  d: 1,
  s: 2,
  a: 3,
  k: 0,
  l: 1,
  j: 2,
  h: 3,
};
const SHORT = 10; // moves; games up to this length are not kept for a review

export function open(root, params, hash, page) {
  const view = {
    page,
    game: null,
    undone: false, // whether a move was taken back: such a game does not count for the best score
    judge: AUTO,
    hints: setting("hints", false),
    marks: [], // one for each move: { d, name }
    asking: null, // the question about the board that is shown: { answer, stop }
    alive: true,
  };
  view.parts = layOut(root, view.hints, actionsOf(view));
  onSwipe(view.parts.board.element, (d) => move(view, d));
  arrive(view, params, hash);
  return {
    arrive: (newParams, newHash) => arrive(view, newParams, newHash),
    key: (event) => pressed(view, event),
    leave: () => leave(view),
  };
}

// What the buttons and fields of the page do.
const actionsOf = (view) => ({
  move: (d) => move(view, d),
  undo: () => undo(view),
  fresh: () => fresh(view),
  retry: () => retry(view),
  review: () => review(view),
  analyse: () => analyse(view),
  showHints: (on) => showHints(view, on),
  chooseJudge: (spec) => {
    view.judge = spec;
    setAddress(view);
    ask(view);
  },
});

function pressed(view, event) {
  const d = MOVES[event.key] ?? MOVES[event.key.toLowerCase()];
  if (d !== undefined) {
    if (!event.repeat || !view.parts.board.pending) move(view, d);
  } else if (event.key === "u") undo(view);
  else if (event.key === "n") fresh(view);
  else if (event.key === "y") retry(view);
  else if (event.key === "i") showHints(view, !view.hints);
  else if (event.key === "r") review(view);
  else if (event.key === "x") analyse(view);
  else return false;
  return true;
}

// -- arriving and leaving -----------------------------------------------------------------------

function arrive(view, params, hash) {
  const named = params.get("judge");
  view.judge = named === null ? AUTO : named === "table" ? "" : named;
  try {
    const { game, legal } = gameOf(params, hash);
    if (!legal) view.page.fail("the moves in this address are not legal");
    begin(view, game);
    keepSetting("size", game.rules.name);
  } catch (error) {
    view.page.fail(error);
    begin(view, new Game(new Rules(4, 4), newSeed()));
  }
}

function leave(view) {
  view.alive = false;
  view.asking?.stop.abort();
  keep(view);
}

function keep({ game }) {
  if (game?.moves.length > SHORT) keepGame(game.record());
}

function setAddress({ page, game, judge }, push = false) {
  page.setAddress(addressOf(game, judge), { push });
}

// -- games --------------------------------------------------------------------------------------

// Show a game, with the moves made so far.
function begin(view, game, push = false) {
  keep(view);
  Object.assign(view, { game, undone: false, marks: [] });
  const { board, mark, solve, practice } = view.parts;
  fill(mark);
  fill(solve);
  paintMarks(view);
  board.show(game.board, game.rules.rows, game.rules.cols);
  practice.hidden = !game.start;
  showSettings(view);
  showNumbers(view);
  setAddress(view, push);
  ask(view, { another: true });
}

// Go to another game, if the current one may be left.
async function another(view, game, said) {
  if (await view.page.go(addressOf(game, view.judge))) view.page.say(said);
  else if (view.alive) showSettings(view); // show its own board and p4 again
}

function fresh(view, rules = view.game.rules) {
  another(view, new Game(rules, newSeed()), `New game on ${rules.name}`);
}

// Start again from the same position with other spawns. After a few moves this does not ask for
// confirmation, as short tries are part of practice.
function retry(view) {
  const { game } = view;
  if (!game.start) return;
  const made = new Game(game.rules, newSeed(), { start: game.start });
  const said = "once more from the same position";
  if (game.moves.length > SHORT) another(view, made, said);
  else {
    begin(view, made, true);
    view.page.say(said);
  }
}

function move(view, d) {
  const { game, page, parts } = view;
  if (game.over) return;
  const before = view.asking;
  const made = game.play(d);
  if (!made) {
    fill(parts.mark, el("span", { class: "dim" }, `${DIRECTIONS[d]} moves nothing`));
    return;
  }
  parts.board.move(made, game.board);
  if (!view.undone && !game.start) offerBest(game.rules, game.score);
  showNumbers(view);
  setAddress(view);
  page.say(
    `${DIRECTIONS[d]}${made.reward ? `, ${made.reward} points` : ""}; score ${game.score}${game.over ? "; game over" : ""}`,
  );
  judgeMove(view, before, d, game.moves.length);
  if (game.over) keepGame(game.record());
  ask(view);
}

function undo(view) {
  const { game, marks, parts } = view;
  if (!game.undo()) return;
  view.undone = true;
  marks.length = Math.min(marks.length, game.moves.length);
  paintMarks(view);
  parts.board.show(game.board, game.rules.rows, game.rules.cols);
  showNumbers(view);
  setAddress(view);
  fill(
    parts.mark,
    el("span", { class: "dim" }, "taken back; this game no longer counts for the best score"),
  );
  view.page.say(`taken back; score ${game.score}`);
  ask(view);
}

// -- what is shown ------------------------------------------------------------------------------

function showSettings(view) {
  const { settings, picker } = view.parts;
  const { rules } = view.game;
  const size = sizeSelect(rules.name, (name) => fresh(view, Rules.parse(name, rules.p4)));
  const p4 = fourInput(rules.p4, (chance) =>
    fresh(view, new Rules(rules.rows, rules.cols, chance)),
  );
  fill(settings, field("board", size), field("p4", p4), field("judge", picker.element));
  picker.show(rules, view.judge).catch(view.page.fail);
}

function showNumbers({ game, parts }) {
  parts.score.textContent = whole(game.score);
  parts.moves.textContent = whole(game.moves.length);
  parts.best.textContent = whole(bestScore(game.rules));
  parts.undo.disabled = !game.moves.length;
  parts.ending.hidden = !game.over;
  if (game.over)
    fill(
      parts.ending,
      el("strong", {}, "Game over"),
      el("span", {}, `${whole(game.score)} points, largest tile ${2 ** Math.max(...game.board)}`),
    );
}

function showHints(view, on) {
  view.hints = on;
  view.parts.hintBox.checked = on;
  keepSetting("hints", on);
  ask(view);
}

// -- other views --------------------------------------------------------------------------------

function review({ game, page }) {
  if (!game.moves.length) {
    page.fail("there is nothing to review yet: make some moves first");
    return;
  }
  const record = game.record();
  keepGame(record);
  page.go(reviewOf(record));
}

function analyse({ game, page }) {
  page.go(analysisOf(game.board, game.rules));
}
