// The offer to solve a board, and then its progress.

import { post } from "./api.js";
import { el, fill } from "./dom.js";
import { sizeText } from "./game.js";
import { percent } from "./numbers.js";
import { forgetPlayers, waitUntilMade } from "./server_facts.js";

// Progress in words.
function progress({ share, seconds }) {
  const left = share > 0.02 ? (seconds / share) * (1 - share) : null;
  return left === null
    ? `Preparing… ${Math.round(seconds)} s`
    : `${percent(share, 0)}, about ${Math.ceil(left)} s left`;
}

// Have a board solved, and report the progress. Returns false if the panel is no longer shown.
async function solve(rules, alive, tell) {
  const name = `${rules.name}-score`;
  await post("/api/tables", JSON.stringify({ board: rules.name, p4: rules.p4 }));
  const solved = await waitUntilMade(name, alive, tell);
  if (solved?.tables.every((each) => each.name !== name))
    throw new Error("it could not be solved; `lab2048 solve` tells why");
  return solved !== null;
}

// The panel; `alive` says whether it is still shown, `done` is called when the board is solved.
export function solvePanel(rules, alive, done) {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "How much is solved" });
  const said = el("span", { class: "dim" });
  const starter = el(
    "button",
    { type: "button", class: "primary" },
    `Solve ${sizeText(rules.name)} now`,
  );
  const panel = el("div", { class: "solve" }, starter, said);
  said.textContent = "Every position, exactly; about a minute and 430 MB of disk.";
  starter.addEventListener("click", async () => {
    fill(panel, bar, said);
    said.textContent = "Starting…";
    try {
      const solved = await solve(rules, alive, (now) => {
        bar.value = now.share;
        said.textContent = progress(now);
      });
      if (!solved) return;
      forgetPlayers();
      done();
    } catch (error) {
      fill(panel, starter, said);
      said.textContent = error.message;
    }
  });
  return panel;
}
