// The keys, for those who may make them.

import { get, path, send } from "../api.js";
import { actionButton, badge, confirm, h, notice, problemPlace, replace, table } from "../dom.js";
import { Draft } from "../drafts.js";
import { Form, numberOf } from "../form.js";
import { date } from "../format.js";
import { session } from "../session.js";

const DAY = 86400;
const SCOPES = [["metrics", "metrics: read /metrics alone"], ["predict", "predict: ask models"], ["train", "train: also upload, train and label"], ["admin", "admin: also make keys"]];
const COLUMNS = ["Name", "Prefix", "Scope", "Made", "Last used", "State", ""];

export async function showKeys(root, { signal }) {
  const made = h("div", { "aria-live": "polite" });
  const list = h("div");
  const problem = problemPlace();
  const load = async () => {
    const { keys } = await get("v1/keys", { signal });
    replace(list, table(COLUMNS.map((title) => ({ title })), keys.map((key) => row(key, problem, load)), { cards: true, caption: "Keys" }));
  };
  await load();
  replace(root,
    h("h1", {}, "Keys"),
    h("p", { class: "help" }, "Give every program and every person a key of its own. The service stores no secret, so a key is shown once."),
    createForm(made, problem, load),
    made, problem, list);
}

function row(key, problem, again) {
  const own = key.id === session.key_id;
  const revoke = async () => {
    const note = own ? " You are signed in with it." : "";
    if (!await confirm(`Revoke the key ${key.name} for ever?${note}`, "Revoke")) return;
    await send("DELETE", path(["v1", "keys", key.id]));
    await again();
  };
  const expired = key.expires_at && new Date(key.expires_at) <= new Date();
  const state = key.revoked_at ? badge("revoked", "bad") : expired ? badge("expired", "bad")
    : key.expires_at ? `until ${date(key.expires_at)}` : badge("valid", "good");
  return [
    [key.name, own && [" ", badge("yours")]], h("code", {}, key.prefix), key.scopes.join(", "), date(key.created_at), date(key.last_used_at), state,
    key.revoked_at ? "" : actionButton("Revoke", revoke, { kind: "quiet", problem }),
  ];
}

function createForm(made, problem, again) {
  const form = new Form(new Draft("key"));
  const name = form.text("name");
  const scope = form.select("scopes", SCOPES, "predict");
  const days = form.text("expires_in_seconds", "", { inputmode: "decimal", placeholder: "never" });

  async function submit() {
    const left = numberOf(days.value);
    const request = { name: name.value.trim(), scopes: [scope.value] };
    if (left !== undefined) request.expires_in_seconds = typeof left === "number" ? left * DAY : left;
    const key = await send("POST", "v1/keys", request);
    form.draft.clear();
    name.value = days.value = "";
    replace(made, notice("good", h("h2", {}, `The key ${key.name}`),
      h("p", {}, "Copy it now: it is not shown again."), h("pre", { tabindex: "0", "aria-label": "The key" }, key.key),
      actionButton("Copy", () => navigator.clipboard.writeText(key.key), { problem })));
    await again();
  }

  return form.element({ button: "Make a key", submit, class: "card" },
    h("div", { class: "columns" },
      form.field("name", "Name", name, { help: "What the key is for." }),
      form.field("scopes", "Scope", scope),
      form.field("expires_in_seconds", "Days until it expires", days)));
}
