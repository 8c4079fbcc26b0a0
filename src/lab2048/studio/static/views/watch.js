// Watch: one player, or two side by side on the same seed.

import { reviewOf, rulesIn, seedIn } from "../addresses.js";
import { query } from "../api.js";
import { keepGame } from "../browser_storage.js";
import { fill } from "../dom.js";
import { Rules, newSeed, parseSeed } from "../game.js";
import { usualPlayer } from "../server_facts.js";
import { SPEEDS, fillSettings, layOut, showSpeed } from "./watch/layout.js";
import { Side } from "./watch/watched_game.js";

export const TITLE = "Watch";
export const KEYS = [
  ["space", "pause or go on"],
  [".", "one move"],
  ["+ or -", "faster, slower"],
  ["f", "as fast as it goes"],
  ["n", "new game"],
  ["r", "review the first player's game"],
];
const SPEED = 8; // moves per second, unless another is chosen
const LAST = 100000; // the highest move from which a game can be shown

export function open(root, params, hash, page) {
  const view = {
    page,
    rules: null,
    specs: null, // the two players; the second may be ""
    seed: null,
    speed: SPEED,
    paused: false,
    sides: [],
    alive: true,
  };
  view.actions = actionsOf(view);
  view.parts = layOut(root, view.actions);
  view.sides.push(newSide(view));
  arrive(view, params);
  return {
    arrive: (newParams) => arrive(view, newParams),
    key: (event) => pressed(view, event),
    leave: () => leave(view),
  };
}

const newSide = (view) => new Side(view.page, (trouble) => changed(view, trouble));

// What the buttons and fields of the page do.
const actionsOf = (view) => ({
  toggle: () => toggle(view),
  step: () => step(view),
  fresh: () => restart(view, newSeed()),
  review: () => review(view),
  setSpeed: (speed) => setSpeed(view, speed),
  choosePlayer: (i, spec) => {
    view.specs[i] = spec;
    restart(view);
  },
  chooseSize: (size) => resize(view, size),
  chooseFour: (p4) => {
    view.rules = new Rules(view.rules.rows, view.rules.cols, p4);
    restart(view);
  },
  chooseSeed: (input) => {
    try {
      restart(view, parseSeed(input.value));
    } catch (error) {
      view.page.fail(error);
      input.value = String(view.seed);
    }
  },
});

function pressed(view, event) {
  const place = SPEEDS.indexOf(view.speed);
  if (event.key === " ") {
    if (event.target.closest("button")) return false;
    toggle(view);
  } else if (event.key === ".") step(view);
  else if (event.key === "+" || event.key === "=")
    setSpeed(view, SPEEDS[Math.min(place + 1, SPEEDS.length - 1)]);
  else if (event.key === "-") setSpeed(view, SPEEDS[Math.max(place - 1, 0)]);
  else if (event.key === "f") setSpeed(view, 0);
  else if (event.key === "n") restart(view, newSeed());
  else if (event.key === "r") review(view);
  else return false;
  return true;
}

// -- arriving and leaving -----------------------------------------------------------------------

async function arrive(view, params) {
  try {
    view.rules = rulesIn(params, "4x4");
    view.seed = seedIn(params) ?? newSeed();
    const [first, second = ""] = params.getAll("player");
    view.specs = [first ?? (await usualPlayer(view.rules)), second];
    if (!view.alive) return;
    const speed = Number(params.get("speed") ?? SPEED);
    setSpeed(view, SPEEDS.includes(speed) ? speed : SPEED);
    const at = Math.max(0, Math.min(LAST, Math.floor(Number(params.get("at"))) || 0));
    view.paused = at > 0;
    restart(view, view.seed, at);
  } catch (error) {
    view.page.fail(error);
    if (view.rules) return;
    Object.assign(view, { rules: new Rules(4, 4), specs: ["expectimax", ""] });
    restart(view, newSeed());
  }
}

function leave(view) {
  view.alive = false;
  view.paused = true; // so that the address keeps the move that is shown
  if (view.sides.some((side) => side.facts)) setAddress(view);
  for (const side of view.sides) side.close();
}

// Set the address; while paused, with the move that is shown.
function setAddress(view, at = Math.max(...view.sides.map((side) => side.at ?? 0))) {
  const { page, rules, specs, seed, speed, paused } = view;
  page.setAddress(
    query("/watch", {
      ...rules.query,
      player: specs.filter(Boolean),
      seed: String(seed),
      speed: speed === SPEED ? null : speed,
      at: (paused && at) || null,
    }),
  );
}

// -- games --------------------------------------------------------------------------------------

// Restart, with one side per player. `at` is the first move to be shown.
function restart(view, seed = view.seed, at = 0) {
  view.seed = seed;
  const { sides, specs, rules, speed, paused, parts } = view;
  const wanted = specs.filter(Boolean);
  while (sides.length > wanted.length && sides.length > 1) sides.pop().close();
  while (sides.length < wanted.length) sides.push(newSide(view));
  fill(
    parts.pair,
    sides.map((side) => side.element),
  );
  parts.pair.dataset.count = sides.length;
  showSettings(view);
  setAddress(view, at);
  const order = { do: "start", rules: rules.name, p4: rules.p4, seed: String(seed) };
  wanted.forEach((player, i) => sides[i].start({ ...order, player, speed, skip: at, paused }));
  changed(view);
}

function showSettings({ page, parts, rules, seed, specs, actions }) {
  fillSettings(parts, rules, seed, actions);
  parts.pickers.forEach((picker, i) => picker.show(rules, specs[i] ?? "").catch(page.fail));
}

async function resize(view, size) {
  const before = await usualPlayer(view.rules);
  view.rules = Rules.parse(size, view.rules.p4);
  const usual = await usualPlayer(view.rules); // others may not play on this board
  view.specs = view.specs.map((spec) => (spec === before ? usual : spec));
  restart(view);
}

// Update the page after a change; `trouble` is an error from the server.
function changed(view, trouble) {
  const { sides, parts, page } = view;
  if (trouble) view.paused = true; // the server has stopped as well
  if (view.paused && sides.some((side) => side.facts)) setAddress(view);
  parts.play.textContent = playText(sides, view.paused);
  if (trouble) page.say(trouble);
}

function playText(sides, paused) {
  if (sides.every((side) => !side.socket && !side.over)) return "Start";
  if (sides.every((side) => side.over)) return "Again";
  return paused ? "Play" : "Pause";
}

function toggle(view) {
  const { sides } = view;
  if (sides.every((side) => side.over || !side.socket)) {
    view.paused = false;
    restart(view, sides.every((side) => side.over) ? newSeed() : view.seed);
    return;
  }
  view.paused = !view.paused;
  for (const side of sides) side.send({ do: view.paused ? "pause" : "play" });
  setAddress(view);
  changed(view);
}

function step(view) {
  view.paused = true;
  for (const side of view.sides) side.send({ do: "step" });
  changed(view);
}

function setSpeed(view, speed) {
  view.speed = speed;
  showSpeed(view.parts, speed);
  for (const side of view.sides) if (side.order) side.send({ do: "speed", speed });
  if (view.specs) setAddress(view);
}

function review({ sides: [side], page }) {
  if (!side.moves) {
    page.fail("there is nothing to review yet");
    return;
  }
  const record = side.record();
  keepGame(record);
  page.go(reviewOf(record));
}
