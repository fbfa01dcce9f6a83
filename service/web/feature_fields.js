// A field for each feature of a model: a slider with a number, a date, or a choice.

import { h, newId, replace } from "./dom.js";
import { number } from "./format.js";
import { numberOf } from "./schema_fields.js";

const BEYOND = 0.2;
const STEPS = 200;
const DAY = 86400;
const OTHER = " other";
const MISSING = " missing";
// What is asked until another value is typed.
const UNSEEN = "a value that training did not see";

/**
 * Makes the field of a feature.
 * @param {Object} feature Of the manifest of the model.
 * @param {import("./form.js").Form} form
 * @param {() => void} onChange
 * @returns {{name: string, element: HTMLElement, read: () => any}}
 */
export function featureField(feature, form, onChange) {
  if (feature.kind === "categorical") return choice(feature, form, onChange);
  if (feature.notation?.kind === "boolean") return yesOrNo(feature, form, onChange);
  if (feature.notation?.kind === "ordered" && feature.notation.levels) return levels(feature, form, onChange);
  if (feature.kind === "date") return dateField(feature, form, onChange);
  return numberField(feature, form, onChange);
}

function numberField(feature, form, onChange) {
  const { name, low, high } = feature;
  const known = low !== null && high !== null;
  const whole = known && low % 1 === 0 && high % 1 === 0 && high - low >= 5;
  const middle = known ? (low + high) / 2 : 0;
  const initial = whole ? Math.round(middle) : Number(middle.toPrecision(4));
  const typed = form.text(name, String(initial), { inputmode: "decimal", class: "value" });
  if (feature.missing) typed.placeholder = "missing";
  const slide = known && high > low && slider(low, high, whole, name);
  const follow = () => slide && slide.show(numberOf(typed.value));
  follow();
  typed.addEventListener("input", () => {
    follow();
    onChange();
  });
  slide?.input?.addEventListener("input", () => {
    typed.value = String(Number(Number(slide.input.value).toPrecision(6)));
    follow();
    form.draft.set(name, typed.value);
    form.clear(name);
    onChange();
  });
  const help = [known ? `Training: ${number(low)} to ${number(high)}.` : "", feature.missing ? "Leave it empty if it is missing." : ""].join(" ").trim();
  return { name, element: withSlider(form, name, typed, slide, help), read: () => numberOf(typed.value) ?? null };
}

/**
 * A range beyond that of the training rows on both sides, which is marked.
 *
 * `show` moves it to a value; without one, it shows that the value is missing.
 */
function slider(low, high, whole, name) {
  const margin = whole ? Math.ceil(BEYOND * (high - low)) : BEYOND * (high - low);
  const bottom = low >= 0 && low - margin < 0 && low > 0 ? 0 : low - margin;
  const top = high + margin;
  const step = whole ? Math.max(1, Math.round((top - bottom) / (5 * STEPS))) : (top - bottom) / STEPS;
  const input = h("input", { type: "range", min: bottom, max: top, step, "aria-label": `${name}, slider` });
  const at = (place) => `${(100 * (place - bottom)) / (top - bottom)}%`;
  const seen = h("span", { class: "seen", "aria-hidden": "true", style: { left: at(low), width: `calc(${at(high)} - ${at(low)})` } });
  const element = h("span", { class: "slider" }, seen, input, h("span", { class: "absent", "aria-hidden": "true" }, "missing"));
  const show = (value) => {
    if (typeof value === "number") input.value = value;
    element.classList.toggle("missing", value === undefined);
    if (value === undefined) input.setAttribute("aria-valuetext", "missing");
    else input.removeAttribute("aria-valuetext");
  };
  return { input, element, show };
}

function withSlider(form, name, control, slide, help) {
  const element = form.field(name, name, control, { help });
  element.classList.add("feature");
  if (slide) element.append(slide.element);
  return element;
}

function dateField(feature, form, onChange) {
  const { name, low, high } = feature;
  const day = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);
  const seconds = (text) => Date.parse(`${text}T00:00:00Z`) / 1000;
  const known = low !== null && high !== null;
  const middle = known ? Math.round((low + high) / 2 / DAY) * DAY : 0;
  const typed = form.text(name, day(middle), { type: "date", class: "value" });
  const slide = known && high > low && slider(Math.floor(low / DAY), Math.ceil(high / DAY), true, name);
  const follow = () => slide && slide.show(typed.value ? seconds(typed.value) / DAY : undefined);
  follow();
  typed.addEventListener("input", () => {
    follow();
    onChange();
  });
  slide?.input?.addEventListener("input", () => {
    typed.value = day(slide.input.value * DAY);
    follow();
    form.draft.set(name, typed.value);
    onChange();
  });
  const help = [known ? `Training: ${day(low)} to ${day(high)}.` : "", feature.missing ? "Leave it empty if it is missing." : ""].join(" ").trim();
  return {
    name,
    element: withSlider(form, name, typed, slide, help),
    read: () => (typed.value ? seconds(typed.value) : null),
  };
}

function yesOrNo(feature, form, onChange) {
  const options = [["true", "yes"], ["false", "no"], ...missing(feature)];
  const select = form.select(feature.name, options, "true", onChange);
  return {
    name: feature.name,
    element: form.field(feature.name, feature.name, select),
    read: () => (select.value === MISSING ? null : select.value === "true"),
  };
}

function levels(feature, form, onChange) {
  const names = feature.notation.levels;
  const select = form.select(feature.name, [...names.map((level) => [level, level]), ...missing(feature)], names[0], onChange);
  return {
    name: feature.name,
    element: form.field(feature.name, feature.name, select),
    read: () => (select.value === MISSING ? null : select.value),
  };
}

function choice(feature, form, onChange) {
  const { name } = feature;
  // The empty text stands for a missing value, which has an option of its own.
  const known = (feature.categories ?? []).filter((value) => value !== "");
  const other = form.text(`${name} other`, "", { "aria-label": `Another value of ${name}`, placeholder: UNSEEN });
  other.id = newId();
  other.addEventListener("input", onChange);
  const place = h("span");
  const show = (value) => replace(place, value === OTHER && other);
  const options = [...known.map((value) => [value, value]), [OTHER, "another value…"], ...missing(feature)];
  const select = form.select(name, options, known[0] ?? OTHER, (value) => {
    show(value);
    onChange();
  });
  show(select.value);
  const element = form.field(name, name, select);
  element.append(place);
  return {
    name,
    element,
    read() {
      if (select.value === MISSING) return null;
      return select.value === OTHER ? other.value.trim() || UNSEEN : select.value;
    },
  };
}

function missing(feature) {
  return feature.missing || feature.imputed ? [[MISSING, "missing"]] : [];
}
