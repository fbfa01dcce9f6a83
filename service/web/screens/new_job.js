// The form of a job, with the defaults of the service filled in.

import { get, path, send } from "../api.js";
import { columnTable, overruled } from "../columns.js";
import { h, replace } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { go, address } from "../router.js";
import { schemaFields } from "../schema_fields.js";

// Fields that this form shows by controls of its own.
const OWN = ["dataset_id", "target", "name", "features", "columns", "text_columns", "task"];
const GROUPS = ["model", "training"];
const MOST_DATASETS = 200;

export async function showNewJob(root, { query, signal }) {
  const [document, page] = await Promise.all([
    get("openapi.json", { signal }),
    get(path(["v1", "datasets"], { limit: MOST_DATASETS }), { signal }),
  ]);
  if (!page.datasets.length) {
    replace(root, h("h1", {}, "New job"), h("p", { class: "empty" }, "There is no table yet. ", h("a", { href: address(["data"]) }, "Upload one"), " first."));
    return;
  }
  // The version that the training starts from, if the form was opened for one.
  const start = query.get("model") && { model: query.get("model"), version: Number(query.get("version")) };
  const id = query.get("dataset") ?? page.datasets[0].id;
  const dataset = await get(path(["v1", "datasets", id]), { signal });
  const draft = new Draft(`job:${id}`);
  const form = new Form(draft);
  const schemas = document.components.schemas;
  const schema = schemas.JobRequest;

  const listed = page.datasets.some((one) => one.id === id) ? page.datasets : [dataset, ...page.datasets];
  const datasets = h("select", { onchange: (event) => go(["new"], { ...start, dataset: event.target.value }) },
    listed.map((one) => h("option", { value: one.id, selected: one.id === id }, one.name)));
  const names = dataset.columns.map((column) => column.name);
  const target = form.select("target", [["", "choose a column"], ...names.map((name) => [name, name])], "", () => drawFeatures());
  const name = form.text("name", start ? start.model : modelName(dataset.name));
  const task = form.select("task", [["", "chosen by the service"], ["regression", "regression: a number"], ["classification", "classification: a class"]], "");
  const features = h("div");

  function drawFeatures() {
    replace(features, names.filter((column) => column !== target.value).map((column) =>
      form.check(`features.${column}`, column, true)));
  }
  drawFeatures();

  const rest = schemaFields(schema, { form, schemas, path: "" }, [...OWN, ...GROUPS, ...(start ? ["start_from"] : [])]);
  const groups = GROUPS.map((group) => [group, schemaFields(
    { ...schemas[schema.properties[group].$ref.split("/").at(-1)] },
    { form, schemas, path: group, initial: schema.properties[group].default },
  )]);

  function body() {
    const read = { dataset_id: id, target: target.value, name: name.value.trim(), ...rest.read() };
    const left = names.filter((column) => column !== target.value && !draft.get(`features.${column}`, true));
    if (left.length) read.features = names.filter((column) => column !== target.value && !left.includes(column));
    if (start) read.start_from = start;
    if (task.value) read.task = task.value;
    const kinds = overruled(id);
    if (Object.keys(kinds).length) read.columns = kinds;
    for (const [group, fields] of groups) {
      const values = fields.read();
      if (Object.keys(values).length) read[group] = values;
    }
    return read;
  }

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    form.clearAll();
    const request = body();
    try {
      const job = await send("POST", "v1/jobs", request, { headers: { "Idempotency-Key": idempotencyKey(draft, request) } });
      draft.clear();
      go(["jobs", job.id]);
    } catch (error) {
      form.show(error);
    } finally {
      button.disabled = false;
    }
  }

  const button = h("button", { type: "submit", class: "primary" }, "Start training");
  const startAnew = () => {
    draft.clear();
    showNewJob(root, { query, signal });
  };
  replace(root,
    h("h1", {}, "New job"),
    h("form", { class: "job", onsubmit: submit, novalidate: true },
      start && form.group("start_from", `From version ${start.version} of ${start.model}`, [], "The table needs new rows only: what the version has learned is where the training starts."),
      h("section", { class: "card" },
        form.field("dataset_id", "Table", datasets),
        form.field("target", "Target", target, { help: "The column to predict." }),
        form.field("name", "Name of the model", name, { help: "Letters, digits, dots, hyphens and underscores. The job makes its next version." }),
        form.field("task", "Task", task, { help: schema.properties.task.description })),
      h("details", { class: "section" }, h("summary", {}, "Columns"),
        form.group("columns", "What the columns are", columnTable(dataset, () => form.clear("columns"))),
        form.group("features", "Columns to predict from", h("div", { class: "checks" }, features))),
      groups.map(([group, fields]) => h("details", { class: "section" },
        h("summary", {}, group === "model" ? "Network, posterior and prior" : "Training"),
        form.group(group, group === "model" ? "Model" : "Training", h("div", { class: "columns" }, fields.elements)))),
      h("details", { class: "section" }, h("summary", {}, "Calibration, abstention and more"),
        h("div", { class: "columns" }, rest.elements)),
      form.general,
      h("div", { class: "actions" }, button, h("button", { type: "button", class: "quiet", onclick: startAnew }, "Reset the form"))));
}

/** A name that the service takes, from the name of a file. */
function modelName(file) {
  const stem = file.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return stem.slice(0, 60) || "model";
}

/** The same key for the same request, so that a repetition after a lost connection makes no second job. */
function idempotencyKey(draft, request) {
  const text = JSON.stringify(request);
  const before = draft.get("sent", null);
  if (before?.text === text) return before.key;
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  draft.set("sent", { text, key });
  return key;
}
