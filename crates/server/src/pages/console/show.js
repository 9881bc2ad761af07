// Shows arguments, scripts and the history of a program.

import { element } from "./dom.js";

// Longer texts are folded, and at most this many members of one value are shown.
const TEXT_CHARS_UNFOLDED = 200;
const MEMBERS_SHOWN_MAX = 500;
const DEPTH_UNFOLDED = 3;

// Maximum number of entries of the history; the newest matter most for the decision.
const DONE_SHOWN_MAX = 500;

export function value(data, depth = 0) {
  if (typeof data === "string") return text(data);
  if (data === null || typeof data !== "object") return element("code", {}, JSON.stringify(data) ?? "undefined");
  const entries = Array.isArray(data) ? data.map((item, at) => [at, item]) : Object.entries(data);
  if (entries.length === 0) return element("code", {}, Array.isArray(data) ? "[]" : "{}");
  const shown = entries.slice(0, MEMBERS_SHOWN_MAX).map(([name, item]) =>
    element("li", {}, element("code", {}, `${name}: `), value(item, depth + 1)));
  if (entries.length > MEMBERS_SHOWN_MAX) {
    shown.push(element("li", { class: "quiet" }, `and ${entries.length - MEMBERS_SHOWN_MAX} more`));
  }
  const list = element("ul", { class: "plain tree" }, shown);
  if (depth < DEPTH_UNFOLDED) return list;
  const what = Array.isArray(data) ? `${entries.length} items` : `${entries.length} members`;
  return element("details", {}, element("summary", {}, what), list);
}

function text(data) {
  const quoted = JSON.stringify(data);
  if (quoted.length <= TEXT_CHARS_UNFOLDED) return element("code", {}, quoted);
  const summary = element("summary", {},
    element("code", {}, `${quoted.slice(0, TEXT_CHARS_UNFOLDED)}…`), ` (${data.length} characters)`);
  return element("details", {}, summary, element("pre", { class: "boxed", tabindex: 0 }, data));
}

// The whole script. Lines in `waiting` are marked. A few large pieces of text rather than an
// element per line, so that ten thousand lines are no burden.
export function script(code, waiting) {
  const lines = code.split("\n");
  const numbers = lines.map((_, at) => at + 1).join("\n");
  const pieces = [];
  let plain = [];
  lines.forEach((line, at) => {
    if (waiting.has(at + 1)) {
      if (plain.length) pieces.push(`${plain.join("\n")}\n`);
      plain = [];
      pieces.push(element("mark", { "aria-label": `line ${at + 1} waits: ${line}` }, `${line || " "}\n`));
    } else {
      plain.push(line);
    }
  });
  if (plain.length) pieces.push(plain.join("\n"));
  const box = element("div", { class: "script boxed", tabindex: 0, role: "region", "aria-label": "Script" },
    element("pre", { class: "numbers", "aria-hidden": "true" }, numbers), element("pre", { class: "lines" }, pieces));
  const first = Math.min(...waiting);
  if (Number.isFinite(first)) {
    requestAnimationFrame(() => { box.scrollTop = (box.scrollHeight * (first - 1)) / lines.length - box.clientHeight / 2; });
  }
  return box;
}

export function done(items) {
  if (items.length === 0) return element("p", { class: "quiet" }, "Nothing yet.");
  const hidden = Math.max(0, items.length - DONE_SHOWN_MAX);
  const list = items.slice(hidden).map((item) => element("li", {}, line(item)));
  if (hidden) list.unshift(element("li", { class: "quiet" }, `${hidden} earlier ones are not shown`));
  return element("ul", { class: "plain boxed", tabindex: 0, "aria-label": "What the program did" }, list);
}

function line(item) {
  if (item.kind === "log") return element("code", {}, `[${item.level}] ${item.text}`);
  if (item.kind === "emitted") return [element("span", { class: "quiet" }, "handed out "), value(item.item, 2)];
  const how = { completed: "returned", failed: "failed", unknown: "nobody knows how it ended" };
  const ended = item.settled ? how[item.settled.status] : "waits";
  const detail = item.settled?.status === "failed" ? item.settled.error : item.settled?.result;
  return [element("code", {}, `tools.${item.tool}`), ` ${ended} `,
    element("details", {}, element("summary", {}, "details"),
      element("div", {}, "Arguments ", value(item.args, 1)),
      item.said ? element("div", {}, "Said ", element("pre", {}, item.said)) : null,
      detail === undefined ? null : element("div", {}, "Result ", value(detail, 1)))];
}
