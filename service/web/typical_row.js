// A typical row of the training: medians of numbers and dates, the commonest of the rest.

/**
 * The typical value of a feature, as a cell of a table would have it; undefined if
 * nothing tells it.
 * @param {Object} feature Of the manifest of the model.
 * @param {Object|undefined} column Of the table that it was trained on, if it is there.
 * @param {Object|undefined} effect Of the report of the version.
 */
export function typicalValue(feature, column, effect) {
  const { kind, notation, low, high } = feature;
  const listed = kind === "categorical" || ["boolean", "ordered"].includes(notation?.kind);
  if (listed && column?.most_common?.length) return column.most_common[0][0] ?? "";
  // A column that a person overruled has the histogram of another kind.
  if (!listed && column?.histogram && hasDates(column.histogram) === (kind === "date")) {
    const every = kind !== "date" && column.distinct !== null && column.distinct <= effect?.values.length;
    return nearest(median(column.histogram), every ? effect.values : []);
  }
  if (effect?.values.length) return effect.values[kind === "categorical" ? 0 : Math.floor(effect.values.length / 2)];
  if (low === null || high === null || low === undefined) return undefined;
  return kind === "date" ? isoDay((low + high) / 2) : (low + high) / 2;
}

/** The day of seconds since 1970, as `2020-01-31`. */
export function isoDay(seconds) {
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

/** The nearest of the values that rows have, where they are few; else the value. */
function nearest(value, values) {
  return values.reduce((best, one) => (Math.abs(one - value) < Math.abs(best - value) ? one : best), values[0] ?? value);
}

function hasDates({ edges }) {
  return typeof edges[0] === "string";
}

/** The median of a histogram, of numbers or of dates. */
function median(histogram) {
  const { edges, counts } = histogram;
  const dates = hasDates(histogram);
  const at = dates ? edges.map((text) => Date.parse(`${text.slice(0, 19)}Z`) / 1000) : edges;
  let left = counts.reduce((sum, count) => sum + count, 0) / 2;
  const bin = counts.findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  // A bin for each whole number.
  if (!dates && at[bin + 1] - at[bin] === 1 && Math.abs(at[bin] % 1) === 0.5) return at[bin] + 0.5;
  const value = at[bin + 1] + (counts[bin] ? left / counts[bin] : 0) * (at[bin + 1] - at[bin]);
  return dates ? isoDay(value) : value;
}
