// What is a plain execbox host's in this world: its namespaces of tools, and a console that writes lines as execbox's own
// runner does.
(function (kit) {
  "use strict";

  const { defineProperty, host, isError, loaded, stringify } = kit;
  const { self: NativeString, slice, toWellFormed } = kit.String;
  const { toString: functionToString } = kit.Function;
  const { failed, isExhaustion, textOr } = kit.load("errors");
  const { issue } = kit.load("tools");

  const NO_JSON = "Guest code returned a non-serializable value";

  // ---- Tools ----

  const jsonOf = (value) => {
    if (value === undefined) return "null";
    try {
      return stringify(value);
    } catch (error) {
      if (isExhaustion(error)) throw error;
      return undefined;
    }
  };
  const call = (provider, tool, argument) =>
    issue(
      () => {
        const json = jsonOf(argument);
        return json === undefined ? failed("serialization_error", NO_JSON) : json;
      },
      (id, json) => {
        const refusal = host.callHosted(id, provider, tool, json);
        return refusal === undefined || refusal === null ? undefined : failed("serialization_error", refusal);
      },
    );

  const set = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  // Some names (`undefined`) cannot be had; that is no error.
  const provide = (name, tools) => {
    const namespace = {};
    for (let at = 0; at < tools.length; at += 1) {
      const tool = tools[at];
      set(namespace, tool, { [tool]: (...args) => call(name, tool, args[0]) }[tool]);
    }
    set(kit.world, name, namespace);
    kit.outside += (kit.outside === "" ? "" : ", ") + name + ".*";
  };

  // ---- Console ----

  const show = (value) => {
    switch (typeof value) {
      case "string": return value;
      case "undefined": return "undefined";
      case "symbol": return "";
      case "bigint": return NativeString(value);
      case "function": return functionToString(value);
      case "object": return value === null ? "null" : showObject(value);
      default: return stringify(value);
    }
  };
  // What execbox's runner makes of a value before its host writes it: of an error its texts, of a promise what became of
  // it.
  const dumped = (value) => {
    if (typeof value === "function") return functionToString(value);
    if (typeof value !== "object" || value === null) return value;
    if (isError(value)) {
      return { __proto__: null, name: value.name, message: value.message, stack: value.stack };
    }
    const state = host.promiseState(value);
    if (state === undefined || state === null) return value;
    const type = state[0];
    if (type === "pending") return { __proto__: null, type };
    const inner = dumped(state[1]);
    return type === "fulfilled" ? { __proto__: null, type, value: inner } : { __proto__: null, type, error: inner };
  };
  const showObject = (object) => {
    try {
      const json = stringify(dumped(object));
      if (json === undefined) return "undefined";
      // Its host takes what is JSON of a text, such as that of a date, for a text.
      return json[0] === "\"" ? host.textOf(json) : json;
    } catch (error) {
      if (isExhaustion(error)) throw error;
      const state = host.promiseState(object);
      if (state !== undefined && state !== null) return "[object Object]";
      return textOr("[object Object]", () => NativeString(object));
    }
  };

  let linesLeft = 0, charsLeft = 0;
  const log = (level, text) => {
    if (linesLeft <= 0 || charsLeft <= 0) return;
    const line = text.length > charsLeft ? slice(text, 0, charsLeft) : text;
    linesLeft -= 1;
    charsLeft -= line.length;
    const wellFormed = toWellFormed(line);
    if (wellFormed === line) host.log(level, line);
    else host.log(level, wellFormed, stringify(line));
  };
  // What does not fit the limits is not even looked at: a flood costs nothing.
  const print = (level, args) => {
    if (linesLeft <= 0 || charsLeft <= 0) return;
    let text = "";
    for (let at = 0; at < args.length && text.length <= charsLeft; at += 1) {
      text += at === 0 ? show(args[at]) : " " + show(args[at]);
    }
    log(level, loaded.console === undefined ? text : loaded.console.indented(text));
  };

  const begin = (lines, chars) => {
    linesLeft = lines;
    charsLeft = chars;
    kit.log = log;
    kit.hosted = { __proto__: null, print };
    kit.outside = "";
    // Tools are found in the host's namespaces, and nowhere else.
    delete kit.world.tools;
    delete kit.world.callTool;
  };

  return { __proto__: null, begin, provide };
})
