// Predicting all rows of a file, which comes back in its format with the predictions.

import { ApiError, request } from "../api.js";
import { dropZone } from "../drop_zone.js";
import { filter, h, replace, table } from "../dom.js";
import { bytes, count, decimals, interval, number, percent, plusMinus } from "../format.js";
import { findVersion, versionHead } from "../model.js";

const PROGRESS = "application/vnd.tfbbb.progress";
// Columns of the answer: one that it must have, title, and cell.
const FAMILIARITY = ["familiarity", "Familiarity", (cells) => decimals(cells.familiarity, 2)];
const NUMBER = [
  ["mean", "Prediction", (cells) => spread(cells.mean, cells.std)],
  ["lower_90", "90 % range", (cells) => interval(cells.lower_90, cells.upper_90)],
  FAMILIARITY,
];
const CLASS = [
  ["class", "Class", (cells) => cells.class],
  ["probability", "Probability", (cells) => percent(greatest(cells))],
  FAMILIARITY,
];
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
      const answer = await request(`${found.base}:predict-file?${new URLSearchParams({ name: file.name })}`, {
        method: "POST", body: file, signal: stopped,
        headers: { "Content-Type": "application/octet-stream", Accept: PROGRESS },
      });
      const { name, preview, blob } = await readAnswer(answer.body.getReader(), (done, of) =>
        tell(`${number(done)} of ${count(of, "row")}`, done / of));
      tell("");
      replace(result, ...answerParts(name, preview, blob, signal));
    },
  });
  replace(root, versionHead(found, "file"), h("h2", {}, "Predict a file"), zone.elements, result);
}

/** Reads lines of progress, then the file. */
async function readAnswer(reader, onProgress) {
  let preview = null;
  let left = new Uint8Array();
  const more = async () => {
    const { done, value } = await reader.read();
    if (done) throw new Error("The file did not arrive completely. Try again.");
    return value;
  };
  for (;;) {
    const end = left.indexOf(10);
    if (end < 0) {
      const value = await more();
      const both = new Uint8Array(left.length + value.length);
      both.set(left);
      both.set(value, left.length);
      left = both;
      continue;
    }
    const event = JSON.parse(new TextDecoder().decode(left.subarray(0, end)));
    left = left.slice(end + 1);
    if (event.error) throw new ApiError(event.error, 400);
    if (event.of) onProgress(event.rows, event.of);
    preview = event.preview ?? preview;
    if (!event.file) continue;
    const pieces = [left];
    for (let length = left.length; length < event.num_bytes; length += pieces.at(-1).length) pieces.push(await more());
    return { name: event.file, preview, blob: new Blob(pieces, { type: "application/octet-stream" }) };
  }
}

function answerParts(name, preview, blob, signal) {
  const url = URL.createObjectURL(blob);
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  const rows = h("div");
  const draw = (order) => replace(rows, rowTable(preview, preview[order]));
  draw("first");
  return [
    h("div", { class: "actions" }, h("a", { class: "button primary", href: url, download: name }, `Download ${name} (${bytes(blob.size)})`)),
    preview.remarks.map((remark) => h("p", { class: "help" }, remark)),
    h("div", { class: "actions spread" },
      h("h2", {}, "Some of the rows"),
      filter("Show", [["first", "As in the file"], ["doubtful", `Doubtful rows first: ${preview.doubtful_by}`]], "first", draw)),
    rows,
  ];
}

/** The prediction and its range, beside what they are of. */
function rowTable({ given, predicted }, rows) {
  const has = (name) => predicted.includes(name);
  const answers = (has("class") ? CLASS : NUMBER).filter(([name]) => has(name) || name === "probability");
  const remarks = has("warnings");
  const columns = [
    { title: "Row" },
    ...answers.map(([, title]) => ({ title, number: title !== "Class" })),
    ...given.slice(0, MOST_GIVEN).map((title) => ({ title })),
    ...(remarks ? [{ title: "Remarks" }] : []),
  ];
  const cellsOf = (row) => {
    const cells = Object.fromEntries(predicted.map((name, place) => [name, row[1 + given.length + place]]));
    return [number(row[0]), ...answers.map(([, , cell]) => cell(cells)), ...row.slice(1, 1 + Math.min(given.length, MOST_GIVEN)).map(shown), ...(remarks ? [cells.warnings ?? ""] : [])];
  };
  return [
    table(columns, rows.map(cellsOf), { caption: "Some predicted rows" }),
    given.length > MOST_GIVEN && h("p", { class: "help" }, `The file has ${count(given.length - MOST_GIVEN, "more column")}.`),
  ];
}

function spread(mean, deviation) {
  const [middle, apart] = plusMinus(mean, deviation).split(" ± ");
  return [h("strong", {}, middle), ` ± ${apart}`];
}

function greatest(cells) {
  return Math.max(...Object.entries(cells).filter(([name]) => name.startsWith("probability_")).map(([, value]) => value ?? 0));
}

function shown(cell) {
  return cell === null ? "–" : typeof cell === "number" ? number(cell) : String(cell);
}
