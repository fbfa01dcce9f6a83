// How numbers, times and sizes are written.

// `min2`: a year has no comma.
const GROUPED = { useGrouping: "min2" };
const WHOLE = new Intl.NumberFormat("en", GROUPED);
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
// Significant digits of what was measured, and the least of a deviation or a width.
const DIGITS = 3;
const FEWEST = 2;
const UNITS = [[1e9, " bn"], [1e6, " M"]];
const POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A number: a whole one as it is, another with a few significant digits. */
export function number(value, digits = DIGITS) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? minus(WHOLE.format(value)) : quantity(value, digits);
}

/** A measured number with a few significant digits, such as `1.32 M`. */
export function quantity(value, digits = DIGITS) {
  return together([value], digits)[0];
}

/** A mean and its standard deviation in one unit: `1.32 M ± 0.25 M`. */
export function plusMinus(mean, deviation) {
  return together([mean, deviation], DIGITS, deviation).join(" ± ");
}

/** The ends of an interval in one unit: `0.91 M to 1.73 M`. */
export function interval(low, high) {
  return together([low, high], DIGITS, high - low).join(" to ");
}

/** Numbers in one unit and with the same decimals. */
export function alike(values) {
  return together(values, DIGITS);
}

/**
 * Numbers with the same unit and decimals: as many as the greatest of them needs, or as
 * tell a width.
 */
function together(values, digits, width = 0) {
  if (values.some((value) => typeof value !== "number" || !Number.isFinite(value))) return values.map((value) => String(value ?? "–"));
  const size = Math.max(...values.map(Math.abs));
  if (size === 0) return values.map(() => "0");
  if (size >= 1e12 || size < 1e-4) return values.map((value) => inPowers(value, digits));
  const [scale, unit] = UNITS.find(([least]) => size >= least) ?? [1, ""];
  const decimals = Math.max(
    decimalsOf(size / scale, digits),
    width > 0 ? decimalsOf(width / scale, FEWEST) : -Infinity,
    // What may be a year keeps all its digits.
    size >= 1500 && size < 2200 ? 0 : -Infinity,
  );
  const step = 10 ** -Math.min(0, decimals);
  const shown = Math.min(20, Math.max(0, decimals));
  const format = new Intl.NumberFormat("en", {
    ...GROUPED, signDisplay: "negative", maximumFractionDigits: shown, minimumFractionDigits: values.length > 1 ? shown : 0,
  });
  return values.map((value) => {
    const scaled = value / scale;
    return minus(format.format((step > 1 ? Math.round(scaled / step) * step : scaled) + 0)) + unit;
  });
}

/** The decimals of a number with so many significant digits; negative ones are zeros. */
function decimalsOf(size, digits) {
  return digits - 1 - Math.floor(Math.log10(Number(size.toPrecision(digits))));
}

function inPowers(value, digits) {
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const raised = String(Math.abs(power)).replace(/\d/g, (digit) => POWERS[digit]);
  return `${minus(mantissa)} × 10${power < 0 ? "⁻" : ""}${raised}`;
}

function minus(text) {
  return text.replace("-", "−");
}

/** A number with the decimals of its column of figures; a large one has few digits. */
export function decimals(value, most = 3) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 1000 ? minus(value.toFixed(most)) : number(value);
}

export function percent(share, digits = 1) {
  if (share === null || share === undefined) return "–";
  return `${Math.abs(share) < 10 ? (100 * share).toFixed(digits) : number(100 * share)} %`;
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const power = Math.min(units.length, Math.floor(Math.log10(count) / 3));
  return `${number(count / 1000 ** power)} ${units[power - 1]}`;
}

export function date(text) {
  return text ? DATE.format(new Date(text)) : "–";
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${number(seconds / 3600, 2)} h`;
}

/** Least and most seconds that are left, as words; empty if unknown. */
export function secondsLeft(range) {
  return range ? `${seconds(range)} left` : "";
}

/** Least and most seconds, as words. */
export function seconds(range) {
  const unit = range[1] >= 120 ? 60 : 1;
  const [least, most] = range.map((seconds) => Math.max(1, Math.round(seconds / unit)));
  return `${least < most ? `${least} to ${most}` : most} ${unit === 60 ? "min" : "s"}`;
}

/** `1 row`, `2 rows`. */
export function count(amount, noun) {
  return `${number(amount)} ${noun}${amount === 1 ? "" : "s"}`;
}

/** `mean_absolute_error` as words. */
export function words(name) {
  return name.replaceAll("_", " ");
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The names of the targets of a model: of one, of several, or of none that is known. */
export function targetNames(target) {
  return [target ?? []].flat();
}
