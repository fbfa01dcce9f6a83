// A form made from the features of a model; its answer is drawn anew at every move.

import { get, send } from "../api.js";
import { bars, chart } from "../charts.js";
import { facts, h, notice, replace } from "../dom.js";
import { Draft } from "../drafts.js";
import { featureField } from "../feature_fields.js";
import { Form } from "../form.js";
import { number, percent } from "../format.js";
import { newestOnly } from "../latest.js";
import { findVersion, versionHead } from "../model.js";
import { shareBar } from "../report_parts.js";

const LEVELS = [0.005, 0.015, ...Array.from({ length: 38 }, (value, place) => 0.03 + place * 0.0254), 0.985, 0.995].map((level) => Number(level.toFixed(4)));
const INTERVALS = [0.5, 0.9];
const REACH = 4;

export async function showAsk(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const { metadata: { manifest } } = await get(`${found.base}/metadata`, { signal });
  const form = new Form(new Draft(`ask:${found.name}:${found.version}`));
  const classes = manifest.task === "classification";
  const answer = (classes ? classAnswer : numberAnswer)(manifest, signal);
  const problem = h("div");
  const warnings = h("div", { "aria-live": "polite" });

  const ask = newestOnly(
    (row) => send("POST", `${found.base}:predict`, {
      instances: [row],
      parameters: { abstain_above: 100, ...(classes ? {} : { quantiles: LEVELS, intervals: INTERVALS }) },
    }, { signal }),
    ({ predictions: [prediction] }) => {
      form.clearAll();
      replace(problem);
      draw(prediction);
    },
    // A person may be typing in another field by now.
    (error) => form.show(error, { focus: false }),
  );

  function draw(prediction) {
    answer.draw(prediction);
    const said = [...(prediction.warnings ?? [])];
    const { familiarity } = prediction;
    if (familiarity <= 0.05) said.push(`These values are unlike those of the training: ${familiarity < 0.01 ? "less than 1" : number(Math.round(100 * familiarity))} of 100 rows like those of the training are as unlike. Trust this answer less.`);
    replace(warnings, said.length > 0 && notice("warning", h("ul", {}, said.map((text) => h("li", {}, text)))));
  }

  const change = () => ask(Object.fromEntries(fields.map((field) => [field.name, field.read()])));
  const fields = manifest.features.map((feature) => featureField(feature, form, change));
  const reset = () => {
    form.draft.clear();
    showAsk(root, { parts, signal });
  };

  replace(root,
    versionHead(found, "ask"),
    h("div", { class: "ask" },
      h("form", { class: "card", onsubmit: (event) => event.preventDefault(), "aria-label": "Values of the columns" },
        h("h2", {}, "If"),
        fields.map((field) => field.element),
        form.general, problem,
        h("div", { class: "actions" }, h("button", { type: "button", class: "quiet", onclick: reset }, "Start over"))),
      h("section", { class: "card answer", "aria-label": "Answer" },
        h("h2", {}, `Then ${manifest.target ?? "the target"}`),
        answer.element, warnings)));
  change();
}

function numberAnswer(manifest, signal) {
  const summary = h("p", { class: "result", "aria-live": "polite" });
  const details = h("div");
  let extent = [Infinity, -Infinity];
  let marks = [];
  const plot = chart({
    title: "Predictive density",
    x: manifest.target ?? "target",
    y: "density",
    signal,
    // On a phone the answer stays in sight above the sliders.
    height: innerWidth < 760 ? 160 : 240,
    series: [
      { label: "density", colour: "--series-1", fill: true, smooth: true },
      { label: "90 % interval", colour: "--series-1", width: 0, fill: true, smooth: true, band: true },
    ],
    ranges: { x: () => extent, y: (self, low, high) => [0, 1.08 * high || 1] },
    formats: { y: () => "" },
    marks: () => marks,
  });

  return {
    element: [summary, plot.element, details],
    draw(prediction) {
      const [mean] = prediction.mean;
      const deviation = prediction.standard_deviation[0];
      const [low, high] = [prediction.lower[1][0], prediction.upper[1][0]];
      const { x, density } = densityOf(prediction.quantiles.map(([value]) => value));
      // The axis grows but does not shrink, so that a move is seen as a move.
      extent = [Math.min(extent[0], x[0]), Math.max(extent[1], x.at(-1))];
      marks = [{ value: mean, colour: "--series-2" }];
      replace(summary, h("strong", {}, number(mean)), ` ± ${number(deviation, 3)}`);
      plot.update([x, density, density.map((value, place) => (x[place] >= low && x[place] <= high ? value : null))],
        `Mean ${number(mean)}, 90 % interval from ${number(low)} to ${number(high)}.`);
      const share = prediction.epistemic[0] / prediction.variance[0];
      replace(details,
        facts([
          ["90 % interval", `${number(low)} to ${number(high)}`],
          ["50 % interval", `${number(prediction.lower[0][0])} to ${number(prediction.upper[0][0])}`],
          ["Epistemic ±", number(Math.sqrt(prediction.epistemic[0]), 3)],
          ["Aleatoric ±", number(Math.sqrt(prediction.aleatoric[0]), 3)],
        ]),
        shareBar(share));
    },
  };
}

/** The density between neighbouring quantiles, in the middle between them. */
function densityOf(quantiles) {
  const x = [];
  const density = [];
  const slopes = smooth(quantiles.slice(1).map((value, place) => (value - quantiles[place]) / (LEVELS[place + 1] - LEVELS[place])));
  for (let place = 0; place + 1 < quantiles.length; place += 1) {
    const middle = (quantiles[place] + quantiles[place + 1]) / 2;
    // Neighbouring quantiles of counts may be equal.
    if (slopes[place] <= 0 || middle <= x.at(-1)) continue;
    x.push(middle);
    density.push(1 / slopes[place]);
  }
  return x.length ? { x, density } : { x: [quantiles[0] - 0.5, quantiles[0] + 0.5], density: [1, 1] };
}

/**
 * Averages each value with its neighbours, by binomial weights.
 *
 * The distribution is a mixture of a hundred draws: far from the training rows each of
 * them is a peak of its own, and the density without this a comb.
 */
function smooth(values) {
  return values.map((value, place) => {
    const reach = Math.min(REACH, place, values.length - 1 - place);
    let sum = 0;
    let weight = 1;
    for (let step = -reach; step <= reach; step += 1) {
      sum += weight * values[place + step];
      weight *= (reach - step) / (reach + step + 1);
    }
    return sum / 4 ** reach;
  });
}

function classAnswer(manifest) {
  const summary = h("p", { class: "result", "aria-live": "polite" });
  const place = h("div");
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
        facts([
          ["Entropy", `${number(entropy, 3)} nats`],
          ["Epistemic", `${number(epistemic, 3)} nats`],
          ["Aleatoric", `${number(Math.max(0, entropy - epistemic), 3)} nats`],
        ]),
        shareBar(entropy > 0 ? Math.min(1, Math.max(0, epistemic / entropy)) : 0));
    },
  };
}
