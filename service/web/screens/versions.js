// The versions of a model, newest first, and its labels.

import { get, path, send } from "../api.js";
import { actionButton, badge, confirm, h, problemPlace, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { figure, figureName } from "../figures.js";
import { date, number } from "../format.js";
import { findVersion, labelBadges, versionHead } from "../model.js";
import { address } from "../router.js";
import { may } from "../session.js";

const MOST = 20;

export async function showVersions(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const { name, status } = found;
  const all = status.model_version_status;
  const shown = all.slice(0, MOST);
  const [{ labels }, ...described] = await Promise.all([
    get(path(["v1", "models", name, "labels"]), { signal }),
    // A version that cannot be served may have no description.
    ...shown.map(({ version }) => get(path(["v1", "models", name, "versions", version]), { signal }).catch((error) => {
      if (!error.status) throw error;
      return {};
    })),
  ]);
  const problem = problemPlace();
  const again = () => showVersions(root, { parts, signal });
  const act = (text, action) => may("train") && actionButton(text, async () => {
    await action();
    await again();
  }, { kind: "quiet", problem });
  const labelPath = (label) => path(["v1", "models", name, "labels", label]);
  const remove = async (place, question) => {
    if (await confirm(question, "Delete")) await send("DELETE", place);
  };
  const metrics = [...new Set(described.flatMap((one) => Object.keys(one.description?.metrics ?? {})))].filter((metric) => metric !== "nll");

  function versionRow({ version, ...served }, place) {
    const { description, lineage } = described[place];
    const judgement = lineage?.source.judgement;
    const to = (tab) => address(["models", name, version, tab].filter(Boolean));
    return [
      [h("a", { href: to("") }, `Version ${version}`), labelBadges(status, version)],
      [state(served), status.drifted.includes(version) && [" ", h("a", { class: "badge bad", href: to("truth") }, "drift")]],
      date(lineage?.published_at ?? description?.created),
      [
        // Why it waits for somebody to make it latest.
        judgement?.becomes_latest === false && [badge(judgement.verdict ?? "not to be published", "bad"), " "],
        status.labels.latest !== version && act("Make it latest", () => send("PUT", labelPath("latest"), { version: Number(version) })),
        act("Delete", () => remove(path(["v1", "models", name, "versions", version]), `Delete version ${version} of ${name}? Its files are gone then.`)),
      ],
      ...metrics.map((metric) => figure(metric, description?.metrics?.[metric])),
    ];
  }

  function labelRow({ label, version, moved_at: moved }) {
    const then = label === "latest" ? "The newest version is latest then." : "Programs that ask it get an error then.";
    return [
      label,
      h("a", { href: address(["models", name, String(version)]) }, String(version)),
      moved ? date(moved) : "moves by itself",
      moved ? act("Delete", () => remove(labelPath(label), `Delete the label ${label}? ${then}`)) : "",
    ];
  }

  replace(root,
    versionHead(found, "versions"),
    h("h2", {}, "Versions"),
    problem,
    table([{ title: "Version" }, { title: "State" }, { title: "Published" }, { title: "" }, ...metrics.map((metric) => ({ title: figureName(metric), number: true }))],
      shown.map(versionRow), { cards: true, caption: `Versions of ${name}` }),
    all.length > MOST && h("p", { class: "help" }, `The newest ${MOST} of ${number(all.length)} versions.`),
    h("h2", {}, "Labels"),
    h("p", { class: "help" }, "Programs ask a label, and a label moves to a version when you say so. latest is the newest version that is not clearly worse than the one before it, unless you make another one latest."),
    table([{ title: "Label" }, { title: "Version" }, { title: "Moved" }, { title: "" }], labels.map(labelRow), { cards: true, caption: `Labels of ${name}`, empty: "No label yet." }),
    may("train") && moveForm(name, all, labelPath, again));
}

function state({ state: found, status }) {
  if (found === "END") return [badge("not served", "bad"), h("p", { class: "problem" }, status.error_message)];
  return found === "AVAILABLE" ? badge("loaded", "good") : badge(found === "START" ? "loads when asked" : "loading");
}

function moveForm(name, versions, labelPath, again) {
  const form = new Form(new Draft(`label:${name}`));
  const label = form.text("label", "champion");
  const version = form.select("version", versions.map((one) => [one.version, one.version]), versions[0].version);
  const submit = async () => {
    await send("PUT", labelPath(label.value.trim()), { version: Number(version.value) });
    form.draft.clear();
    await again();
  };
  return form.element({ button: "Move the label", submit, class: "card" },
    h("h3", {}, "Move a label"),
    h("div", { class: "columns" },
      form.field("label", "Label", label, { help: "An existing label, or a new one." }),
      form.field("version", "To version", version)));
}
