// The form of a job: what a person decides; the service chooses the rest.

import { ApiError, get, path, send } from "../api.js";
import { columnTable, overruled } from "../columns.js";
import { h, replace } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form, numberOf } from "../form.js";
import { seconds } from "../format.js";
import { go, address } from "../router.js";

const EFFORTS = [
  ["quick", "a first model, less exact"],
  ["default", "as long as a good model needs"],
  ["best", "for a better model"],
];
const RELATIONS = [
  ["", "no: each row stands for itself"],
  ["group", "yes, rows of the same group belong together"],
  ["time", "yes, rows follow each other in time"],
];
const RELATED = {
  group: ["Column of the group", "Such as a patient who has several rows. The model is measured on groups that it has not seen, and does not predict from this column."],
  time: ["Column of the time", "Dates, times or numbers. The model is measured on rows that come later than those it has learned from."],
};
const TASKS = [["", "chosen by the service"], ["regression", "regression: a number"], ["classification", "classification: a class"]];
const MOST_DATASETS = 200;
const MANY = 40;

export async function showNewJob(root, { query, signal }) {
  const page = await get(path(["v1", "datasets"], { limit: MOST_DATASETS }), { signal });
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

  const listed = page.datasets.some((one) => one.id === id) ? page.datasets : [dataset, ...page.datasets];
  const datasets = h("select", { onchange: (event) => go(["new"], { ...start, dataset: event.target.value }) },
    listed.map((one) => h("option", { value: one.id, selected: one.id === id }, one.name)));
  const names = dataset.columns.map((column) => column.name);
  const choice = [["", "choose a column"], ...names.map((name) => [name, name])];
  const target = form.select("target", choice, "", () => drawFeatures());
  const exposure = form.select("exposure", [["", "nothing: each row alike"], ...choice.slice(1)], "", () => drawFeatures());
  const event = form.select("event", [["", "no: each target is complete"], ...choice.slice(1)], "", () => drawFeatures());
  const name = form.text("name", start ? start.model : modelName(dataset.name));
  const effort = form.select("training.effort", EFFORTS.map(([value, text]) => [value, `${seconds(dataset.seconds_to_train[value])}: ${text}`]), "default");
  const minutes = form.text("training.max_seconds", "", { inputmode: "decimal", placeholder: "no limit" });
  const task = form.select("task", TASKS, "");
  const others = form.text("others", "", { tag: "textarea", rows: 3, placeholder: '{"model": {"hidden_units": [64, 64]}}' });
  const features = h("div");
  const relation = form.select("relation", RELATIONS, "", () => drawRelated());
  const related = h("div");
  let relatedBy = null;

  /** The column to predict, and those that are predicted with it. */
  const targets = () => [target.value, ...names.filter((column) => column !== target.value && draft.get(`targets.${column}`, false))];
  /** The columns to predict from; the one that tells groups apart is not one of them. */
  const candidates = () => names.filter((column) => !targets().includes(column) && column !== exposure.value && column !== event.value && !(relation.value === "group" && column === relatedBy?.value));

  /** Whether the service predicts from a column unless a person says otherwise. */
  function isUsual(column) {
    const kind = overruled(id)[column];
    if (kind) return kind !== "ignore";
    return dataset.columns.find((one) => one.name === column).role !== "left out";
  }

  function drawFeatures() {
    replace(features, candidates().map((column) => form.check(`features.${column}`, column, isUsual(column))));
  }

  function drawRelated() {
    relatedBy = null;
    replace(related);
    if (relation.value) {
      const [label, help] = RELATED[relation.value];
      const field = `training.validation.${relation.value}`;
      const dates = dataset.columns.filter((column) => column.kind === "date").map((column) => column.name);
      const usual = relation.value === "time" && dates.length === 1 ? dates[0] : "";
      relatedBy = form.select(field, choice, usual, () => drawFeatures());
      replace(related, form.field(field, label, relatedBy, { help, wrong: "Choose a column." }));
    }
    drawFeatures();
  }
  drawRelated();

  function body() {
    const { training: otherTraining, ...read } = readOthers(others.value);
    Object.assign(read, { dataset_id: id, target: targets().length > 1 ? targets() : target.value, name: name.value.trim() });
    const isChosen = (column) => draft.get(`features.${column}`, isUsual(column));
    if (candidates().some((column) => isChosen(column) !== isUsual(column))) read.features = candidates().filter(isChosen);
    if (start) read.start_from = start;
    if (task.value) read.task = task.value;
    if (exposure.value) read.exposure = exposure.value;
    if (event.value) read.event = event.value;
    const kinds = overruled(id);
    if (Object.keys(kinds).length) read.columns = kinds;
    const training = { ...otherTraining };
    const limit = numberOf(minutes.value);
    if (effort.value !== "default") training.effort = effort.value;
    if (limit !== undefined) training.max_seconds = typeof limit === "number" ? 60 * limit : limit;
    if (relatedBy) training.validation = { ...training.validation, [relation.value]: relatedBy.value };
    if (Object.keys(training).length) read.training = training;
    return read;
  }

  async function submit() {
    const request = body();
    const job = await send("POST", "v1/jobs", request, { headers: { "Idempotency-Key": idempotencyKey(draft, request) } });
    draft.clear();
    go(["jobs", job.id]);
  }

  const startAnew = () => {
    draft.clear();
    showNewJob(root, { query, signal });
  };
  const many = names.length > MANY;
  replace(root,
    h("h1", {}, "New job"),
    form.element(
      { button: "Start training", submit, actions: h("button", { type: "button", class: "quiet", onclick: startAnew }, "Reset the form") },
      start && form.group("start_from", `From version ${start.version} of ${start.model}`, [], "The table needs new rows only: what the version has learned is where the training starts."),
      h("section", { class: "card questions" },
        h("div", { class: "columns" },
          form.field("dataset_id", "Table", datasets, { help: "The rows to learn from." }),
          form.field("target", "Target", target, { help: "The column to predict.", wrong: "Choose the column to predict." })),
        h("div", { class: "columns" },
          form.field("training.effort", "How long may it take?", effort, { help: "Estimated by the size of the table; the page of the job shows how long is left." }),
          form.field("training.max_seconds", "Minutes at most", minutes, { help: "The model is then as good as it is by that time.", wrong: "Give a number of minutes, or leave this empty for no limit." })),
        form.group("features", "Which columns may it predict from?", h("div", { class: `checks${many ? " many" : ""}`, tabindex: many && "0" }, features), "Leave out what nobody knows yet when the model is asked."),
        h("details", { class: "numbers" }, h("summary", {}, "What the columns are"),
          form.group("columns", "Where the service took a column for something else than it is, choose what it is", columnTable(dataset, () => {
            form.clear("columns");
            drawFeatures();
          }))),
        h("div", { class: "columns" },
          form.field("relation", "Do rows belong together, or follow in time?", relation, { help: "If they do and nobody says so, the figures of the model look better than it is." }),
          related),
        form.field("event", "Is it a time, and are some rows still running?", event, { help: "The column that is 0 or no where the time is only how long the row has run until now, and 1 or yes where it ended by the event.", wrong: "Choose a column of 0 and 1, or no and yes." }),
        form.field("exposure", "Is it a count? Per what?", exposure, { help: "The column of days, kilometres or insured years in which a row was counted. Twice of it is twice the count.", wrong: "Choose a column of positive numbers." }),
        form.field("name", "Name of the model", name, { help: "Letters, digits, dots, hyphens and underscores. The job makes its next version." })),
      h("details", { class: "section" }, h("summary", {}, "More"),
        form.group("targets", "Which other numbers should it predict together with the target?",
          h("div", { class: "checks", onchange: () => drawFeatures() },
            dataset.columns.filter((column) => column.kind === "number").map(({ name: column }) => form.check(`targets.${column}`, column, false))),
          "One model then knows how they vary together, and gives a box that holds all of them."),
        form.field("task", "Task", task, { help: "Whether to predict a number or a class." }),
        form.field("others", "Other fields of the job", others, { help: "As JSON, with the names that the API has for them." }))));
}

/** The fields that were typed as JSON. */
function readOthers(text) {
  if (!text.trim()) return {};
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    read = null;
  }
  if (read?.constructor !== Object) throw new ApiError('Must be JSON, such as {"training": {"steps": 1000}}.', 400, { field: "others" });
  return read;
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
  const key = `${Date.now()}-${Math.random()}`;
  draft.set("sent", { text, key });
  return key;
}
