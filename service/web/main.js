// Starts the page: session, navigation and screens.

import { badge, h, replace } from "./dom.js";
import { address, here, leave, show } from "./router.js";
import { whatNext } from "./next.js";
import { findSession, forget, may, session, signIn as signInWith, signOut } from "./session.js";
import { showSignIn } from "./screens/sign_in.js";
import { showDatasets } from "./screens/datasets.js";
import { showDataset } from "./screens/dataset.js";
import { showNewJob } from "./screens/new_job.js";
import { showJobs } from "./screens/jobs.js";
import { showJob } from "./screens/job.js";
import { showModels } from "./screens/models.js";
import { showReport } from "./screens/report.js";
import { showAsk } from "./screens/ask.js";
import { showFile } from "./screens/predict_file.js";
import { showTruth } from "./screens/truth.js";
import { showVersions } from "./screens/versions.js";
import { showKeys } from "./screens/keys.js";
import { showAudit } from "./screens/audit.js";

const PLACES = [
  { name: "data", title: "Data", scope: "train" },
  { name: "jobs", title: "Jobs", scope: "train" },
  { name: "models", title: "Models", scope: "predict" },
  { name: "keys", title: "Keys", scope: "admin" },
  { name: "audit", title: "Audit", scope: "admin" },
];

/** The screen of an address, or null. */
function screenOf([place, name, , part]) {
  switch (place) {
    case "data":
      return name ? showDataset : showDatasets;
    case "new":
      return showNewJob;
    case "jobs":
      return name ? showJob : showJobs;
    case "models":
      if (!name) return showModels;
      return { ask: showAsk, file: showFile, truth: showTruth, versions: showVersions }[part] ?? showReport;
    case "keys":
      return showKeys;
    case "audit":
      return showAudit;
    default:
      return null;
  }
}

function route() {
  if (!session) {
    signIn("");
    return;
  }
  const place = here();
  const screen = screenOf(place.parts);
  drawHeader(place.parts[0]);
  if (screen) show(screen, place, whatNext);
  else location.replace(address([may("train") ? "data" : "models"]));
}

function drawHeader(current) {
  const links = session ? PLACES.filter((place) => may(place.scope)) : [];
  const active = current === "new" ? "jobs" : current;
  replace(document.getElementById("nav"), links.map((place) =>
    h("a", { href: address([place.name]), "aria-current": place.name === active && "page" }, place.title)),
  session && h("a", { href: "docs" }, "API"));
  replace(document.getElementById("account"),
    session?.key_id && h("span", { class: "who" }, badge(session.name)),
    session?.key_id && h("button", { type: "button", class: "quiet", onclick: leaveSession }, "Sign out"));
}

async function leaveSession() {
  await signOut();
  location.hash = "";
  signIn("");
}

function signIn(message) {
  leave();
  drawHeader(null);
  show((root, place) => showSignIn(root, { ...place, message, done: route }), here());
}

document.addEventListener("session-lost", (event) => {
  const lost = session !== null;
  forget();
  // The address stays, and so does what was typed: the same screen is back afterwards.
  if (lost) signIn(event.detail);
});
watchConnection();
addEventListener("hashchange", route);
start();

async function start() {
  // The address that the first start prints has a key.
  const key = new URLSearchParams(location.search).get("key");
  drawHeader(null);
  try {
    if (key) await useKey(key);
    await findSession();
  } catch (error) {
    show(() => { throw error; }, here());
    document.addEventListener("connection-found", start, { once: true });
    return;
  }
  if (session) route();
  else signIn(key ? "The key in the address was refused: it is wrong, expired or revoked." : "");
}

/** Signs in with a key, and takes it out of the address. */
async function useKey(key) {
  try {
    await signInWith(key);
  } catch (error) {
    if (error.status !== 401) throw error;
  }
  history.replaceState(null, "", location.pathname + location.hash);
}

/** Says that the connection is lost, and looks for it until it is back. */
function watchConnection() {
  const line = document.getElementById("connection");
  let timer = 0;
  document.addEventListener("connection-lost", () => {
    replace(line, "No connection to the service. Trying again…");
    timer ||= setInterval(look, 2000);
  });
  document.addEventListener("connection-found", () => {
    clearInterval(timer);
    timer = 0;
    replace(line);
  });
}

async function look() {
  try {
    await fetch("health/live", { cache: "no-store" });
  } catch {
    return;
  }
  document.dispatchEvent(new CustomEvent("connection-found"));
}
