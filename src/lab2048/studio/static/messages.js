// Messages to the user: for screen readers, as a line that disappears, as a question.

import { el } from "./dom.js";

const SHOWN = 8000; // milliseconds until the line disappears

// Tell a screen reader.
export function say(text) {
  document.getElementById("live").textContent = text;
}

// Show an error, or another line.
export function fail(error) {
  const toast = document.getElementById("toast");
  toast.textContent = error?.message ?? String(error);
  toast.hidden = false;
  clearTimeout(Number(toast.dataset.timer));
  toast.dataset.timer = setTimeout(hideLine, SHOWN);
}

export function hideLine() {
  document.getElementById("toast").hidden = true;
}

// Ask before something is lost. Escape, and navigating the history, mean no.
export async function confirmed({ title, text, yes, no }) {
  const question = questionBox(title, text, yes, no);
  document.body.append(question);
  question.showModal();
  await new Promise((resolve) => {
    question.addEventListener("close", resolve);
  });
  question.remove();
  return question.returnValue === "yes";
}

function questionBox(title, text, yes, no) {
  const heading = el("h2", { id: "ask-title" }, title);
  const about = el("p", { id: "ask-text" }, text);
  const answers = el(
    "form",
    { method: "dialog", class: "row buttons" },
    el("button", { class: "primary", autofocus: true }, no),
    el("button", { value: "yes" }, yes),
  );
  const names = { "aria-labelledby": heading.id, "aria-describedby": about.id };
  return el("dialog", { role: "alertdialog", ...names }, heading, about, answers);
}

// Whether a question or another dialog is open, which then gets all keys.
export const isAsking = () => document.querySelector("dialog[open]") !== null;

// Close the open question, if there is one.
export const withdrawQuestion = () => document.querySelector("dialog[role=alertdialog]")?.close();
