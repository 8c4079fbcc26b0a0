// The page: a menu, a view below it, and what both need.
//
// Each view is a module in views/, with its own folder for its parts. board.js draws boards,
// game.js implements the game, api.js talks to the server.

import { listenForKeys, showKeys } from "./keys.js";
import { hideLine } from "./messages.js";
import { Router } from "./router.js";
import { followTheme, switchTheme } from "./theme.js";

const main = document.getElementById("main");
const router = new Router(main, [...document.querySelectorAll("nav a")]);

function onClick(selector, act) {
  document.querySelector(selector).addEventListener("click", act);
}

// Links inside the page show another view without loading the page again.
function followLink(event) {
  const link = event.target.closest("a[data-view], a[data-inside]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  const { view } = link.dataset;
  if (view) router.goBackTo(view);
  else router.go(link.getAttribute("href"));
}

followTheme();
listenForKeys(router);
document.addEventListener("click", followLink);
onClick("#theme", switchTheme);
onClick("#help", () => showKeys(router));
onClick("#toast", hideLine);
onClick(".skip", (event) => {
  event.preventDefault();
  main.focus();
});
router.start();
