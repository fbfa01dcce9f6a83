// Charts in the colours of the theme, by uPlot, each with a description in words.

import { h, replace, svg, table } from "./dom.js";
import { number, quantity } from "./format.js";

const HEIGHT = 260;
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The colour of a CSS variable now, for a canvas. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * Draws series over numbers `x`.
 * @param {Object} options
 * @param {string} options.title What the chart shows, in one line.
 * @param {string} options.x Name of the horizontal axis.
 * @param {string} options.y Name of the vertical axis.
 * @param {Array<Object>} options.series Each with `label`, `colour` (a CSS variable), and
 *   perhaps `points`, `dash`, `width`, `fill`, `smooth`, `hidden` (of the legend), `band`,
 *   `silent` (not told at the pointer).
 * @param {Array<[number, number]>} options.bands Pairs of series, the upper one first,
 *   between which to fill.
 * @param {AbortSignal} options.signal Ends the chart.
 * @returns {{element: HTMLElement, update: (columns: number[][]) => void}} `columns` are
 *   x and the values of each series.
 */
export function chart({
  title, x, y, series, bands = [], signal, height = HEIGHT, ranges = {},
  formats = {}, marks = () => [],
}) {
  const place = h("div", { class: "plot", role: "img", "aria-label": title });
  const legend = series.filter((one) => !one.hidden);
  const entries = legend.map((one) => h("li", {},
    h("span", { class: `key ${one.points ? "point" : ""} ${one.band ? "area" : ""}`, style: { background: `var(${one.colour})` } }),
    one.label));
  const element = h(
    "figure", { class: "chart" },
    h("figcaption", {}, title),
    legend.length > 1 && h("ul", { class: "legend" }, entries),
    place,
  );
  let plot = null;
  let columns = null;

  const axis = (label, side) => ({
    label,
    labelSize: 16,
    labelGap: 0,
    gap: 4,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: () => colour("--muted"),
    size: side === "x" ? 24 : (self, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((text) => String(text).length)),
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { show: false },
    values: (self, ticks) => ticks.map(formats[side] ?? ((tick) => (tick === null ? "" : quantity(tick, 4)))),
  });

  function make() {
    plot = new uPlot({
      width: Math.max(220, place.clientWidth),
      height,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: ranges.x }, y: { range: ranges.y } },
      axes: [axis(x, "x"), axis(y, "y")],
      series: [{}, ...series.map((one) => ({
        label: one.label,
        stroke: () => colour(one.colour),
        width: one.points ? 0 : one.width ?? 2,
        dash: one.dash,
        fill: one.fill ? () => mix(colour(one.colour), 0.18) : undefined,
        paths: one.points ? () => null : one.smooth ? uPlot.paths.spline() : undefined,
        points: { show: one.points === true, size: 5, fill: () => colour(one.colour), width: 0 },
      }))],
      bands: bands.map((pair) => ({ series: pair, fill: () => mix(colour(series[pair[0] - 1].colour), 0.2) })),
      hooks: { draw: [drawMarks], setCursor: [tell] },
    }, columns, place);
    place.append(reading);
  }

  const reading = h("output", { class: "reading", "aria-hidden": "true" });

  function tell(self) {
    const at = self.cursor.idx;
    if (at === null || at === undefined) {
      replace(reading);
      return;
    }
    const shown = formats.x ?? ((value) => number(value));
    const parts = series.flatMap((one, place) => {
      const value = columns[place + 1][at];
      return one.hidden || one.silent || value === null || value === undefined ? [] : [`${one.label} ${number(value)}`];
    });
    replace(reading, [`${x} ${shown(columns[0][at])}`, ...parts].join(" · "));
  }

  function drawMarks(self) {
    const { ctx, bbox } = self;
    for (const { value, colour: name } of marks()) {
      const left = self.valToPos(value, "x", true);
      ctx.save();
      ctx.strokeStyle = colour(name);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
    }
  }

  const observer = new ResizeObserver(() => {
    if (columns && !plot) make();
    else if (plot) plot.setSize({ width: Math.max(220, place.clientWidth), height });
  });
  observer.observe(place);
  const redraw = () => plot?.redraw(false, true);
  DARK.addEventListener("change", redraw, { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    plot?.destroy();
  });

  return {
    element,
    update(next, words) {
      columns = next;
      // A series without values, such as held-out rows that nobody measures, has no key.
      legend.forEach((one, place) => {
        entries[place].hidden = columns[series.indexOf(one) + 1].every((value) => value === null);
      });
      if (words) place.setAttribute("aria-label", `${title}. ${words}`);
      if (plot) plot.setData(columns);
      else if (place.isConnected && place.clientWidth) make();
    },
  };
}

function mix(name, alpha) {
  const hex = name.replace("#", "");
  const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${parts.join(", ")}, ${alpha})`;
}

/** A small histogram or the counts of categories, without axes. */
export function sparkBars(counts, description) {
  const most = Math.max(1, ...counts);
  const width = 100 / Math.max(counts.length, 1);
  return svg(
    "svg",
    { class: "spark", viewBox: "0 0 100 28", preserveAspectRatio: "none", role: "img", "aria-label": description },
    counts.map((count, place) => {
      const height = count ? Math.max(1, (27 * count) / most) : 0;
      return svg("rect", { x: place * width + 0.3, y: 28 - height, width: Math.max(0.5, width - 0.6), height });
    }),
  );
}

/**
 * Rows with a mark each: a bar from zero and perhaps a whisker, such as importance, or with
 * `points` a point in its range, such as the effects of categories.
 * @param {Array<{label: string, value: number, low?: number, high?: number, text: string}>} rows
 */
export function bars(rows, { least = 0, most, label, points = false }) {
  const top = most ?? Math.max(1e-12, ...rows.map((row) => row.high ?? row.value));
  const at = (value) => Math.min(100, Math.max(0, (100 * (value - least)) / (top - least || 1)));
  const mark = ({ value }) => (points
    ? h("span", { class: "dot", style: { left: `${at(value)}%` } })
    : h("span", { class: "bar", style: { width: `${at(value)}%` } }));
  const range = ({ low, high }) => high !== undefined && h("span", {
    class: points ? "range" : "whisker", style: { left: `${at(low)}%`, width: `${at(high) - at(low)}%` },
  });
  return h("ul", { class: "bars", "aria-label": label }, rows.map((row) => h("li", {},
    h("span", { class: "name", title: row.label }, row.label),
    h("span", { class: "track", "aria-hidden": "true" }, mark(row), range(row)),
    h("span", { class: "amount" }, row.text))));
}

/** The numbers of a chart as a table, for those who cannot see it. The columns name it, so charts of one page need different ones. */
export function numbersOf(columns, rows) {
  return h("details", { class: "numbers" }, h("summary", {}, "The numbers"),
    table(columns.map((title, place) => ({ title, number: place > 0 })), rows, { caption: `The numbers of the chart: ${columns.join(", ")}` }));
}
