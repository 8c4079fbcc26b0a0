// The elements of Watch and their layout.

import { button, el, field, fill } from "../../dom.js";
import { PlayerPicker, fourInput, sizeSelect } from "../../fields.js";

export const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 250, 500, 1000, 0]; // 0: no limit

// Create the elements and put them into the page. `actions` are their handlers.
export function layOut(root, actions) {
  const parts = {
    settings: el("div", { class: "row" }),
    pair: el("div", { class: "pair" }),
    play: el("button", {
      type: "button",
      class: "primary",
      onclick: actions.toggle,
      title: "Pause or go on (space)",
    }),
    slider: el("input", {
      type: "range",
      min: 0,
      max: SPEEDS.length - 1,
      step: 1,
      "aria-label": "Speed",
      oninput: (event) => actions.setSpeed(SPEEDS[event.target.value]),
    }),
    pace: el("output", { class: "pace" }),
    pickers: [picker("Player", [], 0, actions), picker("Second player", [["", "nobody"]], 1, actions)],
  };
  fill(root, head(parts, actions), parts.pair);
  return parts;
}

const picker = (label, extra, i, actions) =>
  new PlayerPicker({ label, extra, onchange: (spec) => actions.choosePlayer(i, spec) });

const head = ({ settings, play, slider, pace }, actions) =>
  el(
    "div",
    { class: "head" },
    el("h1", {}, "Watch"),
    settings,
    el(
      "div",
      { class: "row buttons" },
      play,
      button("Step", actions.step, "One move (.)"),
      el("label", { class: "field inline" }, el("span", {}, "speed"), slider, pace),
      button("New game", actions.fresh, "New game (n)"),
      button("Review", actions.review, "Go through the first player's game (r)"),
    ),
  );

// The fields above the boards.
export function fillSettings({ settings, pickers }, rules, seed, actions) {
  const seedInput = el("input", {
    type: "text",
    inputMode: "numeric",
    class: "short wide",
    value: String(seed),
    "aria-label": "Seed",
    onchange: () => actions.chooseSeed(seedInput),
  });
  fill(
    settings,
    field("board", sizeSelect(rules.name, actions.chooseSize)),
    field("p4", fourInput(rules.p4, actions.chooseFour)),
    field("player", pickers[0].element),
    field("against", pickers[1].element),
    field("seed", seedInput),
  );
}

export function showSpeed({ slider, pace }, speed) {
  slider.value = SPEEDS.indexOf(speed);
  pace.textContent = speed ? `${speed}/s` : "full";
  slider.setAttribute("aria-valuetext", speed ? `${speed} moves per second` : "as fast as it goes");
}
