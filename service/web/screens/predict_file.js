// Predicting all rows of a file, block by block, and handing the answers out as a file.

import { request } from "../api.js";
import { format, parse, readText } from "../csv.js";
import { h, notice, replace, table } from "../dom.js";
import { bytes, count, number } from "../format.js";
import { findVersion, versionHead } from "../model.js";

const BLOCK = 500;
const PATIENCE = 60;
const SHOWN = 5;

export async function showFile(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const classes = found.status.description?.task === "classification";
  const result = h("div");
  const state = h("p", { role: "status" });
  const progress = h("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true });
  const stop = h("button", { type: "button", hidden: true }, "Stop");
  const input = h("input", { type: "file", id: "rows", accept: ".csv,.tsv,.txt,text/csv", onchange: () => take(input.files[0]) });
  const zone = h("div", { class: "drop" },
    h("label", { for: "rows" }, h("strong", {}, "Drop a CSV file here"), " or choose one"),
    h("p", { class: "help" }, `With a header line that has the columns of the model. Others are kept beside the predictions.`),
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
      const records = parse(await readText(file));
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

  function show(file, records, { header, rows }) {
    const names = header.map((name) => (records[0].includes(name) ? `${name} (predicted)` : name));
    const joined = [[...records[0], ...names], ...rows.map((row, place) => [...records[place + 1], ...row])];
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

function shown(cell) {
  const value = Number(cell);
  return cell !== "" && Number.isFinite(value) ? number(value) : cell;
}

/**
 * Predicts records in blocks. A block that is too large is halved, and while the service
 * is busy the block is sent again.
 */
async function predictRecords(path, classes, records, signal, onProgress) {
  const query = classes ? "" : "?intervals=0.9";
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
