// One table: its columns, remarks, first rows, and what to do with it.

import { get, path, send } from "../api.js";
import { columnTable } from "../columns.js";
import { actionButton, confirm, facts, h, notice, problemPlace, replace, table } from "../dom.js";
import { bytes, count, date, number } from "../format.js";
import { plain } from "../plain_words.js";
import { address, go } from "../router.js";

export async function showDataset(root, { parts: [, id], signal }) {
  const dataset = await get(path(["v1", "datasets", id]), { signal });
  const problem = problemPlace();
  const remove = async () => {
    if (!await confirm(`Delete the table ${dataset.name}? Its models stay.`, "Delete")) return;
    await send("DELETE", path(["v1", "datasets", id]));
    go(["data"]);
  };
  replace(root,
    h("p", { class: "crumbs" }, h("a", { href: address(["data"]) }, "Data")),
    h("h1", {}, dataset.name),
    facts([
      ["Rows", number(dataset.num_rows)],
      ["Columns", number(dataset.columns.length)],
      ["Size", bytes(dataset.num_bytes)],
      ["Format", dataset.format],
      ["Uploaded", date(dataset.created_at)],
    ]),
    h("div", { class: "actions" },
      h("a", { class: "button primary", href: address(["new"], { dataset: id }) }, "Train a model"),
      actionButton("Delete", remove, { kind: "quiet", problem })),
    problem,
    remarks(dataset.problems),
    h("h2", {}, "Columns"),
    h("p", { class: "help" }, "Where the service took a column for something else than it is, choose what it is: jobs of this table use your choice."),
    columnTable(dataset),
    preview(id, signal));
}

function remarks(problems) {
  if (!problems.length) return null;
  return notice("warning", h("h2", {}, count(problems.length, "remark")), h("ul", {}, problems.map((problem) => h("li", {}, plain(problem)))));
}

function preview(id, signal) {
  const place = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  let asked = false;
  const load = async () => {
    if (asked) return;
    asked = true;
    try {
      const rows = await get(path(["v1", "datasets", id, "preview"], { rows: 10 }), { signal });
      replace(place, table(rows.columns.map((title) => ({ title })), rows.rows.map((row) => row.map(cell)), { caption: "First rows" }));
    } catch (error) {
      asked = false;
      if (error.name !== "AbortError") replace(place, notice("error", error.message));
    }
  };
  return h("details", { class: "section", ontoggle: load }, h("summary", {}, "First rows"), place);
}

function cell(value) {
  if (value === null) return h("span", { class: "muted" }, "missing");
  return typeof value === "number" ? number(value, 6) : String(value);
}
