// Who is signed in.

import { ApiError, get, send } from "./api.js";
import { clearDrafts } from "./drafts.js";

/** The present session: `name`, `scopes`, `key_id`, which is null on an open service. */
export let session = null;

export async function findSession() {
  try {
    session = await get("v1/session");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0) throw error;
    session = null;
    if (error.status !== 401) throw error;
  }
  return session;
}

export async function signIn(key) {
  session = await send("POST", "v1/session", { key });
}

export async function signOut() {
  await send("DELETE", "v1/session");
  session = null;
  clearDrafts();
}

export function forget() {
  session = null;
}

/** Whether the key allows what needs a scope. */
export function may(scope) {
  const order = ["predict", "train", "admin"];
  return session?.scopes.some((held) => order.indexOf(held) >= order.indexOf(scope)) ?? false;
}
