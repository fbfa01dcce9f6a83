// What people write about a model or a version: a name and a note.

import { path, send } from "./api.js";
import { h, newId, notice, replace } from "./dom.js";

/**
 * Asks for a name and a note in a dialog, and stores them.
 * @param {string} what What it is about, such as "version 2".
 * @param {string[]} place The path of the model or the version.
 * @param {{title: string, text: string}|null} note The present note.
 * @returns {Promise<boolean>} Whether it was stored.
 */
export function editNote(what, place, note) {
  return new Promise((resolve) => {
    const heading = newId();
    const [titleId, textId] = [newId(), newId()];
    const title = h("input", { type: "text", id: titleId, maxlength: "100", value: note?.title ?? "", autofocus: true, autocomplete: "off" });
    const text = h("textarea", { id: textId, rows: "5", maxlength: "5000" }, note?.text ?? "");
    const problem = h("div", { class: "problems" });
    const save = h("button", { type: "submit", class: "primary" }, "Save");
    const form = h("form", { novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      save.disabled = true;
      replace(problem);
      try {
        await send("PUT", path([...place, "note"]), { title: title.value, text: text.value });
        dialog.close("saved");
      } catch (error) {
        replace(problem, notice("error", error.message));
      } finally {
        save.disabled = false;
      }
    } },
    h("h2", { id: heading }, `Note about ${what}`),
    h("div", { class: "field" }, h("label", { for: titleId }, "Name"), h("p", { class: "help" }, "A few words to tell it from others."), title),
    h("div", { class: "field" }, h("label", { for: textId }, "Note"), text),
    problem,
    h("div", { class: "actions" }, save, h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel")));
    const dialog = h("dialog", { class: "wide", "aria-labelledby": heading, onclose: () => {
      dialog.remove();
      resolve(dialog.returnValue === "saved");
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
}
