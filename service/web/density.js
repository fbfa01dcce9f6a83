// The curve of a predictive distribution, from its quantiles.

/** The levels of the quantiles that a curve is made of. */
export const LEVELS = [0.005, 0.015, ...Array.from({ length: 38 }, (value, place) => 0.03 + place * 0.0254), 0.985, 0.995].map((level) => Number(level.toFixed(4)));
const REACH = 4;
// Where a curve falls to zero, as a share of its width.
const EDGE = 1e-3;

/**
 * The density between neighbouring quantiles, in the middle between them, and at the ends
 * of an interval; `shade` is the density inside the interval, and null outside.
 * @param {number[]} quantiles At `LEVELS`.
 * @param {[number, number]} interval
 * @returns {{x: number[], density: number[], shade: Array<number|null>}}
 */
export function densityOf(quantiles, [low, high]) {
  let points = [];
  const slopes = smooth(quantiles.slice(1).map((value, place) => (value - quantiles[place]) / (LEVELS[place + 1] - LEVELS[place])));
  for (let place = 0; place + 1 < quantiles.length; place += 1) {
    const middle = (quantiles[place] + quantiles[place + 1]) / 2;
    // Neighbouring quantiles of counts may be equal.
    if (slopes[place] <= 0 || middle <= points.at(-1)?.[0]) continue;
    points.push([middle, 1 / slopes[place]]);
  }
  if (!points.length) points = [[quantiles[0] - 0.5, 1], [quantiles[0] + 0.5, 1]];
  points = withPoint(withPoint(points, low), high);
  return {
    x: points.map(([at]) => at),
    density: points.map(([, height]) => height),
    shade: points.map(([at, height]) => (at >= low && at <= high ? height : null)),
  };
}

/**
 * The points of a curve with one at `x`, on the line between its neighbours. Beyond the
 * outermost quantiles there is nearly no density.
 */
function withPoint(points, x) {
  const next = points.findIndex(([at]) => at >= x);
  if (next >= 0 && points[next][0] === x) return points;
  const [[first], [last]] = [points[0], points.at(-1)];
  const edge = EDGE * (last - first);
  if (next === 0) return [[x, 0], ...(x < first - edge ? [[first - edge, 0]] : []), ...points];
  if (next < 0) return [...points, ...(x > last + edge ? [[last + edge, 0]] : []), [x, 0]];
  const [[left, from], [right, to]] = [points[next - 1], points[next]];
  return points.toSpliced(next, 0, [x, from + ((to - from) * (x - left)) / (right - left)]);
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
