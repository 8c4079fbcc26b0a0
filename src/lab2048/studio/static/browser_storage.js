// What this browser stores: best scores, settings, and the last games for a review.

import { parseRecord, recordJson } from "./game.js";

const GAMES = 20;

function read(name, usual) {
  try {
    return JSON.parse(localStorage.getItem(`lab2048.${name}`)) ?? usual;
  } catch {
    return usual;
  }
}
function write(name, value) {
  try {
    localStorage.setItem(`lab2048.${name}`, JSON.stringify(value));
  } catch {
    /* it is full, or not allowed: nothing is stored */
  }
}

const key = (rules) => (rules.p4 === 0.1 ? rules.name : `${rules.name} p4=${rules.p4}`);
export const bestScore = (rules) => read("best", {})[key(rules)] ?? 0;
export function offerBest(rules, score) {
  if (score > bestScore(rules)) write("best", { ...read("best", {}), [key(rules)]: score });
}

// The last games, newest first; a new one replaces the one with the same beginning.
export function games() {
  return read("games", []).flatMap(({ line, when }) => {
    try {
      return [{ record: parseRecord(line), when }];
    } catch {
      return [];
    }
  });
}
export function keepGame(record) {
  const beginning = ({ seed, index, player, start, rules }) =>
    [seed, index, player, start, rules.rows, rules.cols, rules.p4].join();
  const same = (other) => beginning(other) === beginning(record);
  const others = games().filter((each) => !same(each.record));
  const all = [{ record, when: Date.now() }, ...others].slice(0, GAMES);
  write(
    "games",
    all.map((each) => ({ line: recordJson(each.record), when: each.when })),
  );
}

export const setting = (name, usual) => read(name, usual);
export const keepSetting = (name, value) => write(name, value);
