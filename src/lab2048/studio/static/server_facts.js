// Facts from the server, fetched once: players, what each can do, limits, and default players.

import { get } from "./api.js";

const EVERY = 400; // milliseconds between requests for progress
const known = new Map(); // promises of answers, by request

// Return the stored promise of a request, or make the request; one that fails is not stored.
function once(key, ask) {
  if (!known.has(key)) {
    known.set(key, ask());
    known.get(key).catch(() => known.delete(key));
  }
  return known.get(key);
}

// All players, and whether they can play on a board.
export const playersFor = ({ name, p4 }) =>
  once(`${name} ${p4}`, () => get("/api/players", { rules: name, p4 }));

// Fetch all facts again, as players can do more once a board has been solved.
export const forgetPlayers = () => known.clear();

// Names of players, limits, and the default player of each board.
export const serverFacts = () => once("", () => get("/api"));

// The default player of a board, which also judges games if the board is not solved.
export async function usualPlayer(rules) {
  const { judges } = await serverFacts();
  return judges[rules.name];
}

// Wait until the server has made a table or a survey, and report the progress. Returns all solved
// boards, or null if the answer is no longer wanted.
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
