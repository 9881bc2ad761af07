// Errors of ours, what stacks say, and what the host is told about errors nobody caught.
(function (kit) {
  "use strict";

  const { host, define, freeze, getOwnPropertyDescriptor, getPrototypeOf, InternalErrorPrototype, isArray, isError, rawStackOf } = kit;
  const { self: NativeError } = kit.Error;
  const { prototype: ErrorPrototype } = NativeError;
  const { self: NativeString, indexOf, slice, toWellFormed } = kit.String;
  const { self: NativeWeakMap, get: weakGet, set: weakSet } = kit.WeakMap;

  const ANCESTORS_MAX = 100; // that are asked for a name, or for what they are
  const CAUSES_MAX = 8; // of causes of causes
  const ERRORS_MAX = 10; // of one AggregateError
  const MORE_CHARS_MAX = 16384; // of all that is told besides an error's own message and frames
  const SHOWN_LEVELS = 2; // of an object that is a cause

  // Which error objects came from us, and with what: only these may carry a code of ours out again.
  const ours = new NativeWeakMap();

  // The stacks of errors whose own are of no use, as the engine wrote them.
  const stacks = new NativeWeakMap();

  const failed = (code, message, name, details) => {
    const error = new NativeError(message);
    define(error, "code", code);
    if (name !== undefined) define(error, "name", name);
    if (details !== undefined) define(error, "details", details);
    weakSet(ours, error, freeze({ __proto__: null, code, message }));
    // The error of a call is made long after it: its frames are those of the call.
    const site = host.rejectedSite();
    if (typeof site === "string") weakSet(stacks, error, site);
    return error;
  };

  const unserializable = (what, error) =>
    failed("serialization", what + " cannot be turned into JSON" + textOr("", () => ": " + error.message));

  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  const ownData = (object, name) => {
    const property = getOwnPropertyDescriptor(object, name);
    return property === undefined ? undefined : property.value;
  };

  // A property as it is found along the prototypes, if it is plain data: no getter is run.
  const dataOf = (object, name) => {
    for (let at = object, n = 0; at !== null && n < ANCESTORS_MAX; n += 1) {
      const property = getOwnPropertyDescriptor(at, name);
      if (property !== undefined) return property.value;
      at = getPrototypeOf(at);
    }
    return undefined;
  };

  // The code under which an uncaught error is reported: ours if it is ours and unchanged.
  const codeOf = (error) => {
    if (!isObject(error)) return "runtime";
    const known = weakGet(ours, error);
    if (known !== undefined) {
      const unchanged = ownData(error, "code") === known.code && ownData(error, "message") === known.message;
      return unchanged ? known.code : "runtime";
    }
    return isExhaustion(error) ? "memory_limit" : "runtime";
  };

  // The guest cannot construct an InternalError: the constructor is taken away.
  const isExhaustion = (error) => {
    if (!isObject(error) || getPrototypeOf(error) !== InternalErrorPrototype) return false;
    const message = ownData(error, "message");
    return message === "out of memory" || message === "string too long" || message === "out of memory in regexp execution";
  };

  const textOr = (fallback, read) => {
    try {
      const text = read();
      return typeof text === "string" ? toWellFormed(text) : fallback;
    } catch {
      return fallback;
    }
  };

  // ---- Stacks ----

  // What inherits from Error.prototype counts, as it did before there were classes.
  const isLikeError = (value) => {
    if (!isObject(value)) return false;
    if (isError(value)) return true;
    for (let at = value, n = 0; at !== null && n < ANCESTORS_MAX; n += 1) {
      if (at === ErrorPrototype) return true;
      at = getPrototypeOf(at);
    }
    return false;
  };

  // Not what the guest's `Error.prepareStackTrace` made.
  const isEngines = (stack) => typeof stack === "string" && (stack === "" || indexOf(stack, "    at ") === 0);

  // The message as Node words it, and the frames: of a stack of the engine's, or of what the guest calls one.
  const explained = (error, name, message) => {
    const kept = weakGet(stacks, error);
    const raw = kept === undefined ? rawStackOf(error) : kept;
    const own = kept === undefined ? ownData(error, "stack") : undefined;
    if (typeof own === "string") return { __proto__: null, message, frames: host.frames(own) };
    if (!isEngines(raw)) return { __proto__: null, message, frames: typeof raw === "string" ? host.frames(raw) : "" };
    // What a tool said is not the engine's.
    const said = host.named(weakGet(ours, error) === undefined ? name : "", message, raw);
    return { __proto__: null, message: said, frames: host.namedFrames() };
  };

  const headerOf = (name, message) => (message === "" ? name : name === "" ? message : name + ": " + message);
  const withFrames = (header, frames) => (frames === "" ? header : header + "\n" + frames);

  // What a program reads as `error.stack`.
  const stackText = (error) => {
    const raw = rawStackOf(error);
    if (weakGet(stacks, error) === undefined && (!isError(error) || (raw !== null && !isEngines(raw)))) return raw;
    const name = textOr("Error", () => error.name), message = textOr("", () => error.message);
    const { message: said, frames } = explained(error, name, message);
    return withFrames(headerOf(name, said), frames);
  };

  // What `Error.captureStackTrace` wrote, with a first line.
  const capture = (object) => {
    const raw = ownData(object, "stack");
    if (!isEngines(raw)) return;
    weakSet(stacks, object, raw);
    const name = textOr("Error", () => object.name), message = textOr("", () => object.message);
    const { message: said, frames } = explained(object, name, message);
    define(object, "stack", withFrames(headerOf(name, said), frames));
  };

  // ---- What nobody caught ----

  const UNSHOWN = "a value that cannot be shown";

  // Not replaceAll: that asks the text for a method, which is the guest's to give.
  const eachLine = (text, separator) => {
    let joined = "", done = 0;
    for (let at = indexOf(text, "\n"); at >= 0; at = indexOf(text, "\n", done)) {
      joined += slice(text, done, at) + separator;
      done = at + 1;
    }
    return joined + slice(text, done);
  };
  const eachLineIndented = (text, indent) => eachLine(text, "\n" + indent);

  // An error's class, message, frames and causes, without running code of its own.
  const errorText = (error, depth) => {
    const name = dataOf(error, "name"), message = dataOf(error, "message");
    const given = typeof message === "string" ? toWellFormed(message) : "";
    const class_ = typeof name === "string" ? toWellFormed(name) : "Error";
    const { message: said, frames } = explained(error, class_, given);
    return withFrames(headerOf(class_, said), frames) + causesOf(error, depth);
  };
  const valueText = (value, depth) => {
    const text = textOr(UNSHOWN, () => (isLikeError(value) ? errorText(value, depth) : kit.load("show").inspect(value, SHOWN_LEVELS)));
    return text.length > MORE_CHARS_MAX ? slice(text, 0, MORE_CHARS_MAX) + "..." : text;
  };
  const causesOf = (error, depth) => {
    if (depth > CAUSES_MAX) return "";
    let text = "";
    const cause = getOwnPropertyDescriptor(error, "cause");
    if (cause !== undefined && cause.get === undefined && cause.set === undefined) {
      text += "\n  [cause]: " + eachLineIndented(valueText(cause.value, depth + 1), "  ");
    }
    const errors = ownData(error, "errors");
    if (isArray(errors)) {
      const n = ownData(errors, "length");
      text += "\n  [errors]: [";
      for (let at = 0; at < n && at < ERRORS_MAX && text.length < MORE_CHARS_MAX; at += 1) {
        text += "\n    " + eachLineIndented(valueText(ownData(errors, NativeString(at)), depth + 1), "    ") + ",";
      }
      text += (n > ERRORS_MAX ? "\n    ... " + (n - ERRORS_MAX) + " more" : "") + "\n  ]";
    }
    return text.length > MORE_CHARS_MAX ? slice(text, 0, MORE_CHARS_MAX) + "..." : text;
  };
  const moreOf = (error) => textOr("", () => causesOf(error, 1));

  const describe = (error) => {
    let code = "runtime", isOurs = false, isLike = false;
    try {
      code = codeOf(error);
      isOurs = isObject(error) && weakGet(ours, error) !== undefined;
      isLike = isLikeError(error);
    } catch {
      // A proxy may throw at every look.
    }
    if (!isLike) {
      host.described(code, isOurs, textOr(UNSHOWN, () => kit.load("show").show(error, undefined)), "", "");
      return;
    }
    let message = textOr(undefined, () => error.message);
    if (message === undefined) message = textOr(UNSHOWN, () => NativeString(error));
    const name = textOr("", () => error.name);
    let said = { __proto__: null, message, frames: "" };
    try {
      said = explained(error, name, message);
    } catch {
      // A proxy again.
    }
    const more = moreOf(error);
    const stack = said.frames === "" ? slice(more, 1) : said.frames + more;
    host.described(code, isOurs, said.message, name, stack);
  };

  // The first error that nobody could catch: in a timer, a microtask, a listener.
  let crash, hasCrashed = false;
  const crashed = (error) => {
    if (hasCrashed) return;
    hasCrashed = true;
    crash = error;
    host.crashed();
  };

  return {
    __proto__: null,
    failed,
    unserializable,
    isExhaustion,
    isObject,
    ownData,
    textOr,
    eachLine,
    eachLineIndented,
    explained,
    stackText,
    capture,
    describe,
    crashed,
    describeCrash: () => describe(crash),
  };
})
