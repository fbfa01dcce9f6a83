// Words of the trade, explained where they stand by a click.

import { h, newId } from "./dom.js";

const EXPLAINED = {
  epistemic: "Epistemic: what the model does not know because it has seen too few rows like this one. More data makes this part smaller. Of a number, the API and files have its square, the variance epistemic.",
  aleatoric: "Aleatoric: noise that the columns cannot explain, such as two equal houses that were sold at different prices. More rows do not make this part smaller. Of a number, the API and files have its square, the variance aleatoric.",
  plusMinus: "± is the standard deviation: of a bell-shaped distribution, some two of three true values are within this distance of the mean.",
  interval: "The model expects the true value in this interval in so many of 100 cases.",
  logLikelihood: "The mean logarithm of the probability that the model gave to what happened. Greater is better: 0.7 more is twice the probability.",
  uncertainty: "How open the class is: 0 % is a certain class, 100 % a guess among all classes. (The entropy, as a share of its greatest value.)",
  concordance: "The share of pairs of rows whose predicted times are in the right order; 0.5 is chance. Pairs of which nobody knows which is longer do not count.",
  integratedBrierScore: "The squared error of the probability to be still running, averaged over time; less is better. Rows that were cut off count as far as they are known.",
  rmse: "Root mean squared error: the typical distance of the predicted mean from the truth, in units of the target. Great errors count more.",
  mae: "Mean absolute error: the mean distance of the prediction from the truth, in units of the target.",
  rSquared: "How much of the spread of the target the model explains: 1 is all of it, 0 is none.",
  auc: "The probability that a row of a class looks more like it than a row of another class does: 1 is perfect, 0.5 is a guess.",
  calibrationError: "How far stated probabilities are from the shares that came true, on average.",
  balancedAccuracy: "The share of rows that are right, as the mean over the classes, so that a rare class counts as much as a common one.",
  coverage: "The share of true values that are in their interval. It should be what the interval promises.",
  familiarity: "The share of rows like those of the training that are at most as usual as this row: near 0, the row is unlike what the model learned from.",
  recalibration: "A last correction of the stated probabilities, by rows that training did not see.",
  temperature: "How closely the model follows the rows rather than its prior: below 1, each row counts more than once.",
  label: "A name such as champion that programs ask for. It leads to one version, and you decide when it moves.",
};

/**
 * A word with its explanation, which a click shows and hides.
 * @param {string} text
 * @param {string} name Of the explanation.
 */
export function term(text, name) {
  const id = newId();
  return h("span", { class: "defined" },
    h("button", { type: "button", class: "term", "aria-describedby": id, popovertarget: id }, text),
    h("span", { id, class: "tip", role: "tooltip", popover: "auto" }, EXPLAINED[name]));
}
