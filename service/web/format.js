// How numbers, times and sizes are written.

// `min2`: a year has no comma.
const GROUPED = { useGrouping: "min2" };
const WHOLE = new Intl.NumberFormat("en", GROUPED);
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** A number with a few significant digits. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return WHOLE.format(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e9 || size < 1e-4
    ? value.toExponential(digits - 1)
    : new Intl.NumberFormat("en", { ...GROUPED, maximumSignificantDigits: Math.max(digits, size >= 1 ? Math.ceil(Math.log10(size)) : 0) }).format(value);
  return text.replace("-", "−");
}

/** A number with three decimals, for columns of figures. */
export function decimals(value) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(3).replace("-", "−");
}

export function percent(share, digits = 1) {
  if (share === null || share === undefined) return "–";
  return `${(100 * share).toFixed(digits)} %`;
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const power = Math.min(units.length, Math.floor(Math.log10(count) / 3));
  return `${number(count / 1000 ** power, 3)} ${units[power - 1]}`;
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
  if (!range) return "";
  const unit = range[1] >= 120 ? 60 : 1;
  const [least, most] = range.map((seconds) => Math.max(1, Math.round(seconds / unit)));
  return `${least < most ? `${least} to ${most}` : most} ${unit === 60 ? "min" : "s"} left`;
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
