// What a person does after a screen, in one line at its end.

import { h } from "./dom.js";
import { address } from "./router.js";

/** A line for a screen, by the first part of its address and the one that names the screen. */
const LINES = {
  data: () => ["Drop a table, or open one to see what each column was taken for."],
  "data/": ([, id]) => ["Choose what to predict, and ", [["new"], { dataset: id }, "start a training"], "."],
  new: () => ["Start the training. You may close the page: it goes on, and ", [["jobs"], {}, "Jobs"], " shows how far it is."],
  jobs: () => ["Open a job to see its curves; when it has succeeded, it leads to its model."],
  "jobs/": () => ["When the job has succeeded, open its version, and ask it."],
  models: () => ["Open a model to see how good it is, then ask it."],
  "models/": (parts) => ["Move sliders, and see ", [place(parts, "ask"), {}, "what it answers"], "."],
  "models/ask": (parts) => ["Send many rows at once, ", [place(parts, "file"), {}, "as a file"], "."],
  "models/file": (parts) => ["When you know what came true, ", [place(parts, "truth"), {}, "compare"], "."],
  "models/truth": (parts) => ["Where promises do not hold, train anew on newer rows, and ", [place(parts, "versions"), {}, "compare the versions"], "."],
  "models/versions": (parts) => ["Move a label when a version is better, or see ", [place(parts, "ask"), {}, "what it answers"], "."],
  keys: () => ["Give a program its key: “Ask it” of a model has programs to copy."],
  audit: () => ["Open what was changed, or ", [["keys"], {}, "revoke a key"], "."],
};

function place([, name, version], tab) {
  return ["models", name, version, tab].filter(Boolean);
}

/** The line of a screen, or null. */
export function whatNext(parts) {
  const [first, name, , tab] = parts;
  const line = LINES[`${first}${name ? `/${tab ?? ""}` : ""}`];
  if (!line) return null;
  return h("p", { class: "next" }, h("strong", {}, "What next: "), line(parts).map((part) => {
    if (typeof part === "string") return part;
    const [to, query, text] = part;
    return h("a", { href: address(to, query) }, text);
  }));
}
