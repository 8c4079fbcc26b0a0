// Line charts as SVG, with a colour, a dash and a mark of its own for each line.

import { compact, el, number } from "./parts.js";

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
const colourClass = (i) => `line-${i % 6}`;

function svg(tag, props, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(props))
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Round numbers from low to high, about so many.
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

/* A chart of `series`: { name, points: [[x, y]], area, marks, plain }.
   x is a number, or with `names` the place in that list. `events` are marked points of the first
   line: { x, y, className, title }. `width` and `height` are in units of the text. `onPick` is told
   the nearest x. `cursor` is a line across. */
export function chart({
  series,
  names = null,
  xLabel = "",
  yLabel = "",
  yFormat = compact,
  xFormat = (x) => number(x, 0),
  log = false,
  yMin = null,
  yMax = null,
  events = [],
  onPick = null,
  cursor = null,
  width = 640,
  height = 220,
  label = "",
}) {
  const right = 16;
  const top = 12;
  const bottom = 44;
  if (innerWidth < 520) width = 360;
  const points = series.flatMap((each) => each.points.filter(([, y]) => y !== null));
  if (!points.length) return el("p", { class: "dim" }, "nothing to draw");
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const scaleX = log ? Math.log2 : (x) => x;
  let [x0, x1] = names
    ? [-0.3, names.length - 0.7]
    : [Math.min(...xs), Math.max(...xs)].map(scaleX);
  if (x0 === x1) {
    x0 -= 1;
    x1 += 1;
  }
  const y0 = yMin ?? Math.min(...ys);
  let y1 = yMax ?? Math.max(...ys);
  if (y0 === y1) y1 = y0 + 1;
  const labels = ticks(y0, y1, 4).map((y) => [y, yFormat(y)]);
  const left = 34 + 7 * Math.max(...labels.map(([, text]) => text.length));
  const px = (x) => left + ((scaleX(x) - x0) / (x1 - x0)) * (width - left - right);
  const py = (y) => top + (1 - (y - y0) / (y1 - y0)) * (height - top - bottom);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label || yLabel,
    class: onPick ? "chart pick" : "chart",
  });
  for (const [y, text] of labels) {
    picture.append(
      svg("line", { x1: left, x2: width - right, y1: py(y), y2: py(y), class: "gridline" }),
      svg("text", { x: left - 8, y: py(y) + 4, class: "tick end" }, text),
    );
  }
  const marksX = names
    ? names.map((_, i) => i)
    : log
      ? Array.from(
          { length: Math.floor(x1) - Math.ceil(x0) + 1 },
          (_, i) => 2 ** (Math.ceil(x0) + i),
        )
      : ticks(x0, x1, 7);
  const textsX = marksX.map((x) => (names ? names[x] : xFormat(x)));
  const most = (width - left - right) / (10 + 7 * Math.max(...textsX.map((text) => text.length)));
  const every = Math.ceil(marksX.length / most); // so that texts stand apart
  marksX.forEach((x, i) => {
    if (i % every === 0)
      picture.append(
        svg(
          "text",
          {
            x: px(x),
            y: height - bottom + 18,
            class: px(x) > width - 34 ? "tick end" : "tick middle",
          },
          textsX[i],
        ),
      );
  });
  picture.append(
    svg("text", { x: (left + width - right) / 2, y: height - 6, class: "axis middle" }, xLabel),
    svg(
      "text",
      {
        x: 14,
        y: (top + height - bottom) / 2,
        class: "axis middle",
        transform: `rotate(-90 14 ${(top + height - bottom) / 2})`,
      },
      yLabel,
    ),
  );
  series.forEach((each, i) => {
    const drawn = each.points.filter(([, y]) => y !== null);
    if (!drawn.length) return;
    const path = each.points
      .map(([x, y], k) =>
        y === null
          ? ""
          : `${k && each.points[k - 1][1] !== null ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`,
      )
      .join("");
    if (each.area)
      picture.append(
        svg("path", {
          d: `${path}L${px(drawn.at(-1)[0])} ${py(y0)}L${px(drawn[0][0])} ${py(y0)}Z`,
          class: `area ${colourClass(each.colour ?? i)}`,
        }),
      );
    picture.append(
      svg("path", {
        d: path,
        class: `curve ${colourClass(each.colour ?? i)}`,
        "stroke-dasharray": DASHES[i % 6],
      }),
    );
    if (each.marks)
      for (const [x, y] of drawn)
        picture.append(
          svg("path", {
            d: MARKS[i % 6],
            transform: `translate(${px(x)} ${py(y)})`,
            class: `dot ${colourClass(each.colour ?? i)}`,
          }),
        );
  });
  for (const each of events)
    picture.append(
      svg(
        "circle",
        {
          cx: px(each.x),
          cy: py(each.y),
          r: 4.5,
          class: `event ${each.className}`,
          "data-x": each.x,
        },
        svg("title", {}, each.title),
      ),
    );
  if (cursor !== null) {
    const line = svg("line", {
      y1: top,
      y2: height - bottom,
      class: "cursor",
      "data-left": left,
      "data-right": width - right,
      "data-low": x0,
      "data-high": x1,
    });
    moveCursor(line, cursor);
    picture.append(line);
  }
  if (onPick)
    picture.addEventListener("click", (event) => {
      const box = picture.getBoundingClientRect();
      const x =
        x0 +
        ((((event.clientX - box.left) / box.width) * width - left) / (width - left - right)) *
          (x1 - x0);
      onPick(Math.round(x));
    });
  return el("figure", {}, picture, legend(series));
}

// Put the line across a chart at another x.
export function moveCursor(line, x) {
  const { left, right, low, high } = Object.fromEntries(
    Object.entries(line.dataset).map(([name, value]) => [name, Number(value)]),
  );
  const place = left + ((x - low) / (high - low)) * (right - left);
  line.setAttribute("x1", place);
  line.setAttribute("x2", place);
}

function legend(series) {
  if (series.length < 2) return null;
  return el(
    "figcaption",
    { class: "legend" },
    series.map((each, i) => {
      const sample = svg(
        "svg",
        { viewBox: "0 0 28 12", class: "sample", "aria-hidden": "true" },
        svg("path", {
          d: "M0 6H28",
          class: `curve ${colourClass(each.colour ?? i)}`,
          "stroke-dasharray": DASHES[i % 6],
        }),
      );
      if (each.marks)
        sample.append(
          svg("path", {
            d: MARKS[i % 6],
            transform: "translate(14 6)",
            class: `dot ${colourClass(each.colour ?? i)}`,
          }),
        );
      return el("span", {}, sample, each.name);
    }),
  );
}
