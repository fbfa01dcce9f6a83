// The page that `tfbbb report` writes: one file with its report, scripts and styles.

import { h } from "./dom.js";
import { reportParts } from "./report_parts.js";

const report = JSON.parse(document.getElementById("report").textContent);
document.getElementById("main").replaceChildren(
  h("h1", {}, report.title),
  h("p", { class: "help" }, report.about),
  ...reportParts(report, new AbortController().signal),
  h("p", { class: "help" }, report.written),
);
