// A form made from the features of a model; its answer is drawn anew at every move.

import { get, send } from "../api.js";
import { bars, chart } from "../charts.js";
import { LEVELS, densityOf } from "../density.js";
import { facts, h, notice, replace } from "../dom.js";
import { Draft } from "../drafts.js";
import { featureField } from "../feature_fields.js";
import { Form } from "../form.js";
import { interval, number, percent, plusMinus, quantity } from "../format.js";
import { term } from "../glossary.js";
import { newestOnly } from "../latest.js";
import { findVersion, versionHead } from "../model.js";
import { plain } from "../plain_words.js";
import { deviationBars, shareBar } from "../report_parts.js";
import { rowChoice, tableOf } from "../table_rows.js";
import { typicalValue } from "../typical_row.js";

const INTERVALS = [0.5, 0.9];
const UNLIKE = 0.05;

export async function showAsk(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const [{ metadata: { manifest } }, table, report] = await Promise.all([
    get(`${found.base}/metadata`, { signal }),
    tableOf(found.base, signal),
    get(`${found.base}/report`, { signal }).catch(onlyWithout),
  ]);
  const form = new Form(new Draft(`ask:${found.name}:${found.version}`));
  const target = manifest.target ?? "the target";
  const classes = manifest.task === "classification";
  const answer = (classes ? classAnswer : numberAnswer)(manifest, signal);
  const problem = h("div");
  const warnings = h("div", { "aria-live": "polite" });
  const truth = h("div");
  const strip = h("p", { "aria-hidden": "true" });

  const ask = newestOnly(
    (row) => send("POST", `${found.base}:predict`, {
      instances: [row],
      parameters: classes ? {} : { quantiles: LEVELS, intervals: INTERVALS },
    }, { signal }),
    ({ predictions: [prediction] }) => {
      form.clearAll();
      replace(problem);
      draw(prediction);
    },
    (error) => {
      // A person may be typing in another field by now.
      form.show(error, { focus: false });
      replace(strip, h("span", { class: "warns" }, "There is no answer to these values."));
      card.classList.add("outdated");
    },
  );

  function draw(prediction) {
    card.classList.remove("outdated");
    const said = (prediction.warnings ?? []).map(plain);
    const { familiarity } = prediction;
    if (familiarity <= UNLIKE) said.push(`These values are unlike those of the training: only ${familiarity < 0.01 ? "1 row in 100 or fewer" : `${Math.round(100 * familiarity)} rows in 100`} like those of the training would be as unusual. Trust this answer less.`);
    replace(strip, answer.draw(prediction), said.length > 0 && h("span", { class: "warns" }, " Unusual values."));
    replace(warnings, said.length > 0 && notice("warning", h("ul", {}, said.map((text) => h("li", {}, text)))));
  }

  const askNow = () => ask(Object.fromEntries(fields.map((field) => [field.name, field.read()])));
  const rows = table && rowChoice(table, (at, row) => {
    for (const field of fields) if (Object.hasOwn(row, field.name)) field.set(row[field.name]);
    const cell = row[manifest.target];
    replace(truth, cell !== undefined && h("p", {}, `In row ${number(at)} of the table, ${target} is `, h("strong", {}, typeof cell === "number" ? quantity(cell) : cell ?? "missing"), "."));
    askNow();
  }, signal);
  const change = () => {
    rows?.leave();
    replace(truth);
    askNow();
  };
  const named = (list, name) => list?.find((one) => one.name === name);
  const told = manifest.features.map(({ name }) => [named(table?.columns, name), named(report?.effects, name)]);
  const fields = manifest.features.map((feature, at) =>
    featureField(feature, form, typicalValue(feature, ...told[at]), change, told[at][0]));
  const start = told.every(([column, effect]) => column || effect) ? "a typical row" : "the middles of the ranges";
  const reset = () => {
    form.draft.clear();
    showAsk(root, { parts, signal });
  };
  const card = h("section", { class: "card answer", "aria-label": "Answer" },
    h("h2", {}, `Then ${target}`), answer.element, truth, warnings);

  replace(root,
    versionHead(found, "ask"),
    h("div", { class: "ask" },
      h("div", { class: "strip" }, strip,
        h("button", { type: "button", class: "quiet", onclick: () => card.scrollIntoView({ block: "start" }) }, "More")),
      h("form", { class: "card", onsubmit: (event) => event.preventDefault(), "aria-label": "Values of the columns" },
        h("h2", {}, "If"),
        h("p", { class: "help" }, `The values start at ${start}. Move a slider: the answer follows.`),
        rows?.element,
        fields.map((field) => field.element),
        form.general, problem,
        h("div", { class: "actions" }, h("button", { type: "button", class: "quiet", onclick: reset }, `Back to ${start}`))),
      card));
  askNow();
}

/** Versions of earlier releases have no report. */
function onlyWithout(error) {
  if (error.status !== 404) throw error;
  return null;
}

function numberAnswer(manifest, signal) {
  const summary = h("p", { class: "result", "aria-live": "polite" });
  const details = h("div");
  const target = manifest.target ?? "target";
  let extent = [Infinity, -Infinity];
  let marks = [];
  const plot = chart({
    title: `How likely each ${target} is; dashed: the mean`,
    x: target,
    y: "density",
    signal,
    height: innerWidth < 760 ? 180 : 240,
    series: [
      { label: "density", colour: "--series-1", fill: true, smooth: true, silent: true },
      { label: "90 % interval", colour: "--series-1", width: 0, fill: true, smooth: true, band: true, silent: true },
    ],
    ranges: { x: () => extent, y: (self, low, high) => [0, 1.08 * high || 1] },
    formats: { y: () => "" },
    marks: () => marks,
  });

  return {
    element: [summary, plot.element, details],
    draw(prediction) {
      const [mean] = prediction.mean;
      const deviation = prediction.std[0];
      const [low, high] = [prediction.lower[1][0], prediction.upper[1][0]];
      const { x, density, shade } = densityOf(prediction.quantiles.map(([value]) => value), [low, high]);
      // The axis grows but does not shrink, so that a move is seen as a move.
      extent = [Math.min(extent[0], x[0]), Math.max(extent[1], x.at(-1))];
      marks = [{ value: mean, colour: "--series-2" }];
      const [middle, around] = plusMinus(mean, deviation).split(" ± ");
      replace(summary, h("strong", {}, middle), ` ± ${around}`);
      plot.update([x, density, shade], `Mean ${middle}, 90 % interval from ${interval(low, high)}.`);
      replace(details,
        facts([
          [term("90 % interval", "interval"), interval(low, high)],
          ["50 % interval", interval(prediction.lower[0][0], prediction.upper[0][0])],
        ]),
        deviationBars(Math.sqrt(prediction.epistemic[0]), Math.sqrt(prediction.aleatoric[0]), deviation));
      return [h("span", { class: "name" }, `${target} `), h("strong", {}, middle), ` ± ${around}`,
        h("span", { class: "second" }, `90 %: ${interval(low, high)}`)];
    },
  };
}

function classAnswer(manifest) {
  const summary = h("p", { class: "result", "aria-live": "polite" });
  const place = h("div");
  const most = Math.log(Math.max(2, manifest.classes.length));
  return {
    element: [summary, place],
    draw(prediction) {
      const rows = manifest.classes.map((label, at) => ({
        label, value: prediction.probabilities[at], text: percent(prediction.probabilities[at]),
      }));
      const best = Math.max(...prediction.probabilities);
      const { entropy, mutual_information: epistemic } = prediction;
      replace(summary, h("strong", {}, prediction.class), ` ${percent(best)}`);
      replace(place,
        bars(rows, { most: 1, label: "Probabilities of the classes" }),
        facts([[term("Uncertainty", "uncertainty"), percent(Math.min(1, entropy / most), 0)]]),
        shareBar(entropy > 0 ? Math.min(1, Math.max(0, epistemic / entropy)) : 0));
      return [h("span", { class: "name" }, `${manifest.target ?? "class"} `), h("strong", {}, prediction.class), ` ${percent(best)}`];
    },
  };
}
