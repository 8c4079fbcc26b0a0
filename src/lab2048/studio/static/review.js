// Review: a game move by move, its mistakes, and the chance to try again.

import { BoardView, smallBoard } from "./board.js";
import {
  ARROWS,
  DIRECTIONS,
  Game,
  Rules,
  fromHex,
  hex,
  newSeed,
  packMoves,
  parseRecord,
  parseSeed,
  recordJson,
  replay,
  unpackMoves,
} from "./engine.js";
import {
  GRADES,
  PlayerPicker,
  button,
  el,
  field,
  fill,
  isMistake,
  lostText,
  number,
  percent,
  stage,
  whole,
} from "./parts.js";
import { chart, moveCursor } from "./chart.js";
import { postLines, query } from "./api.js";
import { games, keepGame } from "./store.js";

export const TITLE = "Review";
export const KEYS = [
  ["← →", "one move back, on"],
  ["Home or End", "the first, the last move"],
  ["PageUp or PageDown", "ten moves back, on"],
  ["m", "the next mistake"],
  ["M", "the mistake before"],
  ["p", "practise this position"],
  ["x", "analyse this position"],
];
const AUTO = "auto";
const JUMP = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };

export function open(root, params, hash, page) {
  let record = null;
  let played = null;
  let fragment = "";
  let steps = [];
  let judge = "";
  let judgeName = "";
  let points = false;
  let exact = false; // only then do losses add up to points
  let at = 0;
  let summary = null;
  let stop = new AbortController();

  const board = new BoardView();
  const picker = new PlayerPicker({
    label: "Judge",
    extra: [[AUTO, "auto"]],
    onchange: (spec) => {
      judge = spec === AUTO ? "" : spec;
      address();
      go();
    },
  });
  const head = el("p", { class: "verdict" });
  const facts = el("div", { class: "scores" });
  const counts = el("p", { class: "counts", "data-testid": "counts" });
  const caveat = el("p", { class: "note" });
  const told = el("p", { class: "mark" });
  const graph = el("div", { class: "graphs" });
  const worst = el("div", { class: "worst" });
  const list = el("div", { class: "movelist", tabIndex: 0, "aria-label": "All moves" });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Moves judged", hidden: true });
  const slider = el("input", {
    type: "range",
    min: 0,
    value: 0,
    "aria-label": "Move",
    oninput: () => step(Number(slider.value)),
  });
  const shell = el("div");
  fill(root, shell);

  // -- choosing a game --------------------------------------------------------------------------

  function choose() {
    stop.abort();
    record = null;
    page.setAddress("/review");
    const file = el("input", {
      type: "file",
      accept: ".jsonl,.json,.txt",
      "aria-label": "A file of games",
      onchange: () => loadFile(file.files[0]),
    });
    const mine = games();
    fill(
      shell,
      el(
        "div",
        { class: "choose" },
        el("h1", {}, "Review"),
        el(
          "p",
          {},
          "Go through a game move by move: what each move was worth, and where a better one was.",
        ),
        el(
          "section",
          {},
          el("h2", {}, "A saved game"),
          el(
            "p",
            { class: "dim" },
            "A file that ",
            el("code", {}, "lab2048 evaluate … --save games.jsonl"),
            " wrote. It is read here, in the browser.",
          ),
          file,
          el("div", { class: "found" }),
        ),
        el(
          "section",
          {},
          el("h2", {}, "Games of this browser"),
          mine.length
            ? el(
                "ul",
                { class: "games" },
                mine.map(({ record: each, when }) => entry(each, new Date(when))),
              )
            : el(
                "p",
                { class: "empty" },
                "None yet. ",
                el("a", { href: "/play", "data-view": "play" }, "Play one"),
                " or ",
                el("a", { href: "/watch", "data-view": "watch" }, "watch one"),
                ", and it is here.",
              ),
        ),
      ),
    );
  }

  function entry(each, when = null) {
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: "game", onclick: () => load(each) },
        el("strong", {}, `${each.player} on ${each.rules.rows}×${each.rules.cols}`),
        el(
          "span",
          {},
          `${whole(each.score)} points, ${each.max_tile} made, ${whole(each.moves.length)} moves`,
        ),
        when ? el("span", { class: "dim" }, when.toLocaleString()) : null,
      ),
    );
  }

  async function loadFile(file) {
    if (!file) return;
    try {
      if (file.size > 50e6)
        throw new Error(
          "a file of more than 50 MB is too large for this page; lab2048 review takes it",
        );
      const lines = (await file.text()).split("\n").filter((line) => line.trim());
      if (!lines.length) throw new Error(`${file.name} has no games`);
      if (lines.length === 1) {
        load(parseRecord(lines[0]));
        return;
      }
      const found = lines.slice(0, 200).map((line) => parseRecord(line));
      const more =
        lines.length > 200
          ? el("p", { class: "dim" }, `the first 200 of ${whole(lines.length)}`)
          : null;
      fill(
        shell.querySelector(".found"),
        more,
        el(
          "ul",
          { class: "games" },
          found.map((each) => entry(each)),
        ),
      );
    } catch (error) {
      page.fail(
        error instanceof SyntaxError ? `${file.name} is no file of games: it is not JSON` : error,
      );
    }
  }

  function load(found, { move = 0, push = true } = {}) {
    try {
      played = replay(found);
    } catch (error) {
      page.fail(error);
      return;
    }
    if (!played.turns.length) {
      page.fail("this game has no moves");
      return;
    }
    record = found;
    fragment = packMoves([...record.moves].map(Number)) + (derived() ? "" : `.${record.spawns}`);
    at = Math.min(move, played.turns.length - 1);
    address(push);
    lay();
    go();
  }

  // -- the page of a game -----------------------------------------------------------------------

  function lay() {
    const judged = el(
      "div",
      { class: "row" },
      field("judge", picker.element),
      el("button", { type: "button", onclick: choose }, "Another game"),
    );
    slider.max = played.turns.length - 1;
    fill(
      shell,
      stage(
        [
          "Position",
          [el("div", { class: "board-frame" }, board.element), told, slider],
          [
            button("←", () => step(at - 1), "One move back (←)", { "aria-label": "One move back" }),
            button("→", () => step(at + 1), "One move on (→)", { "aria-label": "One move on" }),
            button("Next mistake", () => mistake(1), "The next mistake (m)"),
            button("Practise this", practise, "Try again from here (p)", { class: "primary" }),
            button("Analyse", analyse, "Analyse this position (x)"),
          ],
        ],
        ["Review", [judged, head, bar, facts, counts, caveat, graph, worst, list]],
      ),
    );
    picker.show(rules(), judge || AUTO).catch(page.fail);
    step(at);
  }

  function address(push = false) {
    const { seed, index, start, player } = record;
    const facts = {
      ...rules().query,
      seed: seed === null ? null : String(seed),
      index: index || null,
      start: start ?? null,
      by: player,
      judge: judge || null,
      at: at || null,
    };
    page.setAddress(`${query("/review", facts)}#${fragment}`, { push });
  }

  // Whether the spawns follow from the seed, so that the address need not hold them.
  function derived() {
    if (record.seed === null) return false;
    const game = new Game(rules(), record.seed, {
      index: record.index ?? 0,
      start: record.start ? fromHex(record.start) : null,
    });
    for (const digit of record.moves) if (!game.play(Number(digit))) return false;
    return game.record().spawns === record.spawns;
  }

  async function go() {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    steps = [];
    summary = null;
    bar.hidden = false;
    bar.value = 0;
    for (const part of [facts, counts, caveat, graph, worst, list]) fill(part);
    head.textContent = "Judging…";
    try {
      const body = `{"game": ${recordJson(record)}, "judge": ${JSON.stringify(judge || null)}}`;
      for await (const line of postLines("/api/review", body, signal)) {
        if (signal.aborted) return;
        if (line.error) throw new Error(line.error);
        if (line.judge) {
          judgeName = line.judge;
          ({ exact, points } = line);
          fill(caveat, line.caveat);
          head.textContent = `Judging by ${judgeName}…`;
        }
        if (line.steps) {
          steps.push(...line.steps);
          bar.value = steps.length / played.turns.length;
          tell();
        }
        if (line.summary) summary = line.summary;
      }
      if (!summary) throw new Error("the review broke off; try again");
      bar.hidden = true;
      finish();
    } catch (error) {
      if (error.name === "AbortError") return;
      bar.hidden = true;
      fill(head, el("span", { class: "trouble" }, error.message));
    }
  }

  function finish() {
    fill(
      head,
      el("strong", {}, `${record.player}: ${whole(record.score)} points`),
      `, judged by ${judgeName}.`,
    );
    const cell = (name, value, title) =>
      el("div", { title }, el("span", {}, name), el("output", { class: "big" }, value));
    fill(
      facts,
      cell(
        "accuracy",
        percent(summary.accuracy),
        "Mean of (move − worst) / (best − worst), where it matters",
      ),
      cell("best moves", percent(summary.agreement), "Share of moves that are best"),
      exact
        ? cell(
            "points lost",
            number(summary.loss),
            "Expected score given away, all moves together",
          )
        : null,
      cell("moves", whole(summary.moves), ""),
    );
    fill(
      counts,
      Object.entries(summary.marks).map(([name, count]) =>
        el(
          "span",
          { class: "count" },
          el("span", { class: `grade ${name}` }, GRADES[name].sign),
          ` ${whole(count)} ${GRADES[name].word}${isMistake(name) && count !== 1 ? "s" : ""}`,
        ),
      ),
    );
    fill(
      worst,
      el("h2", {}, "The worst moves"),
      summary.worst.length
        ? el(
            "ol",
            { class: "mistakes" },
            summary.worst.map((each) => {
              const turn = played.turns[each.move - 1];
              const { value } = steps[each.move - 1];
              return el(
                "li",
                {},
                el(
                  "button",
                  {
                    type: "button",
                    class: "mistake-card",
                    "data-move": each.move,
                    onclick: () => step(each.move - 1),
                  },
                  smallBoard(turn.board, record.rules.rows, record.rules.cols),
                  el(
                    "span",
                    {},
                    el("strong", {}, `Move ${each.move} `),
                    el("span", { class: `grade ${each.mark}` }, GRADES[each.mark].sign),
                    el("br"),
                    `${each.made}, better ${each.better}`,
                    el("br"),
                    el(
                      "span",
                      { class: "dim" },
                      lostText(each.mark, each.regret, value, exact),
                    ),
                  ),
                ),
              );
            }),
          )
        : el("p", {}, "None: every move was best, as far as the judge can tell."),
    );
    fill(
      list,
      el("h2", {}, "All moves"),
      el(
        "div",
        { class: "chips" },
        steps.map((each, i) => {
          return el(
            "button",
            {
              type: "button",
              class: `chip ${each.mark}`,
              "data-index": i,
              tabIndex: -1,
              title: `${i + 1}: ${each.move}, ${GRADES[each.mark].word}`,
              onclick: () => step(i),
            },
            ARROWS[DIRECTIONS.indexOf(each.move)],
            isMistake(each.mark) ? GRADES[each.mark].sign : "",
          );
        }),
      ),
    );
    draw();
    step(at);
    page.say(`reviewed: accuracy ${percent(summary.accuracy)}`);
  }

  function draw() {
    if (!summary) return;
    const marked = summary.worst
      .filter((each) => isMistake(each.mark))
      .map((each) => ({
        x: each.move,
        className: each.mark,
        title: `move ${each.move}: ${each.made}, better ${each.better}`,
      }));
    const thin = Math.ceil(steps.length / 1500);
    const drawn = steps.filter((each, i) => i % thin === 0 || i === steps.length - 1);
    const pick = (x) => step(Math.max(0, Math.min(steps.length - 1, x - 1)));
    fill(
      graph,
      chart({
        series: [{ name: "value", points: drawn.map((each) => [each.number, each.value]) }],
        yLabel: points ? "points to come" : "value to the judge",
        xLabel: "move",
        events: marked.map((each) => ({ ...each, y: steps[each.x - 1].value })),
        onPick: pick,
        cursor: at + 1,
        height: 190,
        label: "Value of each position",
      }),
      exact
        ? chart({
            series: [
              {
                name: "lost so far",
                points: drawn.map((each) => [each.number, each.loss]),
                area: true,
                colour: 1,
              },
            ],
            yLabel: "points lost so far",
            xLabel: "move",
            yMin: 0,
            events: marked.map((each) => ({ ...each, y: steps[each.x - 1].loss })),
            onPick: pick,
            cursor: at + 1,
            height: 170,
            label: "Loss so far",
          })
        : null,
    );
  }

  function step(to) {
    if (!played) return;
    const target = Math.max(0, Math.min(played.turns.length - 1, to));
    const forward = target === at + 1;
    at = target;
    const turn = played.turns[at];
    const { rows, cols } = record.rules;
    if (forward && board.rows) board.move(played.turns[at - 1], turn.board);
    else board.show(turn.board, rows, cols);
    slider.value = at;
    address();
    tell();
    for (const line of graph.querySelectorAll(".cursor")) moveCursor(line, at + 1);
    for (const chip of list.querySelectorAll(".chip[aria-current]"))
      chip.removeAttribute("aria-current");
    const chip = list.querySelector(`[data-index="${at}"]`);
    chip?.setAttribute("aria-current", "true");
    if (chip) list.scrollTop = chip.offsetTop - list.clientHeight / 2; // the list, never the page
  }

  function tell() {
    const turn = played.turns[at];
    const each = steps[at];
    const name = each?.mark;
    const lost = each && lostText(name, each.regret, each.value, exact);
    fill(
      told,
      `Move ${at + 1} of ${played.turns.length}, score ${whole(turn.score)}: ${DIRECTIONS[turn.move]} `,
      each ? el("span", { class: `grade ${name}` }, GRADES[name].sign) : null,
      each ? ` ${GRADES[name].word}` : null,
      each && name !== "best"
        ? el("span", { class: "dim" }, ` · better ${each.best}${lost && `, ${lost}`}`)
        : null,
    );
  }

  function mistake(way) {
    for (let i = at + way; i >= 0 && i < steps.length; i += way)
      if (isMistake(steps[i].mark)) {
        step(i);
        return;
      }
    page.fail(way > 0 ? "no more mistakes after this move" : "no mistakes before this move");
  }

  const rules = () => new Rules(record.rules.rows, record.rules.cols, record.rules.p4);
  function practise() {
    page.go(
      query("/play", {
        ...rules().query,
        start: hex(played.turns[at].board),
        seed: String(newSeed()),
      }),
    );
  }
  function analyse() {
    page.go(query("/analyse", { ...rules().query, board: hex(played.turns[at].board) }));
  }

  // -- arriving -------------------------------------------------------------------------------

  function arrive(params, hash) {
    if (!hash) {
      choose();
      return;
    }
    try {
      const rules = Rules.parse(params.get("rules"), params.get("p4") ?? 0.1);
      const [packed, spawns] = hash.split(".");
      const moves = unpackMoves(packed);
      const start = params.get("start");
      judge = params.get("judge") ?? "";
      const by = params.get("by") ?? "you";
      const index = Number(params.get("index") ?? 0);
      const move = Number(params.get("at")) || 0;
      let found;
      if (spawns) {
        const seed = params.get("seed") ? parseSeed(params.get("seed")) : null;
        found = {
          format: 1,
          rules: { rows: rules.rows, cols: rules.cols, p4: rules.p4 },
          player: by,
          seed,
          index,
          moves: moves.join(""),
          spawns,
          ...(start ? { start } : {}),
        };
        const end = replay(found);
        Object.assign(found, { score: end.score, max_tile: 2 ** Math.max(...end.board) });
      } else {
        const game = new Game(rules, parseSeed(params.get("seed")), {
          index,
          start: start ? fromHex(start) : null,
        });
        for (const d of moves)
          if (!game.play(d)) throw new Error("the moves in this address are not legal");
        found = game.record(by);
      }
      load(found, { move, push: false });
    } catch (error) {
      page.fail(error);
      choose();
    }
  }

  arrive(params, hash);
  return {
    arrive,
    key(event) {
      if (!record) return false;
      if (event.key in JUMP) {
        if (event.target === slider) return false;
        step(at + JUMP[event.key]);
      } else if (event.key === "Home") step(0);
      else if (event.key === "End") step(played.turns.length - 1);
      else if (event.key === "m") mistake(1);
      else if (event.key === "M") mistake(-1);
      else if (event.key === "p") practise();
      else if (event.key === "x") analyse();
      else return false;
      return true;
    },
    leave() {
      stop.abort();
      if (record?.player === "you") keepGame(record);
    },
  };
}
