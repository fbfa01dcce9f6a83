// Words of the trade, explained where they stand: on hover, with the keyboard, by a touch.

import { h, newId } from "./dom.js";

const EXPLAINED = {
  epistemic: "Epistemic: what the model does not know because it has seen too few rows like this one. More data makes this part smaller.",
  aleatoric: "Aleatoric: noise that the columns cannot explain, such as two equal houses that were sold at different prices. More rows do not make this part smaller.",
  plusMinus: "± is the standard deviation: of a bell-shaped distribution, some two of three true values are within this distance of the mean.",
  interval: "The model expects the true value in this interval in so many of 100 cases.",
  heldOut: "Rows that training did not see. They show how well the model predicts new rows.",
  baseline: "Simple predictions to compare the model with, such as the mean of the target for every row.",
  logLikelihood: "The mean logarithm of the probability that the model gave to what happened. Greater is better: 0.7 more is twice the probability.",
  uncertainty: "How open the class is: 0 % is a certain class, 100 % a guess among all classes. (The entropy, as a share of its greatest value.)",
  calibrated: "Calibrated: what the model calls 90 % likely happens in 90 of 100 cases.",
  rmse: "Root mean squared error: the typical distance of the predicted mean from the truth, in units of the target. Great errors count more.",
  mae: "Mean absolute error: the mean distance of the prediction from the truth, in units of the target.",
  rSquared: "How much of the spread of the target the model explains: 1 is all of it, 0 is none.",
  auc: "The probability that a row of a class looks more like it than a row of another class does: 1 is perfect, 0.5 is a guess.",
  calibrationError: "How far stated probabilities are from the shares that came true, on average.",
  balancedAccuracy: "The share of rows that are right, as the mean over the classes, so that a rare class counts as much as a common one.",
  coverage: "The share of true values that are in their interval. It should be what the interval promises.",
  familiarity: "The share of rows like those of the training that are at most as usual as this row: near 0, the row is unlike what the model learned from.",
  effect: "What the model predicts on average if all rows had this value of the column and kept their other values.",
  importance: "How much worse the model predicts when the values of the column are shuffled.",
  recalibration: "A last correction of the stated probabilities, by rows that training did not see.",
  temperature: "How closely the model follows the rows rather than its prior: below 1, each row counts more than once.",
  label: "A name such as champion that programs ask for. It leads to one version, and you decide when it moves.",
};
const GAP = 6;
const EDGE = 8;

/**
 * A word with its explanation, which shows while the word has the pointer or the focus.
 * @param {string} text
 * @param {string} name Of the explanation.
 */
export function term(text, name) {
  const id = newId();
  const tip = h("span", { id, class: "tip", role: "tooltip", popover: "manual" }, EXPLAINED[name]);
  const word = h("button", {
    type: "button",
    class: "term",
    "aria-describedby": id,
    onmouseenter: () => show(word, tip),
    onmouseleave: () => word === document.activeElement || hide(tip),
    onfocus: () => show(word, tip),
    onblur: () => hide(tip),
    // Browsers of Apple do not focus a button that is touched.
    onclick: () => {
      word.focus();
      show(word, tip);
    },
    onkeydown: (event) => event.key === "Escape" && hide(tip),
  }, text);
  return h("span", { class: "defined" }, word, tip);
}

let shown = null;

function show(word, tip) {
  if (shown && shown.tip !== tip) hide(shown.tip);
  if (!tip.matches(":popover-open")) tip.showPopover();
  shown = { word, tip };
  place();
}

/** Puts the explanation below its word, or above it where there is more room. */
function place() {
  const { word, tip } = shown;
  const { left, top, bottom } = word.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const below = bottom + GAP + height <= innerHeight - EDGE || top < height + GAP + EDGE;
  tip.style.left = `${Math.max(EDGE, Math.min(left, document.documentElement.clientWidth - width - EDGE))}px`;
  tip.style.top = `${below ? bottom + GAP : top - GAP - height}px`;
}

function hide(tip) {
  if (shown?.tip === tip) shown = null;
  if (tip.matches(":popover-open")) tip.hidePopover();
}

addEventListener("scroll", () => shown && place(), { capture: true, passive: true });
