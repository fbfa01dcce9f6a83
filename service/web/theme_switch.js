// Light, dark, or as the system has it.

import { h } from "./dom.js";

const NAME = "tfbbb-theme";
const CHOICES = { system: "System theme", light: "Light theme", dark: "Dark theme" };

export function themeSwitch() {
  const chosen = localStorage.getItem(NAME) ?? "system";
  return h(
    "select",
    { class: "quiet", "aria-label": "Theme", onchange: (event) => choose(event.target.value) },
    Object.entries(CHOICES).map(([name, text]) => h("option", { value: name, selected: name === chosen }, text)),
  );
}

function choose(name) {
  if (name === "system") {
    localStorage.removeItem(NAME);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(NAME, name);
    document.documentElement.dataset.theme = name;
  }
  document.dispatchEvent(new CustomEvent("theme"));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  document.dispatchEvent(new CustomEvent("theme")));
