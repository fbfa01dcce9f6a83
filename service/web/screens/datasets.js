// The tables that were uploaded, and the place to drop another.

import { get, path, upload } from "../api.js";
import { h, notice, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { bytes, date, number } from "../format.js";
import { go, address } from "../router.js";

export async function showDatasets(root, { query, signal }) {
  const cursor = query.get("cursor") ?? "";
  const page = await get(path(["v1", "datasets"], { cursor, limit: 20 }), { signal });
  if (!page.datasets.length && !cursor) {
    welcome(root, signal);
    return;
  }
  const rows = page.datasets.map((dataset) => [
    h("a", { href: address(["data", dataset.id]) }, dataset.name),
    number(dataset.num_rows),
    bytes(dataset.num_bytes),
    dataset.format,
    date(dataset.created_at),
  ]);
  replace(root,
    h("h1", {}, "Data"),
    dropZone(signal).zone,
    h("h2", {}, "Uploaded tables"),
    table(
      [{ title: "Name" }, { title: "Rows", number: true }, { title: "Size", number: true }, { title: "Format" }, { title: "Uploaded" }],
      rows,
      { caption: "Uploaded tables", empty: "No older tables." },
    ),
    pages(["data"], cursor, page.next_cursor));
}

/** What a person sees who has no table yet. */
function welcome(root, signal) {
  const { zone, take } = dropZone(signal, ({ id }, file) => {
    if (file !== sample) return;
    // One more click trains on it.
    new Draft(`job:${id}`).set("target", "price");
  });
  let sample = null;
  const load = async () => {
    const answer = await fetch(new URL("../houses.csv", import.meta.url));
    sample = new File([await answer.blob()], "houses.csv", { type: "text/csv" });
    return take(sample);
  };
  replace(root,
    h("h1", {}, "Predictions that say how sure they are"),
    h("p", { class: "lead" }, "tfbbb learns from a table to predict one of its columns, and says of each prediction how far it may be off, and why."),
    h("ol", { class: "steps" },
      h("li", {}, h("strong", {}, "Load a table. "), "Each row is a case, such as a house that was sold. One column is what you want to know of new cases."),
      h("li", {}, h("strong", {}, "Train a model. "), "Choose this column. The service finds out what suits your table, and tests the model on rows that it has not seen."),
      h("li", {}, h("strong", {}, "Ask it. "), "Move sliders, or send a file of new rows. Where the model has seen too little, it says so.")),
    zone,
    h("div", { class: "actions" },
      h("button", { type: "button", class: "primary", onclick: load }, "Load a sample table"),
      h("span", { class: "muted" }, "800 invented sales of houses with area, rooms, age, district, heating, date and price.")));
}

/** Links to the first and to the next page of a list. */
export function pages(parts, cursor, next, query = {}) {
  if (!cursor && !next) return null;
  return h("nav", { class: "pages", "aria-label": "Pages" },
    cursor ? h("a", { href: address(parts, query) }, "Newest") : h("span"),
    next && h("a", { href: address(parts, { ...query, cursor: next }) }, "Older"));
}

/** A place to drop a file, and `take`, which uploads one; `done` gets the new dataset. */
function dropZone(signal, done = () => {}) {
  const problem = h("div");
  const progress = h("progress", { max: 1, value: 0, "aria-label": "Upload" });
  const state = h("p", { class: "help", role: "status" });
  const input = h("input", { type: "file", id: "file", onchange: () => take(input.files[0]) });
  const zone = h("div", { class: "drop" },
    h("label", { for: "file" }, h("strong", {}, "Drop a table here"), " or choose a file"),
    h("p", { class: "help" }, "CSV, Excel, OpenDocument, Parquet, Arrow or JSON lines, with a header and one row per case."),
    input, state, problem);

  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });

  async function take(file) {
    if (!file) return;
    replace(problem);
    progress.value = 0;
    replace(state, `Uploading ${file.name} `, progress);
    try {
      const dataset = await upload(file, (share) => {
        progress.value = share;
        if (share === 1) replace(state, `Reading ${file.name} (${bytes(file.size)})…`);
      }, signal);
      done(dataset, file);
      go(["data", dataset.id]);
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(state);
      const again = h("button", { type: "button", onclick: () => take(file) }, "Try again");
      replace(problem, notice("error", error.message, h("div", { class: "actions" }, again)));
    } finally {
      input.value = "";
    }
  }

  return { zone, take };
}

