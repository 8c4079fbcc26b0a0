// The spawns after a move; each leads to a position to continue from.

import { smallBoard } from "../../board.js";
import { el, fill } from "../../dom.js";
import { DIRECTIONS, parseBoard } from "../../game.js";
import { number, percent } from "../../numbers.js";

export function showSpawns(view, spawns) {
  const place = view.parts.spawns;
  if (!spawns) {
    fill(place);
    return;
  }
  const exact = spawns.some((spawn) => spawn.value !== null);
  const ordered = [...spawns].sort((a, b) => a.tile - b.tile || (b.value ?? 0) - (a.value ?? 0));
  fill(
    place,
    el("h2", {}, `After ${DIRECTIONS[view.after]}`),
    el(
      "p",
      { class: "dim" },
      "Every tile that may come, with its chance",
      exact
        ? " and the value of the position it makes; click on one to go on."
        : "; click on one to go on.",
    ),
    el(
      "div",
      { class: "spawn-list" },
      ordered.map((spawn) => spawnButton(view, spawn)),
    ),
  );
}

function spawnButton({ rules, actions }, spawn) {
  const { ranks } = parseBoard(spawn.board);
  const [row, column] = [Math.floor(spawn.cell / rules.cols) + 1, (spawn.cell % rules.cols) + 1];
  const chance = percent(spawn.probability);
  return el(
    "button",
    {
      type: "button",
      class: "spawn",
      "data-board": spawn.board,
      "aria-label": `${spawn.tile} at row ${row}, column ${column}, ${chance}`,
      onclick: () => actions.walk(ranks),
    },
    smallBoard(ranks, rules.rows, rules.cols),
    el("span", { class: "chance" }, `${spawn.tile} · ${chance}`),
    spawn.value === null ? null : el("span", { class: "value" }, number(spawn.value, 1)),
  );
}
