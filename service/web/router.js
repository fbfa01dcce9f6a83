// The address after `#` names the screen.

import { ApiError } from "./api.js";
import { h, notice, replace } from "./dom.js";

// Milliseconds until a screen counts as slow, and seconds until one is tried again.
const SLOW = 150;
const PAUSE = 3;

let leaving = new AbortController();

/** The address of a screen. */
export function address(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const tail = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${tail}`;
}

/** Goes to a screen. */
export function go(parts, query) {
  location.hash = address(parts, query);
}

/** Parts and query of the present address. */
export function here() {
  const [place, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = place.split("/").filter(Boolean).map(decode);
  return { parts, query: new URLSearchParams(query ?? "") };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Shows a screen in place of the one before.
 *
 * A screen is a function `(root, {parts, query, signal})`, which may throw; the signal
 * aborts when the screen is left. `next` makes the last line of a screen that was shown.
 */
export async function show(screen, place, next = () => null) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const main = document.getElementById("main");
  const root = h("div", { class: "screen" });
  let line = null;
  // What was there stays until the new screen is ready, if it is ready soon.
  const slow = setTimeout(() => replace(main, h("p", { class: "loading" }, "Loading…")), SLOW);
  try {
    await screen(root, { ...place, signal });
    line = next(place.parts);
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted || error.status === 401) return;
    if (!(error instanceof ApiError)) console.error(error);
    const again = () => show(screen, place, next);
    replace(root, h("h1", {}, error.status === 404 ? "Not found" : "This did not work"),
      notice("error", error.message),
      h("button", { type: "button", onclick: () => again() }, "Try again"));
    if (error.status === 0) document.addEventListener("connection-found", again, { once: true, signal });
    // The service is starting, or busy.
    if (error.status === 503) setTimeout(() => signal.aborted || again(), 1000 * (error.retryAfter || PAUSE));
  } finally {
    clearTimeout(slow);
  }
  if (signal.aborted) return;
  replace(main, root, line);
  const heading = root.querySelector("h1");
  document.title = heading ? `${heading.textContent} · tfbbb` : "tfbbb";
  // Screen readers read the heading of the new screen, and the keyboard starts here.
  if (heading) heading.tabIndex = -1;
  (root.querySelector("[autofocus]") ?? heading)?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Ends what the present screen still does. */
export function leave() {
  leaving.abort();
}
