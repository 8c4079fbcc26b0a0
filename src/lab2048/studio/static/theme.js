// Light or dark: as the system has it, until somebody chooses.

const KEY = "lab2048.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const usual = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = localStorage.getItem(KEY) ?? usual;
}

// Paint the page, and again when the system changes.
export function followTheme() {
  dark.addEventListener("change", paint);
  paint();
}

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme);
  paint();
}
