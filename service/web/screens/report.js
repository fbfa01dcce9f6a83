// What training measured about a version.

import { get } from "../api.js";
import { facts, h, notice, replace } from "../dom.js";
import { count, date } from "../format.js";
import { findVersion, versionHead } from "../model.js";
import { reportParts } from "../report_parts.js";
import { address } from "../router.js";

export async function showReport(root, { parts, signal }) {
  const found = await findVersion(parts, signal);
  const [details, report] = await Promise.all([
    get(found.base, { signal }),
    get(`${found.base}/report`, { signal }).catch((error) => {
      if (error.status !== 404) throw error;
      return null;
    }),
  ]);
  const { description, lineage } = details;
  replace(root, versionHead(found, ""), overview(description, lineage));
  if (!report) root.append(notice("info", "This version has no report with calibration, importance and effects: an earlier release made it, or it was not trained on a table here. Train it again to have one."));
  root.append(...reportParts(report ?? fromManifest(description, lineage), signal));
}

function overview(description, lineage) {
  if (!description) return notice("error", "This version cannot be used: its files are missing or damaged.");
  return facts([
    ["Predicts", description.target],
    ["Task", description.task],
    ["From", count(description.features.length, "column")],
    ["Made", date(description.created)],
    ["Computed by", description.engine],
    ["Job", lineage?.job_id && h("a", { href: address(["jobs", lineage.job_id]) }, "open")],
  ]);
}

/** What the manifest alone says, for versions without a report. */
function fromManifest(description, lineage) {
  const { judgement, recipe, recalibration } = lineage?.source ?? {};
  return {
    task: description?.task,
    metrics: description?.metrics,
    judgement,
    tried: recipe && { chosen: recipe.chosen, networks: recipe.tried ?? [], likelihoods: recipe.likelihoods ?? [], recalibration },
  };
}
