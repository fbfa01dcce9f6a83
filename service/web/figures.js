// Figures of models: sentences, names, units, and tables beside those of baselines.

import { badge, h, table } from "./dom.js";
import { capital, decimals, number, percent, words } from "./format.js";
import { term } from "./glossary.js";
import { plain } from "./plain_words.js";

/** Sentences about the figures; those that tell of a fault, and further remarks, stand out. */
export function sentences(judgement, remarks = []) {
  const warnings = [...judgement.warnings, ...remarks];
  const others = warnings.filter((warning) => !judgement.sentences.includes(warning));
  return h("ul", { class: "sentences" }, [...judgement.sentences, ...others].map((sentence) => {
    const warns = warnings.includes(sentence);
    return h("li", { class: warns ? "warns" : "" }, warns && badge("Warning:", "bad"), warns && " ", plain(sentence));
  }));
}

// The names of figures, and what explains them.
const NAMES = {
  r_squared: ["R²", "rSquared"],
  rmse: ["RMSE", "rmse"],
  mae: ["Mean absolute error", "mae"],
  mean_absolute_error: ["Mean absolute error", "mae"],
  auc: ["AUC", "auc"],
  concordance: ["Concordance", "concordance"],
  integrated_brier_score: ["Integrated Brier score", "integratedBrierScore"],
  ece: ["Calibration error", "calibrationError"],
  calibration_error: ["Calibration error", "calibrationError"],
  expected_calibration_error: ["Calibration error", "calibrationError"],
  balanced_accuracy: ["Balanced accuracy", "balancedAccuracy"],
  log_likelihood: ["Log likelihood", "logLikelihood"],
  coverage_50: ["In 50 % interval", "coverage"],
  coverage_90: ["In 90 % interval", "coverage"],
  coverage_95: ["In 95 % interval", "coverage"],
};

/** The name of a figure in words. */
export function figureName(name) {
  return NAMES[name]?.[0] ?? capital(words(name));
}

/** The name of a figure, explained where the glossary has it. */
export function figureTerm(name) {
  return NAMES[name] ? term(...NAMES[name]) : figureName(name);
}

/** The figures of the model beside those of its baselines. */
export function figureTable(judgement) {
  const names = Object.keys(judgement.figures.model);
  const columns = [{ title: "" }, ...names.map((name) => ({ title: figureTerm(name), number: true }))];
  const rows = Object.entries(judgement.figures).map(([who, values]) => [
    who === "model" ? h("strong", {}, "this model") : who,
    ...names.map((name) => figure(name, values[name])),
  ]);
  return table(columns, rows, { caption: "Figures beside those of baselines" });
}

/** A figure in the unit that its name tells, with the same decimals in every row. */
export function figure(name, value) {
  if (value === undefined || value === null) return "–";
  if (/^(coverage|accuracy|balanced_accuracy)/.test(name)) return percent(value);
  if (/^(log_likelihood|nll)/.test(name)) return decimals(value, 2);
  return /^(r_squared|auc|ece|expected_calibration_error|calibration_error|entropy)/.test(name) ? decimals(value) : number(value);
}
