// What the server says of itself, asked once: names of players, what each can do, who is usual.

import { get } from "./api.js";

const EVERY = 400; // milliseconds from one question about progress to the next
const known = new Map(); // answers, by what was asked

// Ask for something, unless that was done before; an answer that does not come is asked for again.
function once(key, ask) {
  if (!known.has(key)) {
    known.set(key, ask());
    known.get(key).catch(() => known.delete(key));
  }
  return known.get(key);
}

// All players, and what they can do on a board.
export const playersFor = ({ name, p4 }) =>
  once(`${name} ${p4}`, () => get("/api/players", { rules: name, p4 }));

// Ask again what players can do, when a board has been solved.
export const forgetPlayers = () => known.clear();

// Names of players, limits, and who is usual on which board.
export const serverFacts = () => once("", () => get("/api"));

// Who judges a board that is not solved, if nobody is named.
export async function usualPlayer(rules) {
  const { judges } = await serverFacts();
  return judges[rules.name];
}

// Wait until the server has made a table or a survey, and tell how far it is meanwhile. Returns what
// is solved then; null if nobody waits any more.
export async function waitUntilMade(name, alive, tell) {
  for (;;) {
    await new Promise((resolve) => {
      setTimeout(resolve, EVERY);
    });
    if (!alive()) return null;
    const solved = await get("/api/tables");
    const now = solved.making.find((each) => each.name === name);
    if (!now) return solved;
    tell(now);
  }
}
