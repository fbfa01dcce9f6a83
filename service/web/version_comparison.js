// Two versions side by side: what is better, what is worse, and what was set otherwise.

import { h, table } from "./dom.js";
import { figure, figureName } from "./figures.js";
import { count, number, percent } from "./format.js";

const MORE_IS_BETTER = /^(log_likelihood|r_squared|auc|accuracy|balanced_accuracy)/;
const SHARES = /^(coverage|accuracy|balanced_accuracy|auc|r_squared)/;
// Differences that are hardly one: of errors as a share, of shares and log likelihoods.
const LEAST_SHARE = 0.01;
const LEAST = 0.005;
// What three decimals show as equal is the same.
const LEAST_SHOWN = 0.001;

/**
 * Compares two versions.
 * @param {Object} one The details of a version, its number as `version`, its `feedback`.
 * @param {Object} other The same of another.
 */
export function compareVersions(one, other) {
  const names = (place) => Object.keys(place ?? {});
  const [before, after] = [one.description?.metrics ?? {}, other.description?.metrics ?? {}];
  const shared = names(before).filter((name) => name in after && name !== "nll");
  const rows = shared.map((name) => compareFigure(name, before[name], after[name]));
  const lived = livedFigures(one.feedback, other.feedback);
  return [
    h("p", {}, inWords(rows, one, other)),
    fewRows(one, other),
    figureTable("Held-out rows", rows, one, other),
    lived && [h("h3", {}, "What came true"), h("p", {}, inWords(lived, one, other)),
      h("p", { class: "help" }, `Version ${one.version} is compared with ${count(one.feedback.num_rows, "row")}, version ${other.version} with ${count(other.feedback.num_rows, "row")}: if they are not the same, they may differ by their rows alone.`),
      figureTable("What came true", lived, one, other)],
    settingsPart(one, other),
  ];
}

function compareFigure(name, before, after, chance = 0) {
  const promised = /^coverage_(\d+)$/.exec(name);
  const worth = (value) => {
    if (promised) return -Math.abs(value - Number(promised[1]) / 100);
    return MORE_IS_BETTER.test(name) ? value : -value;
  };
  const gain = worth(after) - worth(before);
  const least = SHARES.test(name) || name === "log_likelihood" ? LEAST : LEAST_SHARE * Math.abs(before);
  const kind = Math.abs(gain) <= Math.max(least, chance, LEAST_SHOWN) ? "same" : gain > 0 ? "better" : "worse";
  return { name, before, after, kind, change: changeOf(name, before, after) };
}

function changeOf(name, before, after) {
  const difference = after - before;
  const more = difference > 0 ? "more" : "less";
  if (SHARES.test(name)) return `${number(Math.abs(100 * difference), 3)} points ${more}`;
  if (name === "log_likelihood") return `${number(Math.abs(difference), 3)} ${more}`;
  return before ? `${percent(Math.abs(difference / before))} ${more}` : "";
}

/** The figures of both that feedback knows, whose differences are more than chance. */
function livedFigures(one, other) {
  if (!one?.num_rows || !other?.num_rows) return null;
  return Object.keys(one.figures).filter((name) => name in other.figures).map((name) => {
    const [a, b] = [one.figures[name], other.figures[name]];
    const chance = 2 * Math.hypot(a.standard_error ?? Infinity, b.standard_error ?? Infinity);
    return compareFigure(name, a.mean, b.mean, chance);
  });
}

function inWords(rows, one, other) {
  const listed = (kind) => rows.filter((row) => row.kind === kind).map((row) => `${named(row.name)} (${row.change})`);
  const [better, worse] = [listed("better"), listed("worse")];
  const who = `Version ${other.version}`;
  if (!rows.length) return "The two versions have no figures in common.";
  if (!better.length && !worse.length) return `${who} is as good as version ${one.version}: no figure differs by more than chance or a hair.`;
  return [
    better.length && `${who} is better than version ${one.version} in ${better.join(", ")}.`,
    worse.length && `${better.length ? "It" : who} is worse ${better.length ? "" : `than version ${one.version} `}in ${worse.join(", ")}.`,
  ].filter(Boolean).join(" ");
}

/** The name of a figure within a sentence. */
function named(name) {
  const level = /^coverage_(\d+)$/.exec(name)?.[1];
  if (level) return `the share in ${level} % intervals`;
  const title = figureName(name);
  return /^[A-Z][^A-Z]/.test(title) && title.length > 2 ? title.charAt(0).toLowerCase() + title.slice(1) : title;
}

/** Says that figures of few rows differ by chance, and those of other rows anyway. */
function fewRows(one, other) {
  const rows = (version) => version.lineage?.source.judgement?.rows;
  const source = (version) => version.lineage?.source ?? {};
  const sentences = [
    source(one).dataset_sha256 !== source(other).dataset_sha256 && "They were trained on different tables, so their held-out rows differ too.",
    Math.min(rows(one) ?? Infinity, rows(other) ?? Infinity) < 200 && `The figures are of ${count(Math.min(rows(one) ?? Infinity, rows(other) ?? Infinity), "row")}: small differences may be chance.`,
  ].filter(Boolean);
  return sentences.length > 0 && h("p", { class: "help" }, sentences.join(" "));
}

function figureTable(caption, rows, one, other) {
  const badge = { better: "good", worse: "bad", same: "" };
  return table(
    [{ title: "" }, { title: `Version ${one.version}`, number: true }, { title: `Version ${other.version}`, number: true }, { title: `Version ${other.version} is` }],
    rows.map(({ name, before, after, kind }) => [figureName(name), figure(name, before), figure(name, after), h("span", { class: `badge ${badge[kind]}` }, kind)]),
    { caption: `${caption} of both versions`, empty: "There are no figures to compare." });
}

function settingsPart(one, other) {
  const spec = (version) => flat(version.lineage?.source.spec ?? {});
  const [before, after] = [spec(one), spec(other)];
  const names = [...new Set([...before.keys(), ...after.keys()])].filter((name) => before.get(name) !== after.get(name));
  return [
    h("h3", {}, "What was set otherwise"),
    table([{ title: "" }, { title: `Version ${one.version}` }, { title: `Version ${other.version}` }],
      names.map((name) => [settingName(name), before.get(name) ?? "–", after.get(name) ?? "–"]),
      { caption: "Settings of both versions", empty: "Both were trained with the same settings." }),
  ];
}

/** The settings by their paths, as texts. */
function flat(value, place = "", found = new Map()) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [name, inner] of Object.entries(value)) flat(inner, place ? `${place}.${name}` : name, found);
  } else if (value !== null && value !== undefined && !(Array.isArray(value) && !value.length)) {
    found.set(place, Array.isArray(value) ? value.map(String).join(", ") : String(value));
  }
  return found;
}

function settingName(place) {
  return place.replaceAll("_", " ").replaceAll(".", ", ").replace(", name", "").replace("members", "networks").replace("kl schedule", "weight of the prior");
}
