// The jobs, newest first.

import { get, path } from "../api.js";
import { badge, h, replace, table } from "../dom.js";
import { date, duration } from "../format.js";
import { ENDED } from "../events.js";
import { address, go } from "../router.js";
import { pages } from "./datasets.js";

const REFRESH = 3000;
const STATES = ["queued", "running", "exporting", "succeeded", "failed", "cancelled"];
const KINDS = { succeeded: "good", failed: "bad", running: "active", exporting: "active" };

/** The state of a job as a badge. */
export function stateBadge(job) {
  const waits = job.cancel_requested && !ENDED.includes(job.state);
  return badge(waits ? "being cancelled" : job.state, KINDS[job.state]);
}

export async function showJobs(root, { query, signal }) {
  const cursor = query.get("cursor") ?? "";
  const state = query.get("state") ?? "";
  const list = h("div");
  const load = async () => {
    const page = await get(path(["v1", "jobs"], { cursor, state, limit: 25 }), { signal });
    // A person who is in the list with the keyboard stays where they are.
    if (!list.contains(document.activeElement)) draw(list, page, cursor, state);
    return page;
  };
  const filter = h("select", { id: "state", onchange: (event) => go(["jobs"], { state: event.target.value }) },
    h("option", { value: "" }, "all"), STATES.map((one) => h("option", { value: one, selected: one === state }, one)));
  replace(root,
    h("h1", {}, "Jobs"),
    h("div", { class: "actions spread" },
      h("div", { class: "inline" }, h("label", { for: "state" }, "State"), filter),
      h("a", { class: "button primary", href: address(["new"]) }, "New job")),
    list);
  let page = await load();
  const timer = setInterval(async () => {
    if (document.hidden || page.jobs.every((job) => ENDED.includes(job.state))) return;
    try {
      page = await load();
    } catch {
      // The line above the page says that the connection is lost.
    }
  }, REFRESH);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function draw(list, page, cursor, state) {
  const rows = page.jobs.map((job) => [
    h("a", { href: address(["jobs", job.id]) }, job.name),
    job.target,
    [stateBadge(job), job.verdict && [" ", badge(job.verdict, "bad")]],
    progress(job),
    date(job.created_at),
    took(job),
  ]);
  replace(list,
    table([{ title: "Model" }, { title: "Target" }, { title: "State" }, { title: "Progress" }, { title: "Queued" }, { title: "Took", number: true }], rows,
      { caption: "Jobs", empty: state ? `No job is ${state}.` : "No job yet. Upload a table, then train a model on it." }),
    pages(["jobs"], cursor, page.next_cursor, { state }));
}

function progress(job) {
  if (job.version !== null) return h("a", { href: address(["models", job.name, String(job.version)]) }, `version ${job.version}`);
  if (job.error) return h("span", { class: "one-line", title: job.error }, job.error);
  if (!job.timing || job.state === "queued") return "";
  return h("progress", { max: 1, value: job.timing.done, title: job.timing.stage, "aria-label": `Progress of ${job.name}` });
}

function took(job) {
  if (!job.started_at) return "–";
  const end = job.finished_at ? new Date(job.finished_at) : new Date();
  return duration((end - new Date(job.started_at)) / 1000);
}
