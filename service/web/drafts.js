// What a person typed, kept in the browser's tab until it was sent.

const PREFIX = "tfbbb-draft:";

/** The texts of one form by the names of its fields. */
export class Draft {
  constructor(name) {
    this.name = PREFIX + name;
    this.values = JSON.parse(sessionStorage.getItem(this.name) ?? "{}");
  }

  get(field, otherwise) {
    return Object.hasOwn(this.values, field) ? this.values[field] : otherwise;
  }

  set(field, value) {
    this.values[field] = value;
    sessionStorage.setItem(this.name, JSON.stringify(this.values));
  }

  clear() {
    this.values = {};
    sessionStorage.removeItem(this.name);
  }
}

/** Forgets all that was typed, when somebody signs out. */
export function clearDrafts() {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  }
}
