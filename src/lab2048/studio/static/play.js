// Play: a game by keyboard or finger, with hints and a mark for every move.

import { BoardView, onSwipe } from "./board.js";
import {
  ARROWS,
  DIRECTIONS,
  Game,
  Rules,
  fromHex,
  hex,
  newSeed,
  packMoves,
  parseSeed,
  unpackMoves,
} from "./engine.js";
import {
  GRADES,
  MoveBars,
  PlayerPicker,
  button,
  el,
  field,
  fill,
  fourInput,
  lostText,
  sizeSelect,
  solvePanel,
  stage,
  usualPlayer,
  verdict,
  whole,
} from "./parts.js";
import { get, query } from "./api.js";
import { bestScore, keepGame, keepSetting, offerBest, setting } from "./store.js";

export const TITLE = "Play";
export const KEYS = [
  ["↑ → ↓ ←", "move; also W A S D or H J K L"],
  ["u", "take a move back"],
  ["n", "new game"],
  ["y", "once more, in practice"],
  ["i", "hints on or off"],
  ["r", "review this game"],
  ["x", "analyse this position"],
];
const MOVES = {
  ArrowUp: 0,
  ArrowRight: 1,
  ArrowDown: 2,
  ArrowLeft: 3,
  w: 0,
  d: 1,
  s: 2,
  a: 3,
  k: 0,
  l: 1,
  j: 2,
  h: 3,
};
const AUTO = "auto";
const SHORT = 10; // moves; a game with no more is not kept for a review

// The game of an address, and whether all its moves are legal.
function gameOf(params, hash) {
  const rules = Rules.parse(params.get("rules") ?? setting("size", "4x4"), params.get("p4") ?? 0.1);
  const start = params.get("start") ? fromHex(params.get("start")) : null;
  if (start && start.length !== rules.cells)
    throw new Error("the position in this address is of another board");
  const seed = params.get("seed") ? parseSeed(params.get("seed")) : newSeed();
  const game = new Game(rules, seed, { start });
  return { game, legal: unpackMoves(hash).every((d) => game.play(d)) };
}

// What to ask before the game of an address is left for another one; null if it is not running.
export function unfinished(address) {
  const { searchParams, hash } = new URL(address, location.href);
  const { game } = gameOf(searchParams, hash.slice(1));
  const count = game.moves.length;
  if (!count || game.over) return null;
  return {
    title: "Leave the running game?",
    text: `${count === 1 ? "One move has" : `${whole(count)} moves have`} been made on ${game.rules.name.replace("x", "×")}, for ${whole(game.score)} points.`,
    yes: "Start another",
    no: "Keep this one",
  };
}

export function open(root, params, hash, page) {
  let game;
  let undone = false;
  let judge = AUTO;
  let hints = setting("hints", false);
  let asking = null; // the question about the board that is shown: { board, answer, stop }
  let alive = true;
  const marks = [];

  const board = new BoardView();
  const [score, record, moves] = ["score", "best score", "moves"].map((name) =>
    el("output", { class: "big", "aria-label": name }),
  );
  const bars = new MoveBars({ onPick: (d) => move(d) });
  const mark = el("p", { class: "mark", "data-testid": "mark" });
  const note = el("p", { class: "note" });
  const ending = el("div", { class: "ending", hidden: true });
  const trail = el("div", { class: "marks", role: "img", "aria-label": "Marks of the last moves" });
  const solve = el("div");
  const practice = el(
    "p",
    { class: "practice", hidden: true },
    "Practice from a position; it does not count for the best score. ",
    button("Try again", retry, "Once more from there (y)"),
  );
  const settings = el("div", { class: "row" });
  const picker = new PlayerPicker({
    label: "Judge",
    extra: [
      [AUTO, "auto"],
      ["", "exact table"],
    ],
    onchange: (spec) => {
      judge = spec;
      address();
      ask();
    },
  });
  const hintBox = el("input", {
    type: "checkbox",
    checked: hints,
    onchange: () => toggleHints(hintBox.checked),
  });
  const hintLabel = el("label", { class: "check" }, hintBox, " Show hints");
  const undoButton = button("Undo", undo, "Take a move back (u)");

  fill(
    root,
    stage(
      [
        "Game",
        [
          el(
            "div",
            { class: "scores" },
            el("div", {}, el("span", {}, "score"), score),
            el("div", {}, el("span", {}, "best"), record),
            el("div", {}, el("span", {}, "moves"), moves),
          ),
          el("div", { class: "board-frame" }, board.element, ending),
        ],
        [
          button("New game", () => fresh(), "New game (n)", { class: "primary" }),
          undoButton,
          button("Review", review, "Go through this game (r)"),
          button("Analyse", analyse, "Analyse this position (x)"),
        ],
      ],
      ["Play", [settings, practice, mark, trail, hintLabel, bars.element, note, solve], "Hints"],
    ),
  );

  function place() {
    const { rules } = game;
    fill(
      settings,
      field(
        "board",
        sizeSelect(rules.name, (size) => fresh(Rules.parse(size, rules.p4))),
      ),
      field(
        "p4",
        fourInput(rules.p4, (p4) => fresh(new Rules(rules.rows, rules.cols, p4))),
      ),
      field("judge", picker.element),
    );
    picker.show(rules, judge).catch(page.fail);
  }

  function addressOf({ rules, seed, start, moves: made }) {
    const found = query("/play", {
      ...rules.query,
      seed: String(seed),
      start: start ? hex(start) : null,
      judge: judge === AUTO ? null : judge || "table",
    });
    return made.length ? `${found}#${packMoves(made)}` : found;
  }

  function address(push = false) {
    page.setAddress(addressOf(game), { push });
  }

  function numbers() {
    score.textContent = whole(game.score);
    moves.textContent = whole(game.moves.length);
    record.textContent = whole(bestScore(game.rules));
    undoButton.disabled = !game.moves.length;
    ending.hidden = !game.over;
    if (game.over)
      fill(
        ending,
        el("strong", {}, "Game over"),
        el("span", {}, `${whole(game.score)} points, largest tile ${2 ** Math.max(...game.board)}`),
      );
  }

  function keep() {
    if (game?.moves.length > SHORT) keepGame(game.record());
  }

  // Show a game, with the moves that were made in it.
  function begin(made, push = false) {
    keep();
    game = made;
    undone = false;
    marks.length = 0;
    fill(trail);
    fill(mark);
    fill(solve);
    board.show(game.board, game.rules.rows, game.rules.cols);
    practice.hidden = !game.start;
    place();
    numbers();
    address(push);
    ask({ another: true });
  }

  // Go to a new game, if the one that is running may be left.
  async function another(made, said) {
    if (await page.go(addressOf(made))) page.say(said);
    else if (alive) place(); // the board or p4 that was chosen is not that of the game
  }

  function fresh(rules = game.rules) {
    another(new Game(rules, newSeed()), `New game on ${rules.name}`);
  }

  // The same position once more, with other tiles to come. Few moves are part of the practice: to
  // ask each time would be in the way of it.
  function retry() {
    if (!game.start) return;
    const made = new Game(game.rules, newSeed(), { start: game.start });
    const said = "once more from the same position";
    if (game.moves.length > SHORT) another(made, said);
    else {
      begin(made, true);
      page.say(said);
    }
  }

  function move(d) {
    if (game.over) return;
    const before = asking;
    const made = game.play(d);
    if (!made) {
      fill(mark, el("span", { class: "dim" }, `${DIRECTIONS[d]} moves nothing`));
      return;
    }
    board.move(made, game.board);
    if (!undone && !game.start) offerBest(game.rules, game.score);
    numbers();
    address();
    page.say(
      `${DIRECTIONS[d]}${made.reward ? `, ${made.reward} points` : ""}; score ${game.score}${game.over ? "; game over" : ""}`,
    );
    judged(before, d, game.moves.length);
    if (game.over) keepGame(game.record());
    ask();
  }

  function undo() {
    if (!game.undo()) return;
    undone = true;
    marks.length = Math.min(marks.length, game.moves.length);
    paintMarks();
    board.show(game.board, game.rules.rows, game.rules.cols);
    numbers();
    address();
    fill(
      mark,
      el("span", { class: "dim" }, "taken back; this game no longer counts for the best score"),
    );
    page.say(`taken back; score ${game.score}`);
    ask();
  }

  // -- what a judge says ------------------------------------------------------------------------

  async function question(rules, ranks, signal) {
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

  // Ask about the board that is shown. What was asked before goes on: it tells how good the move was.
  function ask({ another = false } = {}) {
    if (another) asking?.stop.abort();
    if (game.over) {
      asking = null;
      bars.clear();
      fill(note);
      return;
    }
    const stop = new AbortController();
    const ranks = game.board;
    const rules = game.rules;
    const mine = { stop, answer: question(rules, ranks, stop.signal) };
    asking = mine;
    mine.answer
      .then(({ analysis, spec }) => {
        if (asking !== mine || !alive) return;
        const found = verdict(analysis, spec);
        if (hints && !found.empty) bars.show(found);
        else bars.clear();
        trail.setAttribute(
          "aria-label",
          `Marks of the last moves: ${marks
            .slice(-14)
            .map((each) => each?.name ?? "none")
            .join(", ")}`,
        );
        fill(
          note,
          found.empty
            ? analysis.note
            : !hints
              ? null
              : found.exact
                ? "expected score under perfect play"
                : `${Object.keys(analysis.players)[0]}: ${Object.values(analysis.players)[0].meaning}`,
        );
        if (analysis.solvable && !solve.childElementCount)
          fill(
            solve,
            solvePanel(
              rules,
              () => alive && game.rules.name === rules.name,
              () => {
                fill(solve);
                ask();
              },
            ),
          );
      })
      .catch((error) => {
        if (error.name !== "AbortError" && asking === mine) {
          bars.clear();
          fill(note, error.message);
        }
      });
    if (!hints) bars.clear();
    bars.element.classList.toggle("off", !hints);
  }

  // Say how good the move was that has just been made.
  async function judged(question, d, count) {
    if (!question) return;
    const pending = { d }; // what stands in its place later is of another game, or another move
    marks[count - 1] = pending;
    const early = new Promise((resolve) => {
      setTimeout(resolve, 1500, null);
    });
    const answer = await Promise.race([question.answer.catch(() => null), early]);
    if (!answer) question.stop.abort();
    if (!answer || !alive || marks[count - 1] !== pending) return;
    const found = verdict(answer.analysis, answer.spec);
    if (found.empty || !found.marks[d]) return;
    const name = found.marks[d];
    pending.name = name;
    paintMarks();
    if (game.moves.length > count) return;
    const lost = lostText(name, found.regrets[d], found.best, found.exact);
    fill(
      mark,
      el("span", { class: `grade ${name}` }, GRADES[name].sign),
      ` ${DIRECTIONS[d]}: ${GRADES[name].word}`,
      name === "best"
        ? null
        : el(
            "span",
            { class: "dim" },
            ` · better ${found.better}${lost && `, ${lost}`}`,
          ),
    );
  }

  function paintMarks() {
    const shown = marks
      .slice(-14)
      .map(
        (each) =>
          each?.name &&
          el(
            "span",
            { class: `grade ${each.name}`, title: `${ARROWS[each.d]} ${GRADES[each.name].word}` },
            GRADES[each.name].sign,
          ),
      );
    fill(trail, shown);
  }

  function toggleHints(on) {
    hints = on;
    hintBox.checked = on;
    keepSetting("hints", on);
    ask();
  }

  function review() {
    if (!game.moves.length) {
      page.fail("there is nothing to review yet: make some moves first");
      return;
    }
    keepGame(game.record());
    const { rules, seed, start } = game;
    page.go(
      `${query("/review", { ...rules.query, seed: String(seed), start: start ? hex(start) : null, by: "you" })}#${packMoves(game.moves)}`,
    );
  }

  function analyse() {
    const { rules } = game;
    page.go(query("/analyse", { board: hex(game.board), ...rules.query }));
  }

  // -- arriving -------------------------------------------------------------------------------

  function arrive(params, hash) {
    const named = params.get("judge");
    judge = named === null ? AUTO : named === "table" ? "" : named;
    try {
      const { game: made, legal } = gameOf(params, hash);
      if (!legal) page.fail("the moves in this address are not legal");
      begin(made);
      keepSetting("size", made.rules.name);
    } catch (error) {
      page.fail(error);
      begin(new Game(new Rules(4, 4), newSeed()));
    }
  }

  onSwipe(board.element, move);
  arrive(params, hash);
  return {
    arrive,
    key(event) {
      const d = MOVES[event.key] ?? MOVES[event.key.toLowerCase()];
      if (d !== undefined) {
        if (!event.repeat || !board.pending) move(d);
      } else if (event.key === "u") undo();
      else if (event.key === "n") fresh();
      else if (event.key === "y") retry();
      else if (event.key === "i") toggleHints(!hints);
      else if (event.key === "r") review();
      else if (event.key === "x") analyse();
      else return false;
      return true;
    },
    leave() {
      alive = false;
      asking?.stop.abort();
      keep();
    },
  };
}
