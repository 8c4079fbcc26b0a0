// Analyse: set up a position, see what every move is worth, and walk through the tree of the game.

import { smallBoard } from "./board.js";
import {
  ARROWS,
  DIRECTIONS,
  Rules,
  boardText,
  fromHex,
  hex,
  legalMoves,
  parseBoard,
  tile,
  Game,
  newSeed,
} from "./engine.js";
import {
  PlayerPicker,
  button,
  el,
  field,
  fill,
  fourInput,
  loss,
  nameParts,
  number,
  percent,
  serverFacts,
  sizeSelect,
  solvePanel,
  stage,
  usualPlayer,
} from "./parts.js";
import { get, query } from "./api.js";

export const TITLE = "Analyse";
export const KEYS = [
  ["↑ → ↓ ←", "the spawns after a move"],
  ["Enter", "the spawns after the best move"],
  ["Backspace", "back"],
  ["c", "clear the board"],
  ["g", "a position out of a random game"],
  ["p", "play on from here"],
  ["+ or -", "raise or lower the tile of the cell that has the focus; arrows go to another cell"],
  ["Delete or 0", "empty that cell"],
];
const MOVES = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3 };
const WAITING = {
  meaning: "",
  values: Object.fromEntries(DIRECTIONS.map((name) => [name, null])),
  choice: null,
};
const EXAMPLE = { board: "643512114", rules: "3x3" };

export function open(root, params, hash, page) {
  let rules;
  let ranks;
  let specs = [];
  let after = null;
  let paint = 1;
  let most = 4;
  let small = 8;
  serverFacts()
    .then((facts) => {
      most = facts.most_players;
      small = facts.solved_at_once;
    })
    .catch(page.fail);
  let asking = new AbortController();
  let alive = true;
  let shown = null; // the analysis on the page
  let focused = 0; // the cell that the Tab key leads to
  let solving = null; // the panel that offers to solve the board, and then shows how far that is

  const editor = el("div", { class: "editor", role: "grid", "aria-label": "Board editor" });
  const palette = el("div", { class: "palette", role: "radiogroup", "aria-label": "Tile to put" });
  const text = el("input", {
    type: "text",
    class: "text",
    "aria-label": "Position as text",
    spellcheck: false,
    autocomplete: "off",
    onchange: () => pasted(text.value),
    onpaste: (event) => takeLines(event, event.clipboardData),
    ondrop: (event) => takeLines(event, event.dataTransfer),
  });
  const settings = el("div", { class: "row" });
  const pickers = el("div", { class: "row players" });
  const verdict = el("p", { class: "verdict", "aria-live": "polite" });
  const grid = el("div", { class: "wide" });
  const spawns = el("div", { class: "spawns" });
  const note = el("div", { class: "note" });
  const reach = el("section", { class: "reach", "aria-label": "Chance to reach each tile" });
  const back = button("← Back", () => history.back(), "Back (Backspace)");

  fill(
    root,
    stage(
      [
        "Position",
        [el("div", { class: "board-frame" }, editor), palette, text],
        [
          back,
          button("Clear", clear, "Clear the board (c)"),
          button("Random", random, "A position out of a random game (g)"),
          button("Play from here", play, "Play on from here (p)"),
          button("Copy link", copy, "Copy the address of this position"),
        ],
      ],
      ["Analyse", [settings, verdict, grid, pickers, note, spawns, reach], "Analysis"],
    ),
  );

  // -- the position ---------------------------------------------------------------------------

  function place() {
    fill(
      settings,
      field("board", sizeSelect(rules.name, resize)),
      field(
        "p4",
        fourInput(rules.p4, (p4) => {
          rules = new Rules(rules.rows, rules.cols, p4);
          changed();
        }),
      ),
    );
    const made = specs.map((spec, i) => picker(i));
    const more =
      specs.length < most
        ? el(
            "button",
            {
              type: "button",
              onclick: async () => {
                specs.push(await another());
                changed();
              },
            },
            "+ Player",
          )
        : null;
    fill(pickers, made, more);
  }

  async function resize(size) {
    const before = await usualPlayer(rules);
    rules = Rules.parse(size, rules.p4);
    ranks = new Array(rules.cells).fill(0).with(0, 1).with(-1, 1);
    after = null;
    const usual = await usualPlayer(rules); // a network for another board would only be in the way
    specs = [...new Set(specs.map((spec) => (spec === before ? usual : spec)))];
    changed();
  }

  async function another() {
    const usual = await usualPlayer(rules);
    return (
      [usual, "expectimax", "mcts", "montecarlo", "greedy"].find(
        (name) => !specs.some((spec) => spec.split(":")[0] === name),
      ) ?? "random"
    );
  }

  function picker(i) {
    const made = new PlayerPicker({
      label: `Player ${i + 1}`,
      onchange: (spec) => {
        specs[i] = spec;
        changed();
      },
    });
    made.show(rules, specs[i]).catch(page.fail);
    const remove = el(
      "button",
      {
        type: "button",
        class: "icon",
        title: `Without ${specs[i]}`,
        "aria-label": `Without ${specs[i]}`,
        onclick: () => {
          specs.splice(i, 1);
          changed();
        },
      },
      "×",
    );
    return el("span", { class: "with" }, made.element, remove);
  }

  function draw() {
    editor.style.setProperty("--rows", rules.rows);
    editor.style.setProperty("--cols", rules.cols);
    const old = editor.contains(document.activeElement)
      ? Number(document.activeElement.dataset.cell)
      : null;
    fill(
      editor,
      Array.from({ length: rules.rows }, (_, r) =>
        el(
          "div",
          { class: "editor-row", role: "row" },
          Array.from({ length: rules.cols }, (__, c) => cell(r * rules.cols + c)),
        ),
      ),
    );
    if (old !== null)
      editor.querySelector(`[data-cell="${Math.min(old, rules.cells - 1)}"]`)?.focus();
    if (document.activeElement !== text) text.value = boardText(ranks, rules.cols);
  }

  function cell(number) {
    const rank = ranks[number];
    const where = `row ${Math.floor(number / rules.cols) + 1}, column ${(number % rules.cols) + 1}`;
    const face = el(
      "span",
      { class: rank ? `face r${rank} d${String(tile(rank)).length}` : "face none" },
      rank ? String(tile(rank)) : "",
    );
    return el(
      "button",
      {
        type: "button",
        class: "editor-cell",
        role: "gridcell",
        tabIndex: number === focused ? 0 : -1,
        onfocus: (event) => {
          focused = number;
          for (const each of editor.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
          event.target.tabIndex = 0;
        },
        "data-cell": number,
        "aria-label": `${where}: ${rank ? tile(rank) : "empty"}`,
        onclick: () => put(number, ranks[number] === paint ? 0 : paint),
        oncontextmenu: (event) => {
          event.preventDefault();
          put(number, 0);
        },
      },
      face,
    );
  }

  function put(number, rank) {
    ranks = ranks.with(number, Math.max(0, Math.min(17, rank)));
    after = null;
    changed({ push: false });
  }

  function choices() {
    const most = Math.min(17, Math.max(11, rules.cells + 1));
    fill(
      palette,
      Array.from({ length: most + 1 }, (_, rank) =>
        el(
          "button",
          {
            type: "button",
            role: "radio",
            class: "swatch",
            "aria-checked": String(rank === paint),
            "aria-label": rank ? String(tile(rank)) : "empty",
            onclick: () => {
              paint = rank;
              choices();
            },
          },
          el(
            "span",
            { class: rank ? `face r${rank} d${String(tile(rank)).length}` : "face none" },
            rank ? String(tile(rank)) : "×",
          ),
        ),
      ),
    );
  }

  function pasted(value) {
    try {
      const found = parseBoard(value, rules);
      rules = new Rules(found.rows, found.cols, rules.p4);
      ranks = found.ranks;
      after = null;
      changed();
    } catch (error) {
      page.fail(error);
      text.value = boardText(ranks, rules.cols);
    }
  }

  // Take a board of several lines before the field, which has only one, drops its line breaks.
  function takeLines(event, data) {
    const board = data.getData("text").trim();
    if (!board.includes("\n")) return;
    event.preventDefault();
    pasted(board);
    text.value = boardText(ranks, rules.cols);
  }

  function clear() {
    ranks = new Array(rules.cells).fill(0);
    after = null;
    changed();
  }

  function random() {
    const game = new Game(rules, newSeed());
    const length = 5 + Math.floor(Math.random() * 8 * rules.cells);
    while (game.moves.length < length && !game.over) {
      const moves = legalMoves(game.board, rules.rows, rules.cols);
      game.play(moves[Math.floor(Math.random() * moves.length)]);
    }
    if (game.over) game.undo();
    ranks = game.board;
    after = null;
    changed();
  }

  function play() {
    if (!legalMoves(ranks, rules.rows, rules.cols).length) {
      page.fail("no move is legal here, so there is nothing to play");
      return;
    }
    page.go(query("/play", { ...rules.query, start: hex(ranks), seed: String(newSeed()) }));
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      page.tell("The address is on the clipboard.");
    } catch {
      page.fail(`Copy it from the address bar: ${location.href}`);
    }
  }

  // -- the answer -----------------------------------------------------------------------------

  function address(push) {
    page.setAddress(
      query("/analyse", {
        board: hex(ranks),
        ...rules.query,
        player: specs.length ? specs : "none",
        after: after === null ? null : DIRECTIONS[after],
      }),
      { push },
    );
  }

  function changed({ push = true } = {}) {
    address(push);
    place();
    focused = Math.min(focused, rules.cells - 1);
    draw();
    choices();
    ask();
  }

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    fill(reach);
    if (ranks.every((rank) => !rank)) {
      fill(
        verdict,
        "Set up a position: choose a tile below the board and click on cells, or paste it as text.",
      );
      fill(grid);
      fill(spawns);
      fill(note);
      return;
    }
    const params = { board: hex(ranks), rules: rules.name, p4: rules.p4 };
    const slow = setTimeout(() => {
      if (!signal.aborted)
        verdict.textContent =
          "Thinking… the first time, a small board is solved and a player is compiled.";
    }, 400);
    try {
      const move = after === null ? null : DIRECTIONS[after];
      let found = await get("/api/analyse", { ...params, after: move }, signal);
      if (signal.aborted) return;
      // what is exact is there at once; players may take a while
      let troubles = [];
      if (specs.length && !found.terminal) {
        if (found.value !== null) {
          show({ ...found, players: Object.fromEntries(specs.map((spec) => [spec, WAITING])) });
          clearTimeout(slow);
        }
        const thoughts = await Promise.allSettled(
          specs.map((spec) => get("/api/analyse", { ...params, player: spec }, signal)),
        );
        if (signal.aborted) return;
        troubles = thoughts.flatMap((each) => (each.reason ? [each.reason.message] : []));
        found = {
          ...found,
          players: Object.assign({}, ...thoughts.map((each) => each.value?.players)),
        };
      }
      show(found, troubles);
      if (found.value !== null) offerReach(params, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(verdict, el("span", { class: "trouble" }, error.message));
      fill(grid);
      fill(spawns);
      fill(note);
    } finally {
      clearTimeout(slow);
    }
  }

  function show(found, troubles = []) {
    shown = found;
    const exact = found.value !== null;
    const best = DIRECTIONS.filter((name) => found.moves[name].optimal);
    const [first] = Object.entries(found.players);
    if (found.terminal) fill(verdict, "No move is legal here: the game is over.");
    else if (exact)
      fill(
        verdict,
        el("strong", {}, `${best.map(title).join(" or ")} ${best.length > 1 ? "are" : "is"} best`),
        `: ${number(found.value, 2)} more points on average under perfect play. `,
        why(found, best[0]),
      );
    else if (first)
      fill(
        verdict,
        el("strong", {}, `${title(first[1].choice)} is ${first[0]}’s move`),
        ". The exact answer is not known here.",
      );
    else fill(verdict, "Add a player to see what it thinks.");
    fill(grid, table(found, exact));
    const meanings = Object.entries(found.players)
      .filter(([, thinks]) => thinks.meaning)
      .map(([spec, thinks]) => el("p", {}, `${spec}: ${thinks.meaning}`));
    fill(
      note,
      troubles.map((text) => el("p", { class: "trouble" }, text)),
      meanings,
      found.note ? el("p", {}, found.note) : null,
    );
    if (found.solvable)
      note.append(
        (solving ??= solvePanel(
          rules,
          () => alive,
          () => {
            solving = null;
            ask();
          },
        )),
      );
    showSpawns(found);
  }

  const title = (name) => (name ? name[0].toUpperCase() + name.slice(1) : "–");

  // Why the best move is best, against the one that comes next.
  function why(found, best) {
    const others = DIRECTIONS.filter(
      (name) => found.moves[name].legal && !found.moves[name].optimal,
    ).sort((a, b) => found.moves[a].regret - found.moves[b].regret);
    if (!others.length) return null;
    const [next] = others;
    const a = found.moves[best];
    const b = found.moves[next];
    if (b.regret < 0.05)
      return el("span", { class: "dim" }, `${title(next)} is practically as good.`);
    const signed = (value) => `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`;
    const parts =
      a.reward === b.reward
        ? ""
        : ` (${signed(a.reward - b.reward)} now, ${signed(a.after_value - b.after_value)} later)`;
    return el(
      "span",
      { class: "dim" },
      `That is ${number(b.regret)} more than ${next}, the next best${parts}.`,
    );
  }

  function table(found, exact) {
    const players = Object.entries(found.players);
    const head = el(
      "tr",
      {},
      el("th", { scope: "col" }, "move"),
      el("th", { scope: "col" }, "reward"),
      exact
        ? ["after", "q", "regret"].map((name) => el("th", { scope: "col", class: name }, name))
        : null,
      players.map(([spec, thinks]) =>
        el("th", { scope: "col", class: "player", title: thinks.meaning }, nameParts(spec)),
      ),
    );
    const rows = DIRECTIONS.map((name, d) => row(found.moves[name], name, d, exact, players));
    const columns = players.length + (exact ? 5 : 2);
    const many = columns > 8 ? " many most" : columns > 4 ? " many" : "";
    return el(
      "table",
      { class: `moves${many}` },
      el("thead", {}, head),
      el("tbody", {}, rows),
    );
  }

  function row(move, name, d, exact, players) {
    const pick = el(
      "button",
      {
        type: "button",
        class: "link",
        disabled: !move.legal,
        "aria-expanded": String(after === d),
        onclick: () => pickMove(d),
      },
      el("span", { "aria-hidden": "true" }, `${ARROWS[d]} `),
      name,
    );
    const cells = {
      after: number(move.after_value, 2),
      q: number(move.q, 2),
      regret: move.optimal ? el("span", { class: "grade best" }, "✓ best") : loss(move.regret, 2),
    };
    return el(
      "tr",
      {
        class: `${move.optimal ? "best" : ""}${move.legal ? "" : " illegal"}${after === d ? " open" : ""}`,
        "data-move": name,
        onclick: (event) => {
          if (move.legal && !event.target.closest("button")) pickMove(d);
        },
      },
      el("th", { scope: "row" }, pick),
      el("td", {}, move.legal ? String(move.reward) : "illegal"),
      exact
        ? Object.entries(cells).map(([column, value]) =>
            el("td", { class: column }, move.legal ? value : ""),
          )
        : null,
      players.map(([, thinks]) =>
        el(
          "td",
          { class: "player" },
          thinks.values[name] === null ? "" : number(thinks.values[name], 1),
          thinks.choice === name ? el("span", { class: "choice", title: "its move" }, " ★") : "",
        ),
      ),
    );
  }

  function pickMove(d) {
    after = after === d ? null : d;
    address(true);
    ask();
  }

  function showSpawns(found) {
    if (!found.spawns) {
      fill(spawns);
      return;
    }
    const exact = found.spawns.some((spawn) => spawn.value !== null);
    const ordered = [...found.spawns].sort(
      (a, b) => a.tile - b.tile || (b.value ?? 0) - (a.value ?? 0),
    );
    fill(
      spawns,
      el("h2", {}, `After ${DIRECTIONS[after]}`),
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
        ordered.map((spawn) => {
          const to = parseBoard(spawn.board);
          return el(
            "button",
            {
              type: "button",
              class: "spawn",
              "data-board": spawn.board,
              "aria-label": `${spawn.tile} at row ${Math.floor(spawn.cell / rules.cols) + 1}, column ${(spawn.cell % rules.cols) + 1}, ${percent(spawn.probability)}`,
              onclick: () => walk(to.ranks),
            },
            smallBoard(to.ranks, rules.rows, rules.cols),
            el("span", { class: "chance" }, `${spawn.tile} · ${percent(spawn.probability)}`),
            spawn.value === null ? null : el("span", { class: "value" }, number(spawn.value, 1)),
          );
        }),
      ),
    );
  }

  function walk(to) {
    ranks = to;
    after = null;
    changed();
    page.say(`position ${boardText(ranks, rules.cols)}`);
  }

  function offerReach(params, signal) {
    const load = async () => {
      fill(
        reach,
        el("h2", {}, "Chance to reach"),
        el("p", { class: "dim" }, "Solving for each tile, once…"),
      );
      try {
        const found = await get("/api/reach", params, signal);
        const rows = Object.entries(found.chances).filter(([name]) => Number(name) > 4);
        fill(
          reach,
          el("h2", {}, "Chance to reach"),
          rows.length
            ? el(
                "div",
                { class: "reach-list" },
                rows.map(([name, chance]) => {
                  const bar = el("span", { class: "bar" });
                  bar.style.width = `${100 * chance}%`;
                  return el(
                    "div",
                    { class: "bar-row" },
                    el("span", { class: "move" }, name),
                    el("span", { class: "track" }, bar),
                    el("span", { class: "value" }, percent(chance, 2)),
                  );
                }),
              )
            : null,
          found.note
            ? el("p", { class: "dim" }, found.note)
            : el("p", { class: "dim" }, "By a player who is after just that tile."),
        );
      } catch (error) {
        if (error.name !== "AbortError") fill(reach, el("p", { class: "trouble" }, error.message));
      }
    };
    if (rules.cells <= 6 || rules.cells > small) load();
    else fill(reach, el("button", { type: "button", onclick: load }, "Chance to reach each tile"));
  }

  // -- arriving -------------------------------------------------------------------------------

  async function arrive(params) {
    try {
      const wanted = params.get("board") ? params : new URLSearchParams(EXAMPLE);
      const size = wanted.get("rules");
      const found = parseBoard(wanted.get("board"), size ? Rules.parse(size) : null);
      rules = Rules.parse(`${found.rows}x${found.cols}`, params.get("p4") ?? 0.1);
      ranks = found.ranks;
      after = params.get("after") ? DIRECTIONS.indexOf(params.get("after")) : null;
      if (after === -1) after = null;
      const named = params
        .getAll("player")
        .filter((spec) => spec !== "none")
        .slice(0, 4);
      specs = named.length || params.has("player") ? named : [await usualPlayer(rules)];
      if (!alive) return;
    } catch (error) {
      page.fail(error);
      rules = new Rules(3, 3);
      ranks = fromHex(EXAMPLE.board);
      after = null;
      specs = [];
    }
    changed({ push: false });
  }

  function editorKey(event) {
    const number = Number(event.target.dataset.cell);
    const { cols } = rules;
    const go = {
      ArrowUp: number - cols,
      ArrowDown: number + cols,
      ArrowLeft: number % cols ? number - 1 : -1,
      ArrowRight: (number + 1) % cols ? number + 1 : -1,
    }[event.key];
    if (go !== undefined) editor.querySelector(`[data-cell="${go}"]`)?.focus();
    else if (event.key === "+" || event.key === "=") put(number, ranks[number] + 1);
    else if (event.key === "-") put(number, ranks[number] - 1);
    else if (event.key === "Delete" || event.key === "0") put(number, 0);
    else return false;
    return true;
  }

  arrive(params);
  return {
    arrive,
    key(event) {
      if (event.target.closest(".editor") && editorKey(event)) return true;
      const d = MOVES[event.key];
      if (d !== undefined) {
        if (shown?.moves[DIRECTIONS[d]].legal) pickMove(d);
      } else if (event.key === "Enter" && !event.target.closest("button, a")) {
        const best = DIRECTIONS.findIndex((name) =>
          shown?.value === null
            ? Object.values(shown.players)[0]?.choice === name
            : shown?.moves[name].optimal,
        );
        if (best >= 0 && after !== best) pickMove(best);
      } else if (event.key === "Backspace") history.back();
      else if (event.key === "c") clear();
      else if (event.key === "g") random();
      else if (event.key === "p") play();
      else return false;
      return true;
    },
    leave() {
      alive = false;
      asking.abort();
    },
  };
}
