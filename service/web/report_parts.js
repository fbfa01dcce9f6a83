// The parts of a report: what a training measured, in the form of
// `GET /v1/models/NAME/versions/N/report`.

import { bars, chart, numbersOf } from "./charts.js";
import { badge, h, table } from "./dom.js";
import { figure, figureTable, sentences } from "./figures.js";
import { alike, capital, count, decimals, number, percent, words } from "./format.js";
import { term } from "./glossary.js";
import { plain, plainTraining } from "./plain_words.js";

const COLOURS = ["--series-1", "--series-2", "--series-4", "--series-5", "--series-3"];
const SHOWN = 12;

/**
 * Returns the elements of a report.
 * @param {Object} report
 * @param {AbortSignal} signal Ends its charts.
 */
export function reportParts(report, signal) {
  const { targets = [] } = report;
  return [
    section("How good it is", sentences(report.judgement, report.remarks), figureTable(report.judgement),
      targets.length > 1 && h("p", { class: "help" }, "All targets together, with errors in units of the spread of each. Each target follows below."),
      h("p", { class: "help" }, `Measured on ${plainTraining(report.metrics_from)}. Click an underlined word for what it means.`)),
    targets.length ? targets.flatMap((part, place) => [
      section(capital(part.target), sentences(report.judgement.targets[place], []), figureTable(report.judgement.targets[place])),
      ...partsOfTarget({ ...report, ...part }, signal),
    ]) : partsOfTarget(report, signal),
    report.diagnosis.figures.length > 0 && section("What the network learned", diagnosis(report.diagnosis)),
    section("What was tried", tried(report.tried)),
  ];
}

function partsOfTarget(report, signal) {
  const charts = { report, signal };
  const classes = report.task === "classification";
  return [
    h("div", { class: "pair" },
      section("Do its probabilities come true?", calibration(charts)),
      section(classes ? "Predicted and true classes" : "Intervals against the truth", classes ? confusion(report) : intervals(charts))),
    h("div", { class: "pair" },
      section("Which columns matter", importance(report)),
      section("What it does not know", split(charts))),
    report.effects.length > 0 && section("What each column does", effects(charts)),
  ];
}

function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

function calibration({ report, signal }) {
  const { calibration: measured } = report;
  const classes = report.task === "classification";
  const x = classes ? measured.confidence : measured.levels;
  const y = classes ? measured.accuracy : measured.coverage;
  const kept = x.map((value, place) => place).filter((place) => x[place] !== null && y[place] !== null);
  const pick = (values) => kept.map((place) => values[place]);
  const share = (value) => (value === null ? "" : `${Math.round(100 * value)} %`);
  const plot = chart({
    title: classes ? "Share that is right, by the probability of the predicted class" : "Share of rows in their interval, by its level",
    x: classes ? "probability" : "level asked for",
    y: classes ? "share that is right" : "share inside",
    signal,
    series: [
      { label: "upper", colour: "--series-3", width: 0, hidden: true },
      { label: "lower", colour: "--series-3", width: 0, hidden: true },
      { label: "a calibrated model", colour: "--series-3", dash: [5, 4], width: 1.5, band: true },
      { label: "this model", colour: "--series-1" },
    ],
    bands: [[1, 2]],
    ranges: { x: [0, 1], y: [0, 1] },
    formats: { x: share, y: share },
  });
  const worst = Math.max(...kept.map((place) => Math.abs(x[place] - y[place])));
  plot.update([pick(x), pick(measured.upper), pick(measured.lower), pick(x), pick(y)],
    `On ${count(measured.rows, "row")} the greatest distance from a calibrated model is ${percent(worst)}.`);
  return [
    plot.element,
    h("p", { class: "help" }, `The shade is where a calibrated model lies in 95 of 100 cases with ${count(measured.rows, "row")}.`),
    numbersOf([classes ? "Probability" : "Level", classes ? "Right" : "Inside"], kept.map((place) => [percent(x[place]), percent(y[place])])),
  ];
}

function intervals({ report, signal }) {
  const { held_out: rows, target } = report;
  const order = rows.mean.map((mean, place) => place).sort((a, b) => rows.mean[a] - rows.mean[b]);
  const pick = (values) => order.map((place) => values[place]);
  const widest = rows.intervals.at(-1);
  const inside = rows.target.filter((value, place) =>
    value >= (widest.lower[place] ?? -Infinity) && value <= (widest.upper[place] ?? Infinity)).length;
  const level = percent(widest.level, 0);
  const plot = chart({
    title: `${capital(target ?? "target")} of held-out rows, in the order of the prediction`,
    x: "rows, by predicted mean",
    y: target ?? "",
    signal,
    series: [
      { label: `${level} interval`, colour: "--series-1", width: 0, band: true },
      { label: "lower", colour: "--series-1", width: 0, hidden: true },
      { label: "predicted mean", colour: "--series-1" },
      { label: "truth", colour: "--series-2", points: true },
    ],
    bands: [[1, 2]],
  });
  const text = `${number(inside)} of ${number(order.length)} true values are in their ${level} interval.`;
  plot.update([order.map((row, place) => place + 1), pick(widest.upper), pick(widest.lower), pick(rows.mean), pick(rows.target)], text);
  return [plot.element, h("p", { class: "help" }, text)];
}

function confusion(report) {
  const { classes, held_out: rows } = report;
  const counts = classes.map(() => classes.map(() => 0));
  rows.target.forEach((truth, place) => {
    const probabilities = rows.probabilities[place];
    const predicted = probabilities.indexOf(Math.max(...probabilities));
    const at = classes.indexOf(String(truth));
    if (at >= 0) counts[at][predicted] += 1;
  });
  const right = counts.reduce((sum, row, place) => sum + row[place], 0);
  return [
    h("p", { class: "help" }, `${number(right)} of ${number(rows.target.length)} held-out rows are right. Rows are the truth, columns the most probable class.`),
    table([{ title: "Truth" }, ...classes.map((name) => ({ title: name, number: true }))],
      classes.map((name, truth) => [name, ...counts[truth].map((amount, predicted) =>
        h("span", { class: amount === 0 ? "muted" : truth === predicted ? "strong" : "warns" }, number(amount)))]),
      { caption: "Predicted and true classes" }),
  ];
}

function importance(report) {
  const measured = report.importance;
  if (!measured) return h("p", { class: "empty" }, "Not measured: the time of the training was over.");
  const columns = [...measured.columns].sort((a, b) => b.nats - a.nats);
  const rows = columns.map((column) => ({
    label: column.name,
    value: column.nats,
    low: column.nats - 1.96 * column.nats_standard_error,
    high: column.nats + 1.96 * column.nats_standard_error,
    text: number(column.nats, 2),
  }));
  return [
    h("p", { class: "help" }, "How much ", term("log likelihood", "logLikelihood"), " per row is lost when the values of a column are shuffled; the line is the 95 % interval."),
    bars(rows.slice(0, SHOWN), { label: "Importance" }),
    rows.length > SHOWN && h("p", { class: "help" }, `The ${SHOWN} columns that matter most; the numbers have all ${rows.length}.`),
    numbersOf(["Column", "Log likelihood lost", report.task === "classification" ? "Accuracy lost" : "Error added", "Moves the answer by", "Moves its width by"], columns.map((column) => [
      column.name, `${number(column.nats, 3)} ± ${number(column.nats_standard_error, 2)}`, `${number(column.error, 3)} ± ${number(column.error_standard_error, 2)}`,
      ...[column.mean_change, column.width_change].map((change) => (change === undefined ? "" : number(change, 3)))])),
    h("p", { class: "help" }, "The last two numbers say which columns move the prediction itself, and which make it more or less sure: shuffled, the column changes the prediction and the width of what is likely by so much."),
    measured.left_out?.length > 0 && h("p", { class: "help" }, `Not measured: ${measured.left_out.join(", ")}.`),
  ];
}

function split({ report }) {
  const parts = report.variance_split;
  const share = parts.mean_epistemic_share;
  if (parts.measure === "entropy") {
    return [
      h("p", {}, `On average ${percent(share, 0)} of the uncertainty of a prediction is lack of data, which more data would remove. The rest is noise.`),
      shareBar(share),
    ];
  }
  const total = parts.epistemic.map((value, place) => value + parts.aleatoric[place]);
  // The standard deviations, in units of the target.
  const typical = (values) => Math.sqrt(values.reduce((sum, value) => sum + value, 0) / values.length);
  const [epistemic, aleatoric, both] = [parts.epistemic, parts.aleatoric, total].map(typical);
  const shown = alike([epistemic, aleatoric, both]);
  return [
    h("p", {}, `A typical prediction is uncertain by ± ${shown[2]}: ± ${shown[0]} from lack of data, which more data would remove, and ± ${shown[1]} from noise.`),
    deviationBars(epistemic, aleatoric, both),
  ];
}

function diagnosis({ figures, findings }) {
  return [
    findings.length > 0
      ? h("ul", {}, findings.map((one) => h("li", { class: "warns" }, `${plain(one.sentence)} ${plain(one.advice)}`)))
      : h("p", {}, "Nothing is wrong with these figures."),
    table([{ title: "What" }, { title: "Figure", number: true }, { title: "It says" }],
      figures.map((one) => [plain(one.name), one.figure, plain(one.sentence)]),
      { cards: true, caption: "What the network learned" }),
  ];
}

const PARTS = [["epistemic", "lack of data"], ["aleatoric", "noise"]];

/** Epistemic and aleatoric as two parts of one bar, where they add up. */
export function shareBar(share) {
  const shares = { epistemic: share, aleatoric: 1 - share };
  return [
    h("div", { class: "share", "aria-hidden": "true" }, PARTS.map(([name]) =>
      h("span", { class: name, style: { width: `${100 * shares[name]}%` } }))),
    h("ul", { class: "legend" }, PARTS.map(([name, text]) =>
      h("li", {}, h("span", { class: `key ${name}` }), term(text, name), ` ${percent(shares[name], 0)}`))),
  ];
}

/** Epistemic and aleatoric as standard deviations beside that of both, which is no sum. */
export function deviationBars(epistemic, aleatoric, both) {
  const values = [epistemic, aleatoric, both];
  const shown = alike(values);
  return h("ul", { class: "bars deviations", "aria-label": "Standard deviations" },
    [...PARTS, ["plusMinus", "in all"]].map(([name, text], place) => h("li", {},
      h("span", {}, term(text, name)),
      h("span", { class: "track", "aria-hidden": "true" },
        h("span", { class: `bar ${name}`, style: { width: `${both > 0 ? Math.min(100, (100 * values[place]) / both) : 0}%` } })),
      h("span", { class: "amount" }, `± ${shown[place]}`))));
}

function effects({ report, signal }) {
  const strongest = [...report.effects].sort((a, b) => b.range - a.range);
  const what = report.task === "classification" ? "The mean probability of each class" : `The mean prediction of ${report.target ?? "the target"}`;
  return [
    h("p", { class: "help" }, `${what}, if all rows had a value of the column, with a band that holds it in 90 of 100 cases. The strongest effects come first.`),
    h("div", { class: "effects" }, strongest.map((effect) => effectOf(effect, report, signal))),
  ];
}

function effectOf(effect, report, signal) {
  const classes = report.task === "classification";
  const series = classes
    ? report.classes.slice(0, COLOURS.length).map((label, place) => ({ label, at: (values) => values.map((row) => row[place]) }))
    : [{ label: "mean prediction", at: (values) => values }];
  // Two values are no curve.
  if (effect.kind === "text" || effect.values.length <= 2) return categories(effect, series);
  const dates = effect.kind === "date";
  const x = dates ? effect.values.map((value) => Date.parse(value) / 1000) : effect.values;
  const plot = chart({
    title: effect.name,
    x: effect.name,
    y: classes ? "probability" : report.target ?? "",
    height: 200,
    signal,
    series: series.flatMap(({ label }, place) => [
      { label: "upper", colour: COLOURS[place], width: 0, hidden: true },
      { label: "lower", colour: COLOURS[place], width: 0, hidden: true },
      { label, colour: COLOURS[place] },
    ]),
    bands: series.map((one, place) => [3 * place + 1, 3 * place + 2]),
    ranges: classes ? { y: [0, 1] } : {},
    formats: dates ? { x: (value) => (value === null ? "" : new Date(1000 * value).toISOString().slice(0, 7)) } : {},
  });
  const values = series[0].at(effect.mean);
  plot.update([x, ...series.flatMap(({ at }) => [at(effect.upper), at(effect.lower), at(effect.mean)])],
    `From ${effect.values[0]} to ${effect.values.at(-1)} ${series[0].label} goes from ${number(values[0])} to ${number(values.at(-1))}.`);
  return plot.element;
}

function categories(effect, series) {
  return h("figure", { class: "chart" }, h("figcaption", {}, effect.name), series.map(({ label, at }) => {
    const [mean, lower, upper] = [at(effect.mean), at(effect.lower), at(effect.upper)];
    const [least, most] = series.length > 1 ? [0, 1] : [Math.min(...lower), Math.max(...upper)];
    return [
      series.length > 1 && h("p", { class: "help" }, label),
      bars(effect.values.map((value, place) => ({
        label: String(value), value: mean[place], low: lower[place], high: upper[place], text: number(mean[place], 3),
      })), { least, most, points: true, label: `${effect.name}: ${label}` }),
    ];
  }));
}

function tried({ chosen, networks, likelihoods, recalibration }) {
  const kept = (one) => (one.kept ? badge("kept", "good") : "");
  return [
    networks.length > 0 && table(
      [{ title: "Network" }, { title: term("Temperature", "temperature"), number: true }, { title: "Log likelihood per row left out", number: true }, { title: "" }],
      networks.map((one) => [words(one.network), number(one.temperature), figure("log_likelihood", one.log_likelihood), kept(one)]),
      { cards: true, caption: "Networks that were tried" }),
    likelihoods.length > 0 && h("p", { class: "help" }, "Before the network, likelihoods were tried with the neighbours of each row in its place. A gain is that over the first."),
    likelihoods.length > 0 && table(
      [{ title: "Likelihood" }, { title: "Gain of log likelihood per row", number: true }, { title: "" }],
      likelihoods.map((one) => [words(one.likelihood), `${decimals(one.gain)} ± ${decimals(one.standard_error)}`, kept(one)]),
      { cards: true, caption: "Likelihoods that were tried" }),
    recalibration?.reason && h("p", {}, term("Recalibration", "recalibration"), h("strong", {}, `: ${words(recalibration.chosen)}. `), words(plainTraining(recalibration.reason))),
    chosen && h("details", { class: "numbers" }, h("summary", {}, "Everything that was chosen"),
      h("pre", { tabindex: "0", "aria-label": "What was chosen" }, JSON.stringify(chosen, null, 2))),
  ];
}
