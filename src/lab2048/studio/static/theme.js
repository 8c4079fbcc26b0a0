// Light or dark: the theme of the system, until the user chooses one.

import { keepSetting, setting } from "./browser_storage.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const usual = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = setting("theme", usual);
}

// Apply the theme, now and whenever that of the system changes.
export function followTheme() {
  dark.addEventListener("change", paint);
  paint();
}

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  keepSetting("theme", theme);
  paint();
}
