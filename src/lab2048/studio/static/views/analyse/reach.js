// The chance of reaching each tile from a position, for a player that aims at just that tile.

import { get } from "../../api.js";
import { el, fill } from "../../dom.js";
import { percent } from "../../numbers.js";

const AT_ONCE = 6; // cells; the tables of larger boards take a while to make

// Show the chances if the board is tiny, or too large for tables to be made here; in between, a
// button that asks for them.
export function offerReach({ parts, rules, small }, params, signal) {
  const load = () => showReach(parts.reach, params, signal);
  if (rules.cells <= AT_ONCE || rules.cells > small) load();
  else
    fill(parts.reach, el("button", { type: "button", onclick: load }, "Chance to reach each tile"));
}

async function showReach(place, params, signal) {
  const title = el("h2", {}, "Chance to reach");
  fill(place, title, el("p", { class: "dim" }, "Solving for each tile, once…"));
  try {
    const { chances, note } = await get("/api/reach", params, signal);
    const rows = Object.entries(chances).filter(([name]) => Number(name) > 4);
    const bars = el(
      "div",
      { class: "reach-list" },
      rows.map(([name, chance]) => chanceBar(name, chance)),
    );
    const about = note ?? "For a player that aims at just that tile.";
    fill(place, title, rows.length ? bars : null, el("p", { class: "dim" }, about));
  } catch (error) {
    if (error.name !== "AbortError") fill(place, el("p", { class: "trouble" }, error.message));
  }
}

function chanceBar(name, chance) {
  const bar = el("span", { class: "bar" });
  bar.style.width = `${100 * chance}%`;
  return el(
    "div",
    { class: "bar-row" },
    el("span", { class: "move" }, name),
    el("span", { class: "track" }, bar),
    el("span", { class: "value" }, percent(chance, 2)),
  );
}
