// Requests to the API of the service.

import { plain } from "./plain_words.js";

/** An error of the API, or of the connection; the message is for people. */
export class ApiError extends Error {
  /**
   * @param {string} text As the API has it.
   * @param {number} status Status of the response; 0 without a connection.
   * @param {Object} details
   * @param {number} details.retryAfter Seconds after which to try again; 0 if unknown.
   * @param {string|null} details.field The path of the field that is wrong.
   * @param {string|null} details.code What is wrong, in a word for programs.
   */
  constructor(text, status, { retryAfter = 0, field = null, code = null } = {}) {
    super(SAID[code] ?? (code?.startsWith("unknown_") ? UNKNOWN : plain(text)));
    Object.assign(this, { text, status, retryAfter, field, code });
  }
}

// What the page says in place of texts of the API that are for programs, by their code.
const SAID = {
  forbidden: "Your key does not allow this. Whoever runs the service can give you another.",
  idempotency_key_reused: "This was sent before with other values. Reset the form, and try again.",
  insufficient_storage: "The service has no room left on its disk. Delete tables or versions that nobody needs.",
  internal_server_error: "The service failed. Its log has the reason.",
  last_admin_key: "This is the last key that can make keys. Make another one first.",
  queue_full: "Too many of your jobs are waiting. Try again when some of them have started.",
  upload_timeout: "The upload took too long. Try again with a better connection, or with a smaller file.",
};
const UNKNOWN = "This does not exist, or it was deleted.";
const LOST = "The service does not answer. What you typed is kept: try again when the connection is back.";

/**
 * Sends a request; returns the response if it succeeded.
 * @param {string} path Path relative to the page, such as `v1/jobs`.
 * @param {Object} options As for `fetch`; `json` is a body.
 */
export async function request(path, { json, headers = {}, ...options } = {}) {
  if (json !== undefined) {
    options.body = JSON.stringify(json);
    headers = { "Content-Type": "application/json", ...headers };
  }
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    announce("connection-lost");
    throw new ApiError(LOST, 0);
  }
  announce("connection-found");
  if (!response.ok) throw await failure(response);
  return response;
}

export async function get(path, options) {
  return (await request(path, options)).json();
}

export async function send(method, path, json, options = {}) {
  const response = await request(path, { method, json, ...options });
  return response.status === 204 ? null : response.json();
}

/** Builds a path from parts, and a query without the empty values. */
export function path(parts, query = {}) {
  const place = parts.map((part) => encodeURIComponent(part)).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `${place}?${new URLSearchParams(given)}` : place;
}

/**
 * Uploads a table, and tells of the progress.
 * @param {File} file
 * @param {(share: number) => void} onProgress
 * @param {AbortSignal} signal
 */
export function upload(file, onProgress, signal) {
  return new Promise((resolve, reject) => {
    // `fetch` does not tell how much of a body was sent.
    const sending = new XMLHttpRequest();
    sending.open("POST", path(["v1", "datasets"], { name: file.name }));
    sending.setRequestHeader("Content-Type", "application/octet-stream");
    sending.upload.onprogress = (event) => onProgress(event.loaded / event.total);
    sending.onerror = () => {
      announce("connection-lost");
      reject(new ApiError(LOST, 0));
    };
    sending.onload = () => {
      if (sending.status < 300) resolve(JSON.parse(sending.responseText));
      else reject(refusal(sending.status, sending.responseText, 0));
    };
    signal.addEventListener("abort", () => {
      sending.abort();
      reject(new DOMException("The upload was stopped.", "AbortError"));
    });
    sending.send(file);
  });
}

async function failure(response) {
  const text = await response.text();
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  return refusal(response.status, text, retryAfter);
}

function refusal(status, text, retryAfter) {
  let said = {};
  try {
    said = JSON.parse(text) ?? {};
  } catch {
    // Not from the API: a proxy in between has answered.
  }
  const { error = `The service answered with status ${status}.`, field = null, code = null } = said;
  const found = new ApiError(error, status, { retryAfter, field, code });
  if (status === 401) announce("session-lost", found.message);
  return found;
}

function announce(name, detail) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}
