// Review: a game move by move, its mistakes, and the chance to try again.

import { analysisOf, practiceFrom, reviewOf, rulesOf } from "../addresses.js";
import { keepGame } from "../browser_storage.js";
import { moveCursor } from "../chart.js";
import { fill } from "../dom.js";
import { AUTO } from "../fields.js";
import { replay } from "../game.js";
import { isMistake } from "../marks.js";
import { percent } from "../numbers.js";
import { fragmentOf, recordOf } from "./review/address.js";
import { showChoice } from "./review/choose.js";
import { judgeGame, tellMove } from "./review/judging.js";
import { layOut, makeParts } from "./review/layout.js";
import { showSummary } from "./review/summary.js";

export const TITLE = "Review";
export const KEYS = [
  ["← →", "one move back, on"],
  ["Home or End", "the first, the last move"],
  ["PageUp or PageDown", "ten moves back, on"],
  ["m", "the next mistake"],
  ["M", "the mistake before"],
  ["p", "practise this position"],
  ["x", "analyse this position"],
];
const JUMP = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };

export function open(root, params, hash, page) {
  const view = {
    page,
    record: null, // the game, null while one is chosen
    played: null, // its turns, each with the board before the move
    fragment: "", // its moves, as the address has them
    at: 0, // the move that is shown
    judge: "", // the spec of the judge; "" leaves the choice to the server
    judgeName: "",
    points: false, // whether the judge's values are points
    exact: false, // whether the judge is exact: only then are losses in points
    steps: [], // the moves judged so far
    summary: null,
    stop: new AbortController(),
  };
  view.actions = actionsOf(view);
  view.parts = makeParts(view.actions);
  fill(root, view.parts.shell);
  arrive(view, params, hash);
  return {
    arrive: (newParams, newHash) => arrive(view, newParams, newHash),
    key: (event) => pressed(view, event),
    leave() {
      view.stop.abort();
      if (view.record?.player === "you") keepGame(view.record);
    },
  };
}

// What the buttons and fields of the page do.
const actionsOf = (view) => ({
  step: (to) => step(view, to),
  back: () => step(view, view.at - 1),
  on: () => step(view, view.at + 1),
  nextMistake: () => findMistake(view, 1),
  practise: () => practise(view),
  analyse: () => analyse(view),
  choose: () => choose(view),
  chooseJudge: (spec) => {
    view.judge = spec === AUTO ? "" : spec;
    setAddress(view);
    judge(view);
  },
});

function pressed(view, event) {
  if (!view.record) return false;
  if (event.key in JUMP) {
    if (event.target === view.parts.slider) return false;
    step(view, view.at + JUMP[event.key]);
  } else if (event.key === "Home") step(view, 0);
  else if (event.key === "End") step(view, view.played.turns.length - 1);
  else if (event.key === "m") findMistake(view, 1);
  else if (event.key === "M") findMistake(view, -1);
  else if (event.key === "p") practise(view);
  else if (event.key === "x") analyse(view);
  else return false;
  return true;
}

// -- which game ---------------------------------------------------------------------------------

function arrive(view, params, hash) {
  if (!hash) {
    choose(view);
    return;
  }
  try {
    view.judge = params.get("judge") ?? "";
    const move = Number(params.get("at")) || 0;
    load(view, recordOf(params, hash), { move, push: false });
  } catch (error) {
    view.page.fail(error);
    choose(view);
  }
}

function choose(view) {
  view.stop.abort();
  view.record = null;
  view.page.setAddress("/review");
  showChoice(view.parts.shell, view.page, (record) => load(view, record));
}

function load(view, record, { move = 0, push = true } = {}) {
  let played;
  try {
    played = replay(record);
  } catch (error) {
    view.page.fail(error);
    return;
  }
  const last = played.turns.length - 1;
  if (last < 0) {
    view.page.fail("this game has no moves");
    return;
  }
  const fragment = fragmentOf(record);
  Object.assign(view, { record, played, fragment, at: Math.min(move, last) });
  setAddress(view, push);
  view.parts.slider.max = last;
  layOut(view.parts, view.actions);
  view.parts.picker.show(rulesOf(record), view.judge || AUTO).catch(view.page.fail);
  step(view, view.at);
  judge(view);
}

function setAddress({ page, record, judge, at, fragment }, push = false) {
  page.setAddress(reviewOf(record, { fragment, judge, at }), { push });
}

function judge(view) {
  judgeGame(view, () => {
    showSummary(view, view.actions.step);
    step(view, view.at);
    view.page.say(`reviewed: accuracy ${percent(view.summary.accuracy)}`);
  });
}

// -- which move ---------------------------------------------------------------------------------

function step(view, to) {
  const { played, record, parts } = view;
  if (!played) return;
  const target = Math.max(0, Math.min(played.turns.length - 1, to));
  const forward = target === view.at + 1;
  view.at = target;
  const turn = played.turns[target];
  const { rows, cols } = record.rules;
  if (forward && parts.board.rows) parts.board.move(played.turns[target - 1], turn.board);
  else parts.board.show(turn.board, rows, cols);
  parts.slider.value = target;
  setAddress(view);
  tellMove(view);
  for (const line of parts.graph.querySelectorAll(".cursor")) moveCursor(line, target + 1);
  showCurrent(parts.list, target);
}

// Mark a move in the list of all moves, and scroll the list to it, never the page.
function showCurrent(list, at) {
  for (const chip of list.querySelectorAll(".chip[aria-current]"))
    chip.removeAttribute("aria-current");
  const chip = list.querySelector(`[data-index="${at}"]`);
  chip?.setAttribute("aria-current", "true");
  if (chip) list.scrollTop = chip.offsetTop - list.clientHeight / 2;
}

function findMistake(view, way) {
  const { steps, page } = view;
  for (let i = view.at + way; i >= 0 && i < steps.length; i += way)
    if (isMistake(steps[i].mark)) {
      step(view, i);
      return;
    }
  page.fail(way > 0 ? "no more mistakes after this move" : "no mistakes before this move");
}

// -- other views --------------------------------------------------------------------------------

function practise({ page, record, played, at }) {
  page.go(practiceFrom(played.turns[at].board, rulesOf(record)));
}

function analyse({ page, record, played, at }) {
  page.go(analysisOf(played.turns[at].board, rulesOf(record)));
}
