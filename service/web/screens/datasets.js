// The tables that were uploaded, and the place to drop another.

import { get, path, upload } from "../api.js";
import { h, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { dropZone } from "../drop_zone.js";
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
    tableZone(signal).elements,
    h("h2", {}, "Uploaded tables"),
    table(
      [{ title: "Name" }, { title: "Rows", number: true }, { title: "Size", number: true }, { title: "Format" }, { title: "Uploaded" }],
      rows,
      { cards: true, caption: "Uploaded tables", empty: "No older tables." },
    ),
    pages(["data"], cursor, page.next_cursor));
}

/** What a person sees who has no table yet. */
function welcome(root, signal) {
  const { elements, work } = tableZone(signal, ({ id }, file) => {
    if (file !== sample) return;
    // One more click trains on it.
    new Draft(`job:${id}`).set("target", "price");
  });
  let sample = null;
  const load = async () => {
    const answer = await fetch(new URL("../houses.csv", import.meta.url));
    sample = new File([await answer.blob()], "houses.csv", { type: "text/csv" });
    return work(sample);
  };
  replace(root,
    h("h1", {}, "Predictions that say how sure they are"),
    h("p", { class: "lead" }, "tfbbb learns from a table to predict one of its columns, and says of each prediction how far it may be off, and why."),
    h("ol", { class: "steps" },
      h("li", {}, h("strong", {}, "Load a table. "), "Each row is a case, such as a house that was sold. One column is what you want to know of new cases."),
      h("li", {}, h("strong", {}, "Train a model. "), "Choose this column. The service finds out what suits your table, and tests the model on rows that it has not seen."),
      h("li", {}, h("strong", {}, "Ask it. "), "Move sliders, or send a file of new rows. Where the model has seen too little, it says so.")),
    elements,
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

/** A place to drop a table, which is uploaded; `done` gets the new dataset. */
function tableZone(signal, done = () => {}) {
  return dropZone({
    id: "file",
    what: "table",
    help: "CSV, Excel, OpenDocument, Parquet, Arrow or JSON lines, with a header and one row per case.",
    signal,
    async take(file, { stopped, tell }) {
      tell(`Uploading ${file.name}`, 0);
      const dataset = await upload(file, (share) => {
        if (share < 1) tell(`Uploading ${file.name}`, share);
        else tell(`Reading ${file.name} (${bytes(file.size)})…`);
      }, stopped);
      done(dataset, file);
      go(["data", dataset.id]);
    },
  });
}
