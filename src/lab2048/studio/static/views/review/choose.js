// The choice of a game: from a file, or from those stored in this browser.

import { games } from "../../browser_storage.js";
import { el, fill } from "../../dom.js";
import { parseRecord } from "../../game.js";
import { whole } from "../../numbers.js";

const LISTED = 200; // games of a file that are listed
const MOST_BYTES = 50e6; // the largest file that is read

// Show the games to choose from. `load` is called with the one chosen.
export function showChoice(place, page, load) {
  const found = el("div", { class: "found" });
  const file = el("input", {
    type: "file",
    accept: ".jsonl,.json,.txt",
    "aria-label": "A file of games",
    onchange: () => readFile(file.files[0], found, page, load),
  });
  const about =
    "Go through a game move by move: what each move was worth, and where a better one was.";
  fill(
    place,
    el(
      "div",
      { class: "choose" },
      el("h1", {}, "Review"),
      el("p", {}, about),
      el("section", {}, el("h2", {}, "A saved game"), savedGames(), file, found),
      el("section", {}, el("h2", {}, "Games of this browser"), ownGames(load)),
    ),
  );
}

const savedGames = () =>
  el(
    "p",
    { class: "dim" },
    "A file that ",
    el("code", {}, "lab2048 evaluate … --save games.jsonl"),
    " wrote. It is read here, in the browser.",
  );

function ownGames(load) {
  const mine = games();
  if (mine.length)
    return list(mine.map(({ record, when }) => entry(record, load, new Date(when))));
  return el(
    "p",
    { class: "empty" },
    "None yet. ",
    el("a", { href: "/play", "data-view": "play" }, "Play one"),
    " or ",
    el("a", { href: "/watch", "data-view": "watch" }, "watch one"),
    ", and it is here.",
  );
}

const list = (entries) => el("ul", { class: "games" }, entries);

function entry(record, load, when = null) {
  const { player, rules, score, max_tile: largest, moves } = record;
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", class: "game", onclick: () => load(record) },
      el("strong", {}, `${player} on ${rules.rows}×${rules.cols}`),
      el("span", {}, `${whole(score)} points, ${largest} made, ${whole(moves.length)} moves`),
      when ? el("span", { class: "dim" }, when.toLocaleString()) : null,
    ),
  );
}

// Show the games of a file; if there is only one, load it.
async function readFile(file, place, page, load) {
  if (!file) return;
  try {
    const lines = await linesOf(file);
    if (lines.length === 1) {
      load(parseRecord(lines[0]));
      return;
    }
    const found = lines.slice(0, LISTED).map((line) => parseRecord(line));
    const more =
      lines.length > LISTED
        ? el("p", { class: "dim" }, `the first ${LISTED} of ${whole(lines.length)}`)
        : null;
    fill(place, more, list(found.map((each) => entry(each, load))));
  } catch (error) {
    page.fail(
      error instanceof SyntaxError ? `${file.name} is no file of games: it is not JSON` : error,
    );
  }
}

async function linesOf(file) {
  if (file.size > MOST_BYTES)
    throw new Error(
      "a file of more than 50 MB is too large for this page; lab2048 review takes it",
    );
  const lines = (await file.text()).split("\n").filter((line) => line.trim());
  if (!lines.length) throw new Error(`${file.name} has no games`);
  return lines;
}
