// A chart in a frame, with a title and a line that says what it shows.

import { chart } from "../../chart.js";
import { el } from "../../dom.js";
import { percent } from "../../numbers.js";

const WIDTH = 480;
export const SHARE = { yFormat: (y) => percent(y, 0), yMin: 0, yMax: 1 }; // an axis from 0 to 100%

export const card = (title, about, options) =>
  el(
    "section",
    { class: "card" },
    el("h2", {}, title),
    el("p", { class: "dim" }, about),
    chart({ width: WIDTH, ...options }),
  );
