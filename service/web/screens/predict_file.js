// Predicting all rows of a file, block by block, and handing the answers out as a file.

import { request } from "../api.js";
import { format, parse, parseLines, readText } from "../csv.js";
import { h, notice, replace, table } from "../dom.js";
import { bytes, count, number } from "../format.js";
import { findVersion, versionHead } from "../model.js";

const BLOCK = 500;
const PATIENCE = 60;
const SHOWN = 5;
// That of `tfbbb remote predict`.
const LEVEL = 0.9;

export async function showFile(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const classes = found.status.description?.task === "classification";
  const result = h("div");
  const state = h("p", { role: "status" });
  const progress = h("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true });
  const stop = h("button", { type: "button", hidden: true }, "Stop");
  const input = h("input", { type: "file", id: "rows", accept: ".csv,.tsv,.txt,.jsonl,.ndjson,text/csv", onchange: () => take(input.files[0]) });
  const zone = h("div", { class: "drop" },
    h("label", { for: "rows" }, h("strong", {}, "Drop a file here"), " or choose one"),
    h("p", { class: "help" }, "CSV with a header line, or JSON lines, with the columns of the model; others are kept. For Parquet, Arrow and Excel files there is ", h("code", {}, "tfbbb remote predict"), "."),
    input, state, progress, stop);
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });

  async function take(file) {
    if (!file) return;
    const stopping = new AbortController();
    stop.onclick = () => stopping.abort();
    replace(result);
    stop.hidden = progress.hidden = false;
    progress.value = 0;
    replace(state, `Reading ${file.name}…`);
    try {
      const read = /\.(jsonl|ndjson)$/i.test(file.name) ? parseLines : parse;
      const records = read(await readText(file));
      if (records.length < 2) throw new Error("The file has a header at most, but no rows.");
      const both = AbortSignal.any([signal, stopping.signal]);
      const answers = await predictRecords(`${found.base}:predict`, classes, records, both, (done) => {
        progress.value = done / (records.length - 1);
        replace(state, `${number(done)} of ${count(records.length - 1, "row")}`);
      });
      replace(state, `${count(records.length - 1, "row")} predicted.`);
      show(file, records, answers);
    } catch (error) {
      replace(state, error.name === "AbortError" ? "Stopped." : "");
      if (error.name !== "AbortError") {
        replace(result, notice("error", error.message,
          h("div", { class: "actions" }, h("button", { type: "button", onclick: () => take(file) }, "Try again"))));
      }
    } finally {
      stop.hidden = progress.hidden = true;
      input.value = "";
    }
  }

  function show(file, records, answers) {
    const { header, rows } = asCommandLine(answers);
    const kept = keptNames(records[0], header);
    const joined = [[...kept, ...header], ...rows.map((row, place) => [...records[place + 1], ...row])];
    const blob = new Blob(["\ufeff", format(joined)], { type: "text/csv;charset=utf-8" });
    const url = URL.createObjectURL(blob);
    signal.addEventListener("abort", () => URL.revokeObjectURL(url));
    const name = `${file.name.replace(/\.[^.]*$/, "")}-predicted.csv`;
    replace(result,
      h("div", { class: "actions" }, h("a", { class: "button primary", href: url, download: name }, `Download ${name} (${bytes(blob.size)})`)),
      h("h2", {}, "First rows"),
      table([{ title: "Row", number: true }, ...header.map((title) => ({ title, number: true }))],
        rows.slice(0, SHOWN).map((row, place) => [number(place + 1), ...row.map(shown)]), { caption: "First predictions" }));
  }

  replace(root, versionHead(found, "file"), h("h2", {}, "Predict a file"), zone, result);
}

/** The columns of `tfbbb remote predict`, in its order, from those of the API. */
function asCommandLine({ header, rows }) {
  const at = new Map(header.map((name, place) => [name, place]));
  const copy = (name) => (row) => row[at.get(name)];
  const columns = at.has("mutual_information") ? ofClasses(header, copy) : ofNumbers(header, copy);
  for (const name of ["abstained", "warnings"]) {
    if (rows.some(copy(name))) columns.push([name, copy(name)]);
  }
  return { header: columns.map(([name]) => name), rows: rows.map((row) => columns.map(([, read]) => read(row))) };
}

function ofClasses(header, copy) {
  const probabilities = header.filter((name) => name.startsWith("probabilities_"));
  return [
    ["class", copy("class")],
    ...probabilities.map((name) => [name.replace("probabilities_", "probability_"), copy(name)]),
    ["entropy", copy("entropy")],
    ["mutual_information", copy("mutual_information")],
  ];
}

function ofNumbers(header, copy) {
  // Several targets have numbers at the ends of their names.
  const targets = header.filter((name) => /^mean(_\d+)?$/.test(name)).map((name) => name.slice("mean".length));
  return targets.flatMap((target) => [
    [`mean${target}`, copy(`mean${target}`)],
    [`standard_deviation${target}`, copy(`standard_deviation${target}`)],
    [`epistemic_variance${target}`, copy(`epistemic${target}`)],
    [`aleatoric_variance${target}`, copy(`aleatoric${target}`)],
    [`lower${target}`, copy(`lower_${LEVEL}${target}`)],
    [`upper${target}`, copy(`upper_${LEVEL}${target}`)],
  ]);
}

/** The names of the given columns; one that a prediction has gets `_given` after it. */
function keptNames(names, predicted) {
  const taken = new Set(predicted);
  return names.map((name) => {
    let free = name;
    while (taken.has(free)) free += "_given";
    taken.add(free);
    return free;
  });
}

function shown(cell) {
  const value = Number(cell);
  return cell !== "" && Number.isFinite(value) ? number(value) : cell;
}

/**
 * Predicts records in blocks. A block that is too large is halved, and while the service
 * is busy the block is sent again.
 */
async function predictRecords(path, classes, records, signal, onProgress) {
  const query = classes ? "" : `?intervals=${LEVEL}`;
  const [header, ...rows] = records;
  const answers = [];
  let names = null;
  let size = BLOCK;
  let waited = 0;
  for (let at = 0; at < rows.length;) {
    onProgress(at);
    const block = rows.slice(at, at + size);
    let response;
    try {
      response = await request(path + query, {
        method: "POST", body: format([header, ...block]), headers: { "Content-Type": "text/csv", Accept: "text/csv" }, signal,
      });
    } catch (error) {
      if (error.status === 413 && block.length > 1) {
        size = Math.ceil(block.length / 2);
        continue;
      }
      if (error.status === 503 && waited < PATIENCE) {
        const pause = error.retryAfter || 1;
        waited += pause;
        await sleep(1000 * pause, signal);
        continue;
      }
      throw at ? new Error(`Rows ${number(at + 1)} to ${number(at + block.length)}: ${error.message}`) : error;
    }
    waited = 0;
    const [found, ...predicted] = parse(await response.text());
    names ??= found;
    answers.push(...predicted);
    at += block.length;
  }
  return { header: names, rows: answers };
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("Stopped.", "AbortError"));
    }, { once: true });
  });
}
