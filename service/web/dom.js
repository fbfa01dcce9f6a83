// Elements. Text reaches the page as text nodes only, never as HTML.

/**
 * Creates an element.
 * @param {string} tag
 * @param {Object<string, any>} attributes `on...` are listeners, `style` is an object of
 *   CSS properties, `value` and `checked` are properties; null and false are left out.
 * @param {...any} children Nodes, texts, or lists of them; null and false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(element, attributes, children);
}

/** Replaces the content of an element. */
export function replace(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

let ids = 0;

/** Returns an id that no other element has. */
export function newId() {
  ids += 1;
  return `id-${ids}`;
}

/**
 * A table; the cells of columns with `number` are aligned as numbers.
 *
 * With `cards`, a phone shows each row as a card, so that no column is outside the window.
 */
export function table(columns, rows, { caption, empty, cards } = {}) {
  if (!rows.length && empty) return h("p", { class: "empty" }, empty);
  return fadeWhereMore(h(
    "div",
    { class: cards ? "scroll cards" : "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => (column.title === ""
        ? h("td")
        : h("th", { scope: "col", class: column.number && "number" }, column.title))))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, place) =>
        h(place === 0 ? "th" : "td", {
          scope: place === 0 && "row",
          class: columns[place].number && "number",
          "data-title": place > 0 && (columns[place].title.firstChild?.textContent ?? columns[place].title),
        }, cards && cell !== "" ? h("div", {}, cell) : cell))))),
    ),
  ));
}

/** Fades the right edge of an element while there is more to scroll to. */
function fadeWhereMore(element) {
  const show = () => element.classList.toggle("more", element.scrollLeft + element.clientWidth < element.scrollWidth - 1);
  element.addEventListener("scroll", show, { passive: true });
  new ResizeObserver(show).observe(element);
  return element;
}

/** A list of terms with their values. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  return h("dl", { class: "facts" }, shown.map(([term, value]) =>
    h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

/** A message; errors are read aloud at once. */
export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : null }, children);
}

/** Asks in a dialog; resolves to whether the answer is yes. */
export function confirm(question, action) {
  return new Promise((resolve) => {
    const title = newId();
    const dialog = h(
      "dialog",
      { "aria-labelledby": title, onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("p", { id: title }, question),
      h("div", { class: "actions" },
        h("button", { type: "button", class: "danger", onclick: () => dialog.close("yes") }, action),
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Keep it")),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A button that is disabled while its action runs, and shows the error of the action. */
export function actionButton(text, action, { kind = "", problem }) {
  const button = h("button", { type: "button", class: kind, onclick: async () => {
    button.disabled = true;
    problem.replaceChildren();
    try {
      await action();
    } catch (error) {
      problem.replaceChildren(notice("error", error.message));
    } finally {
      button.disabled = false;
      // A dialog cannot give the focus back to a button that was disabled, or is gone.
      if (document.activeElement === document.body) (button.isConnected ? button : document.querySelector("h1"))?.focus();
    }
  } }, text);
  return button;
}

/** A choice above a list. */
export function filter(label, options, chosen, onChange) {
  const id = newId();
  return h("div", { class: "inline" }, h("label", { for: id }, label),
    h("select", { id, onchange: (event) => onChange(event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
}

/** Repeats an action while the document is visible, until the signal aborts. */
export function repeat(action, milliseconds, signal) {
  const timer = setInterval(() => document.hidden || action(), milliseconds);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** A place for errors, beside what failed. */
export function problemPlace() {
  return h("div", { class: "problems" });
}
