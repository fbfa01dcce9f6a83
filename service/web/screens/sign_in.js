// Signing in with a key.

import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { h, notice, replace } from "../dom.js";
import { signIn } from "../session.js";

export function showSignIn(root, { message, done }) {
  const form = new Form(new Draft("sign-in"));
  // A secret is the only text that no draft keeps.
  const key = h("input", { type: "password", name: "key", autocomplete: "current-password", required: true, spellcheck: "false", autofocus: true });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    form.clearAll();
    try {
      await signIn(key.value.trim());
    } catch (error) {
      form.places.get("key").problem.textContent = error.message;
      key.setAttribute("aria-invalid", "true");
      key.focus();
      return;
    } finally {
      button.disabled = false;
    }
    done();
  };
  replace(root,
    h("div", { class: "sign-in" },
      h("h1", {}, "Sign in"),
      message && notice("error", message),
      h("form", { onsubmit: submit },
        form.field("key", "Key", key, { help: "It looks like prefix.secret. Whoever runs the service has it, or makes one for you." }),
        h("div", { class: "actions" }, button)),
      h("details", {}, h("summary", {}, "I run the service and have no key"),
        h("p", {}, "The first start prints an address with a key. In the directory of the service, this command makes another:"),
        h("pre", { tabindex: "0" }, "tfbbb keys create me --scope admin"))));
}
