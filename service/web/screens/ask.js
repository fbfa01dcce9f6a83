// A form made from the features of a model; its answer is drawn anew at every move.

import { get, send } from "../api.js";
import { bars, chart } from "../charts.js";
import { LEVELS, densityOf } from "../density.js";
import { facts, h, notice, replace } from "../dom.js";
import { Draft } from "../drafts.js";
import { featureField } from "../feature_fields.js";
import { Form } from "../form.js";
import { interval, percent, plusMinus, targetNames } from "../format.js";
import { term } from "../glossary.js";
import { findReport, findVersion, versionHead } from "../model.js";
import { plain } from "../plain_words.js";
import { programs } from "../programs.js";
import { deviationBars, shareBar } from "../report_parts.js";
import { address } from "../router.js";

const INTERVALS = [0.5, 0.9];
const UNLIKE = 0.05;

export async function showAsk(root, { parts, query, signal }) {
  const found = await findVersion(parts, signal);
  const [{ metadata: { manifest } }, report] = await Promise.all([
    get(`${found.base}/metadata`, { signal }),
    findReport(found.base, signal),
  ]);
  const form = new Form(new Draft(`ask:${found.name}:${found.version}`));
  // The address is a link to the values.
  for (const [name, value] of query) form.draft.set(name, value);
  const program = programs(found.name, found.base);
  const classes = manifest.task === "classification";
  const answer = classes ? classAnswer(manifest) : answerOfAll(targetNames(manifest.target), signal);
  const warnings = h("div", { "aria-live": "polite" });
  const strip = h("p", { "aria-hidden": "true" });
  const effects = new Map((report?.effects ?? report?.targets?.[0].effects)?.map((effect) => [effect.name, effect]));
  const fields = manifest.features.map((feature) => featureField(feature, effects.get(feature.name), form, () => ask()));
  let changed = false;
  let busy = false;

  /** Asks about the values of now; while a question is under way, only the newest waits. */
  async function ask() {
    changed = true;
    const link = new URLSearchParams(form.draft.values).toString();
    history.replaceState(null, "", address(parts) + (link && `?${link}`));
    if (busy) return;
    busy = true;
    while (changed) {
      changed = false;
      try {
        const instances = [Object.fromEntries(fields.map((field) => [field.name, field.read()]))];
        program.draw({ instances });
        const parameters = classes ? {} : { quantiles: LEVELS, intervals: INTERVALS };
        draw(await send("POST", `${found.base}:predict`, { instances, parameters }, { signal }));
      } catch (error) {
        if (error.name === "AbortError") return;
        // A person may be typing in another field by now.
        form.show(error, { focus: false });
        replace(strip, h("span", { class: "warns" }, "There is no answer to these values."));
        card.classList.add("outdated");
      }
    }
    busy = false;
  }

  function draw({ predictions: [prediction] }) {
    form.clearAll();
    card.classList.remove("outdated");
    const said = (prediction.warnings ?? []).map(plain);
    const { familiarity } = prediction;
    if (familiarity <= UNLIKE) said.push(`These values are unlike those of the training: only ${familiarity < 0.01 ? "1 row in 100 or fewer" : `${Math.round(100 * familiarity)} rows in 100`} like those of the training would be as unusual. Trust this answer less.`);
    replace(strip, answer.draw(prediction), said.length > 0 && h("span", { class: "warns" }, " Unusual values."));
    replace(warnings, said.length > 0 && notice("warning", h("ul", {}, said.map((text) => h("li", {}, text)))));
  }

  const reset = () => {
    form.draft.clear();
    showAsk(root, { parts, query: new URLSearchParams(), signal });
  };
  const card = h("section", { class: "card answer", "aria-label": "Answer" },
    h("h2", {}, `Then ${targetNames(manifest.target).join(", ") || "the target"}`), answer.element, warnings);

  replace(root,
    versionHead(found, "ask"),
    h("div", { class: "ask" },
      h("div", { class: "strip" }, strip,
        h("button", { type: "button", class: "quiet", onclick: () => card.scrollIntoView({ block: "start" }) }, "More")),
      h("form", { class: "card", onsubmit: (event) => event.preventDefault(), "aria-label": "Values of the columns" },
        h("h2", {}, "If"),
        h("p", { class: "help" }, "The values start in the middle of the training rows. Move a slider: the answer follows."),
        fields.map((field) => field.element),
        form.general,
        h("div", { class: "actions" }, h("button", { type: "button", class: "quiet", onclick: reset }, "Back to the start"))),
      card),
    program.element);
  ask();
}

/** The answers of all targets, one below the other. */
function answerOfAll(names, signal) {
  if (names.length < 2) return numberAnswer(names[0] ?? "target", signal);
  const answers = names.map((name) => numberAnswer(name, signal));
  return {
    element: answers.map(({ element }, place) => [h("h3", {}, names[place]), element]),
    draw: (prediction) => answers.map(({ draw }, place) => draw(ofTarget(prediction, place))),
  };
}

/** What a prediction says of one target. */
function ofTarget(prediction, place) {
  const alone = {};
  for (const name of ["mean", "std", "epistemic", "aleatoric"]) alone[name] = [prediction[name][place]];
  for (const name of ["lower", "upper", "quantiles"]) alone[name] = prediction[name].map((values) => [values[place]]);
  return alone;
}

function numberAnswer(target, signal) {
  const summary = h("p", { class: "result", "aria-live": "polite" });
  const details = h("div");
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
    draw({ mean: [mean], std: [deviation], lower, upper, quantiles, epistemic, aleatoric }) {
      const [low, high] = [lower[1][0], upper[1][0]];
      const { x, density, shade } = densityOf(quantiles.map(([value]) => value), [low, high]);
      // The axis grows but does not shrink, so that a move is seen as a move.
      extent = [Math.min(extent[0], x[0]), Math.max(extent[1], x.at(-1))];
      marks = [{ value: mean, colour: "--series-2" }];
      const [middle, around] = plusMinus(mean, deviation).split(" ± ");
      replace(summary, h("strong", {}, middle), ` ± ${around}`);
      plot.update([x, density, shade], `Mean ${middle}, 90 % interval from ${interval(low, high)}.`);
      replace(details,
        facts([
          [term("90 % interval", "interval"), interval(low, high)],
          ["50 % interval", interval(lower[0][0], upper[0][0])],
        ]),
        deviationBars(Math.sqrt(epistemic[0]), Math.sqrt(aleatoric[0]), deviation));
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
    draw({ class: best, probabilities, entropy, mutual_information: epistemic }) {
      const rows = manifest.classes.map((label, at) => ({ label, value: probabilities[at], text: percent(probabilities[at]) }));
      const share = percent(Math.max(...probabilities));
      replace(summary, h("strong", {}, best), ` ${share}`);
      replace(place,
        bars(rows, { most: 1, label: "Probabilities of the classes" }),
        facts([[term("Uncertainty", "uncertainty"), percent(Math.min(1, entropy / most), 0)]]),
        shareBar(entropy > 0 ? Math.min(1, Math.max(0, epistemic / entropy)) : 0));
      return [h("span", { class: "name" }, `${manifest.target ?? "class"} `), h("strong", {}, best), ` ${share}`];
    },
  };
}
