// Forms whose fields keep what was typed, and show the errors of the API beside them.

import { h, newId, notice, replace } from "./dom.js";
import { plainProblem } from "./plain_words.js";

/** The fields of one form, by their paths in the body of the request. */
export class Form {
  /** @param {import("./drafts.js").Draft} draft */
  constructor(draft) {
    this.draft = draft;
    this.places = new Map();
    this.general = h("div", { class: "problems" });
  }

  /**
   * Makes the form with its button; an error of `submit` stands beside its field.
   * @param {string} button The text of the button.
   * @param {() => Promise<void>} submit
   * @param {...any} children The fields; `actions` are beside the button.
   */
  element({ button: text, submit, actions = null, ...attributes }, ...children) {
    const button = h("button", { type: "submit", class: "primary" }, text);
    return h("form", { ...attributes, novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      this.clearAll();
      try {
        await submit();
      } catch (error) {
        this.show(error);
      } finally {
        button.disabled = false;
      }
    } }, children, this.general, h("div", { class: "actions" }, button, actions));
  }

  /**
   * Makes a field: label, control, help and the place of its error.
   * @param {string} path
   * @param {string} label
   * @param {HTMLElement} control
   * @param {{help?: string, wrong?: string}} options `wrong` is what to do about any
   *   error of the field, in place of what the API says.
   */
  field(path, label, control, { help, wrong } = {}) {
    const id = newId();
    const helpId = help ? newId() : null;
    const problemId = newId();
    const problem = h("p", { class: "problem", id: problemId, role: "alert" });
    control.id = id;
    control.setAttribute("aria-describedby", [helpId, problemId].filter(Boolean).join(" "));
    control.addEventListener("input", () => this.clear(path));
    this.places.set(path, { problem, control, wrong });
    return h("div", { class: "field" },
      h("label", { for: id }, label),
      help && h("p", { class: "help", id: helpId }, help),
      control, problem);
  }

  /** A fieldset, which may have an error of its own. */
  group(path, title, children, help) {
    const problem = h("p", { class: "problem", role: "alert" });
    const element = h("fieldset", {}, h("legend", {}, title), help && h("p", { class: "help" }, help), problem, children);
    this.places.set(path, { problem, control: element });
    return element;
  }

  /** A text that survives a reload; `tag` may be `textarea`. */
  text(path, initial = "", { tag = "input", ...attributes } = {}) {
    return h(tag, {
      type: tag === "input" && "text",
      autocomplete: "off",
      spellcheck: "false",
      ...attributes,
      value: this.draft.get(path, initial),
      oninput: (event) => this.draft.set(path, event.target.value),
    });
  }

  /** A choice that survives a reload. */
  select(path, options, initial, onChange) {
    const chosen = this.draft.get(path, initial);
    return h("select", { onchange: (event) => {
      this.draft.set(path, event.target.value);
      this.clear(path);
      onChange?.(event.target.value);
    } }, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  }

  /** A box to tick that survives a reload. */
  check(path, label, initial) {
    return h("label", { class: "check" },
      h("input", {
        type: "checkbox",
        checked: this.draft.get(path, initial),
        onchange: (event) => this.draft.set(path, event.target.checked),
      }), label);
  }

  clear(path) {
    const place = this.places.get(path);
    if (!place?.problem.textContent) return;
    place.problem.textContent = "";
    place.control.removeAttribute("aria-invalid");
  }

  clearAll() {
    for (const path of this.places.keys()) this.clear(path);
    replace(this.general);
  }

  /** Shows an error beside the field that it names, or above the buttons. */
  show(error, { focus = true } = {}) {
    this.clearAll();
    // The error of an element of a list or an object stands beside the whole.
    const field = error.field ?? "";
    const parts = field.split(".");
    while (parts.length && !this.places.has(parts.join("."))) parts.pop();
    const path = parts.join(".");
    const place = this.places.get(path);
    if (!place) {
      replace(this.general, notice("error", error.message));
      this.general.scrollIntoView({ block: "nearest" });
      return;
    }
    place.problem.textContent = place.wrong ?? (path === field ? plainProblem(error.text ?? error.message) : error.message);
    place.control.setAttribute("aria-invalid", "true");
    for (let parent = place.control.closest("details"); parent; parent = parent.parentElement.closest("details")) {
      parent.open = true;
    }
    if (!focus) return;
    if (place.control.matches("fieldset")) place.problem.scrollIntoView({ block: "center" });
    else place.control.focus();
  }
}

/** A number, or the text itself if it is not a number; undefined without a text. */
export function numberOf(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const value = Number(trimmed.replace("−", "-"));
  return Number.isFinite(value) ? value : trimmed;
}
