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
  const { base, name, version } = found;
  const feedback = await get(`${base}/feedback`, { signal });
  replace(root, versionHead(found, "truth"), h("h2", {}, "What came true"),
    h("p", { class: "help" }, `When you know what came true, send it with tfbbb remote feedback or POST ${base}/feedback: the service compares it with what version ${version} predicts, and says here whether the promised ranges hold.`),
    feedback.num_rows ? feedbackParts(name, version, feedback) : h("p", { class: "empty" }, "Nothing is known yet of what came true."));
}

function feedbackParts(name, version, feedback) {
  return [
    driftPart(name, version, feedback),
    facts([
      ["Rows", number(feedback.num_rows)],
      ["First", date(feedback.started_at)],
      ["Latest", date(feedback.updated_at)],
    ]),
    h("div", { class: "card" }, h("h2", {}, "Does it keep its promises?"), promises(feedback)),
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

/** The figures beside those of the held-out rows, each with a word on the promised ranges. */
function promises({ figures, num_rows: rows }) {
  const shown = Object.entries(figures).filter(([name]) => !/^(log_likelihood|crps|brier_score)$/.test(name));
  return table([{ title: "" }, { title: "Came true", number: true }, { title: "Held-out rows", number: true }, { title: "" }],
    shown.map(([name, { mean, standard_error: error, held_out: before }]) =>
      [figureName(name), spread(name, mean, error), figure(name, before), verdict(name, mean, rows)]),
    { cards: true, caption: "Figures of what came true" });
}

function spread(name, mean, error) {
  if (error === null) return figure(name, mean);
  return /^(coverage|accuracy)/.test(name) ? `${percent(mean)} ± ${percent(error)}` : plusMinus(mean, error);
}

/** Whether a promised range holds, within two standard errors of the share. */
function verdict(name, mean, rows) {
  const level = /^coverage_(\d+)$/.exec(name)?.[1] / 100;
  if (!level) return "";
  if (Math.abs(mean - level) <= 2 * Math.sqrt((level * (1 - level)) / rows)) return "as it should be";
  return mean < level ? "too few: the ranges are too narrow" : "too many: the ranges are wider than needed";
}
