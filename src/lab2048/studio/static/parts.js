// Pieces that several views are made of.

import { ARROWS, DIRECTIONS } from "./engine.js";
import { get, post } from "./api.js";

// An element with properties, listeners (on…) and children; text is never read as markup.
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && name !== "list" && name !== "form") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return made;
}

// The name of a player, which may go on in the next line after a colon or a comma.
export const nameParts = (spec) =>
  spec.split(/(?<=[:,])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

// A button that says what it does, and in its title by which key.
export function button(text, onclick, title, more = {}) {
  return el("button", { type: "button", onclick, title, ...more }, text);
}

// What a view is made of: a board with its buttons, and a panel beside it.
export function stage([name, board, buttons], [title, panel, label = title]) {
  return el(
    "div",
    { class: "stage" },
    el(
      "section",
      { class: "board-side", "aria-label": name },
      board,
      el("div", { class: "row buttons" }, buttons),
    ),
    el("section", { class: "panel", "aria-label": label }, el("h1", {}, title), panel),
  );
}

// Put children in the place of what is there (null children are left out). What had the focus has it
// again afterwards, if there is something of the same name.
export function fill(place, ...children) {
  const old =
    place.contains(document.activeElement) && document.activeElement !== place
      ? nameOf(document.activeElement)
      : null;
  place.replaceChildren(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  if (!old || place.contains(document.activeElement)) return;
  const same = [...place.querySelectorAll("button, input, select, a")].find(
    (each) => nameOf(each) === old,
  );
  same?.focus({ preventScroll: true });
}
const nameOf = (each) =>
  each.dataset.key ??
  each.dataset.cell ??
  each.getAttribute("aria-label") ??
  each.textContent.trim();

// -- numbers ---------------------------------------------------------------------------------

export function number(value, digits = 1) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const places = Math.abs(value) >= 10000 ? 0 : digits;
  return value
    .toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places })
    .replace("-", "−");
}
// A loss; one that would be shown as 0.0 is not worth a number.
export const loss = (value, digits = 1) =>
  value < 0.5 * 10 ** -digits ? "≈ 0" : `−${number(value, digits)}`;
export const compact = (value) =>
  Math.abs(value) >= 1e6
    ? value
        .toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 })
        .replace("-", "−")
    : number(value, Math.abs(value) < 10 && !Number.isInteger(value) ? 1 : 0);
export const whole = (value) =>
  value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
export function percent(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.0005) return `${(100 * value).toPrecision(2)}%`;
  return `${(100 * value).toFixed(value === 0 || value === 1 ? 0 : digits)}%`;
}
export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${count >= 100 || unit === 0 ? count.toFixed(0) : count.toPrecision(3)} ${units[unit]}`;
}

// -- how good a move was -------------------------------------------------------------------------

export const GRADES = {
  best: { sign: "✓", word: "best" },
  good: { sign: "·", word: "good" },
  slip: { sign: "?!", word: "slip" },
  mistake: { sign: "?", word: "mistake" },
  blunder: { sign: "??", word: "blunder" },
  other: { sign: "≠", word: "not the judge's move" },
};
export const isMistake = (mark) => ["slip", "mistake", "blunder"].includes(mark);

// What a move gave away: points if the judge is exact, else about which share of the value.
export function lostText(mark, regret, best, exact) {
  if (exact) return regret < 0.05 ? "hardly anything lost" : `lost ${number(regret)} points`;
  return isMistake(mark) ? `about ${percent(regret / Math.max(best, 1), 0)} less` : "";
}

// What a player's thoughts say about the four moves: value, mark and regret by direction.
export function thoughtsOf(thinks, legal) {
  const values = DIRECTIONS.map((name) => thinks.values[name]);
  const known = values.filter((value) => value !== null);
  const best = Math.max(...known);
  const marks = DIRECTIONS.map((name) => thinks.marks[name]);
  const optimal = DIRECTIONS.map((name, d) =>
    known.length ? marks[d] === "best" : thinks.choice === name,
  );
  return {
    values,
    legal,
    marks,
    optimal,
    best,
    better: thinks.choice,
    gap: known.length ? best - Math.min(...known) : 0,
    choice: thinks.choice,
    exact: false,
    points: thinks.points,
    regrets: values.map((value, d) => (value === null ? null : optimal[d] ? 0 : best - value)),
    empty: !known.length && !thinks.choice,
  };
}

// The same of an analysis: by the table or, with a spec, by the player that was asked.
export function verdict(analysis, spec = "") {
  const moves = DIRECTIONS.map((name) => analysis.moves[name]);
  const legal = moves.map((move) => move.legal);
  if (spec) return thoughtsOf(Object.values(analysis.players)[0], legal);
  const values = moves.map((move) => move.q);
  const known = values.filter((value) => value !== null);
  const optimal = moves.map((move) => move.mark === "best");
  return {
    values,
    legal,
    marks: moves.map((move) => move.mark),
    optimal,
    better: DIRECTIONS[optimal.indexOf(true)],
    best: Math.max(...known),
    gap: Math.max(...known) - Math.min(...known),
    regrets: moves.map((move) => (move.mark === "best" ? 0 : move.regret)),
    choice: null,
    exact: true,
    points: true,
    empty: !known.length,
  };
}

// -- four bars -----------------------------------------------------------------------------------

export class MoveBars {
  constructor({ onPick = null } = {}) {
    this.rows = DIRECTIONS.map((name, d) => {
      const bar = el("span", { class: "bar" });
      const value = el("span", { class: "value" });
      const lost = el("span", { class: "lost" });
      const head = el(
        "span",
        { class: "move" },
        el("span", { "aria-hidden": "true" }, ARROWS[d]),
        ` ${name}`,
      );
      const row = el(
        onPick ? "button" : "div",
        { class: "bar-row", ...(onPick ? { type: "button", onclick: () => onPick(d) } : {}) },
        head,
        el("span", { class: "track" }, bar),
        value,
        lost,
      );
      return { row, bar, value, lost };
    });
    this.element = el(
      "div",
      { class: "bars" },
      this.rows.map(({ row }) => row),
    );
    this.clear();
  }
  clear(text = "") {
    for (const { row, bar, value, lost } of this.rows) {
      row.className = "bar-row waiting";
      bar.style.width = "0";
      value.textContent = text;
      lost.textContent = "";
    }
  }
  // Bars from the worst move to the best; differences that hardly matter look small.
  show({ values, legal, regrets, optimal, best, gap, choice, points, sign = "✓ best", marks, exact }) {
    const span = Math.max(gap, points ? 0.02 * Math.abs(best) : 0);
    this.rows.forEach(({ row, bar, value, lost }, d) => {
      const known = values[d] !== null;
      row.className = `bar-row${optimal[d] ? " best" : ""}${legal[d] ? "" : " illegal"}`;
      const share = !known ? 0 : span > 0 ? 0.08 + 0.92 * (1 - (best - values[d]) / span) : 1;
      bar.style.width = `${100 * share}%`;
      value.textContent = known
        ? number(values[d], 1)
        : legal[d]
          ? choice === DIRECTIONS[d]
            ? "its move"
            : ""
          : "illegal";
      const short = !exact && isMistake(marks[d]);
      const less = short ? `−${percent(regrets[d] / Math.max(best, 1), 0)}` : loss(regrets[d]);
      const equal = choice && choice !== DIRECTIONS[d]; // as good, as far as the judge can tell
      const praise = equal ? "≈ best" : sign;
      lost.textContent = optimal[d] && legal[d] ? praise : regrets[d] ? less : "";
    });
  }
}

// -- choosing ----------------------------------------------------------------------------------

export const SIZES = [
  "2x2",
  "3x2",
  "2x3",
  "4x2",
  "2x4",
  "3x3",
  "5x2",
  "2x5",
  "4x3",
  "3x4",
  "6x2",
  "2x6",
  "5x3",
  "3x5",
  "4x4",
];

export function sizeSelect(chosen, onchange) {
  const names = SIZES.includes(chosen) ? SIZES : [...SIZES, chosen];
  return el(
    "select",
    { "aria-label": "Board size", onchange: (event) => onchange(event.target.value) },
    names.map((name) =>
      el("option", { value: name, selected: name === chosen }, name.replace("x", "×")),
    ),
  );
}

export function fourInput(chosen, onchange) {
  return el("input", {
    type: "number",
    min: 0,
    max: 1,
    step: "any",
    value: chosen,
    class: "short",
    "aria-label": "p4, the chance that a new tile is a 4",
    required: true,
    onchange: (event) => {
      if (event.target.reportValidity()) onchange(Number(event.target.value));
    },
  });
}

const known = new Map();
async function playersFor(rules) {
  const key = `${rules.name} ${rules.p4}`;
  if (!known.has(key)) {
    known.set(key, get("/api/players", { rules: rules.name, p4: rules.p4 }));
    known.get(key).catch(() => known.delete(key));
  }
  return known.get(key);
}
const forgetPlayers = () => known.clear();

// What the server says of itself, at once: names of players, and who is usual on which board.
let about = null;
export function serverFacts() {
  about ??= get("/api");
  about.catch(() => {
    about = null;
  });
  return about;
}

// Who judges a board that is not solved, if nobody is named.
export async function usualPlayer(rules) {
  const { judges } = await serverFacts();
  return judges[rules.name];
}

// A player and its options. `extra` are choices before the players, as [value, text].
export class PlayerPicker {
  constructor({ label, extra = [], onchange }) {
    this.extra = extra;
    this.spec = "";
    this.select = el("select", {
      "aria-label": label,
      onchange: () => {
        this.options.value = "";
        this.#changed(onchange);
      },
    });
    this.options = el("input", {
      type: "text",
      class: "options",
      "aria-label": `Options of ${label}`,
      autocomplete: "off",
      spellcheck: false,
      maxLength: 150,
      onchange: () => this.#changed(onchange),
    });
    this.element = el("span", { class: "picker" }, this.select, this.options);
  }
  // Show a choice; names are there at once, what each player can do a little later.
  async show(rules, spec) {
    const mine = (this.shown = {});
    this.spec = spec;
    const names = (await serverFacts()).players.map((name) => ({
      name,
      options: [],
      trouble: null,
    }));
    if (this.shown === mine) this.#show(this.players ?? names, spec);
    const players = await playersFor(rules);
    if (this.shown === mine) this.#show(players, spec);
  }
  #show(players, spec) {
    this.players = players;
    const [name, ...rest] = spec.split(":");
    const known =
      this.extra.some(([value]) => value === spec) || players.some((each) => each.name === name);
    fill(
      this.select,
      this.extra.map(([value, text]) => el("option", { value }, text)),
      players.map((each) =>
        el(
          "option",
          {
            value: each.name,
            disabled: Boolean(each.trouble) && each.name !== name,
            title: each.trouble ?? each.about,
          },
          each.name,
        ),
      ),
      known ? null : el("option", { value: name }, name),
    );
    this.select.value = this.extra.some(([value]) => value === spec) ? spec : name;
    this.options.value = rest.join(":");
    this.#describe();
  }
  #describe() {
    const found = this.players?.find((each) => each.name === this.select.value);
    const names = (found?.options ?? [])
      .filter((each) => each.name !== "ties")
      .map((each) => each.name);
    this.options.hidden = !names.length && !this.options.value;
    const first = found?.options.find((each) => typeof each.default === "number");
    this.options.placeholder = first
      ? `${first.name}=${first.default}`
      : names.length
        ? `${names[0]}=…`
        : "";
    this.options.title = (found?.options ?? [])
      .map((each) => `${each.name}: ${each.about}${each.most ? ` (at most ${each.most})` : ""}`)
      .join("\n");
    this.select.title = found?.trouble ?? found?.about ?? "";
  }
  #changed(onchange) {
    this.shown = null;
    this.#describe();
    const options = this.options.hidden ? "" : this.options.value.trim();
    this.spec = options ? `${this.select.value}:${options}` : this.select.value;
    onchange(this.spec);
  }
}

export const field = (label, ...inside) =>
  el("label", { class: "field" }, el("span", {}, label), ...inside);

// -- solving a board from the page -----------------------------------------------------------------

export function solvePanel(rules, alive, done) {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "How much is solved" });
  const said = el("span", { class: "dim" });
  const starter = el(
    "button",
    { type: "button", class: "primary" },
    `Solve ${rules.name.replace("x", "×")} now`,
  );
  const panel = el("div", { class: "solve" }, starter, said);
  said.textContent = "Every position, exactly; about a minute and 430 MB of disk.";
  starter.addEventListener("click", async () => {
    fill(panel, bar, said);
    said.textContent = "Starting…";
    try {
      await post("/api/tables", JSON.stringify({ board: rules.name, p4: rules.p4 }));
      for (;;) {
        await new Promise((resolve) => {
          setTimeout(resolve, 400);
        });
        if (!alive()) return;
        const { tables, making } = await get("/api/tables");
        const now = making.find((each) => each.name === `${rules.name}-score`);
        if (!now) {
          if (!tables.some((each) => each.name === `${rules.name}-score`))
            throw new Error("it could not be solved; `lab2048 solve` tells why");
          forgetPlayers();
          done();
          return;
        }
        bar.value = now.share;
        const left = now.share > 0.02 ? (now.seconds / now.share) * (1 - now.share) : null;
        said.textContent =
          left === null
            ? `Preparing… ${Math.round(now.seconds)} s`
            : `${percent(now.share, 0)}, about ${Math.ceil(left)} s left`;
      }
    } catch (error) {
      fill(panel, starter, said);
      said.textContent = error.message;
    }
  });
  return panel;
}
