// Line charts as SVG; each line has its own colour, dash and mark.

import { el } from "./dom.js";
import { compact, number } from "./numbers.js";

const SPACE = "http://www.w3.org/2000/svg";
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "12 3", "4 2"];
const MARKS = [
  "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
  "M-3 -3h6v6h-6z",
  "M0 -4l4 4l-4 4l-4 -4z",
  "M0 -4l4 7h-8z",
  "M0 4l4 -7h-8z",
  "M-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
];
const USUAL = {
  names: null,
  xLabel: "",
  yLabel: "",
  yFormat: compact,
  xFormat: (x) => number(x, 0),
  log: false,
  yMin: null,
  yMax: null,
  events: [],
  onPick: null,
  cursor: null,
  width: 640,
  height: 220,
  label: "",
};
const [RIGHT, TOP, BOTTOM] = [16, 12, 44]; // the margins; the left one is as wide as its labels
const NARROW = { window: 520, chart: 360 };
const colourClass = (i) => `line-${i % 6}`;

function svg(tag, props, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(props))
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A chart of `series`: { name, points: [[x, y]], area, marks, colour }.
   x is a number or, with `names`, an index into that list. `events` are marked points:
   { x, y, className, title }. `width` and `height` are in the same units as font sizes. `onPick` is
   called with the x nearest to a click. `cursor` is the x of a vertical line. */
export function chart(wanted) {
  const given = { ...USUAL, ...wanted };
  const points = given.series.flatMap((each) => each.points.filter(([, y]) => y !== null));
  if (!points.length) return el("p", { class: "dim" }, "nothing to draw");
  const plot = scaled(given, points);
  const picture = svg("svg", {
    viewBox: `0 0 ${plot.width} ${plot.height}`,
    role: "img",
    "aria-label": plot.label || plot.yLabel,
    class: plot.onPick ? "chart pick" : "chart",
  });
  picture.append(
    ...gridLines(plot),
    ...marksOfX(plot),
    ...axisNames(plot),
    ...plot.series.flatMap((each, i) => line(plot, each, i)),
    ...plot.events.map((each) => eventMark(plot, each)),
  );
  if (plot.cursor !== null) picture.append(cursorLine(plot));
  if (plot.onPick) onClick(plot, picture);
  return el("figure", {}, picture, legend(plot.series));
}

// -- the scales ---------------------------------------------------------------------------------

// Round numbers from low to high, about `count`.
function ticks(low, high, count = 5) {
  const span = high - low || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step)
    found.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  return found;
}

// The chart with the ranges of its axes, and functions from x and y to places in the picture.
function scaled(given, points) {
  const width = innerWidth < NARROW.window ? NARROW.chart : given.width;
  const { height, log, names } = given;
  const scaleX = log ? Math.log2 : (x) => x;
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  let [x0, x1] = names
    ? [-0.3, names.length - 0.7]
    : [Math.min(...xs), Math.max(...xs)].map(scaleX);
  if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
  const y0 = given.yMin ?? Math.min(...ys);
  let y1 = given.yMax ?? Math.max(...ys);
  if (y0 === y1) y1 = y0 + 1;
  const labels = ticks(y0, y1, 4).map((y) => [y, given.yFormat(y)]);
  const left = 34 + 7 * Math.max(...labels.map(([, text]) => text.length));
  const px = (x) => left + ((scaleX(x) - x0) / (x1 - x0)) * (width - left - RIGHT);
  const py = (y) => TOP + (1 - (y - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
  return { ...given, width, left, labels, x0, x1, y0, px, py };
}

// -- the axes -----------------------------------------------------------------------------------

const gridLines = ({ labels, left, width, py }) =>
  labels.flatMap(([y, text]) => [
    svg("line", { x1: left, x2: width - RIGHT, y1: py(y), y2: py(y), class: "gridline" }),
    svg("text", { x: left - 8, y: py(y) + 4, class: "tick end" }, text),
  ]);

// The values of x that get a label: all names, powers of two, or round numbers.
function namedX({ names, log, x0, x1 }) {
  if (names) return names.map((_, i) => i);
  if (!log) return ticks(x0, x1, 7);
  const first = Math.ceil(x0);
  return Array.from({ length: Math.floor(x1) - first + 1 }, (_, i) => 2 ** (first + i));
}

function marksOfX(plot) {
  const { names, xFormat, left, width, height, px } = plot;
  const marks = namedX(plot);
  const texts = marks.map((x) => (names ? names[x] : xFormat(x)));
  const most = (width - left - RIGHT) / (10 + 7 * Math.max(...texts.map((text) => text.length)));
  const every = Math.ceil(marks.length / most); // so that labels do not overlap
  return marks.flatMap((x, i) => {
    if (i % every) return [];
    const side = px(x) > width - 34 ? "end" : "middle";
    return [svg("text", { x: px(x), y: height - BOTTOM + 18, class: `tick ${side}` }, texts[i])];
  });
}

function axisNames({ xLabel, yLabel, left, width, height }) {
  const middle = (TOP + height - BOTTOM) / 2;
  const turned = { class: "axis middle", transform: `rotate(-90 14 ${middle})` };
  return [
    svg("text", { x: (left + width - RIGHT) / 2, y: height - 6, class: "axis middle" }, xLabel),
    svg("text", { x: 14, y: middle, ...turned }, yLabel),
  ];
}

// -- lines and events ---------------------------------------------------------------------------

// The path of a line; it breaks where a value is missing.
const pathOf = ({ px, py }, points) =>
  points
    .map(([x, y], k) =>
      y === null
        ? ""
        : `${k && points[k - 1][1] !== null ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`,
    )
    .join("");

function line(plot, each, i) {
  const { px, py, y0 } = plot;
  const drawn = each.points.filter(([, y]) => y !== null);
  if (!drawn.length) return [];
  const colour = colourClass(each.colour ?? i);
  const path = pathOf(plot, each.points);
  const below = `L${px(drawn.at(-1)[0])} ${py(y0)}L${px(drawn[0][0])} ${py(y0)}Z`;
  const mark = ([x, y]) => dot(i, colour, px(x), py(y));
  return [
    ...(each.area ? [svg("path", { d: path + below, class: `area ${colour}` })] : []),
    curve(i, colour, path),
    ...(each.marks ? drawn.map(mark) : []),
  ];
}

const curve = (i, colour, d) =>
  svg("path", { d, class: `curve ${colour}`, "stroke-dasharray": DASHES[i % 6] });
const dot = (i, colour, x, y) =>
  svg("path", { d: MARKS[i % 6], transform: `translate(${x} ${y})`, class: `dot ${colour}` });

const eventMark = ({ px, py }, { x, y, className, title }) =>
  svg(
    "circle",
    { cx: px(x), cy: py(y), r: 4.5, class: `event ${className}`, "data-x": x },
    svg("title", {}, title),
  );

function legend(series) {
  if (series.length < 2) return null;
  return el(
    "figcaption",
    { class: "legend" },
    series.map((each, i) => {
      const colour = colourClass(each.colour ?? i);
      const sample = svg(
        "svg",
        { viewBox: "0 0 28 12", class: "sample", "aria-hidden": "true" },
        curve(i, colour, "M0 6H28"),
      );
      if (each.marks) sample.append(dot(i, colour, 14, 6));
      return el("span", {}, sample, each.name);
    }),
  );
}

// -- the cursor ---------------------------------------------------------------------------------

function cursorLine({ left, width, height, x0, x1, cursor }) {
  const made = svg("line", {
    y1: TOP,
    y2: height - BOTTOM,
    class: "cursor",
    "data-left": left,
    "data-right": width - RIGHT,
    "data-low": x0,
    "data-high": x1,
  });
  moveCursor(made, cursor);
  return made;
}

// Move the cursor of a chart to another x.
export function moveCursor(line, x) {
  const { left, right, low, high } = Object.fromEntries(
    Object.entries(line.dataset).map(([name, value]) => [name, Number(value)]),
  );
  const place = left + ((x - low) / (high - low)) * (right - left);
  line.setAttribute("x1", place);
  line.setAttribute("x2", place);
}

function onClick({ onPick, left, width, x0, x1 }, picture) {
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * width - left;
    onPick(Math.round(x0 + (across / (width - left - RIGHT)) * (x1 - x0)));
  });
}
