// Programs that ask a model what a person asks it on the page.

import { actionButton, filter, h, problemPlace, replace } from "./dom.js";

const KEY = "prefix.secret";

/**
 * A folded section with the programs, for the row of now.
 * @param {string} name Of the model.
 * @param {string} base Path of the version, relative to the page.
 * @returns {{element: HTMLElement, draw: (body: Object) => void}}
 */
export function programs(name, base) {
  const shown = h("pre", { tabindex: "0", "aria-label": "The program" });
  const problem = problemPlace();
  let chosen = "curl";
  let asked = {};
  const draw = (body = asked) => {
    asked = body;
    shown.textContent = TEXTS[chosen]({ name, site: new URL(".", location.href).href.replace(/[/]$/, ""), base, body });
  };
  const element = h("details", { class: "card" }, h("summary", {}, "Use this model in a program"),
    h("p", { class: "help" }, "These ask about the values of now. Put a key with the scope predict in place of ", h("code", {}, KEY), "."),
    filter("Program", [["curl", "curl"], ["python", "Python"], ["client", "Python, with tfbbb"]], chosen, (value) => {
      chosen = value;
      draw();
    }), shown, problem, actionButton("Copy", () => navigator.clipboard.writeText(shown.textContent), { problem }));
  return { element, draw };
}

const TEXTS = {
  curl: ({ site, base, body }) => [
    `curl -s ${site}/${base}:predict \\`,
    `  -H "Authorization: Bearer ${KEY}" -H "Content-Type: application/json" \\`,
    `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
  ].join("\n"),
  python: ({ site, base, body }) => [
    "import requests",
    "",
    "answer = requests.post(",
    `    "${site}/${base}:predict",`,
    `    headers={"Authorization": "Bearer ${KEY}"},`,
    `    json=${python(body)},`,
    ")",
    "print(answer.json())",
  ].join("\n"),
  client: ({ name, site, base, body }) => [
    "from tfbbb.client import Client",
    "",
    `with Client("${site}", "${KEY}") as client:`,
    `    model = client.model(${python(name)})`,
    `    answer = model.predict(${python(body.instances)}, version=${base.split("/").at(-1)})`,
    "print(answer.to_table())",
  ].join("\n"),
};

/** A value of JSON as Python writes it. */
function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(", ")}}`;
}
