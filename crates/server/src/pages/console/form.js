// A form from a JSON Schema with flat members, as in questions.

import { element } from "./dom.js";

let nextId = 0;

// Returns {node, read}: `read` returns the content, or throws a message and moves the focus.
export function form(schema) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, property]) =>
    [name, field(name, property ?? {}, required.has(name))]);
  const read = () => {
    const content = {};
    for (const [name, one] of fields) {
      const filled = one.read();
      if (filled !== undefined) content[name] = filled;
    }
    return content;
  };
  return { node: fields.map(([, one]) => one.node), read, isEmpty: fields.length === 0 };
}

function field(name, property, isRequired) {
  const kind = Array.isArray(property.type) ? property.type.find((type) => type !== "null") : property.type;
  if (kind === "boolean") return checkbox(name, property);
  if (kind === "array" && choices(property.items)) return several(name, property, isRequired);
  if (choices(property)) return one(name, property, isRequired);
  if (kind === "object" || kind === "array") return json(name, property, isRequired);
  return line(name, property, kind, isRequired);
}

// The values to choose from, each with its title; null if any value is permitted.
function choices(schema) {
  const list = schema?.oneOf ?? schema?.anyOf;
  if (Array.isArray(list) && list.every((item) => item && "const" in item)) {
    return list.map((item) => [item.const, item.title ?? String(item.const)]);
  }
  if (Array.isArray(schema?.enum)) {
    return schema.enum.map((value, at) => [value, schema.enumNames?.[at] ?? String(value)]);
  }
  return null;
}

function framed(name, property, isRequired, control, id) {
  const help = property.description ? element("div", { class: "quiet", id: `${id}-help` }, property.description) : null;
  if (help) control.setAttribute("aria-describedby", help.id);
  return element("div", { class: "field" },
    element("label", { for: id }, property.title ?? name, isRequired ? " (required)" : ""), help, control);
}

function fail(control, sentence) {
  control.focus();
  throw new Error(sentence);
}

function line(name, property, kind, isRequired) {
  const id = `field-${nextId++}`;
  const isNumber = kind === "number" || kind === "integer";
  const types = { email: "email", uri: "url", url: "url", date: "date", "date-time": "datetime-local" };
  const control = element("input", {
    id, name, required: isRequired,
    type: isNumber ? "number" : types[property.format] ?? "text",
    step: kind === "integer" ? 1 : isNumber ? "any" : undefined,
    min: property.minimum, max: property.maximum,
    minlength: property.minLength, maxlength: property.maxLength,
    value: property.default,
  });
  const read = () => {
    if (!control.checkValidity()) fail(control, `${property.title ?? name}: ${control.validationMessage}`);
    if (control.value === "") return undefined;
    if (isNumber) return control.valueAsNumber;
    return property.format === "date-time" ? new Date(control.value).toISOString() : control.value;
  };
  return { node: framed(name, property, isRequired, control, id), read };
}

function one(name, property, isRequired) {
  const id = `field-${nextId++}`;
  const known = choices(property);
  const blank = element("option", { value: "" }, isRequired ? "Choose …" : "(none)");
  const options = known.map(([value, title], at) =>
    element("option", { value: at, selected: property.default === value }, title));
  const control = element("select", { id, name, required: isRequired }, blank, options);
  const read = () => {
    if (!control.checkValidity()) fail(control, `${property.title ?? name}: ${control.validationMessage}`);
    return control.value === "" ? undefined : known[Number(control.value)][0];
  };
  return { node: framed(name, property, isRequired, control, id), read };
}

function several(name, property, isRequired) {
  const known = choices(property.items);
  const defaults = new Set(property.default ?? []);
  const boxes = known.map(([value]) => element("input", { type: "checkbox", name, checked: defaults.has(value) }));
  const node = element("fieldset", { class: "field" },
    element("legend", {}, property.title ?? name, isRequired ? " (required)" : ""),
    property.description ? element("div", { class: "quiet" }, property.description) : null,
    known.map(([, title], at) => element("label", { class: "choice" }, boxes[at], title)));
  const read = () => {
    const chosen = known.filter((_, at) => boxes[at].checked).map(([value]) => value);
    const least = property.minItems ?? (isRequired ? 1 : 0);
    if (chosen.length < least) fail(boxes[0], `${property.title ?? name}: choose at least ${least}.`);
    if (chosen.length > (property.maxItems ?? Infinity)) fail(boxes[0], `${property.title ?? name}: choose at most ${property.maxItems}.`);
    return chosen.length || isRequired ? chosen : undefined;
  };
  return { node, read };
}

function checkbox(name, property) {
  const control = element("input", { type: "checkbox", name, checked: property.default === true });
  const node = element("div", { class: "field" },
    element("label", { class: "choice" }, control, property.title ?? name),
    property.description ? element("div", { class: "quiet" }, property.description) : null);
  return { node, read: () => control.checked };
}

// Values without a simple control are entered as JSON.
function json(name, property, isRequired) {
  const id = `field-${nextId++}`;
  const given = property.default === undefined ? "" : JSON.stringify(property.default, null, 2);
  const control = element("textarea", { id, name, required: isRequired, spellcheck: "false" }, given);
  const read = () => {
    if (control.value.trim() === "" && !isRequired) return undefined;
    try { return JSON.parse(control.value); } catch { return fail(control, `${property.title ?? name} must be JSON.`); }
  };
  return { node: framed(name, property, isRequired, control, id), read };
}
