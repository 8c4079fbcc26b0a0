// Light or dark: the theme of the system, until the user chooses one.

const KEY = "lab2048.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const usual = dark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = localStorage.getItem(KEY) ?? usual;
}

// Apply the theme, now and whenever that of the system changes.
export function followTheme() {
  dark.addEventListener("change", paint);
  paint();
}

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme);
  paint();
}
