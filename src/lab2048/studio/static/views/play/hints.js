// What a judge says: hints for the next move, and a mark for the last one.

import { get } from "../../api.js";
import { fill } from "../../dom.js";
import { AUTO } from "../../fields.js";
import { ARROWS, DIRECTIONS, hex } from "../../game.js";
import { GRADES, gradeSign, lostText, markSentence, verdict } from "../../marks.js";
import { usualPlayer } from "../../server_facts.js";
import { solvePanel } from "../../solve_panel.js";

const SHOWN = 14; // marks of the last moves
const PATIENCE = 1500; // milliseconds; a mark that comes later is not shown

async function question(judge, rules, ranks, signal) {
  const params = { board: hex(ranks), rules: rules.name, p4: rules.p4 };
  let spec = judge;
  if (judge === AUTO && rules.cells > 12) spec = await usualPlayer(rules);
  else if (judge === AUTO) {
    const exact = await get("/api/analyse", params, signal);
    if (exact.value !== null || exact.terminal) return { analysis: exact, spec: "" };
    spec = await usualPlayer(rules);
  }
  const analysis = await get("/api/analyse", { ...params, player: spec || null }, signal);
  return { analysis, spec };
}

// Ask about the current board. The previous request goes on, as its answer grades the last move.
export function ask(view, { another = false } = {}) {
  const { game, parts, hints } = view;
  if (another) view.asking?.stop.abort();
  if (game.over) {
    view.asking = null;
    parts.bars.clear();
    fill(parts.note);
    return;
  }
  const stop = new AbortController();
  const mine = { stop, answer: question(view.judge, game.rules, game.board, stop.signal) };
  view.asking = mine;
  mine.answer
    .then((answer) => {
      if (view.asking === mine && view.alive) showAnswer(view, answer);
    })
    .catch((error) => {
      if (error.name !== "AbortError" && view.asking === mine) {
        parts.bars.clear();
        fill(parts.note, error.message);
      }
    });
  if (!hints) parts.bars.clear();
  parts.bars.element.classList.toggle("off", !hints);
}

function showAnswer(view, { analysis, spec }) {
  const { bars, note } = view.parts;
  const found = verdict(analysis, spec);
  if (view.hints && !found.empty) bars.show(found);
  else bars.clear();
  fill(note, noteOn(analysis, found, view.hints));
  if (analysis.solvable) offerToSolve(view);
}

// What the values mean or, if there are none, why.
function noteOn(analysis, found, hints) {
  if (found.empty) return analysis.note;
  if (!hints) return null;
  if (found.exact) return "expected score under perfect play";
  const [[player, { meaning }]] = Object.entries(analysis.players);
  return `${player}: ${meaning}`;
}

function offerToSolve(view) {
  const { solve } = view.parts;
  const { rules } = view.game;
  if (solve.childElementCount) return;
  const alive = () => view.alive && view.game.rules.name === rules.name;
  const done = () => {
    fill(solve);
    ask(view);
  };
  fill(solve, solvePanel(rules, alive, done));
}

// Grade the move just made, by the answer about the board before it.
export async function judgeMove(view, asked, d, count) {
  if (!asked) return;
  const pending = { d }; // if another object takes its place, the game or the move has changed
  view.marks[count - 1] = pending;
  const early = new Promise((resolve) => {
    setTimeout(resolve, PATIENCE, null);
  });
  const answer = await Promise.race([asked.answer.catch(() => null), early]);
  if (!answer) asked.stop.abort();
  if (!answer || !view.alive || view.marks[count - 1] !== pending) return;
  const found = verdict(answer.analysis, answer.spec);
  if (found.empty || !found.marks[d]) return;
  pending.name = found.marks[d];
  paintMarks(view);
  if (view.game.moves.length === count) showMark(view.parts.mark, found, d);
}

function showMark(place, { marks, regrets, best, exact, better }, d) {
  const lost = lostText(marks[d], regrets[d], best, exact);
  fill(place, markSentence(marks[d], better, lost, `${DIRECTIONS[d]}: `));
}

// Show the known marks of the last moves.
export function paintMarks({ marks, parts }) {
  const last = Array.from(marks.slice(-SHOWN)); // without holes
  const names = last.map((each) => each?.name ?? "none");
  parts.trail.setAttribute("aria-label", `Marks of the last moves: ${names.join(", ")}`);
  const shown = last.map((each) => {
    if (!each?.name) return null;
    return gradeSign(each.name, `${ARROWS[each.d]} ${GRADES[each.name].word}`);
  });
  fill(parts.trail, shown);
}
