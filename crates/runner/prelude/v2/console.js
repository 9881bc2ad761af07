// console: what is printed becomes a line of the execution's log. There are no timers on it: the clock stands still
// while a program computes. What is rarely called is in console_more. Differs from version 1: an argument that is nothing but
// data is shown as JSON.
(function (kit) {
  "use strict";

  const { getOwnPropertyDescriptor, getPrototypeOf, isArray, LINE_CHARS_MAX, ownKeys, stringify } = kit;
  const { self: NativeString, indexOf, slice, toWellFormed } = kit.String;
  const { prototype: ObjectPrototype } = kit.Object.self;
  const { prototype: ArrayPrototype } = kit.Array.self;
  const { self: NativeDate, getTime, toISOString } = kit.Date;
  const { show } = kit.load("show");
  const { eachLine } = kit.load("errors");

  const GROUPS_MAX = 100; // beyond which indentation does not grow

  const attempt = (value, text) => {
    try {
      return text(value);
    } catch {
      return "[a value that cannot be shown]";
    }
  };

  // ---- Data as JSON ----

  const DATA_DEPTH_MAX = 100; // levels that are looked through
  const DATA_TEXT_CHARS_MAX = 10000; // of one string inside something; a longer one is cut where it is shown

  // The JSON text of a value, or undefined where JSON would leave something out, change it, or run the guest's code: then it is
  // shown with everything that it is.
  const dataText = (value, outer) => {
    switch (typeof value) {
      case "string": return value.length <= DATA_TEXT_CHARS_MAX ? stringify(value) : undefined;
      case "boolean": return value ? "true" : "false";
      case "number": return value - value === 0 ? NativeString(value) : undefined;
      case "object": return value === null ? "null" : objectText(value, outer);
      default: return undefined;
    }
  };
  const objectText = (object, outer) => {
    for (let above = outer; above !== undefined; above = above.outer) if (above.object === object) return undefined;
    const depth = outer === undefined ? 1 : outer.depth + 1;
    if (depth > DATA_DEPTH_MAX) return undefined;
    const within = { __proto__: null, object, outer, depth };
    const above = getPrototypeOf(object);
    if (above === ArrayPrototype && isArray(object)) return listText(object, within);
    if (above === ObjectPrototype) return membersText(object, within);
    return above === NativeDate.prototype && outer !== undefined ? dateText(object) : undefined;
  };
  const dateText = (date) => (ownKeys(date).length === 0 && getTime(date) === getTime(date) ? '"' + toISOString(date) + '"' : undefined);
  const memberText = (object, key, within) => {
    const property = getOwnPropertyDescriptor(object, key);
    const isData = property !== undefined && property.enumerable && property.get === undefined && property.set === undefined;
    return isData ? dataText(property.value, within) : undefined;
  };
  const listText = (array, within) => {
    // With a hole or a property of its own it is more than its items.
    if (array.length > LINE_CHARS_MAX || ownKeys(array).length !== array.length + 1) return undefined;
    let text = "[";
    for (let at = 0; at < array.length && text.length <= LINE_CHARS_MAX; at += 1) {
      const item = memberText(array, NativeString(at), within);
      if (item === undefined) return undefined;
      text += (at === 0 ? "" : ",") + item;
    }
    return text + "]";
  };
  const membersText = (object, within) => {
    const keys = ownKeys(object);
    let text = "{";
    for (let at = 0; at < keys.length && text.length <= LINE_CHARS_MAX; at += 1) {
      const key = keys[at];
      const member = typeof key === "string" ? memberText(object, key, within) : undefined;
      if (member === undefined) return undefined;
      text += (at === 0 ? "" : ",") + stringify(key) + ":" + member;
    }
    return text + "}";
  };

  const shown = (value) => {
    const text = typeof value === "object" && value !== null ? dataText(value, undefined) : undefined;
    return text === undefined ? show(value, undefined) : text;
  };
  const plain = (value) => attempt(value, shown);

  // ---- Lines ----

  const line = (args, from) => {
    let text = "", at = from;
    if (args.length - from > 1 && typeof args[from] === "string" && indexOf(args[from], "%") >= 0) {
      const first = kit.load("console_more").formatted(args, from);
      text = first.text;
      at = first.used;
    }
    for (; at < args.length && text.length <= LINE_CHARS_MAX; at += 1) {
      text += at === from ? plain(args[at]) : " " + plain(args[at]);
    }
    return text;
  };

  let indent = "";
  const indented = (text) => (indent === "" ? text : indent + eachLine(text, "\n" + indent));
  const print = (level, text) => {
    const more = text.length - LINE_CHARS_MAX;
    const shown = more > 0 ? slice(text, 0, LINE_CHARS_MAX) + "... " + more + " more characters" : text;
    kit.log(level, toWellFormed(indented(shown)));
  };

  const group = (args) => {
    if (args.length > 0) print("log", line(args, 0));
    if (indent.length < GROUPS_MAX * 2) indent += "  ";
  };
  const more = (name) => (args) => kit.load("console_more")[name](args);

  return {
    __proto__: null,
    attempt,
    eachLine,
    indented,
    line,
    print,
    log: (args) => print("log", line(args, 0)),
    info: (args) => print("info", line(args, 0)),
    warn: (args) => print("warn", line(args, 0)),
    error: (args) => print("error", line(args, 0)),
    debug: (args) => print("debug", line(args, 0)),
    dirxml: (args) => print("log", line(args, 0)),
    dir: more("dir"),
    table: more("table"),
    assert: more("assert"),
    count: more("count"),
    countReset: more("countReset"),
    trace: more("trace"),
    group,
    groupCollapsed: group,
    groupEnd: () => {
      indent = slice(indent, 2);
    },
  };
})
