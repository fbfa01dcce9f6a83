// A field for each feature of a model: a slider with a number, a date, or a choice.

import { h } from "./dom.js";
import { numberOf } from "./form.js";
import { number } from "./format.js";

const BEYOND = 0.2;
const STEPS = 200;
const DAY = 86400;
const MISSING = " missing";
const UNSEEN = "a value that training did not see";

/**
 * Makes the field of a feature, with a typical value.
 * @param {Object} feature Of the manifest of the model.
 * @param {Object|undefined} effect Of the report of the version.
 * @param {import("./form.js").Form} form
 * @param {() => void} onChange A person has changed it.
 * @returns {{name: string, element: HTMLElement, read: () => any}}
 */
export function featureField(feature, effect, form, onChange) {
  const { kind, notation, categories } = feature;
  const typical = typicalValue(feature, effect);
  // The empty text stands for a missing value, which has an option of its own.
  if (kind === "categorical" && categories) return choice(feature, form, [...categories.filter((value) => value !== ""), UNSEEN], typical, onChange);
  if (notation?.kind === "boolean") return choice(feature, form, effect?.kind === "text" ? effect.values : ["yes", "no"], typical, onChange);
  if (notation?.levels) return choice(feature, form, notation.levels, typical, onChange);
  if (kind === "date") return dateField(feature, form, typical, onChange);
  return numberField(feature, form, typical, onChange);
}

/** The median of numbers and dates, the commonest of the rest, as far as the report tells. */
function typicalValue({ kind, low, high, role }, effect) {
  if (role === "exposure") return 1;
  if (effect?.values.length) return effect.values[kind === "categorical" ? 0 : Math.floor(effect.values.length / 2)];
  if (typeof low !== "number" || typeof high !== "number") return undefined;
  return kind === "date" ? isoDay((low + high) / 2) : (low + high) / 2;
}

/** The day of seconds since 1970, as `2020-01-31`. */
function isoDay(seconds) {
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

function choice(feature, form, values, typical, onChange) {
  const { name } = feature;
  const options = values.map((value) => [String(value), String(value)]);
  if (feature.missing || feature.imputed) options.push([MISSING, "missing"]);
  const select = form.select(name, options, values.includes(typical) ? typical : String(values[0]), onChange);
  return { name, element: form.field(name, name, select), read: () => (select.value === MISSING ? null : select.value) };
}

/** A number; hashed texts have no range, and are typed here, too. */
function numberField(feature, form, typical, onChange) {
  const { low, high } = feature;
  const known = typeof low === "number" && typeof high === "number";
  const whole = known && low % 1 === 0 && high % 1 === 0 && high - low >= 5;
  return slidingField(feature, form, onChange, {
    type: "text",
    inputmode: feature.kind === "categorical" ? null : "decimal",
    initial: typeof typical === "number" ? String(whole ? Math.round(typical) : Number(typical.toPrecision(4))) : typical ?? "",
    range: known && high > low && [low, high, whole],
    seen: known && `${number(low)} to ${number(high)}`,
    textOf: (value) => String(Number(value.toPrecision(6))),
    read: feature.kind === "categorical" ? (text) => text || undefined : numberOf,
    placeOf: numberOf,
  });
}

function dateField(feature, form, typical, onChange) {
  const { low, high } = feature;
  const known = typeof low === "number" && typeof high === "number";
  const seconds = (text) => (text ? Date.parse(`${text}T00:00:00Z`) / 1000 : undefined);
  return slidingField(feature, form, onChange, {
    type: "date",
    initial: typical?.slice(0, 10) ?? isoDay(0),
    range: known && high > low && [Math.floor(low / DAY), Math.ceil(high / DAY), true],
    seen: known && `${isoDay(low)} to ${isoDay(high)}`,
    textOf: (place) => isoDay(place * DAY),
    read: seconds,
    placeOf: (text) => (text ? seconds(text) / DAY : undefined),
  });
}

/** A field with a slider, where the range of the training is known. */
function slidingField(feature, form, onChange, { type, inputmode, initial, range, seen, textOf, read, placeOf }) {
  const { name } = feature;
  const perWhat = feature.role === "exposure";
  const typed = form.text(name, initial, { type, inputmode, class: "value", placeholder: feature.missing && "missing" });
  const help = [perWhat ? "The answer is proportional to it." : "", seen ? `Training: ${seen}.` : "", feature.missing ? "Leave it empty if it is missing." : ""].join(" ").trim();
  const element = form.field(name, perWhat ? `Per what? ${name}` : name, typed, { help });
  element.classList.add("feature");
  if (range) {
    const slide = slider(...range, name, (value) => {
      typed.value = textOf(value);
      form.draft.set(name, typed.value);
      form.clear(name);
      onChange();
    });
    const follow = () => slide.show(placeOf(typed.value));
    typed.addEventListener("input", follow);
    follow();
    element.append(slide.element);
  }
  typed.addEventListener("input", onChange);
  return { name, element, read: () => read(typed.value) ?? null };
}

/**
 * A range beyond that of the training rows on both sides, which is marked.
 *
 * `show` moves it to a value; without one, it shows that the value is missing.
 */
function slider(low, high, whole, name, onMove) {
  const margin = whole ? Math.ceil(BEYOND * (high - low)) : BEYOND * (high - low);
  // Of counts, lengths and prices none is below zero.
  const bottom = low >= 0 ? Math.max(0, low - margin) : low - margin;
  const top = high + margin;
  const step = whole ? Math.max(1, Math.round((top - bottom) / (5 * STEPS))) : (top - bottom) / STEPS;
  const at = (place) => `${(100 * (place - bottom)) / (top - bottom)}%`;
  const show = (value) => {
    if (typeof value === "number") input.value = value;
    element.classList.toggle("missing", value === undefined);
    if (value === undefined) input.setAttribute("aria-valuetext", "missing");
    else input.removeAttribute("aria-valuetext");
  };
  const input = h("input", { type: "range", min: bottom, max: top, step, "aria-label": `${name}, slider`, oninput: () => {
    const value = Number(input.value);
    show(value);
    onMove(value);
  } });
  const element = h("span", { class: "slider" },
    h("span", { class: "seen", "aria-hidden": "true", style: { left: at(low), width: `calc(${at(high)} - ${at(low)})` } }),
    input, h("span", { class: "absent", "aria-hidden": "true" }, "missing"));
  return { element, show };
}
