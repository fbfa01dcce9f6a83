// What the columns of a table were taken for, and how a person overrules it.

import { sparkBars } from "./charts.js";
import { h, replace, table } from "./dom.js";
import { Draft } from "./drafts.js";
import { number, percent } from "./format.js";
import { plain } from "./plain_words.js";

const KINDS = ["number", "text", "hashed", "boolean", "date", "duration", "ordered", "ignore"];
const OPTIONS = {
  number: "options, such as currency",
  ordered: "values from low to high: S,M,L",
  hashed: "number of buckets",
  date: "format",
};

/** The overruled kinds of a dataset, which the job form sends as `columns`. */
export function overruled(id) {
  const draft = new Draft(`columns:${id}`);
  const found = {};
  for (const [name, { kind, options }] of Object.entries(draft.values)) {
    if (kind) found[name] = options ? `${kind}:${options}` : kind;
  }
  return found;
}

/** A table of the columns, with a choice of kind for each. */
export function columnTable(dataset, onChange = () => {}) {
  const draft = new Draft(`columns:${dataset.id}`);
  const remarked = dataset.columns.some((column) => column.remarks?.length);
  const rows = dataset.columns.map((column) => [
    h("span", { class: "column-name" }, column.name),
    h("div", { class: "kind" }, taken(column), overrule(column, draft, onChange)),
    picture(column, dataset.num_rows),
    column.missing ? percent(column.missing / dataset.num_rows) : "none",
    column.distinct === null ? "> 1000" : number(column.distinct),
    extent(column),
    ...(remarked ? [remarks(column)] : []),
  ]);
  return table(
    [{ title: "Column" }, { title: "Taken as" }, { title: "Values" }, { title: "Missing", number: true },
      { title: "Distinct", number: true }, { title: "From – to" }, ...(remarked ? [{ title: "Remarks" }] : [])],
    rows,
    { cards: true, caption: "Columns" },
  );
}

function taken(column) {
  const kind = column.kind ?? (column.role === "left out" ? "left out" : column.type);
  return h("span", { class: column.role === "left out" ? "muted" : "" }, kind);
}

function overrule(column, draft, onChange) {
  const given = draft.get(column.name, { kind: "", options: "" });
  const options = h("input", {
    type: "text",
    class: "small",
    value: given.options,
    "aria-label": `Options of ${column.name}`,
    oninput: () => save(),
  });
  const place = h("span");
  const select = h("select", { class: "small", "aria-label": `Take ${column.name} as`, onchange: () => {
    options.value = "";
    save();
  } }, h("option", { value: "" }, "as found"),
  KINDS.map((kind) => h("option", { value: kind, selected: kind === given.kind }, kind === "ignore" ? "leave out" : kind)));
  const save = () => {
    draft.set(column.name, { kind: select.value, options: options.value });
    draw();
    onChange();
  };
  const draw = () => {
    const hint = OPTIONS[select.value];
    if (!hint) replace(place);
    else if (!place.contains(options)) replace(place, options);
    options.placeholder = hint ?? "";
  };
  draw();
  return [select, place];
}

function picture(column, numRows) {
  if (column.histogram) {
    const { edges, counts } = column.histogram;
    return sparkBars(counts, `Histogram of ${column.name}, from ${shown(edges[0])} to ${shown(edges.at(-1))}`);
  }
  const common = (column.most_common ?? []).slice(0, 3);
  if (!common.length) return h("span", { class: "muted" }, "–");
  return h("ul", { class: "common" }, common.map(([value, amount]) => h("li", {},
    h("span", { class: "name" }, String(value)), h("span", { class: "muted" }, percent(amount / numRows, 0)))));
}

function extent(column) {
  if (column.min === null || column.min === undefined) return h("span", { class: "muted" }, "–");
  return `${shown(column.min)} – ${shown(column.max)}`;
}

function remarks(column) {
  if (!column.remarks?.length) return "";
  return h("ul", { class: "remarks" }, column.remarks.map((remark) => h("li", {}, plain(remark))));
}

function shown(value) {
  return typeof value === "number" ? number(value) : String(value).replace("T00:00:00", "");
}
