// A game judged by the server, which streams its answer as lines, some moves at a time.

import { postLines } from "../../api.js";
import { el, fill } from "../../dom.js";
import { DIRECTIONS, recordJson } from "../../game.js";
import { lostText, markSentence } from "../../marks.js";
import { whole } from "../../numbers.js";

// Have the game judged; a review in progress is aborted. `done` is called at the end.
export async function judgeGame(view, done) {
  view.stop.abort();
  view.stop = new AbortController();
  const { signal } = view.stop;
  Object.assign(view, { steps: [], summary: null });
  const { head, bar, facts, counts, caveat, graph, worst, list } = view.parts;
  bar.hidden = false;
  bar.value = 0;
  for (const part of [facts, counts, caveat, graph, worst, list]) fill(part);
  head.textContent = "Judging…";
  try {
    const body = `{"game": ${recordJson(view.record)}, "judge": ${JSON.stringify(view.judge || null)}}`;
    for await (const line of postLines("/api/review", body, signal)) {
      if (signal.aborted) return;
      hear(view, line);
    }
    if (!view.summary) throw new Error("the review broke off; try again");
    bar.hidden = true;
    done();
  } catch (error) {
    if (error.name === "AbortError") return;
    bar.hidden = true;
    fill(head, el("span", { class: "trouble" }, error.message));
  }
}

// Handle a line of the answer: the judge, the steps of some moves, the summary, or an error.
function hear(view, line) {
  const { head, bar, caveat } = view.parts;
  if (line.error) throw new Error(line.error);
  if (line.judge) {
    const { judge, exact, points } = line;
    Object.assign(view, { judgeName: judge, exact, points });
    fill(caveat, line.caveat);
    head.textContent = `Judging by ${judge}…`;
  }
  if (line.steps) {
    view.steps.push(...line.steps);
    bar.value = view.steps.length / view.played.turns.length;
    tellMove(view);
  }
  if (line.summary) view.summary = line.summary;
}

// Say what is known about the move that is shown.
export function tellMove({ played, at, steps, exact, parts }) {
  const turn = played.turns[at];
  const said = `Move ${at + 1} of ${played.turns.length}, score ${whole(turn.score)}: ${DIRECTIONS[turn.move]} `;
  const step = steps[at];
  if (!step) {
    fill(parts.told, said);
    return;
  }
  const { mark, regret, value, best } = step;
  fill(parts.told, said, markSentence(mark, best, lostText(mark, regret, value, exact)));
}
