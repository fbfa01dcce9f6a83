// The rows of the table that a version was trained on, to ask the model about.

import { get, path } from "./api.js";
import { h, newId, replace } from "./dom.js";
import { number } from "./format.js";
import { may } from "./session.js";

const BLOCK = 100;

/**
 * Finds the table of a version; null if it is deleted, or not for this key.
 * @param {string} base Path of the version.
 */
export async function tableOf(base, signal) {
  if (!may("train")) return null;
  try {
    const { lineage } = await get(base, { signal });
    if (!lineage?.job_id) return null;
    const job = await get(path(["v1", "jobs", lineage.job_id]), { signal });
    return job.dataset_id && await get(path(["v1", "datasets", job.dataset_id]), { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    return null;
  }
}

/**
 * A choice of a row by its number, or by one step.
 * @param {Object} table As the API describes it.
 * @param {(number: number, row: Object) => void} onRow Gets the cells by column.
 * @returns {{element: HTMLElement, leave: () => void}} `leave` forgets the row.
 */
export function rowChoice(table, onRow, signal) {
  const blocks = new Map();
  const problem = h("p", { class: "problem", role: "alert" });
  const state = h("p", { class: "help", role: "status" });
  const id = newId();
  const input = h("input", { id, type: "text", inputmode: "numeric", class: "small", autocomplete: "off", placeholder: "–", onchange: () => choose(Number(input.value)) });
  const step = (by) => () => choose(input.value ? Number(input.value) + by : by > 0 ? 1 : table.num_rows);
  const element = h("div", { class: "row-choice" },
    h("label", { for: id }, "Row"), input, h("span", { class: "muted" }, `of ${number(table.num_rows)}`),
    h("button", { type: "button", class: "quiet", "aria-label": "Previous row", onclick: step(-1) }, "‹"),
    h("button", { type: "button", class: "quiet", "aria-label": "Next row", onclick: step(1) }, "›"), state, problem);
  let wanted = null;

  async function choose(at) {
    replace(problem);
    if (!Number.isInteger(at) || at < 1 || at > table.num_rows) {
      replace(problem, `Rows are numbered from 1 to ${number(table.num_rows)}.`);
      return;
    }
    input.value = at;
    wanted = at;
    replace(state, "Reading the row…");
    try {
      const row = await read(at - 1);
      // Another row may have been chosen in the meantime.
      if (wanted === at) onRow(at, row);
    } catch (error) {
      if (error.name !== "AbortError") replace(problem, error.message);
    } finally {
      if (wanted === at) replace(state);
    }
  }

  async function read(place) {
    const block = Math.floor(place / BLOCK);
    if (!blocks.has(block)) {
      blocks.set(block, get(path(["v1", "datasets", table.id, "preview"], { rows: BLOCK, skip: block * BLOCK }), { signal }));
      blocks.get(block).catch(() => blocks.delete(block));
    }
    const { columns, rows } = await blocks.get(block);
    return Object.fromEntries(columns.map((name, column) => [name, rows[place - block * BLOCK][column]]));
  }

  return {
    element,
    leave() {
      wanted = null;
      input.value = "";
      replace(state);
    },
  };
}
