// Signing in with a key.

import { Draft } from "../drafts.js";
import { Form } from "../form.js";
import { h, notice, replace } from "../dom.js";
import { signIn } from "../session.js";

export function showSignIn(root, { message, done }) {
  const form = new Form(new Draft("sign-in"));
  // A secret is the only text that no draft keeps.
  const key = h("input", { type: "password", name: "key", autocomplete: "current-password", required: true, spellcheck: "false", autofocus: true });
  const submit = async () => {
    await signIn(key.value.trim()).catch((error) => {
      throw Object.assign(error, { field: "key" });
    });
    done();
  };
  replace(root,
    h("div", { class: "sign-in" },
      h("h1", {}, "Sign in"),
      message && notice("error", message),
      form.element({ button: "Sign in", submit },
        form.field("key", "Key", key, { help: "It looks like prefix.secret. Whoever runs the service has it, or makes one for you." })),
      h("details", {}, h("summary", {}, "I run the service and have no key"),
        h("p", {}, "The first start prints an address with a key. In the directory of the service, this command makes another:"),
        h("pre", { tabindex: "0" }, "tfbbb keys create me --scope admin"))));
}
