// Fields for the board, p4, and a player with its options.

import { el, fill } from "./dom.js";
import { sizeText } from "./game.js";
import { playersFor, serverFacts } from "./server_facts.js";

export const AUTO = "auto"; // a judge: the exact table where there is one, else the default player
const SIZES = [
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
    names.map((name) => el("option", { value: name, selected: name === chosen }, sizeText(name))),
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

// Fields for a player and its options. `extra` are choices before the players, as [value, text].
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
  // Show a choice: first with the names of players, later with what each of them can do.
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
