// The boards that have been solved, and the survey of one of them.

import { get, post } from "../../api.js";
import { el, fill } from "../../dom.js";
import { sizeText } from "../../game.js";
import { bytes, number, percent, whole } from "../../numbers.js";
import { waitUntilMade } from "../../server_facts.js";
import { SHARE, card } from "./chart_card.js";

const COLUMNS = ["board", "objective", "p4", "positions", "value of the start", "size", "survey"];

// Draw the table of boards, and the open survey. `changed` is called when a survey is opened.
export function drawBoards(view, changed) {
  const { tables, making } = view.solved;
  const found = [...tables].sort(bySize);
  const show = (each) => showSurvey(view, each, changed);
  fill(
    view.parts.boards,
    el("h2", {}, "Solved boards"),
    found.length ? boardTable(found, view.survey, show) : noBoards(),
    making.map((each) => el("p", { class: "dim" }, `${each.name}: ${percent(each.share, 0)}`)),
    el("div", { class: "survey" }),
  );
  const open = found.find((each) => each.name === view.survey);
  if (open?.surveyed) show(open);
}

// Small boards first; for each board, the score before other objectives.
function bySize(a, b) {
  const cells = (name) => name.split("x").reduce((rows, cols) => rows * cols);
  const order = cells(a.board) - cells(b.board) || a.board.localeCompare(b.board);
  if (order) return order;
  if (a.objective === "score") return -1;
  if (b.objective === "score") return 1;
  return a.objective.localeCompare(b.objective, "en", { numeric: true });
}

const boardTable = (found, survey, show) =>
  el(
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
          COLUMNS.map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      el(
        "tbody",
        {},
        found.map((each) => boardRow(each, each.name === survey, show)),
      ),
    ),
  );

function boardRow(each, open, show) {
  const chance = each.objective.startsWith("reach");
  const cells = [
    sizeText(each.board),
    each.objective + (each.gamma === 1 ? "" : `, γ ${each.gamma}`),
    String(each.p4),
    whole(each.states),
    chance ? percent(each.value, 2) : number(each.value, 2),
    bytes(each.bytes),
    each.objective === "score" && each.kept ? surveyButton(each, show) : "",
  ];
  return el(
    "tr",
    { class: open ? "open" : "" },
    cells.map((inside, i) => el("td", { class: "first", "data-label": COLUMNS[i] }, inside)),
  );
}

const surveyButton = (each, show) =>
  el(
    "button",
    { type: "button", class: "link action", onclick: () => show(each) },
    each.surveyed ? "show" : "make",
  );

const noBoards = () =>
  el(
    "div",
    { class: "empty" },
    el(
      "p",
      {},
      "No board has been solved yet. 2×2 to 4×2 are solved when they are first analysed; others with:",
    ),
    el("pre", {}, "lab2048 solve 3x3"),
  );

// -- the survey ---------------------------------------------------------------------------------

async function showSurvey(view, each, changed) {
  view.survey = each.name;
  changed();
  const place = view.parts.boards.querySelector(".survey");
  try {
    if (!each.surveyed) {
      await makeSurvey(view, each, place, changed);
      return;
    }
    const found = await get(`/api/surveys/${each.name}`);
    if (view.survey === each.name) drawSurvey(place, each, found); // else another was chosen
  } catch (error) {
    view.page.fail(error);
  }
}

// Have a survey made, report the progress, and show it.
async function makeSurvey(view, each, place, changed) {
  await post(`/api/surveys/${each.name}`, "{}");
  const alive = () => view.alive && view.survey === each.name;
  const solved = await waitUntilMade(`survey of ${each.name}`, alive, ({ share }) => {
    fill(place, el("p", { class: "dim" }, `Surveying ${each.name}: ${percent(share, 0)}`));
  });
  if (!solved) return;
  view.solved = solved;
  drawBoards(view, changed);
  if (!view.solved.tables.find((other) => other.name === each.name)?.surveyed)
    throw new Error("the survey could not be made; `lab2048 survey` tells why");
}

function drawSurvey(place, each, found) {
  const { score, moves } = found;
  fill(
    place,
    el("h2", {}, `Perfect play on ${sizeText(each.board)}`),
    el(
      "p",
      {},
      `Mean score ${number(score.mean, 2)} ± ${number(score.deviation, 2)} (standard deviation), ${number(moves.mean, 1)} moves.`,
    ),
    el("div", { class: "charts" }, tileChances(found.reach), stakes(found.by_age)),
  );
}

function tileChances(reach) {
  const names = Object.keys(reach);
  const points = names.map((name, i) => [i, reach[name]]);
  return card("Tiles", "the chance that perfect play makes each tile", {
    series: [{ name: "chance", marks: true, points }],
    names,
    xLabel: "tile",
    yLabel: "chance",
    ...SHARE,
  });
}

function stakes(ages) {
  const line = (name, values) => ({
    name,
    points: values.map((y, i) => [ages.age[i], y]).filter(([, y]) => y !== null),
  });
  const about =
    "mean difference of the best and the worst, and of the best and the second best move, over the course of a game";
  return card("What is at stake", about, {
    series: [
      line("best less worst", ages.visited_gap),
      line("best less second", ages.visited_margin),
    ],
    xLabel: "age: the sum of the tiles",
    yLabel: "score",
    yMin: 0,
  });
}
