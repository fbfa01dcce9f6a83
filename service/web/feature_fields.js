// A field for each feature of a model: a slider with a number, a date, or a choice.

import { h, newId, replace } from "./dom.js";
import { number } from "./format.js";
import { numberOf } from "./schema_fields.js";
import { isoDay } from "./typical_row.js";

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
 * @param {any} initial The cell that it shows first.
 * @param {() => void} onChange A person has changed it.
 * @param {Object|undefined} column Of the table that the model was trained on, if it is there.
 * @returns {{name: string, element: HTMLElement, read: () => any, set: (cell: any) => void}}
 *   `set` shows a cell of a table.
 */
export function featureField(feature, form, initial, onChange, column) {
  if (feature.kind === "categorical") return choice(feature, form, initial, onChange);
  if (feature.notation?.kind === "boolean") return twoValues(feature, form, initial, onChange, column);
  if (feature.notation?.kind === "ordered" && feature.notation.levels) return levels(feature, form, initial, onChange);
  if (feature.kind === "date") return dateField(feature, form, initial, onChange);
  return numberField(feature, form, initial, onChange);
}

function numberField(feature, form, initial, onChange) {
  const { low, high } = feature;
  const known = low !== null && high !== null;
  const whole = known && low % 1 === 0 && high % 1 === 0 && high - low >= 5;
  const middle = initial ?? 0;
  return slidingField(feature, form, onChange, {
    type: "text",
    inputmode: "decimal",
    initial: typeof middle === "number" ? String(rounded(middle, whole ? 1 : known && high > low ? (high - low) / STEPS : 0)) : String(middle),
    range: known && high > low && [low, high, whole],
    seen: known && `${number(low)} to ${number(high)}`,
    textOf: (value) => String(Number(value.toPrecision(6))),
    cellText: (cell) => (cell === null ? "" : String(cell)),
    placeOf: (text) => numberOf(text),
    read: (text) => numberOf(text) ?? null,
  });
}

/** A number to the power of ten below a step. */
function rounded(value, step) {
  if (!step) return Number(value.toPrecision(4));
  const unit = 10 ** Math.floor(Math.log10(step));
  return Number((Math.round(value / unit) * unit).toPrecision(12));
}

function dateField(feature, form, initial, onChange) {
  const { low, high } = feature;
  const known = low !== null && high !== null;
  const seconds = (text) => Date.parse(`${text}T00:00:00Z`) / 1000;
  const day = (cell) => /^\d{4}-\d\d-\d\d/.exec(cell)?.[0] ?? "";
  return slidingField(feature, form, onChange, {
    type: "date",
    initial: day(initial) || isoDay(0),
    range: known && high > low && [Math.floor(low / DAY), Math.ceil(high / DAY), true],
    seen: known && `${isoDay(low)} to ${isoDay(high)}`,
    textOf: (place) => isoDay(place * DAY),
    cellText: day,
    placeOf: (text) => (text ? seconds(text) / DAY : undefined),
    read: (text) => (text ? seconds(text) : null),
  });
}

/** A field with a slider, where the range of the training is known. */
function slidingField(feature, form, onChange, { type, inputmode, initial, range, seen, textOf, cellText, placeOf, read }) {
  const { name } = feature;
  const typed = form.text(name, initial, { type, inputmode, class: "value" });
  if (feature.missing && type === "text") typed.placeholder = "missing";
  const slide = range && slider(...range, name);
  const note = h("p", { class: "help" });
  // A cell that this control cannot show is asked about as it is.
  let given;
  const follow = () => {
    slide && slide.show(placeOf(typed.value));
    replace(note, given !== undefined && `As in the table: ${given}`);
  };
  follow();
  typed.addEventListener("input", () => {
    given = undefined;
    follow();
    onChange();
  });
  const write = (text, cell) => {
    typed.value = text;
    given = cell;
    follow();
    form.draft.set(name, text);
    form.clear(name);
  };
  slide?.input?.addEventListener("input", () => {
    write(textOf(Number(slide.input.value)));
    onChange();
  });
  const help = [seen ? `Training: ${seen}.` : "", feature.missing ? "Leave it empty if it is missing." : ""].join(" ").trim();
  const element = form.field(name, name, typed, { help });
  element.classList.add("feature");
  if (slide) element.append(slide.element);
  element.append(note);
  return {
    name,
    element,
    read: () => given ?? read(typed.value),
    set(cell) {
      const text = cellText(cell);
      write(text, text === "" && cell !== null && cell !== "" ? cell : undefined);
    },
  };
}

/**
 * A range beyond that of the training rows on both sides, which is marked.
 *
 * `show` moves it to a value; without one, it shows that the value is missing.
 */
function slider(low, high, whole, name) {
  const margin = whole ? Math.ceil(BEYOND * (high - low)) : BEYOND * (high - low);
  // Of counts, lengths and prices none is below zero.
  const bottom = low >= 0 ? Math.max(0, low - margin) : low - margin;
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

/** Two values in the spelling of the table, which the service reads; without a table, yes and no. */
function twoValues(feature, form, initial, onChange, column) {
  const spelled = (column?.most_common ?? []).map(([value]) => value).filter((value) => value !== null && value !== "").map(String);
  const texts = spelled.length ? spelled : ["yes", "no"];
  const options = texts.map((text) => [text, text]);
  let field = null;
  const textOf = (cell) => {
    const text = String(cell ?? texts[0]);
    if (texts.includes(text)) return text;
    if (typeof cell !== "string" && !spelled.length) return Number(cell) >= 0.5 ? "yes" : "no";
    // A rarer spelling is asked about as it is.
    texts.push(text);
    field?.offer(text);
    return text;
  };
  field = choiceOf(feature, form, options, textOf, initial, onChange, (text) => text);
  return field;
}

function levels(feature, form, initial, onChange) {
  const names = feature.notation.levels;
  // The places of levels are numbers to a model.
  const textOf = (cell) => (typeof cell === "number" && !names.includes(String(cell)) ? names[Math.round(cell)] : names.find((level) => level === String(cell))) ?? names[0];
  return choiceOf(feature, form, names.map((level) => [level, level]), textOf, initial, onChange, (text) => text);
}

function choiceOf(feature, form, options, textOf, initial, onChange, read) {
  const { name } = feature;
  const select = form.select(name, [...options, ...missing(feature)], textOf(initial), onChange);
  return {
    name,
    element: form.field(name, name, select),
    offer: (text) => select.append(h("option", { value: text }, text)),
    read: () => (select.value === MISSING ? null : read(select.value)),
    set(cell) {
      select.value = cell === null ? MISSING : textOf(cell);
      form.draft.set(name, select.value);
      form.clear(name);
    },
  };
}

function choice(feature, form, initial, onChange) {
  const { name } = feature;
  // The empty text stands for a missing value, which has an option of its own.
  const known = (feature.categories ?? []).filter((value) => value !== "");
  const other = form.text(`${name} other`, "", { "aria-label": `Another value of ${name}`, placeholder: UNSEEN });
  other.id = newId();
  other.addEventListener("input", onChange);
  const place = h("span");
  const show = (value) => replace(place, value === OTHER && other);
  const options = [...known.map((value) => [value, value]), [OTHER, "another value…"], ...missing(feature)];
  const usual = known.includes(String(initial)) ? String(initial) : known[0] ?? OTHER;
  const select = form.select(name, options, usual, (value) => {
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
    set(cell) {
      const text = cell === null || cell === "" ? MISSING : String(cell);
      const listed = [...known, MISSING].includes(text) && [...select.options].some((option) => option.value === text);
      select.value = listed ? text : OTHER;
      other.value = listed || text === MISSING ? "" : text;
      show(select.value);
      form.draft.set(name, select.value);
      form.draft.set(`${name} other`, other.value);
      form.clear(name);
    },
  };
}

function missing(feature) {
  return feature.missing || feature.imputed ? [[MISSING, "missing"]] : [];
}
