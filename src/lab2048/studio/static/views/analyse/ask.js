// Requests about the current position: first exact values, then players' opinions.

import { get } from "../../api.js";
import { el, fill } from "../../dom.js";
import { DIRECTIONS, hex } from "../../game.js";
import { solvePanel } from "../../solve_panel.js";
import { showAnswer } from "./move_table.js";
import { offerReach } from "./reach.js";
import { showSpawns } from "./spawns.js";

const SLOW = 400; // milliseconds after which the page says why an answer takes so long
const WAITING = {
  meaning: "",
  values: Object.fromEntries(DIRECTIONS.map((name) => [name, null])),
  choice: null,
};

// Ask about the current position; the previous request is aborted.
export async function ask(view) {
  view.asking.abort();
  view.asking = new AbortController();
  const { signal } = view.asking;
  const { verdict, reach } = view.parts;
  fill(reach);
  if (view.ranks.every((rank) => !rank)) {
    showNothing(
      view,
      "Set up a position: choose a tile below the board and click on cells, or paste it as text.",
    );
    return;
  }
  const slow = setTimeout(() => {
    if (!signal.aborted)
      verdict.textContent =
        "Thinking… the first time, a small board is solved and a player is compiled.";
  }, SLOW);
  try {
    await answer(view, signal, slow);
  } catch (error) {
    if (error.name !== "AbortError")
      showNothing(view, el("span", { class: "trouble" }, error.message));
  } finally {
    clearTimeout(slow);
  }
}

// Ask and show. Exact values come at once; players may take a while.
async function answer(view, signal, slow) {
  const { rules, ranks, specs, after } = view;
  const params = { board: hex(ranks), rules: rules.name, p4: rules.p4 };
  const move = after === null ? null : DIRECTIONS[after];
  const exact = await get("/api/analyse", { ...params, after: move }, signal);
  if (signal.aborted) return;
  if (specs.length && !exact.terminal) {
    if (exact.value !== null) {
      const waiting = Object.fromEntries(specs.map((spec) => [spec, WAITING]));
      show(view, { ...exact, players: waiting });
      clearTimeout(slow);
    }
    const { players, troubles } = await thoughtsOn(params, specs, signal);
    if (signal.aborted) return;
    show(view, { ...exact, players }, troubles);
  } else show(view, exact);
  if (exact.value !== null) offerReach(view, params, signal);
}

// Players' opinions, and the errors of those that failed.
async function thoughtsOn(params, specs, signal) {
  const found = await Promise.allSettled(
    specs.map((player) => get("/api/analyse", { ...params, player }, signal)),
  );
  return {
    players: Object.assign({}, ...found.map((each) => each.value?.players)),
    troubles: found.flatMap((each) => (each.reason ? [each.reason.message] : [])),
  };
}

function show(view, found, troubles = []) {
  view.shown = found;
  showAnswer(view, found, troubles);
  if (found.solvable) view.parts.note.append((view.solving ??= panelFor(view)));
  showSpawns(view, found.spawns);
}

function panelFor(view) {
  const done = () => {
    view.solving = null;
    ask(view);
  };
  return solvePanel(view.rules, () => view.alive, done);
}

function showNothing({ parts }, said) {
  fill(parts.verdict, said);
  for (const part of [parts.grid, parts.spawns, parts.note]) fill(part);
}
