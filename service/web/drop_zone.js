// A place to drop a file, with progress, a button to stop, and the error of what was done.

import { h, notice, replace } from "./dom.js";

/**
 * Makes the place; returns its elements, and `work`, which takes a file as if it had been dropped.
 * @param {Object} options
 * @param {string} options.id The id of the field of the file.
 * @param {string} options.help What files may be dropped.
 * @param {string} [options.what] What is dropped, in words.
 * @param {AbortSignal} options.signal Ends the work when the screen is left.
 * @param {(file: File, work: {stopped: AbortSignal, tell: (text: string, share?: number) => void}) => Promise<void>} options.take
 *   Works on the file, and tells how far it is.
 */
export function dropZone({ id, help, what = "file", signal, take }) {
  const problem = h("div");
  const state = h("p", { role: "status" });
  const progress = h("progress", { max: 1, value: 0, "aria-label": "Progress", hidden: true });
  const stop = h("button", { type: "button", hidden: true }, "Stop");
  const input = h("input", { type: "file", id, onchange: () => work(input.files[0]) });
  const zone = h("div", { class: "drop" },
    h("label", { for: id }, h("strong", {}, `Drop a ${what} here`), " or choose a file"),
    h("p", { class: "help" }, help),
    input, state, progress, stop);

  function tell(text, share) {
    replace(state, text);
    progress.hidden = share === undefined;
    if (share !== undefined) progress.value = share;
  }

  async function work(file) {
    if (!file) return;
    const stopping = new AbortController();
    stop.onclick = () => stopping.abort();
    stop.hidden = false;
    replace(problem);
    try {
      await take(file, { stopped: AbortSignal.any([signal, stopping.signal]), tell });
    } catch (error) {
      tell(error.name === "AbortError" ? "Stopped." : "");
      if (error.name !== "AbortError") {
        replace(problem, notice("error", error.message,
          h("div", { class: "actions" }, h("button", { type: "button", onclick: () => work(file) }, "Try again"))));
      }
    } finally {
      stop.hidden = progress.hidden = true;
      input.value = "";
    }
  }

  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    work(event.dataTransfer.files[0]);
  });
  return { elements: [zone, problem], work };
}
