// An editor for the arguments of a call, before it is approved.

import { element } from "./dom.js";

let nextId = 0;

// Returns {node, read, isChanged}: `read` returns the arguments, or throws a message and moves the focus.
export function editor(args, onChange) {
  const id = `arguments-${nextId++}`;
  const given = JSON.stringify(args, null, 2);
  const control = element("textarea", { id, name: "arguments", spellcheck: "false", "aria-describedby": `${id}-help` }, given);
  const mark = element("p", { class: "changed", role: "status" });
  const undo = element("button", { type: "button", hidden: true, on: { click: () => { control.value = given; look(); } } },
    "Take the program's own again");
  const isChanged = () => !same(control.value, given);
  const look = () => {
    const changed = isChanged();
    mark.textContent = changed ? "Changed: the tool will get these arguments, not the program's own." : "";
    undo.hidden = !changed;
    onChange(changed);
  };
  control.addEventListener("input", look);
  const node = element("details", { class: "field editor" },
    element("summary", {}, "Change the arguments"),
    element("label", { for: id }, "Arguments, as JSON"),
    element("div", { class: "quiet", id: `${id}-help` }, "The policy lets whoever approves this call change them."),
    control, mark, undo);
  const read = () => {
    let data;
    try { data = JSON.parse(control.value); } catch { data = null; }
    if (data === null || typeof data !== "object" || Array.isArray(data)) {
      node.open = true;
      control.focus();
      throw new Error("The arguments must be a JSON object.");
    }
    return data;
  };
  return { node, read, isChanged };
}

// Changes of white space do not count.
function same(text, given) {
  try { return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(given)); } catch { return false; }
}
