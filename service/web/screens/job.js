// One job, live.

import { get, path, send } from "../api.js";
import { chart } from "../charts.js";
import { actionButton, confirm, facts, h, notice, problemPlace, replace } from "../dom.js";
import { ENDED, followJob } from "../events.js";
import { figureTable, sentences } from "../figures.js";
import { capital, date, duration, number, percent, secondsLeft } from "../format.js";
import { plain, plainOption } from "../plain_words.js";
import { address, go } from "../router.js";
import { stateBadge } from "./jobs.js";

const REFRESH = 2000;
const SECOND = 1000;

export async function showJob(root, { parts: [, id], signal }) {
  let job = await get(path(["v1", "jobs", id]), { signal });
  const place = path(["v1", "jobs", id]);
  const head = h("div", { role: "status" });
  const bar = h("div");
  const result = h("div");
  const stages = h("ol", { class: "stages" });
  const tried = h("section", { class: "card", hidden: true }, h("h2", {}, "What is tried"), stages);
  const stream = h("p", { class: "help", role: "status" });
  const log = h("pre", { class: "log", tabindex: "0", "aria-label": "Log" });
  const logSection = h("details", { class: "section" }, h("summary", {}, "Log"), log);
  const actions = h("div", { class: "actions" });
  let shown = null;
  const times = h("div");
  const problem = problemPlace();
  const plot = trainingChart(signal);
  const passed = stageList();
  const announce = announcer(() => job);
  const told = clock();

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
    replace(head, stateBadge(job), " ", ended ? "" : said(job));
    drawTiming();
    announce.draw();
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
      ["Target", job.target],
      ["Table", job.dataset_id ? h("a", { href: address(["data", job.dataset_id]) }, "open") : "deleted"],
      ["Queued", date(job.created_at)],
      ["Started", date(job.started_at)],
      ["Ended", date(job.finished_at)],
      ["Attempt", number(job.attempt)],
    ]));
  }

  function drawTiming() {
    const timing = ENDED.includes(job.state) ? null : told.now();
    replace(bar, timing && progressBar(timing));
    if (timing) document.title = `${percent(timing.done, 0)} ${job.name} · tfbbb`;
  }

  async function refresh() {
    job = await get(place, { signal });
    told.tell(job.timing);
    draw();
  }

  function onEvent(type, data) {
    if (type === "state") {
      if (data.state === "running") {
        plot.clear();
        passed.clear();
      }
      refresh().catch(() => {});
      return;
    }
    if (type === "stage") {
      told.tell(data);
      passed.add(data);
      drawTiming();
      return;
    }
    plot.add(data);
    const stage = plainOption(data.stage);
    if (stage && stages.lastChild?.textContent !== stage) {
      tried.hidden = false;
      stages.append(h("li", {}, stage));
    }
  }

  let following = new AbortController();
  function follow() {
    following.abort();
    following = new AbortController();
    replace(stages);
    passed.clear();
    told.reset();
    told.tell(job.timing);
    followJob(id, onEvent, (connected) => {
      replace(stream, connected || ENDED.includes(job.state) ? "" : "The live view is interrupted; reconnecting…");
    }, AbortSignal.any([signal, following.signal]));
  }

  replace(root,
    h("p", { class: "crumbs" }, h("a", { href: address(["jobs"]) }, "Jobs")),
    h("h1", {}, job.name),
    head, bar, announce.element, passed.element, actions, problem, result, stream,
    h("section", { class: "card" }, plot.element),
    tried,
    logSection,
    h("details", { class: "section" }, h("summary", {}, "What was asked for"),
      h("pre", { tabindex: "0", "aria-label": "Spec" }, JSON.stringify(job.spec, null, 2))),
    times);
  follow();
  draw();
  const second = setInterval(drawTiming, SECOND);
  signal.addEventListener("abort", () => clearInterval(second));
  const timer = setInterval(() => {
    if (!document.hidden && !ENDED.includes(job.state)) refresh().catch(() => {});
  }, REFRESH);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function said(job) {
  if (job.state === "queued") return "It starts as soon as a worker is free.";
  if (job.state === "exporting") return "The model is written and checked.";
  return "";
}

/** What the service told last, less the time since; the bar never falls. */
function clock() {
  let told = null;
  let at = 0;
  let done = 0;
  return {
    reset() {
      told = null;
      done = 0;
    },
    tell(timing) {
      if (!timing) return;
      told = timing;
      at = performance.now();
      done = Math.max(done, timing.done);
    },
    now() {
      if (!told) return null;
      const since = (performance.now() - at) / 1000;
      const left = told.seconds_left?.map((seconds) => Math.max(seconds - since, 0));
      return { ...told, done, seconds_left: left ?? null, elapsed: told.elapsed + since };
    },
  };
}

function progressBar(timing) {
  return h("div", { class: "progress" },
    h("progress", { max: 1, value: timing.done, "aria-label": "Progress" }),
    h("span", { class: "muted" }, [capital(timing.stage), percent(timing.done, 0), secondsLeft(timing.seconds_left)].filter(Boolean).join(", ")));
}

/** The stages that are over, each with its seconds. */
function stageList() {
  const element = h("p", { class: "help" });
  let began = [];
  return {
    element,
    add({ stage, elapsed }) {
      if (began.at(-1)?.stage === stage) return;
      began.push({ stage, elapsed });
      const over = began.slice(0, -1).map((each, n) =>
        `${each.stage} ${duration(Math.max(began[n + 1].elapsed - each.elapsed, 0))}`);
      element.textContent = over.length ? `Done: ${over.join(", ")}.` : "";
    },
    clear() {
      began = [];
      element.textContent = "";
    },
  };
}

/** Tells that a job which was seen running has ended: on the page and in its title. */
function announcer(current) {
  const element = h("div");
  let ran = false;
  return {
    element,
    draw() {
      const job = current();
      if (!ENDED.includes(job.state)) {
        ran = true;
        return;
      }
      if (!ran) return;
      ran = false;
      const succeeded = job.state === "succeeded";
      document.title = `${succeeded ? "✓" : "✗"} ${job.name} · tfbbb`;
      const took = duration((new Date(job.finished_at) - new Date(job.created_at)) / 1000);
      // Why it failed stands above already.
      replace(element, succeeded && notice("good", h("p", { role: "status" }, `Version ${job.version} of ${job.name} is ready after ${took}.`)));
    },
  };
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
    ranges: { y: (self, low, high) => calm(self, low, high) },
  });
  const empty = h("p", { class: "empty" }, "The curves appear with the first epoch.");
  let columns = [[], [], [], []];
  let before = 0;
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
    add(data) {
      const steps = columns[0];
      if (steps.length && before + data.step <= steps.at(-1)) before = steps.at(-1);
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
