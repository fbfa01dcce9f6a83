// The versions of a model side by side, and its labels.

import { get, path, send } from "../api.js";
import { actionButton, badge, confirm, h, problemPlace, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { figure, figureName } from "../figures.js";
import { date, number, percent } from "../format.js";
import { findVersion, versionHead } from "../model.js";
import { address } from "../router.js";
import { may } from "../session.js";

const MOST = 12;

export async function showVersions(root, { parts, query, signal }) {
  const found = await findVersion(parts, signal);
  const { name, status } = found;
  const { labels } = await get(path(["v1", "models", name, "labels"]), { signal });
  const versions = status.model_version_status;
  const details = new Map();
  /** The descriptions of versions, each fetched once. */
  const describe = (numbers) => Promise.all(numbers.map(async (version) => {
    if (!details.has(version)) details.set(version, await get(path(["v1", "models", name, "versions", version]), { signal }).catch(orNull));
    return details.get(version);
  }));
  const problem = problemPlace();
  const again = () => showVersions(root, { parts, query, signal });
  const list = h("div");
  const search = h("input", { type: "search", id: "find", value: query.get("q") ?? "", oninput: () => draw() });
  let drawn = 0;

  async function draw() {
    drawn += 1;
    const turn = drawn;
    const words = search.value.trim().toLowerCase();
    const fitting = versions.filter((one) => searched(one.version, status).includes(words));
    const shown = fitting.slice(0, MOST);
    const described = await describe(shown.map((one) => one.version));
    // A later letter may have been typed meanwhile.
    if (turn !== drawn) return;
    replace(list,
      fitting.length ? comparison(name, shown, described, found, { problem, again }) : h("p", { class: "empty" }, "No version has this in its number or labels."),
      fitting.length > MOST && h("p", { class: "help" }, `The newest ${MOST} of ${number(fitting.length)} versions.`));
  }

  await draw();
  replace(root,
    versionHead(found, "versions"),
    h("div", { class: "actions spread" }, h("h2", {}, "Versions"),
      versions.length > 3 && h("div", { class: "inline" }, h("label", { for: "find" }, "Find"), search)),
    problem,
    list,
    h("h2", {}, "Labels"),
    h("p", { class: "help" }, "Programs ask a label, and a label moves to a version when you say so. latest is the newest version that is not clearly worse than the one before it, unless you make another one latest."),
    labelTable(name, labels, { problem, again }),
    may("train") && moveForm(name, versions, again));
}

/** What a search looks into: number and labels of a version. */
function searched(version, status) {
  const labels = Object.entries(status.labels).filter(([, at]) => at === version).map(([label]) => label);
  return ["version", version, ...labels].join(" ").toLowerCase();
}

/** Leaves out what a version that cannot be served does not say. */
function orNull(error) {
  if (error.status === 0 || error.name === "AbortError") throw error;
  return null;
}

function comparison(name, versions, described, { status }, { problem, again }) {
  const { labels, drifted } = status;
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
    ...(versions.some(({ version }) => drifted.includes(version)) ? [["New rows", ...cells(({ version }) => drifted.includes(version) && h("a", { class: "badge bad", href: address(["models", name, version, "truth"]) }, "drift"))]] : []),
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

function labelTable(name, labels, { problem, again }) {
  const rows = labels.map((label) => {
    const place = path(["v1", "models", name, "labels", label.label]);
    const remove = async () => {
      const then = label.label === "latest" ? "The newest version is latest then." : "Programs that ask it get an error then.";
      if (!await confirm(`Delete the label ${label.label}? ${then}`, "Delete")) return;
      await send("DELETE", place);
      await again();
    };
    return [
      label.label,
      h("a", { href: address(["models", name, String(label.version)]) }, String(label.version)),
      label.moved_at ? date(label.moved_at) : "moves by itself",
      feedbackOf(name, label),
      label.moved_at && may("train") ? actionButton("Delete", remove, { kind: "quiet", problem }) : "",
    ];
  });
  return table([{ title: "Label" }, { title: "Version" }, { title: "Moved" }, { title: "What came true" }, { title: "" }], rows, { caption: `Labels of ${name}`, empty: "No label yet." });
}

/** What feedback says about the version of a label. */
function feedbackOf(name, { version, feedback }) {
  if (!feedback) return "nothing yet";
  return [
    `${number(feedback.num_rows)} rows, ${percent(feedback.coverage_90)} in 90 % range`,
    feedback.drift_alarm && [" ", h("a", { class: "badge bad", href: address(["models", name, String(version), "truth"]) }, "drift")],
  ];
}

function moveForm(name, versions, again) {
  const draft = new Draft(`label:${name}`);
  const form = new Form(draft);
  const label = form.text("label", "champion");
  const version = form.select("version", versions.map((one) => [one.version, one.version]), versions[0].version);
  const button = h("button", { type: "submit", class: "primary" }, "Move the label");

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    form.clearAll();
    try {
      await send("PUT", path(["v1", "models", name, "labels", label.value.trim()]), { version: Number(version.value) });
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
    form.general,
    h("div", { class: "actions" }, button));
}
