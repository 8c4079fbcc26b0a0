// Results: past evaluations side by side, and what has been solved.

import { el, fill, nameParts, number, percent, whole, bytes } from "./parts.js";
import { Rules } from "./engine.js";
import { chart } from "./chart.js";
import { get, post, query } from "./api.js";

export const TITLE = "Results";
export const KEYS = [
  ["Tab", "through the tables"],
  ["Enter", "sort by a column, show a survey"],
  ["space", "tick a row, to compare it"],
];
const COLUMNS = [
  ["player", "player", (row) => row.player],
  ["mean", "mean score", (row) => row.exact_value ?? row.score.mean],
  ["loss", "lost per game", (row) => row.exact_regret ?? row.regret_per_game?.mean ?? null],
  ["agreement", "best moves", (row) => row.agreement],
  ["board", "board", (row) => row.board],
  ["games", "games", (row) => row.games],
  ["max", "best", (row) => row.score.max],
  ["tile", "largest tiles", (row) => top(row)],
  ["speed", "moves/s", (row) => row.moves_per_second],
  ["made", "made", (row) => row.made],
];
// What a row is about, and what comes first where there is little room; the rest is more.
const KINDS = { player: "name", mean: "first", loss: "first", agreement: "first" };
const SHOW = {
  player: nameParts,
  games: whole,
  mean: (v, row) => figure(row.exact_value, row.score),
  max: whole,
  loss: (v, row) => figure(row.exact_regret, row.regret_per_game),
  agreement: (v) => percent(v),
  speed: whole,
  made: (v) =>
    new Date(v).toLocaleString("en", {
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
      hour12: false,
    }),
  tile: (v, row) =>
    Object.entries(row.reach ?? {})
      .slice(-2)
      .map(([name, { rate }]) => `${name}:\u00a0${percent(rate, rate < 0.1 ? 1 : 0)}`)
      .join(", "),
};
// A figure: exact where that is known, and what games have shown, with half its 95% interval.
function figure(exact, played) {
  if (!played) return "–";
  const under = (text) => (text ? el("span", { class: "under" }, text) : null);
  const within = played.ci95 ? `± ${number((played.ci95[1] - played.ci95[0]) / 2)}` : "";
  if (exact === null) return [number(played.mean), under(within)];
  return [number(exact, 2), under("exact"), under(`played: ${number(played.mean)} ${within}`)];
}
const top = (row) => Number(Object.keys(row.reach ?? {}).at(-1) ?? 0);

export function open(root, params, hash, page) {
  let rows = [];
  let solved = null;
  let sort = "made";
  let down = true;
  let only = "";
  let chosen = [];
  let alive = true;
  let survey = "";
  const table = el("div", { class: "wide" });
  const details = el("div", { class: "details" });
  const tables = el("section");
  const filter = el("select", {
    "aria-label": "Board",
    onchange: () => {
      only = filter.value;
      address();
      draw();
    },
  });
  fill(
    root,
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Results"),
      el("div", { class: "row" }, el("label", { class: "field" }, el("span", {}, "board"), filter)),
    ),
    table,
    details,
    tables,
  );
  const find = (params) => {
    [sort, down, only] = [
      params.get("sort") ?? "made",
      params.get("order") !== "up",
      params.get("board") ?? "",
    ];
    [chosen, survey] = [params.getAll("show"), params.get("table") ?? ""];
    if (!COLUMNS.some(([key]) => key === sort)) sort = "made";
  };

  function address(push = false) {
    page.setAddress(
      query("/results", {
        sort: sort === "made" ? null : sort,
        order: down ? null : "up",
        board: only || null,
        show: chosen,
        table: survey || null,
      }).replace(/\?$/, ""),
      { push },
    );
  }

  // What nobody has a figure for is left out.
  const columns = () =>
    COLUMNS.filter(
      ([key, , value]) =>
        !["loss", "agreement"].includes(key) ||
        rows.some((row) => (value(row) ?? null) !== null),
    );
  const id = (row) => `${row.name}/${row.place}`;

  async function load() {
    fill(table, el("p", { class: "dim" }, "Loading…"));
    try {
      const [results, found] = await Promise.all([get("/api/results"), get("/api/tables")]);
      if (!alive) return;
      rows = results.flatMap(({ name, made, command, results: each }) =>
        each.map((row, place) => ({ ...row, name, made, command, place })),
      );
      solved = found;
      const boards = [...new Set(rows.map((row) => row.board))].sort();
      fill(
        filter,
        el("option", { value: "" }, "all boards"),
        boards.map((name) => el("option", { value: name, selected: name === only }, name)),
      );
      if (!chosen.length && rows.length)
        chosen = rows
          .filter((row) => row.name === rows[0].name)
          .slice(0, 6)
          .map(id);
      draw();
      drawTables();
    } catch (error) {
      fill(table, el("p", { class: "trouble" }, error.message));
    }
  }

  // -- evaluations ------------------------------------------------------------------------------

  function draw() {
    if (!rows.length) {
      fill(
        table,
        el(
          "div",
          { class: "empty" },
          el("p", {}, "No player has been evaluated yet. Try:"),
          el("pre", {}, "lab2048 evaluate greedy expectimax ntuple --board 3x3 --games 200"),
          el("p", { class: "dim" }, "Every evaluation is kept, and shown here."),
        ),
      );
      fill(details);
      return;
    }
    const value = COLUMNS.find(([key]) => key === sort)[2];
    const shown = rows
      .filter((row) => !only || row.board === only)
      .sort((a, b) => compare(value(a), value(b)) * (down ? -1 : 1));
    const head = columns().map(([key, name]) =>
      el(
        "th",
        { scope: "col", "aria-sort": key === sort ? (down ? "descending" : "ascending") : null },
        el(
          "button",
          {
            type: "button",
            class: "link",
            "data-key": key,
            onclick: () => {
              down = key === sort ? !down : key !== "player" && key !== "board";
              sort = key;
              address();
              draw();
            },
          },
          name,
          key === sort ? (down ? " ▾" : " ▴") : "",
        ),
      ),
    );
    fill(
      table,
      el(
        "table",
        { class: "results evals cards" },
        el(
          "thead",
          {},
          el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, "show")), head),
        ),
        el(
          "tbody",
          {},
          shown.map((row) => line(row)),
        ),
      ),
    );
    detail();
  }

  function compare(a, b) {
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
    if (b === null || b === undefined) return 1;
    return typeof a === "string" ? a.localeCompare(b) : a - b;
  }

  function line(row) {
    const key = id(row);
    const on = chosen.includes(key);
    const box = el("input", {
      type: "checkbox",
      checked: on,
      "aria-label": `Show ${row.player}`,
      onchange: () => {
        chosen = on ? chosen.filter((each) => each !== key) : [...chosen, key].slice(-6);
        address();
        draw();
      },
    });
    return el(
      "tr",
      { class: on ? "open" : "", title: row.command },
      el("td", { class: "box" }, box),
      columns().map(([column, title, value]) =>
        el(
          "td",
          { class: KINDS[column] ?? "more", "data-label": title },
          (SHOW[column] ?? String)(value(row), row) ?? "–",
        ),
      ),
    );
  }

  let asked = 0;
  async function detail() {
    const mine = ++asked;
    const picked = rows.filter((row) => chosen.includes(id(row)));
    if (!picked.length) {
      fill(details, el("p", { class: "dim" }, "Tick rows to see their scores and tiles."));
      return;
    }
    const files = new Map();
    try {
      for (const name of new Set(picked.map((row) => row.name)))
        files.set(name, await get(`/api/results/${name}`));
    } catch (error) {
      page.fail(error);
      return;
    }
    if (!alive || mine !== asked) return;
    const full = picked.map((row) => ({
      ...files.get(row.name).results[row.place],
      label: rows.some(
        (other) => other !== row && picked.includes(other) && other.player === row.player,
      )
        ? `${row.player} (${row.board}, ${row.games})`
        : row.player,
    }));
    const tiles = [...new Set(full.flatMap((row) => Object.keys(row.reach).map(Number)))].sort(
      (a, b) => a - b,
    );
    const rate = (row, name) =>
      row.reach[name]?.rate ?? (name < Math.min(...Object.keys(row.reach).map(Number)) ? 1 : 0);
    const judged = full.filter((row) => row.optimal);
    const bins = judged[0]?.optimal.by_gap.slice(1) ?? [];
    const binName = (bin) =>
      bin.to === null ? `above ${whole(bin.above)}` : `${whole(bin.above)}–${whole(bin.to)}`;
    const spread =
      Math.max(...full.map((row) => row.quantiles[100])) >
      20 * Math.max(1, Math.min(...full.map((row) => row.quantiles[50])));
    fill(
      details,
      el(
        "div",
        { class: "charts" },
        card(
          "Scores",
          "the share of games that score at most so much",
          chart({
            width: 480,
            series: full.map((row) => ({
              name: row.label,
              points: row.quantiles.map((score, i) => [Math.max(score, 1), i / 100]),
            })),
            log: spread,
            xLabel: "score",
            yLabel: "games",
            yFormat: (y) => percent(y, 0),
            yMin: 0,
            yMax: 1,
            label: "Distribution of scores",
          }),
        ),
        card(
          "Tiles",
          "the share of games that made each tile",
          chart({
            width: 480,
            series: full.map((row) => ({
              name: row.label,
              marks: true,
              points: tiles.map((name, i) => [i, rate(row, name)]),
            })),
            names: tiles.map(String),
            xLabel: "tile",
            yLabel: "games",
            yFormat: (y) => percent(y, 0),
            yMin: 0,
            yMax: 1,
            label: "Tiles reached",
          }),
        ),
        bins.length
          ? card(
              "Regret by d(s)",
              "points lost a move, by what is at stake: d(s) is the best move less the worst",
              chart({
                width: 480,
                series: judged.map((row) => ({
                  name: row.label,
                  marks: true,
                  points: row.optimal.by_gap.slice(1).map((bin, i) => [i, bin.regret_per_move]),
                })),
                names: bins.map(binName),
                xLabel: "d(s), in score",
                yLabel: "points lost a move",
                yMin: 0,
                label: "Regret by gap",
              }),
            )
          : null,
      ),
      mistakes(judged),
    );
  }

  const card = (title, about, inside) =>
    el("section", { class: "card" }, el("h2", {}, title), el("p", { class: "dim" }, about), inside);

  function mistakes(judged) {
    const found = judged.flatMap((row) =>
      row.optimal.worst.slice(0, 2).map((each) => ({ ...each, row })),
    );
    if (!found.length) return null;
    return el(
      "section",
      {},
      el("h2", {}, "Largest mistakes"),
      el(
        "ul",
        { class: "plain" },
        found.map(({ board, move, regret, row }) =>
          el(
            "li",
            {},
            el(
              "a",
              {
                href: query("/analyse", { board, ...Rules.parse(row.board, row.p4).query }),
                "data-inside": "",
              },
              board,
            ),
            ` – ${row.label} played ${move} and lost ${number(regret)}`,
          ),
        ),
      ),
    );
  }

  // -- tables -----------------------------------------------------------------------------------

  function drawTables() {
    const { making } = solved;
    const cells = (name) => name.split("x").reduce((a, b) => a * b);
    const found = [...solved.tables].sort(
      (a, b) =>
        cells(a.board) - cells(b.board) ||
        a.board.localeCompare(b.board) ||
        (a.objective === "score"
          ? -1
          : b.objective === "score"
            ? 1
            : a.objective.localeCompare(b.objective, "en", { numeric: true })),
    );
    const head = ["board", "objective", "p4", "positions", "value of the start", "size", "survey"];
    const body = found.map((each) =>
      el(
        "tr",
        { class: each.name === survey ? "open" : "" },
        [
          each.board,
          each.objective + (each.gamma === 1 ? "" : `, γ ${each.gamma}`),
          String(each.p4),
          whole(each.states),
          each.objective.startsWith("reach") ? percent(each.value, 2) : number(each.value, 2),
          bytes(each.bytes),
        ].map((text, i) => el("td", { class: "first", "data-label": head[i] }, text)),
        el(
          "td",
          { class: "first", "data-label": head.at(-1) },
          each.objective === "score" && each.kept
            ? el(
                "button",
                { type: "button", class: "link action", onclick: () => showSurvey(each) },
                each.surveyed ? "show" : "make",
              )
            : "",
        ),
      ),
    );
    fill(
      tables,
      el("h2", {}, "Solved boards"),
      found.length
        ? el(
            "div",
            { class: "wide" },
            el(
              "table",
              { class: "results boards cards" },
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  head.map((name) => el("th", { scope: "col" }, name)),
                ),
              ),
              el("tbody", {}, body),
            ),
          )
        : el(
            "div",
            { class: "empty" },
            el(
              "p",
              {},
              "No board has been solved yet. 2×2 to 4×2 are solved when they are first analysed; others with:",
            ),
            el("pre", {}, "lab2048 solve 3x3"),
          ),
      making.map((each) => el("p", { class: "dim" }, `${each.name}: ${percent(each.share, 0)}`)),
      el("div", { class: "survey" }),
    );
    const open = found.find((each) => each.name === survey);
    if (open?.surveyed) showSurvey(open);
  }

  async function showSurvey(each) {
    survey = each.name;
    address();
    const place = tables.querySelector(".survey");
    try {
      if (!each.surveyed) {
        await post(`/api/surveys/${each.name}`, "{}");
        for (let now = {}; now;) {
          await new Promise((resolve) => {
            setTimeout(resolve, 500);
          });
          if (!alive) return;
          solved = await get("/api/tables");
          now = solved.making.find((other) => other.name === `survey of ${each.name}`);
          fill(
            place,
            el("p", { class: "dim" }, `Surveying ${each.name}: ${percent(now?.share ?? 1, 0)}`),
          );
        }
        drawTables();
        if (!solved.tables.find((other) => other.name === each.name)?.surveyed)
          throw new Error("the survey could not be made; `lab2048 survey` tells why");
        return;
      }
      const found = await get(`/api/surveys/${each.name}`);
      const tiles = Object.keys(found.reach);
      const ages = found.by_age;
      fill(
        place,
        el("h2", {}, `Perfect play on ${each.board.replace("x", "×")}`),
        el(
          "p",
          {},
          `Mean score ${number(found.score.mean, 2)} ± ${number(found.score.deviation, 2)} (standard deviation), ${number(found.moves.mean, 1)} moves.`,
        ),
        el(
          "div",
          { class: "charts" },
          card(
            "Tiles",
            "the chance that perfect play makes each tile",
            chart({
              width: 480,
              series: [
                {
                  name: "chance",
                  marks: true,
                  points: tiles.map((name, i) => [i, found.reach[name]]),
                },
              ],
              names: tiles,
              xLabel: "tile",
              yLabel: "chance",
              yFormat: (y) => percent(y, 0),
              yMin: 0,
              yMax: 1,
            }),
          ),
          card(
            "What is at stake",
            "mean difference of the best and the worst, and of the best and the second best move, as games come by",
            chart({
              width: 480,
              series: [
                ["best less worst", ages.visited_gap],
                ["best less second", ages.visited_margin],
              ].map(([name, values]) => ({
                name,
                points: values.map((y, i) => [ages.age[i], y]).filter(([, y]) => y !== null),
              })),
              xLabel: "age: the sum of the tiles",
              yLabel: "score",
              yMin: 0,
            }),
          ),
        ),
      );
    } catch (error) {
      page.fail(error);
    }
  }

  find(params);
  load();
  return {
    arrive(now) {
      find(now);
      if (solved) {
        draw();
        drawTables();
      }
    },
    leave() {
      alive = false;
    },
  };
}
