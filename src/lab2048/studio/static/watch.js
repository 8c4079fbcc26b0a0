// Watch: one player at work, or two side by side on the same seed.

import { BoardView } from "./board.js";
import { DIRECTIONS, Rules, fromHex, newSeed, packMoves, parseSeed, slide } from "./engine.js";
import {
  MoveBars,
  PlayerPicker,
  button,
  el,
  field,
  fill,
  fourInput,
  nameParts,
  sizeSelect,
  thoughtsOf,
  usualPlayer,
  whole,
} from "./parts.js";
import { query, watchSocket } from "./api.js";
import { keepGame } from "./store.js";

export const TITLE = "Watch";
export const KEYS = [
  ["space", "pause or go on"],
  [".", "one move"],
  ["+ or -", "faster, slower"],
  ["f", "as fast as it goes"],
  ["n", "new game"],
  ["r", "review the first player's game"],
];
const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 250, 500, 1000, 0];

// One player's side: a socket, a board, figures.
class Side {
  constructor(page, onstate) {
    Object.assign(this, {
      page,
      onstate,
      socket: null,
      facts: null,
      moves: "",
      spawns: "",
      ranks: null,
    });
    this.board = new BoardView();
    this.bars = new MoveBars();
    this.name = el("h2", { class: "player-name" });
    this.score = el("output", { class: "big" });
    this.count = el("output", { class: "big" });
    this.rate = el("output", { class: "big" });
    this.said = el("p", { class: "note", role: "status" });
    this.element = el(
      "section",
      { class: "side" },
      this.name,
      el(
        "div",
        { class: "scores" },
        el("div", {}, el("span", {}, "score"), this.score),
        el("div", {}, el("span", {}, "moves"), this.count),
        el("div", {}, el("span", {}, "moves/s"), this.rate),
      ),
      this.said,
      el("div", { class: "board-frame" }, this.board.element),
      this.bars.element,
    );
  }

  start(order) {
    this.close();
    const rules = Rules.parse(order.rules, order.p4);
    Object.assign(this, { facts: null, moves: "", spawns: "", over: false, at: 0, order });
    this.name.textContent = order.player;
    this.board.show(new Array(rules.cells).fill(0), rules.rows, rules.cols);
    this.bars.clear();
    for (const out of [this.score, this.count, this.rate]) out.textContent = "0";
    this.said.textContent = "Getting ready; the first time a player is asked, it is compiled…";
    this.socket = watchSocket();
    const mine = this.socket;
    mine.addEventListener("open", () => mine.send(JSON.stringify(this.order)));
    mine.addEventListener("message", (event) => {
      if (this.socket === mine) this.#hear(JSON.parse(event.data));
    });
    mine.addEventListener("close", () => {
      if (this.socket === mine) {
        this.socket = null;
        this.onstate();
        if (!this.over) this.said.textContent ||= "The connection has ended; start a new game.";
      }
    });
  }

  // Give an order; while the socket is being opened it becomes a part of the first one.
  send(order) {
    if (order.do === "speed") this.order.speed = order.speed;
    if (order.do === "pause" || order.do === "play") this.order.paused = order.do === "pause";
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(order));
  }

  #hear(frame) {
    if (frame.error) {
      fill(this.said, el("span", { class: "trouble" }, frame.error));
      this.onstate(frame.error);
      return;
    }
    if (frame.started) {
      this.facts = frame.started;
      fill(this.name, nameParts(frame.started.player));
      this.said.textContent = "";
    }
    const rules = Rules.parse(this.facts.rules, this.facts.p4);
    const before = this.ranks;
    const ranks = fromHex(frame.board);
    this.moves += frame.moves;
    this.spawns += frame.spawns;
    const single = frame.moves.length === 1 && !frame.started && before;
    if (single && this.order.speed !== 0) {
      const made = slide(before, rules.rows, rules.cols, Number(frame.moves));
      const [cell, rank] = [parseInt(frame.spawns[0], 16), Number(frame.spawns[1])];
      this.board.move({ ...made, spawn: { cell, rank } }, ranks);
    } else this.board.show(ranks, rules.rows, rules.cols);
    this.ranks = ranks;
    this.over = frame.over;
    this.score.textContent = whole(frame.score);
    this.count.textContent = whole(frame.count);
    if (frame.rate === null || this.order.paused) this.rate.textContent = "–";
    else this.#pace(frame);
    this.at = frame.count;
    this.final = frame.score;
    this.#thinks(frame, rules);
    if (frame.over) {
      this.said.textContent = `Game over: ${whole(frame.score)} points, largest tile ${2 ** Math.max(...ranks)}`;
      keepGame(this.record());
      this.page.say(`${this.facts.player}: game over, ${frame.score} points`);
    }
    this.onstate();
  }

  // Moves a second over the last seconds, as the page sees it.
  #pace(frame) {
    const now = performance.now();
    this.seen = [
      ...(this.seen ?? []).filter(([when, count]) => now - when < 2000 && count <= frame.count),
      [now, frame.count],
    ];
    const [when, count] = this.seen[0];
    const rate = this.seen.length > 2 ? ((frame.count - count) / (now - when)) * 1000 : frame.rate;
    this.rate.textContent = rate >= 10 ? whole(rate) : rate.toFixed(1);
  }

  #thinks(frame, rules) {
    if (!frame.thinks || frame.over) {
      this.bars.clear();
      return;
    }
    const legal = DIRECTIONS.map((_, d) => slide(this.ranks, rules.rows, rules.cols, d).legal);
    this.bars.show({
      ...thoughtsOf(frame.thinks, legal),
      optimal: DIRECTIONS.map((name) => name === frame.thinks.choice),
      sign: "★ its move",
    });
  }

  record() {
    const { rows, cols, p4 } = Rules.parse(this.facts.rules, this.facts.p4);
    return {
      format: 1,
      rules: { rows, cols, p4 },
      player: this.facts.player,
      seed: BigInt(this.facts.seed),
      index: 0,
      score: this.final,
      max_tile: 2 ** Math.max(...this.ranks),
      moves: this.moves,
      spawns: this.spawns,
    };
  }

  close() {
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.ranks = null;
    this.seen = [];
  }
}

export function open(root, params, hash, page) {
  let rules;
  let specs;
  let seed;
  let speed = 8;
  let paused = false;
  let alive = true;
  const sides = [new Side(page, state)];
  const settings = el("div", { class: "row" });
  const pair = el("div", { class: "pair" });
  const playButton = el("button", {
    type: "button",
    class: "primary",
    onclick: toggle,
    title: "Pause or go on (space)",
  });
  const slider = el("input", {
    type: "range",
    min: 0,
    max: SPEEDS.length - 1,
    step: 1,
    "aria-label": "Speed",
    oninput: () => setSpeed(SPEEDS[slider.value]),
  });
  const pace = el("output", { class: "pace" });
  const pickers = [0, 1].map(
    (i) =>
      new PlayerPicker({
        label: i ? "Second player" : "Player",
        extra: i ? [["", "nobody"]] : [],
        onchange: (spec) => {
          specs[i] = spec;
          restart();
        },
      }),
  );
  fill(
    root,
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Watch"),
      settings,
      el(
        "div",
        { class: "row buttons" },
        playButton,
        button("Step", step, "One move (.)"),
        el("label", { class: "field inline" }, el("span", {}, "speed"), slider, pace),
        button("New game", () => restart(newSeed()), "New game (n)"),
        button("Review", review, "Go through the first player's game (r)"),
      ),
    ),
    pair,
  );

  function place() {
    fill(
      settings,
      field(
        "board",
        sizeSelect(rules.name, async (size) => {
          rules = Rules.parse(size, rules.p4);
          specs[0] =
            specs[0] === "ntuple" || specs[0] === "expectimax"
              ? await usualPlayer(rules)
              : specs[0];
          restart();
        }),
      ),
      field(
        "p4",
        fourInput(rules.p4, (p4) => {
          rules = new Rules(rules.rows, rules.cols, p4);
          restart();
        }),
      ),
      field("player", pickers[0].element),
      field("against", pickers[1].element),
      field(
        "seed",
        el("input", {
          type: "text",
          inputMode: "numeric",
          class: "short wide",
          value: String(seed),
          "aria-label": "Seed",
          onchange: (event) => {
            try {
              restart(parseSeed(event.target.value));
            } catch (error) {
              page.fail(error);
              event.target.value = String(seed);
            }
          },
        }),
      ),
    );
    pickers.forEach((picker, i) => picker.show(rules, specs[i] ?? "").catch(page.fail));
  }

  // The address; while it is paused, with the move that is shown.
  function address(at = Math.max(...sides.map((side) => side.at ?? 0))) {
    page.setAddress(
      query("/watch", {
        ...rules.query,
        player: specs.filter(Boolean),
        seed: String(seed),
        speed: speed === 8 ? null : speed,
        at: (paused && at) || null,
      }),
    );
  }

  function restart(newOne = seed, at = 0) {
    seed = newOne;
    const wanted = specs.filter(Boolean);
    while (sides.length > wanted.length && sides.length > 1) sides.pop().close();
    while (sides.length < wanted.length) sides.push(new Side(page, state));
    fill(
      pair,
      sides.map((side) => side.element),
    );
    pair.dataset.count = sides.length;
    place();
    address(at);
    wanted.forEach((player, i) =>
      sides[i].start({
        do: "start",
        rules: rules.name,
        p4: rules.p4,
        player,
        seed: String(seed),
        speed,
        skip: at,
        paused,
      }),
    );
    state();
  }

  function state(trouble) {
    if (trouble) paused = true; // the server has stopped as well
    if (paused && sides.some((side) => side.facts)) address();
    const over = sides.every((side) => side.over);
    playButton.textContent = sides.every((side) => !side.socket && !side.over)
      ? "Start"
      : over
        ? "Again"
        : paused
          ? "Play"
          : "Pause";
    if (trouble) page.say(trouble);
  }

  function toggle() {
    if (sides.every((side) => side.over || !side.socket)) {
      paused = false;
      restart(sides.every((side) => side.over) ? newSeed() : seed);
      return;
    }
    paused = !paused;
    for (const side of sides) side.send({ do: paused ? "pause" : "play" });
    address();
    state();
  }
  function step() {
    paused = true;
    for (const side of sides) side.send({ do: "step" });
    state();
  }
  function setSpeed(value) {
    speed = value;
    slider.value = SPEEDS.indexOf(value);
    pace.textContent = value ? `${value}/s` : "full";
    slider.setAttribute("aria-valuetext", value ? `${value} moves a second` : "as fast as it goes");
    for (const side of sides) if (side.order) side.send({ do: "speed", speed: value });
    if (specs) address();
  }
  function review() {
    const [side] = sides;
    if (!side.moves) {
      page.fail("there is nothing to review yet");
      return;
    }
    keepGame(side.record());
    page.go(
      `${query("/review", { ...rules.query, seed: side.facts.seed, by: side.facts.player })}#${packMoves([...side.moves].map(Number))}`,
    );
  }

  async function arrive(params) {
    try {
      rules = Rules.parse(params.get("rules") ?? "4x4", params.get("p4") ?? 0.1);
      seed = params.get("seed") ? parseSeed(params.get("seed")) : newSeed();
      const named = params.getAll("player").slice(0, 2);
      specs = named.length ? [named[0], named[1] ?? ""] : [await usualPlayer(rules), ""];
      if (!alive) return;
      const asked = Number(params.get("speed") ?? 8);
      setSpeed(SPEEDS.includes(asked) ? asked : 8);
      const at = Math.max(0, Math.min(100000, Math.floor(Number(params.get("at"))) || 0));
      paused = at > 0;
      restart(seed, at);
    } catch (error) {
      page.fail(error);
      if (!rules) {
        [rules, specs] = [new Rules(4, 4), ["expectimax", ""]];
        restart(newSeed());
      }
    }
  }
  arrive(params);
  return {
    arrive,
    key(event) {
      if (event.key === " ") {
        if (event.target.closest("button")) return false;
        toggle();
      } else if (event.key === ".") step();
      else if (event.key === "+" || event.key === "=")
        setSpeed(SPEEDS[Math.min(SPEEDS.indexOf(speed) + 1, SPEEDS.length - 1)]);
      else if (event.key === "-") setSpeed(SPEEDS[Math.max(SPEEDS.indexOf(speed) - 1, 0)]);
      else if (event.key === "f") setSpeed(0);
      else if (event.key === "n") restart(newSeed());
      else if (event.key === "r") review();
      else return false;
      return true;
    },
    leave() {
      alive = false;
      paused = true; // whoever comes back finds the game where it was
      if (sides.some((side) => side.facts)) address();
      for (const side of sides) side.close();
    },
  };
}
