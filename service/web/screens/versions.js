// The versions of a model side by side, and its labels.

import { get, path, send } from "../api.js";
import { actionButton, badge, confirm, h, notice, problemPlace, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { figure, figureName } from "../figures.js";
import { count, date, number, percent } from "../format.js";
import { findVersion, versionHead } from "../model.js";
import { address, go } from "../router.js";
import { may } from "../session.js";
import { numberOf } from "../schema_fields.js";

const MOST = 12;

export async function showVersions(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const { name, status } = found;
  const [labels, feedback] = await Promise.all([
    get(path(["v1", "models", name, "labels"]), { signal }),
    get(`${found.base}/feedback`, { signal }).catch(orNull),
  ]);
  const shown = status.model_version_status.slice(0, MOST);
  const described = await Promise.all(shown.map((one) =>
    get(path(["v1", "models", name, "versions", one.version]), { signal }).catch(orNull)));
  const problem = problemPlace();
  const again = () => showVersions(root, { parts, signal });
  replace(root,
    versionHead(found, "versions"),
    feedback?.num_rows > 0 && feedbackPart(found, feedback, problem),
    h("h2", {}, "Versions"),
    problem,
    comparison(name, shown, described, status.labels, { problem, again }),
    status.model_version_status.length > MOST && h("p", { class: "help" },
      `The newest ${MOST} of ${number(status.model_version_status.length)} versions.`),
    h("h2", {}, "Labels"),
    h("p", { class: "help" }, "Programs ask a label, and a label moves to a version when you say so. latest is the newest version that is not clearly worse than the one before it, unless you make another one latest."),
    labelTable(name, labels.labels, { problem, again }),
    may("train") && moveForm(name, status.model_version_status, labels.labels, again));
}

/** Leaves out what a version that cannot be served does not say. */
function orNull(error) {
  if (error.status === 0 || error.name === "AbortError") throw error;
  return null;
}

/** What came true: how intervals are adapted to it, and what to do about drift. */
function feedbackPart({ name, version }, { num_rows: rows, adapted, drift, retraining }, problem) {
  const factor = adapted?.factors["0.9"];
  const train = async () => {
    if (!retraining.body) return go(["new"], { model: name, version });
    const job = await send("POST", "v1/jobs", retraining.body);
    return go(["jobs", job.id]);
  };
  return h("section", { class: "card" },
    h("h2", {}, "Feedback"),
    h("p", {}, `What came true is known of ${count(rows, "row")}. `, adapted && length(factor)),
    drift.alarm && notice("warning", h("p", {}, `Drift: row ${number(drift.alarm_row)} of the feedback raised the alarm. ${retraining.sentence}`),
      may("train") && h("div", { class: "actions" }, actionButton("Train anew from this version", train, { kind: "primary", problem }))));
}

/** How long adapted intervals are, in words. */
function length(factor) {
  const adapt = "To keep what they promise, 90 % intervals and sets of requests with “adapt” are";
  const change = percent(Math.abs(factor - 1));
  if (Math.abs(factor - 1) < 0.005) return `${adapt} as the version makes them.`;
  return `${adapt} ${change} ${factor > 1 ? "wider" : "narrower"} than those of the version.`;
}

function comparison(name, versions, described, labels, { problem, again }) {
  const metrics = [...new Set(described.flatMap((one) => Object.keys(one?.description?.metrics ?? {})))].filter((metric) => metric !== "nll");
  const remove = async (version) => {
    if (!await confirm(`Delete version ${version} of ${name}? Its files are gone then.`, "Delete")) return;
    await send("DELETE", path(["v1", "models", name, "versions", version]));
    await again();
  };
  const publish = async (version) => {
    await send("PUT", path(["v1", "models", name, "labels", "latest"]), { version: Number(version) });
    await again();
  };
  const cells = (make) => versions.map((version, place) => make(version, described[place]));
  const labelled = (version) => Object.entries(labels).filter(([, at]) => at === version).map(([label]) => [badge(label), " "]);
  const rows = [
    ["Labels", ...cells(({ version }) => labelled(version))],
    ["State", ...cells(state)],
    ["Published", ...cells((version, details) => date(details?.lineage?.published_at ?? details?.description?.created))],
    ["Latest", ...cells(({ version }, details) => labels.latest === version ? "" : [
      heldBack(details?.lineage?.source.judgement),
      may("train") && actionButton("Make it latest", () => publish(version), { kind: "quiet", problem })])],
    ...metrics.map((metric) => [figureName(metric), ...cells((version, details) => figure(metric, details?.description?.metrics?.[metric]))]),
    ...(may("train") ? [[h("span", { class: "hidden" }, "Delete"),
      ...cells(({ version }) => actionButton("Delete", () => remove(version), { kind: "quiet", problem }))]] : []),
  ];
  const columns = cells(({ version }) => ({ title: h("a", { href: address(["models", name, version]) }, `Version ${version}`), number: true }));
  return table([{ title: "" }, ...columns], rows, { caption: `Versions of ${name}` });
}

/** Why a version waits for somebody to make it latest. */
function heldBack(judgement) {
  return judgement?.becomes_latest === false && badge(judgement.verdict ?? "not to be published", "bad");
}

function state({ state: found, status }) {
  if (found === "END") return [badge("not served", "bad"), h("p", { class: "problem" }, status.error_message)];
  return found === "AVAILABLE" ? badge("loaded", "good") : badge(found === "START" ? "loads when asked" : "loading");
}

/** The versions behind a label: one, or two that share its requests, and a shadow. */
function versionsOf(name, { version, canary, shadow }) {
  const link = (at) => h("a", { href: address(["models", name, String(at)]) }, String(at));
  const rest = canary ? 1 - canary.weight : 1;
  return [
    link(version), canary && ` ${percent(rest)}`,
    canary && ["; canary ", link(canary.version), ` ${percent(canary.weight)}`],
    shadow && ["; shadow ", link(shadow.version)],
  ];
}

function labelTable(name, labels, { problem, again }) {
  const rows = labels.map((label) => {
    const remove = async () => {
      const then = label.label === "latest" ? "The newest version is latest then." : "Programs that ask it get an error then.";
      if (!await confirm(`Delete the label ${label.label}? ${then}`, "Delete")) return;
      await send("DELETE", path(["v1", "models", name, "labels", label.label]));
      await again();
    };
    return [
      label.label,
      h("span", {}, versionsOf(name, label)),
      label.moved_at ? date(label.moved_at) : "moves by itself",
      label.feedback ? `${number(label.feedback.num_rows)} rows` : "none",
      !label.moved_at || !may("train") ? "" : actionButton("Delete", remove, { kind: "quiet", problem }),
    ];
  });
  return table([{ title: "Label" }, { title: "Version" }, { title: "Moved" }, { title: "Feedback" }, { title: "" }], rows, { caption: `Labels of ${name}` });
}

function moveForm(name, versions, labels, again) {
  const draft = new Draft(`label:${name}`);
  const form = new Form(draft);
  const label = form.text("label", "champion");
  const version = form.select("version", versions.map((one) => [one.version, one.version]), versions[0].version);
  const likelihood = form.text("gate.max_nll_increase", "0.05", { inputmode: "decimal" });
  const coverage = form.text("gate.max_coverage_drop", "0.05", { inputmode: "decimal" });
  const feedback = form.text("gate.min_feedback_rows", "", { inputmode: "numeric" });
  const force = form.check("force", "Move it even if the version is worse than that", false);
  const button = h("button", { type: "submit", class: "primary" }, "Move the label");
  const done = h("div", { role: "status" });

  /** Asks before the move ends a canary or a shadow. */
  async function isWanted() {
    const present = labels.find((one) => one.label === label.value.trim());
    const ends = [
      present?.canary && `the canary ${present.canary.version}`,
      present?.shadow && `the shadow ${present.shadow.version}`,
    ].filter(Boolean);
    return !ends.length || confirm(`Moving ${present.label} ends ${ends.join(" and ")}.`, "Move the label");
  }

  async function submit(event) {
    event.preventDefault();
    if (!await isWanted()) return;
    button.disabled = true;
    form.clearAll();
    replace(done);
    const gate = {
      max_nll_increase: numberOf(likelihood.value),
      max_coverage_drop: numberOf(coverage.value),
      min_feedback_rows: numberOf(feedback.value),
    };
    const hasGate = Object.values(gate).some((bound) => bound !== undefined);
    const target = { version: Number(version.value), force: force.querySelector("input").checked, ...(hasGate ? { gate } : {}) };
    try {
      await send("PUT", path(["v1", "models", name, "labels", label.value.trim()]), target);
      draft.clear();
      await again();
    } catch (error) {
      form.show(error);
    } finally {
      button.disabled = false;
    }
  }

  return h("form", { class: "card", onsubmit: submit, novalidate: true },
    h("h3", {}, "Move a label"),
    h("div", { class: "columns" },
      form.field("label", "Label", label, { help: "An existing label, or a new one." }),
      form.field("version", "To version", version)),
    form.group("gate", "Only to a version that is hardly worse than the label's present one", [h("div", { class: "columns" },
      form.field("gate.max_nll_increase", "Most loss of log likelihood per row", likelihood),
      form.field("gate.max_coverage_drop", "Most loss of coverage", coverage, { help: "Of the 90 % intervals, as a share." }),
      form.field("gate.min_feedback_rows", "Least rows of feedback", feedback, { help: "Empty: compare by the held-out rows." }))]),
    force, form.general, done,
    h("div", { class: "actions" }, button));
}
