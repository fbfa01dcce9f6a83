// Who changed what and when, newest first.

import { get, path } from "../api.js";
import { filter, h, replace, table } from "../dom.js";
import { date } from "../format.js";
import { address, go } from "../router.js";
import { pages } from "./datasets.js";

const KINDS = ["dataset", "job", "version", "label", "key"];

export async function showAudit(root, { query, signal }) {
  const cursor = query.get("cursor") ?? "";
  const kind = query.get("kind") ?? "";
  const page = await get(path(["v1", "audit"], { cursor, kind, limit: 50 }), { signal });
  const rows = page.changes.map((change) => [
    date(change.created_at), change.actor, `${change.action} ${change.kind}`, subject(change), details(change.details),
  ]);
  replace(root,
    h("h1", {}, "Audit"),
    h("p", { class: "help" }, "Who made, moved and deleted what. A change that was refused is not here."),
    filter("Changes of", [["", "all"], ...KINDS.map((one) => [one, one])], kind, (chosen) => go(["audit"], { kind: chosen })),
    table([{ title: "When" }, { title: "Who" }, { title: "What" }, { title: "Of" }, { title: "Details" }], rows,
      { cards: true, caption: "Changes", empty: "Nothing was changed yet." }),
    pages(["audit"], cursor, page.next_cursor, { kind }));
}

/** What was changed, with a link to it where it has a screen and may still exist. */
function subject({ kind, action, subject, details }) {
  const text = h("code", {}, subject);
  const [name, version] = subject.split("/");
  const places = {
    dataset: ["data", name],
    job: ["jobs", name],
    version: ["models", name, version],
    label: ["models", name, String(details.number), "versions"],
  };
  return action !== "delete" && kind in places ? h("a", { href: address(places[kind]) }, text) : text;
}

function details({ before = {}, ...now }) {
  const changed = Object.entries(before).map(([name, old]) => `${name} ${shown(old)} → ${shown(now[name])}`);
  const rest = Object.entries(now).filter(([name, value]) => value !== null && !(name in before));
  return [...changed, ...rest.map(([name, value]) => `${name} ${shown(value)}`)].join(", ");
}

function shown(value) {
  if (value === null || value === undefined) return "none";
  return Array.isArray(value) ? value.join(" and ") : String(value);
}
