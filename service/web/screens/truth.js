// What came true of the predictions of a version: figures and drift.

import { get } from "../api.js";
import { facts, h, notice, replace, table } from "../dom.js";
import { figure, figureName } from "../figures.js";
import { count, date, number, percent, plusMinus } from "../format.js";
import { findVersion, versionHead } from "../model.js";
import { address } from "../router.js";
import { may } from "../session.js";

export async function showTruth(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const { base, version, status } = found;
  const [details, feedback] = await Promise.all([get(base, { signal }), get(`${base}/feedback`, { signal })]);
  const head = h("div", {}, versionHead(found, "truth"));
  const shown = feedback.num_rows
    ? feedbackParts(found, feedback, details)
    : [h("p", { class: "empty" }, "Nothing is known yet of what came true.")];
  replace(root, head, h("h2", {}, "What came true"),
    h("p", { class: "help" }, `When you know what came true, send it with tfbbb remote feedback or POST ${base}/feedback: the service compares it with what version ${version} predicts, and says here whether the promised ranges hold.`),
    ...shown);
  if (status.drifted.length && !status.drifted.includes(version)) {
    head.append(h("p", { class: "help" }, "Rows have changed for other versions: ", status.drifted.map((other, place) => [place > 0 && ", ", h("a", { href: address(["models", found.name, other, "truth"]) }, `version ${other}`)])));
  }
}

function feedbackParts({ name, version }, feedback, { lineage }) {
  const heldOut = lineage?.source.judgement?.rows ?? feedback.drift.reference_rows;
  return [
    driftPart(name, version, feedback),
    facts([
      ["Rows", number(feedback.num_rows)],
      ["First", date(feedback.started_at)],
      ["Latest", date(feedback.updated_at)],
    ]),
    h("div", { class: "card" }, h("h2", {}, "Does it keep its promises?"), promises(feedback, heldOut)),
  ];
}

/** Whether rows still come like those of the training, in words. */
function driftPart(name, version, { drift, num_rows: rows }) {
  if (!drift.alarm) {
    const least = drift.reference_rows ? "the rows that were held out in training" : "the rows before them";
    return notice("good", h("p", {}, h("strong", {}, "No drift. "), `The ${count(rows, "row")} come like ${least}.`));
  }
  return notice("warning",
    h("p", {}, h("strong", {}, "Drift. "), `Row ${number(drift.alarm_row)}${drift.alarm_at ? `, on ${date(drift.alarm_at)},` : ""} raised the alarm, which comes by chance alone to ${percent(drift.false_alarm_rate, 0)} of versions at most. The rows no longer come like those of the training.`),
    may("train") && h("div", { class: "actions" }, h("a", { class: "button primary", href: address(["new"], { model: name, version }) }, "Train anew from this version")));
}

/** The figures beside those of the held-out rows, each with a word on the difference. */
function promises({ figures, num_rows: numRows }, heldOut) {
  const names = Object.keys(figures).filter((one) => !/^(log_likelihood|crps|brier_score)$/.test(one));
  const rows = names.map((name) => {
    const { mean, standard_error: error, held_out: before } = figures[name];
    return [figureName(name), spread(name, mean, error), figure(name, before), verdict(name, figures[name], numRows, heldOut)];
  });
  return table([{ title: "" }, { title: "Came true", number: true }, { title: "Held-out rows", number: true }, { title: "" }], rows, { caption: "Figures of what came true" });
}

function spread(name, mean, error) {
  if (error === null) return figure(name, mean);
  return /^(coverage|accuracy)/.test(name) ? `${percent(mean)} ± ${percent(error)}` : plusMinus(mean, error);
}

/** What to make of a figure, where its difference is more than chance. */
function verdict(name, { mean, standard_error: error, held_out: before }, rows, heldOut) {
  const promised = /^coverage_(\d+)$/.exec(name);
  const should = promised ? Number(promised[1]) / 100 : before;
  if (should === null || should === undefined || error === null) return "";
  // Two standard errors: of a share, as promised; else of the difference to the held-out rows.
  const chance = 2 * (promised ? Math.sqrt((should * (1 - should)) / rows) : error * Math.sqrt(1 + rows / Math.max(1, heldOut)));
  if (Math.abs(mean - should) <= chance) return "as it should be";
  if (promised) return mean < should ? "too few: the ranges are too narrow" : "too many: the ranges are wider than needed";
  const isBetter = /^accuracy/.test(name) ? mean > should : mean < should;
  return isBetter ? "better than on the held-out rows" : "worse than on the held-out rows";
}
