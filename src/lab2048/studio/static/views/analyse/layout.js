// The elements of Analyse and their layout.

import { button, el, field, fill, stage } from "../../dom.js";
import { PlayerPicker, fourInput, sizeSelect } from "../../fields.js";

// Create the elements and put them into the page. `actions` are their handlers.
export function layOut(root, actions) {
  const parts = {
    editor: el("div", { class: "editor", role: "grid", "aria-label": "Board editor" }),
    palette: el("div", { class: "palette", role: "radiogroup", "aria-label": "Tile to put" }),
    text: textField(actions),
    settings: el("div", { class: "row" }),
    pickers: el("div", { class: "row players" }),
    verdict: el("p", { class: "verdict", "aria-live": "polite" }),
    grid: el("div", { class: "wide" }),
    spawns: el("div", { class: "spawns" }),
    note: el("div", { class: "note" }),
    reach: el("section", { class: "reach", "aria-label": "Chance to reach each tile" }),
  };
  const { editor, palette, text, settings, verdict, grid, pickers, note, spawns, reach } = parts;
  fill(
    root,
    stage(
      [
        "Position",
        [el("div", { class: "board-frame" }, editor), palette, text],
        [
          button("← Back", () => history.back(), "Back (Backspace)"),
          button("Clear", actions.clear, "Clear the board (c)"),
          button("Random", actions.random, "A position out of a random game (g)"),
          button("Play from here", actions.play, "Play on from here (p)"),
          button("Copy link", actions.copy, "Copy the address of this position"),
        ],
      ],
      ["Analyse", [settings, verdict, grid, pickers, note, spawns, reach], "Analysis"],
    ),
  );
  return parts;
}

function textField(actions) {
  const text = el("input", {
    type: "text",
    class: "text",
    "aria-label": "Position as text",
    spellcheck: false,
    autocomplete: "off",
    onchange: () => actions.readText(text.value),
    onpaste: (event) => takeLines(event, event.clipboardData, actions),
    ondrop: (event) => takeLines(event, event.dataTransfer, actions),
  });
  return text;
}

// Read a board of several lines before the single-line field drops the line breaks.
function takeLines(event, data, actions) {
  const board = data.getData("text").trim();
  if (!board.includes("\n")) return;
  event.preventDefault();
  actions.readLines(board);
}

// The fields for the board, p4, and the players that are asked besides the table.
export function fillSettings({ parts, rules, specs, most, page, actions }) {
  fill(
    parts.settings,
    field("board", sizeSelect(rules.name, actions.chooseSize)),
    field("p4", fourInput(rules.p4, actions.chooseFour)),
  );
  const more = el("button", { type: "button", onclick: actions.addPlayer }, "+ Player");
  fill(
    parts.pickers,
    specs.map((spec, i) => playerField(rules, spec, i, page, actions)),
    specs.length < most ? more : null,
  );
}

function playerField(rules, spec, i, page, actions) {
  const picker = new PlayerPicker({
    label: `Player ${i + 1}`,
    onchange: (chosen) => actions.choosePlayer(i, chosen),
  });
  picker.show(rules, spec).catch(page.fail);
  const remove = el(
    "button",
    {
      type: "button",
      class: "icon",
      title: `Remove ${spec}`,
      "aria-label": `Remove ${spec}`,
      onclick: () => actions.removePlayer(i),
    },
    "×",
  );
  return el("span", { class: "with" }, picker.element, remove);
}
