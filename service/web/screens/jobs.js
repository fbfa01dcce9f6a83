// The jobs, newest first.

import { get, path } from "../api.js";
import { badge, filter, h, repeat, replace, table } from "../dom.js";
import { date, duration, targetNames } from "../format.js";
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
  let page;
  const load = async () => {
    page = await get(path(["v1", "jobs"], { cursor, state, limit: 25 }), { signal });
    // A person who is in the list with the keyboard stays where they are.
    if (list.contains(document.activeElement)) return;
    replace(list,
      table([{ title: "Model" }, { title: "Target" }, { title: "State" }, { title: "Progress" }, { title: "Queued" }, { title: "Took", number: true }], page.jobs.map(row),
        { cards: true, caption: "Jobs", empty: state ? `No job is ${state}.` : "No job yet. Upload a table, then train a model on it." }),
      pages(["jobs"], cursor, page.next_cursor, { state }));
  };
  replace(root,
    h("h1", {}, "Jobs"),
    h("div", { class: "actions spread" },
      filter("State", [["", "all"], ...STATES.map((one) => [one, one])], state, (chosen) => go(["jobs"], { state: chosen })),
      h("a", { class: "button primary", href: address(["new"]) }, "New job")),
    list);
  await load();
  // The line above the page says that the connection is lost.
  repeat(() => page.jobs.every((job) => ENDED.includes(job.state)) || load().catch(() => {}), REFRESH, signal);
}

function row(job) {
  return [
    h("a", { href: address(["jobs", job.id]) }, job.name),
    targetNames(job.target).join(", "),
    [stateBadge(job), job.verdict && [" ", badge(job.verdict, "bad")]],
    progress(job),
    date(job.created_at),
    job.started_at ? duration((new Date(job.finished_at ?? Date.now()) - new Date(job.started_at)) / 1000) : "–",
  ];
}

function progress(job) {
  if (job.version !== null) return h("a", { href: address(["models", job.name, String(job.version)]) }, `version ${job.version}`);
  if (job.error) return h("span", { class: "one-line", title: job.error }, job.error);
  if (!job.timing || job.state === "queued") return "";
  return h("progress", { max: 1, value: job.timing.done, title: job.timing.stage, "aria-label": `Progress of ${job.name}` });
}
