// What the screens of one version share: finding it, and the links between them.

import { get, path } from "./api.js";
import { badge, h } from "./dom.js";
import { address } from "./router.js";

const TABS = [["", "Report"], ["ask", "Ask it"], ["file", "Predict a file"], ["truth", "What came true"], ["versions", "Versions and labels"]];

/**
 * Finds the version of an address `models/NAME[/VERSION]`.
 * @returns {Promise<{name: string, version: string, base: string, status: Object}>}
 */
export async function findVersion([, name, given], signal) {
  const place = ["v1", "models", name];
  const all = await get(path(place), { signal });
  const version = /^\d+$/.test(given ?? "") ? given : all.labels.latest ?? all.model_version_status[0]?.version;
  return { name, version, base: path([...place, "versions", version]), status: all };
}

/** The report of a version, or null: one that was not trained on a table has none. */
export async function findReport(base, signal) {
  try {
    return await get(`${base}/report`, { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    return null;
  }
}

/** The labels of a version as badges. */
export function labelBadges({ labels }, version) {
  return Object.entries(labels).filter(([, at]) => at === version).map(([label]) => [" ", badge(label)]);
}

/** Heading and links of the screens of a version. */
export function versionHead({ name, version, status }, current) {
  const place = (tab) => address(["models", name, version, tab].filter(Boolean));
  return [
    h("p", { class: "crumbs" }, h("a", { href: address(["models"]) }, "Models")),
    h("h1", {}, name, " ", h("span", { class: "version" }, `version ${version}`), labelBadges(status, version)),
    status.drifted.includes(version) && current !== "truth" && h("p", { class: "notice warning" },
      "New rows no longer come like those of the training. ", h("a", { href: place("truth") }, "See what came true")),
    h("nav", { class: "tabs", "aria-label": "Model" }, TABS.map(([tab, title]) =>
      h("a", { href: place(tab), "aria-current": tab === current && "page" }, title))),
  ];
}
