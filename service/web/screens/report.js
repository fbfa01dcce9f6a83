// What training measured about a version.

import { get } from "../api.js";
import { facts, h, notice, replace } from "../dom.js";
import { figure, figureTerm } from "../figures.js";
import { count, date, targetNames } from "../format.js";
import { findReport, findVersion, versionHead } from "../model.js";
import { reportParts } from "../report_parts.js";
import { address } from "../router.js";
import { may } from "../session.js";

export async function showReport(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const [{ description, lineage }, report] = await Promise.all([get(found.base, { signal }), findReport(found.base, signal)]);
  replace(root, versionHead(found, ""), overview(description, lineage),
    h("p", { class: "actions" },
      report && h("a", { class: "button", href: `${found.base}/report`, download: `${found.name}-${found.version}-report.json` }, "Report as a file"),
      may("train") && h("a", { class: "button", href: `${found.base}/files`, download: "" }, "Download the model")),
    report ? reportParts(report, signal) : withoutReport(description?.metrics ?? {}));
}

function overview(description, lineage) {
  if (!description) return notice("error", "This version cannot be used: its files are missing or damaged.");
  return facts([
    ["Predicts", targetNames(description.target).join(", ")],
    ["Task", description.task],
    ["From", count(description.features.length, "column")],
    ["Made", date(description.created)],
    ["Computed by", description.engine],
    ["Job", lineage?.job_id && h("a", { href: address(["jobs", lineage.job_id]) }, "open")],
  ]);
}

function withoutReport(metrics) {
  return [
    notice("info", "This version has no report with calibration, importance and effects: it was not trained on a table here. Train it again to have one."),
    facts(Object.entries(metrics).map(([name, value]) => [figureTerm(name), figure(name, value)])),
  ];
}
