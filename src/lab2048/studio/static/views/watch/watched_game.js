// One player's side of Watch: a socket, a board, figures.

import { watchSocket } from "../../api.js";
import { BoardView } from "../../board.js";
import { keepGame } from "../../browser_storage.js";
import { el, fill, nameParts } from "../../dom.js";
import { DIRECTIONS, Rules, fromHex, makeRecord, slide } from "../../game.js";
import { MoveBars, thoughtsOf } from "../../marks.js";
import { whole } from "../../numbers.js";

const RATED = 2000; // milliseconds over which moves per second are averaged

export class Side {
  constructor(page, onstate) {
    Object.assign(this, {
      page,
      onstate, // called when something has changed, with an error if there is one
      socket: null,
      order: null, // the game that is wanted: the first message to the server
      facts: null, // the game that the server plays
      moves: "",
      spawns: "",
      ranks: null,
    });
    this.board = new BoardView();
    this.bars = new MoveBars();
    this.name = el("h2", { class: "player-name" });
    [this.score, this.count, this.rate] = Array.from({ length: 3 }, () =>
      el("output", { class: "big" }),
    );
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

  // -- the socket -----------------------------------------------------------------------------

  start(order) {
    this.close();
    const rules = Rules.parse(order.rules, order.p4);
    Object.assign(this, { facts: null, moves: "", spawns: "", over: false, at: 0, order });
    this.name.textContent = order.player;
    this.board.show(new Array(rules.cells).fill(0), rules.rows, rules.cols);
    this.bars.clear();
    for (const out of [this.score, this.count, this.rate]) out.textContent = "0";
    this.said.textContent = "Getting ready; the first time a player is asked, it is compiled…";
    this.#connect();
  }

  #connect() {
    const mine = watchSocket();
    this.socket = mine;
    mine.addEventListener("open", () => mine.send(JSON.stringify(this.order)));
    mine.addEventListener("message", (event) => {
      if (this.socket === mine) this.#hear(JSON.parse(event.data));
    });
    mine.addEventListener("close", () => {
      if (this.socket !== mine) return;
      this.socket = null;
      this.onstate();
      if (!this.over) this.said.textContent ||= "The connection has ended; start a new game.";
    });
  }

  // Send an order. It also changes the first message, which is sent when the socket opens: a step
  // pauses the game, and one that is ordered before that is not made.
  send(order) {
    if (!this.order) return;
    if (order.do === "speed") this.order.speed = order.speed;
    else this.order.paused = order.do !== "play";
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(order));
  }

  close() {
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.ranks = null;
    this.seen = [];
  }

  // -- messages from the server ---------------------------------------------------------------

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
    this.moves += frame.moves;
    this.spawns += frame.spawns;
    this.#showBoard(frame, rules);
    this.#showNumbers(frame);
    this.#showThoughts(frame, rules);
    if (frame.over) this.#end(frame);
    this.onstate();
  }

  // Animate a single move; of several at once, or at full speed, show only the result.
  #showBoard(frame, rules) {
    const before = this.ranks;
    this.ranks = fromHex(frame.board);
    const single = frame.moves.length === 1 && !frame.started && before;
    if (single && this.order.speed !== 0) {
      const made = slide(before, rules.rows, rules.cols, Number(frame.moves));
      const [cell, rank] = [parseInt(frame.spawns[0], 16), Number(frame.spawns[1])];
      this.board.move({ ...made, spawn: { cell, rank } }, this.ranks);
    } else this.board.show(this.ranks, rules.rows, rules.cols);
  }

  #showNumbers(frame) {
    this.over = frame.over;
    this.at = frame.count;
    this.final = frame.score;
    this.score.textContent = whole(frame.score);
    this.count.textContent = whole(frame.count);
    if (frame.rate === null || this.order.paused) this.rate.textContent = "–";
    else this.#showRate(frame);
  }

  // Moves per second over the last seconds, as seen by the page.
  #showRate(frame) {
    const now = performance.now();
    this.seen = [
      ...(this.seen ?? []).filter(([when, count]) => now - when < RATED && count <= frame.count),
      [now, frame.count],
    ];
    const [when, count] = this.seen[0];
    const rate = this.seen.length > 2 ? ((frame.count - count) / (now - when)) * 1000 : frame.rate;
    this.rate.textContent = rate >= 10 ? whole(rate) : rate.toFixed(1);
  }

  #showThoughts(frame, rules) {
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

  #end(frame) {
    this.said.textContent = `Game over: ${whole(frame.score)} points, largest tile ${2 ** Math.max(...this.ranks)}`;
    keepGame(this.record());
    this.page.say(`${this.facts.player}: game over, ${frame.score} points`);
  }

  // The game so far, as in a file of games.
  record() {
    const { rules, p4, player, seed } = this.facts;
    const { final: score, ranks: board, moves, spawns } = this;
    const game = { rules: Rules.parse(rules, p4), seed: BigInt(seed) };
    return makeRecord({ ...game, player, score, board, moves, spawns });
  }
}
