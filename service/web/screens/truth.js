// What came true of the predictions of a version: figures, charts over time, and drift.

import { get, request, send } from "../api.js";
import { chart, numbersOf } from "../charts.js";
import { actionButton, facts, h, notice, problemPlace, replace, table } from "../dom.js";
import { dropZone } from "../drop_zone.js";
import { figure, figureName } from "../figures.js";
import { bytes, count, date, number, percent, plusMinus } from "../format.js";
import { findVersion, versionHead } from "../model.js";
import { address, go } from "../router.js";
import { may } from "../session.js";
import { fileHeaders } from "./predict_file.js";

const LEVEL = 0.9;
// A point of a chart is of so many rows, or of all rows before it.
const WINDOW = 50;
// Rows from which there is something to see over time.
const FEWEST = 20;

export async function showTruth(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const { base, version, status } = found;
  const [details, first] = await Promise.all([get(base, { signal }), get(`${base}/feedback`, { signal })]);
  const { description } = details;
  const result = h("div", { role: "status" });
  const shown = h("div");
  const head = h("div", {}, versionHead(found, "truth"));

  const zone = description?.target && dropZone({
    id: "truth",
    help: `Any table with the columns of the model and what came true in the column ${description.target}. Rows without it are left out.`,
    signal,
    async take(file, { stopped, tell }) {
      replace(result);
      tell(`Comparing ${file.name} (${bytes(file.size)}) with what version ${version} predicts…`);
      const answer = await (await request(`${base}/feedback/file`, {
        method: "POST", body: file, signal: stopped, headers: fileHeaders(file),
      })).json();
      tell("");
      replace(result, notice(answer.is_new ? "good" : "info", h("p", {}, told(file, answer, version)), answer.remarks.map((remark) => h("p", {}, remark))));
      draw(await get(`${base}/feedback`, { signal }));
    },
  });

  function draw(feedback) {
    replace(shown, feedback.num_rows ? feedbackParts(found, feedback, details, signal) : h("p", { class: "empty" }, "Nothing is known yet of what came true."));
  }

  replace(root, head, h("h2", {}, "What came true"),
    h("p", { class: "help" }, `When you know what came true, drop it here: the service compares it with what version ${version} predicts, and says whether the promised ranges hold.`),
    zone?.elements, result, shown);
  draw(first);
  if (status.drifted.length && !status.drifted.includes(version)) {
    head.append(h("p", { class: "help" }, "Rows have changed for other versions: ", status.drifted.map((other, place) => [place > 0 && ", ", h("a", { href: address(["models", found.name, other, "truth"]) }, `version ${other}`)])));
  }
}

function told(file, { is_new: isNew, num_rows: rows, left_out: leftOut }, version) {
  if (!isNew) return `${file.name} was counted before, and does not count twice.`;
  const rest = leftOut ? `, ${count(leftOut, "row")} left out` : "";
  return `${count(rows[version], "row")} of ${file.name} compared${rest}.`;
}

function feedbackParts({ name, version }, feedback, { description, lineage }, signal) {
  const problem = problemPlace();
  const heldOut = lineage?.source.judgement?.rows ?? feedback.drift.reference_rows;
  return [
    driftPart(name, version, feedback, problem),
    problem,
    facts([
      ["Rows", number(feedback.num_rows)],
      ["First", date(feedback.started_at)],
      ["Latest", date(feedback.updated_at)],
    ]),
    h("div", { class: "card" }, h("h2", {}, "Does it keep its promises?"), promises(feedback, heldOut)),
    ...overTime(feedback, description, signal),
  ];
}

/** Whether rows still come like those of the training, in words. */
function driftPart(name, version, { drift, retraining, num_rows: rows }, problem) {
  if (!drift.alarm) {
    const least = drift.reference_rows ? "the rows that were held out in training" : "the rows before them";
    return notice("good", h("p", {}, h("strong", {}, "No drift. "), `The ${count(rows, "row")} come like ${least}.`));
  }
  const train = async () => {
    if (!retraining.body) return go(["new"], { model: name, version });
    const job = await send("POST", "v1/jobs", retraining.body);
    return go(["jobs", job.id]);
  };
  return notice("warning",
    h("p", {}, h("strong", {}, "Drift. "), `Row ${number(drift.alarm_row)}${drift.alarm_at ? `, on ${date(drift.alarm_at)},` : ""} raised the alarm, which comes by chance alone to ${percent(drift.false_alarm_rate, 0)} of versions at most. ${retraining.sentence}`),
    may("train") && h("div", { class: "actions" }, actionButton("Train anew from this version", train, { kind: "primary", problem })));
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

/** Charts of coverage and error by the number of the row. */
function overTime({ over_time: blocks, figures, drift }, description, signal) {
  const known = blocks.reduce((sum, block) => sum + block.num_rows, 0);
  if (known < FEWEST || blocks.length < 2) {
    return [h("p", { class: "help" }, `From ${FEWEST} rows on, charts show how this changes over time.`)];
  }
  const error = description.classes ? "accuracy" : "mean_absolute_error";
  const points = slide(blocks, ["coverage_90", error]);
  const rows = points.map((point) => point.row);
  const marks = () => (drift.alarm_row ? [{ value: drift.alarm_row, colour: "--bad" }] : []);
  const common = { x: "Row", signal, marks, formats: { x: (row) => number(row) } };
  const inside = points.map((point) => point.coverage_90);
  const coverage = chart({
    ...common,
    title: "Share of the truth in its 90 % range",
    y: "Share",
    series: [
      { label: "as chance allows", colour: "--series-3", width: 0, hidden: true },
      { label: "as chance allows", colour: "--series-3", width: 0, band: true },
      { label: "promised", colour: "--series-3", dash: [5, 4] },
      { label: "came true", colour: "--series-1" },
    ],
    bands: [[1, 2]],
    ranges: { y: () => [Math.max(0, Math.min(...inside, 0.75) - 0.05), 1] },
    formats: { ...common.formats, y: (share) => (share === null ? "" : percent(share, 0)) },
  });
  const chance = points.map(({ rows: size }) => 2 * Math.sqrt((LEVEL * (1 - LEVEL)) / size));
  const alarm = drift.alarm_row ? ` The dashed line marks the alarm of drift at row ${number(drift.alarm_row)}.` : "";
  coverage.update([rows, chance.map((one) => Math.min(1, LEVEL + one)), chance.map((one) => LEVEL - one), rows.map(() => LEVEL), inside],
    `Of the last ${count(points.at(-1).rows, "row")}, ${percent(inside.at(-1))} lie in their range.${alarm}`);
  const values = points.map((point) => point[error]);
  const before = figures[error]?.held_out ?? null;
  const name = figureName(error);
  const errors = chart({
    ...common,
    title: `${name} over time`,
    y: name,
    series: [
      { label: "held-out rows", colour: "--series-3", dash: [5, 4] },
      { label: "came true", colour: "--series-2" },
    ],
    ranges: { y: () => [0, description.classes ? 1 : 1.1 * Math.max(...values, before ?? 0) || 1] },
    ...(description.classes ? { formats: { ...common.formats, y: (share) => (share === null ? "" : percent(share, 0)) } } : {}),
  });
  errors.update([rows, rows.map(() => before), values], `${figure(error, values.at(-1))} of the last ${count(points.at(-1).rows, "row")}, ${figure(error, before)} of the held-out rows.${alarm}`);
  return [
    h("div", { class: "pair" },
      h("div", { class: "card" }, coverage.element),
      h("div", { class: "card" }, errors.element)),
    h("p", { class: "help" }, `Each point is of the last ${WINDOW} rows or more, in the order in which they came.${alarm}`),
    numbersOf(["Rows up to", "Came by", "In 90 % range", name], points.map((point) => [point.row, date(point.at), percent(point.coverage_90), figure(error, point[error])])),
  ];
}

/** Means over the last rows at the end of each block. */
function slide(blocks, names) {
  return blocks.map((block, place) => {
    let rows = 0;
    const sums = Object.fromEntries(names.map((name) => [name, 0]));
    for (let at = place; at >= 0 && rows < WINDOW; at -= 1) {
      rows += blocks[at].num_rows;
      for (const name of names) sums[name] += blocks[at].figures[name] * blocks[at].num_rows;
    }
    const means = names.map((name) => [name, sums[name] / rows]);
    return { row: block.first_row + block.num_rows - 1, at: block.at, rows, ...Object.fromEntries(means) };
  });
}
