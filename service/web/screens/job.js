// One job, live.

import { get, path, send } from "../api.js";
import { chart } from "../charts.js";
import { actionButton, confirm, facts, h, notice, problemPlace, repeat, replace } from "../dom.js";
import { ENDED, followJob } from "../events.js";
import { figureTable, sentences } from "../figures.js";
import { capital, date, duration, number, percent, seconds, secondsLeft, targetNames } from "../format.js";
import { plain, plainTraining } from "../plain_words.js";
import { address, go } from "../router.js";
import { stateBadge } from "./jobs.js";

const REFRESH = 1500;

export async function showJob(root, { parts: [, id], signal }) {
  const place = path(["v1", "jobs", id]);
  let job = await get(place, { signal });
  let shown = null;
  const head = h("div", { role: "status" });
  const result = h("div");
  const stages = h("ol", { class: "stages" });
  const tried = h("section", { class: "card", hidden: true }, h("h2", {}, "What is tried"), stages,
    h("p", { class: "help" }, "At each dashed line of the curves the next of these begins. Curves jump there: another network has other weights, and one that trains with more rows is measured on those, too."));
  const stream = h("p", { class: "help", role: "status" });
  const log = h("pre", { class: "log", tabindex: "0", "aria-label": "Log" });
  const logSection = h("details", { class: "section" }, h("summary", {}, "Log"), log);
  const actions = h("div", { class: "actions" });
  const times = h("div");
  const problem = problemPlace();
  const plot = trainingChart(signal);

  async function act(verb) {
    job = await send("POST", `${place}:${verb}`);
    if (verb === "retry") follow();
    draw();
  }

  const buttons = {
    cancel: actionButton("Cancel the job", async () => {
      if (await confirm(`Cancel the training of ${job.name}?`, "Cancel the job")) await act("cancel");
    }, { problem }),
    retry: actionButton("Try again", () => act("retry"), { kind: "primary", problem }),
    remove: actionButton("Delete", async () => {
      if (!await confirm(`Delete this job of ${job.name} and its log? Its model stays.`, "Delete")) return;
      await send("DELETE", place);
      go(["jobs"]);
    }, { kind: "quiet", problem }),
  };

  function draw() {
    const ended = ENDED.includes(job.state);
    replace(head, stateBadge(job), " ", said(job), !ended && job.timing && progressBar(job.timing));
    if (!ended && job.timing) document.title = `${percent(job.timing.done, 0)} ${job.name} · tfbbb`;
    // The end of a job that was seen running shows in the title of its tab, too.
    if (ended && shown && shown !== job.state) document.title = `${job.state === "succeeded" ? "✓" : "✗"} ${job.name} · tfbbb`;
    replace(actions, ...[
      job.version !== null && h("a", { class: "button primary", href: address(["models", job.name, String(job.version)]) }, `See version ${job.version}`),
      ["failed", "cancelled"].includes(job.state) && buttons.retry,
      !ended && !job.cancel_requested && buttons.cancel,
      ended && buttons.remove,
    ]);
    replace(result,
      job.state === "failed" && notice("error", h("h2", {}, "The job failed"), h("p", { class: "pre" }, plain(job.error))),
      job.judgement && h("section", { class: "card" }, h("h2", {}, "How good the model is"), sentences(job.judgement), figureTable(job.judgement)));
    log.textContent = job.log || "Nothing yet.";
    // A person may close it again.
    if (job.state === "failed" && shown !== "failed") logSection.open = true;
    shown = job.state;
    replace(times, facts([
      ["Target", targetNames(job.target).join(", ")],
      ["Table", job.dataset_id ? h("a", { href: address(["data", job.dataset_id]) }, "open") : "deleted"],
      ["Queued", date(job.created_at)],
      ["Started", date(job.started_at)],
      ["Ended", date(job.finished_at)],
      ["Attempt", number(job.attempt)],
    ]));
  }

  async function refresh() {
    try {
      job = await get(place, { signal });
      draw();
    } catch {
      // The line above the page says that the connection is lost.
    }
  }

  function onEvent(type, data) {
    if (type === "state") {
      if (data.state === "running") plot.clear();
      refresh();
      return;
    }
    const stage = plainTraining(data.stage);
    const begins = stage && stages.lastChild?.textContent !== stage;
    plot.add(data, begins);
    if (begins) {
      tried.hidden = false;
      stages.append(h("li", {}, stage));
    }
  }

  let following = new AbortController();
  function follow() {
    following.abort();
    following = new AbortController();
    replace(stages);
    followJob(id, onEvent, (connected) => {
      replace(stream, connected || ENDED.includes(job.state) ? "" : "The live view is interrupted; reconnecting…");
    }, AbortSignal.any([signal, following.signal]));
  }

  replace(root,
    h("p", { class: "crumbs" }, h("a", { href: address(["jobs"]) }, "Jobs")),
    h("h1", {}, job.name),
    head, actions, problem, result, stream,
    h("section", { class: "card" }, plot.element),
    tried,
    logSection,
    h("details", { class: "section" }, h("summary", {}, "What was asked for"),
      h("pre", { tabindex: "0", "aria-label": "Spec" }, JSON.stringify(job.spec, null, 2))),
    times);
  follow();
  draw();
  repeat(() => ENDED.includes(job.state) || refresh(), REFRESH, signal);
}

function said(job) {
  if (job.state === "queued") return `It starts as soon as a worker is free${job.timing?.seconds_left ? `, and then takes ${seconds(job.timing.seconds_left)}` : ""}.`;
  if (job.state === "exporting") return "The model is written and checked.";
  if (job.state !== "succeeded") return "";
  return `Version ${job.version} of ${job.name} is ready after ${duration((new Date(job.finished_at) - new Date(job.created_at)) / 1000)}.`;
}

function progressBar(timing) {
  return h("div", { class: "progress" },
    h("progress", { max: 1, value: timing.done, "aria-label": "Progress" }),
    h("span", { class: "muted" }, [capital(timing.stage), percent(timing.done, 0), timing.done > 0 && secondsLeft(timing.seconds_left)].filter(Boolean).join(", ")));
}

/** Loss and likelihood by step; several stages stand one after the other. */
function trainingChart(signal) {
  const plot = chart({
    title: "Loss and negative log likelihood per row",
    x: "step",
    y: "per row",
    signal,
    series: [
      { label: "loss", colour: "--series-3", dash: [5, 4], width: 1.5 },
      { label: "training rows", colour: "--series-1" },
      { label: "held-out rows", colour: "--series-2" },
    ],
    ranges: { y: calm },
    marks: () => begun,
  });
  const empty = h("p", { class: "empty" }, "The curves appear with the first epoch.");
  let columns = [[], [], [], []];
  let before = 0;
  let begun = [];
  let due = 0;
  const element = h("div", {}, empty, plot.element);
  plot.element.hidden = true;

  function draw() {
    due = 0;
    if (!columns[0].length) return;
    empty.hidden = true;
    plot.element.hidden = false;
    const last = columns[1].length - 1;
    const held = columns[3][last];
    plot.update(columns, `At step ${number(columns[0][last])} the loss is ${number(columns[1][last])}` +
      ` and the negative log likelihood of the training rows ${number(columns[2][last])}` +
      (held === null ? "." : `, of held-out rows ${number(held)}.`));
  }

  return {
    element,
    add(data, begins) {
      const steps = columns[0];
      if (steps.length && before + data.step <= steps.at(-1)) before = steps.at(-1);
      if (begins && steps.length) begun.push({ value: steps.at(-1), colour: "--series-3" });
      steps.push(before + data.step);
      columns[1].push(data.loss ?? null);
      columns[2].push(data.nll ?? null);
      columns[3].push(data.val_nll ?? null);
      // Events arrive in bursts; one drawing for each frame is enough.
      due ||= requestAnimationFrame(draw);
    },
    clear() {
      columns = [[], [], [], []];
      before = 0;
      begun = [];
    },
  };
}

/** The range of the later epochs: the first ones would flatten all others. */
function calm(self, low, high) {
  const shown = self.data.slice(1).flatMap((values) => values.slice(Math.floor(values.length / 20)));
  const finite = shown.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
  if (finite.length < 8) return [low, high === low ? low + 1 : high];
  const top = finite[Math.floor(0.97 * (finite.length - 1))];
  const pad = 0.06 * (top - finite[0]) || 1;
  return [finite[0] - pad, top + pad];
}
