// Fields of a form made from a JSON schema, with the defaults of the schema filled in.

import { h, replace } from "./dom.js";
import { capital, words } from "./format.js";
import { plainOption } from "./plain_words.js";

const UNSET = "";
const CHOSEN = "chosen by the service";
// Labels of fields whose names are of the trade.
const LABELS = {
  df: "Degrees of freedom",
  kl_schedule: "Weight of the prior",
  members: "Networks trained together",
  min_delta: "Least improvement",
  pi: "Weight of the first normal",
  publish: "When the new version becomes latest",
};

/**
 * Makes the field of a schema.
 *
 * Returns its element, and `read()`, which returns the value for the request, or
 * undefined where the default of the service is unchanged. Text that is not a number is returned as it
 * was typed, so that the API says what is wrong with them.
 * @param {Object} schema
 * @param {{form: import("./form.js").Form, schemas: Object, path: string, initial: any}} context
 */
function schemaField(schema, context) {
  const { form, schemas, path } = context;
  const whole = { ...resolve(schema, schemas), ...without(schema, "$ref") };
  const variants = (whole.anyOf ?? [whole]).map((one) => resolve(one, schemas));
  const optional = variants.some((one) => one.type === "null") || context.optional;
  const union = variants.find((one) => one.oneOf);
  const initial = context.initial ?? whole.default;
  const name = path.split(".").at(-1);
  const label = LABELS[name] ?? capital(words(name));
  const help = plainOption(whole.description);
  // What an empty field means, where the service chooses nothing then.
  const empty = whole["x-empty"] ?? CHOSEN;
  const next = { ...context, optional, initial, label, help, empty };
  if (union) return choiceField(union, next);
  const object = variants.find((one) => one.type === "object" && one.properties);
  const simple = variants.find((one) => one.type !== "null" && one !== object);
  if (object && !simple) return optional && !context.required ? optionalObject(object, next) : objectField(object, next);
  if (object && simple) return objectField(object, next);
  if (simple.enum) return enumField(simple.enum, next);
  if (simple.type === "boolean") return booleanField(next);
  if (simple.type === "integer" || simple.type === "number") return numberField(simple, next);
  if (simple.type === "array" && ["integer", "number", "string"].includes(resolve(simple.items, schemas).type)) {
    return listField(resolve(simple.items, schemas), next);
  }
  if (simple.type === "string") return textField(simple, next);
  return jsonField(next);
}

/** The fields of an object, without those whose paths are in `except`. */
export function schemaFields(schema, context, except = []) {
  const pathOf = (name) => (context.path ? `${context.path}.${name}` : name);
  const names = Object.keys(schema.properties).filter((name) => !except.includes(pathOf(name)) && schema.properties[name].const === undefined);
  const fields = names.map((name) => [name, schemaField(schema.properties[name], {
    ...context,
    except,
    optional: false,
    path: pathOf(name),
    initial: context.initial?.[name],
  })]);
  return {
    elements: fields.map(([, field]) => field.element),
    read() {
      const found = {};
      for (const [name, field] of fields) {
        const value = field.read();
        if (value !== undefined) found[name] = value;
      }
      return found;
    },
  };
}

function objectField(schema, { form, label, help, ...context }) {
  const fields = schemaFields(schema, { form, ...context }, context.except);
  return {
    element: form.group(context.path, label, fields.elements, help ?? plainOption(schema.description)),
    read() {
      const value = fields.read();
      return Object.keys(value).length ? value : undefined;
    },
  };
}

function optionalObject(schema, { form, label, help, path, ...context }) {
  const inner = h("div", { class: "nested" });
  let fields = null;
  const draw = (on) => {
    fields = on ? schemaFields(schema, { form, path, ...context }) : null;
    replace(inner, fields?.elements);
  };
  const box = form.check(path, label, context.initial !== undefined && context.initial !== null, draw);
  draw(box.querySelector("input").checked);
  const element = form.group(path, label, [box, inner], help ?? plainOption(schema.description));
  return { element, read: () => fields?.read() };
}

function choiceField(union, { form, schemas, label, help, path, initial, optional }) {
  const { propertyName, mapping } = union.discriminator;
  const given = typeof initial === "string" ? { [propertyName]: initial } : initial ?? {};
  const names = Object.keys(mapping);
  // The schema does not tell a default that is an object.
  const unset = optional || given[propertyName] === undefined;
  const options = [...(unset ? [[UNSET, CHOSEN]] : []), ...names.map((name) => [name, words(name)])];
  const inner = h("div", { class: "nested" });
  let chosen = null;
  let fields = null;
  const draw = (name) => {
    chosen = name;
    fields = null;
    replace(inner);
    if (!name) return;
    const schema = resolve({ $ref: mapping[name] }, schemas);
    fields = schemaFields(schema, { form, schemas, path, initial: given[propertyName] === name ? given : undefined }, [`${path}.${propertyName}`]);
    replace(inner, h("p", { class: "help" }, plainOption(schema.description)), fields.elements);
  };
  const select = form.select(path, options, given[propertyName] ?? UNSET, draw);
  draw(select.value);
  return {
    element: h("div", { class: "choice" }, form.field(path, label, select, { help }), inner),
    read() {
      if (!chosen) return undefined;
      const options = fields.read();
      const changed = chosen !== given[propertyName] || Object.keys(options).length;
      return changed ? { [propertyName]: chosen, ...options } : undefined;
    },
  };
}

function enumField(names, { form, label, help, path, initial, optional }) {
  const options = [...(optional || initial === undefined ? [[UNSET, CHOSEN]] : []), ...names.map((name) => [name, words(name)])];
  const select = form.select(path, options, initial ?? UNSET);
  return { element: form.field(path, label, select, { help }), read: () => changed(select.value, initial ?? UNSET) };
}

function booleanField({ form, label, help, path, initial }) {
  const select = form.select(path, [["true", "yes"], ["false", "no"]], String(initial ?? false));
  return { element: form.field(path, label, select, { help }), read: () => (select.value === String(initial ?? false) ? undefined : select.value === "true") };
}

function numberField(schema, { form, label, help, path, initial, optional, empty }) {
  const control = form.text(path, initial, {
    inputmode: "decimal",
    placeholder: optional && (initial ?? null) === null ? empty : null,
  });
  return {
    element: form.field(path, label, control, { help: [help, bounds(schema)].filter(Boolean).join(" ") }),
    read: () => numberOf(changed(control.value, String(initial ?? "")) ?? ""),
  };
}

function textField(schema, { form, label, help, path, initial }) {
  const control = form.text(path, initial);
  return { element: form.field(path, label, control, { help }), read: () => changed(control.value, initial ?? "") };
}

function listField(items, { form, label, help, path, initial }) {
  const control = form.text(path, initial?.join(", "), { placeholder: initial?.length ? null : CHOSEN });
  const read = () => {
    if (!changed(control.value.trim(), initial?.join(", ") ?? "")) return undefined;
    const parts = control.value.split(",").map((part) => part.trim());
    return items.type === "string" ? parts : parts.map(numberOf);
  };
  return { element: form.field(path, label, control, { help: `${help ?? ""} Separate several by commas.`.trim() }), read };
}

function jsonField({ form, label, help, path, initial }) {
  const empty = initial === undefined || initial === null || !Object.keys(initial).length;
  const control = h("textarea", {
    rows: 3,
    spellcheck: "false",
    value: form.draft.get(path, empty ? "" : JSON.stringify(initial)),
    oninput: (event) => form.draft.set(path, event.target.value),
  });
  const read = () => {
    if (!changed(control.value.trim(), empty ? "" : JSON.stringify(initial))) return undefined;
    try {
      return JSON.parse(control.value);
    } catch {
      return control.value;
    }
  };
  return { element: form.field(path, label, control, { help: `${help ?? ""} As JSON.`.trim() }), read };
}

/** A text, or undefined where it is empty or that of the beginning. */
function changed(text, initial) {
  return text === initial || text === "" ? undefined : text;
}

/** A number, or the text itself if it is not a number. */
export function numberOf(text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const value = Number(trimmed.replace("−", "-"));
  return Number.isFinite(value) ? value : trimmed;
}

function bounds(schema) {
  const low = schema.minimum ?? schema.ge;
  const high = schema.maximum ?? schema.le;
  if (low !== undefined && high !== undefined) return `From ${low} to ${high}.`;
  if (schema.exclusiveMinimum !== undefined) return `More than ${schema.exclusiveMinimum}.`;
  return low === undefined ? "" : `At least ${low}.`;
}

function resolve(schema, schemas) {
  if (!schema.$ref) return schema;
  return schemas[schema.$ref.split("/").at(-1)];
}

function without(object, name) {
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== name));
}
