// Predicting all rows of a file, which comes back in its format with the predictions.

import { ApiError, request } from "../api.js";
import { dropZone } from "../drop_zone.js";
import { h, replace, table } from "../dom.js";
import { bytes, count, interval, number, percent, plusMinus } from "../format.js";
import { findVersion, versionHead } from "../model.js";

const PROGRESS = "application/vnd.tfbbb.progress";
const LEVEL = 0.9;
// The columns of a file that fit a screen; the file has all.
const MOST_GIVEN = 6;

export async function showFile(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const result = h("div");
  const zone = dropZone({
    id: "rows",
    help: "CSV, Excel, OpenDocument, Parquet, Arrow or JSON lines, with the columns of the model. The answer has the same format: your columns, then the predictions.",
    signal,
    async take(file, { stopped, tell }) {
      replace(result);
      tell(`Sending ${file.name} (${bytes(file.size)})…`);
      const answer = await request(`${found.base}:predict-file`, {
        method: "POST", body: file, signal: stopped, headers: { ...fileHeaders(file), Accept: PROGRESS },
      });
      const { name, preview, blob } = await readAnswer(answer.body.getReader(), (done, of) =>
        tell(`${number(done)} of ${count(of, "row")}`, done / of));
      tell("");
      replace(result, ...answerParts(name, preview, blob, signal));
    },
  });
  replace(root, versionHead(found, "file"), h("h2", {}, "Predict a file"), zone.elements, result);
}

/** The headers that tell the name of a file. */
function fileHeaders(file) {
  return {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": `attachment; filename*=UTF-8''${encodeURIComponent(file.name)}`,
  };
}

/** Reads lines of progress, then the file. */
async function readAnswer(reader, onProgress) {
  let preview = null;
  let left = new Uint8Array();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("The service ended before all rows were predicted. Try again.");
    const both = new Uint8Array(left.length + value.length);
    both.set(left);
    both.set(value, left.length);
    left = both;
    for (let end = left.indexOf(10); end >= 0; end = left.indexOf(10)) {
      const event = JSON.parse(new TextDecoder().decode(left.subarray(0, end)));
      left = left.slice(end + 1);
      if (event.error) throw new ApiError(event.error, 400);
      if (event.of) onProgress(event.rows, event.of);
      preview = event.preview ?? preview;
      if (event.file) return { name: event.file, preview, blob: await readRest(reader, left, event.num_bytes) };
    }
  }
}

async function readRest(reader, left, size) {
  const pieces = [left];
  let length = left.length;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
  }
  if (length !== size) throw new Error("The file did not arrive completely. Try again.");
  return new Blob(pieces, { type: "application/octet-stream" });
}

function answerParts(name, preview, blob, signal) {
  const url = URL.createObjectURL(blob);
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  const rows = h("div");
  const draw = (order) => replace(rows, rowTable(preview, preview[order]));
  const orders = [["first", "As in the file"], ["doubtful", `Doubtful rows first: ${preview.doubtful_by}`]];
  draw("first");
  return [
    h("div", { class: "actions" }, h("a", { class: "button primary", href: url, download: name }, `Download ${name} (${bytes(blob.size)})`)),
    preview.remarks.map((remark) => h("p", { class: "help" }, remark)),
    h("div", { class: "actions spread" },
      h("h2", {}, "Some of the rows"),
      h("div", { class: "inline" },
        h("label", { for: "order" }, "Show"),
        h("select", { id: "order", onchange: (event) => draw(event.target.value) },
          orders.map(([value, text]) => h("option", { value }, text))))),
    rows,
  ];
}

/** The prediction and its range, beside what they are of. */
function rowTable({ given, predicted }, rows) {
  const cellsOf = (row) => {
    const cells = new Map(predicted.map((name, place) => [name, row[1 + given.length + place]]));
    return [number(row[0]), ...answerCells(cells), ...row.slice(1, 1 + Math.min(given.length, MOST_GIVEN)).map(shown), ...(remarks ? [cells.get("warnings") ?? ""] : [])];
  };
  const has = (name) => predicted.includes(name);
  const shares = (cells) => [...cells].filter(([name]) => name.startsWith("probability_"));

  function answerCells(cells) {
    const last = has("familiarity") ? [percent(cells.get("familiarity"))] : [];
    if (has("class")) {
      const best = Math.max(...shares(cells).map(([, value]) => value ?? 0));
      return [cells.get("class"), percent(best), ...last];
    }
    // Of several targets, each has columns of its own.
    return [...targets.flatMap((target) => [
      spread(cells.get(`mean${target}`), cells.get(`std${target}`)),
      interval(cells.get(`lower_90${target}`), cells.get(`upper_90${target}`)),
    ]), ...last];
  }

  const remarks = has("warnings");
  const targets = predicted.filter((name) => /^mean(_\d+)?$/.test(name)).map((name) => name.slice("mean".length));
  const answers = has("class")
    ? [{ title: "Prediction" }, { title: "Probability", number: true }]
    : targets.flatMap((target) => {
      const which = target ? ` ${target.slice(1)}` : "";
      return [{ title: `Prediction${which}`, number: true }, { title: `${percent(LEVEL, 0)} range${which}`, number: true }];
    });
  const columns = [
    { title: "Row" },
    ...answers,
    ...(has("familiarity") ? [{ title: "Familiarity", number: true }] : []),
    ...given.slice(0, MOST_GIVEN).map((title) => ({ title })),
    ...(remarks ? [{ title: "Remarks" }] : []),
  ];
  return [
    table(columns, rows.map(cellsOf), { caption: "Some predicted rows" }),
    given.length > MOST_GIVEN && h("p", { class: "help" }, `The file has ${count(given.length - MOST_GIVEN, "more column")}.`),
  ];
}

function spread(mean, deviation) {
  const [middle, apart] = plusMinus(mean, deviation).split(" ± ");
  return [h("strong", {}, middle), ` ± ${apart}`];
}

function shown(cell) {
  return cell === null ? "–" : typeof cell === "number" ? number(cell) : String(cell);
}
