// The world of a guest whose host speaks plain execbox. Evaluated once per world, before any guest code, with the
// host's functions as `host`.
//
// Guest code may later replace every global and every method of every prototype. Whatever runs after that time must
// therefore use captured functions only: no method calls on values, no spread, no for-of, no array destructuring.
(function (host) {
  "use strict";

  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { create, freeze } = Object;
  const { stringify } = JSON;
  const { isError } = Error;
  const NativePromise = Promise, NativeError = Error, NativeString = String;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const method = (type, name) => uncurry(type.prototype[name]);

  const wellFormed = method(String, "toWellFormed");
  const slice = method(String, "slice");
  const functionToString = method(Function, "toString");
  const weakGet = method(WeakMap, "get");
  const weakSet = method(WeakMap, "set");

  const define = (object, name, value, enumerable) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable, configurable: true });

  // ---- Errors ----

  const MESSAGE_CHARS_MAX = 65536; // an error is read by people
  const NO_JSON = "Guest code returned a non-serializable value";

  // Which error objects came from us, and with what: only these may carry a code out again.
  const ours = new WeakMap();
  const InternalErrorPrototype = InternalError.prototype;

  const failed = (code, message) => {
    const error = new NativeError(message);
    define(error, "code", code, true);
    weakSet(ours, error, freeze({ __proto__: null, code, message }));
    return error;
  };

  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  const ownData = (object, name) => {
    const property = getOwnPropertyDescriptor(object, name);
    return property === undefined ? undefined : property.value;
  };

  // The guest cannot construct an InternalError: the constructor is taken away below.
  const isExhaustion = (error) => {
    if (!isObject(error) || getPrototypeOf(error) !== InternalErrorPrototype) return false;
    const message = ownData(error, "message");
    return message === "out of memory" || message === "string too long" || message === "out of memory in regexp execution";
  };

  // The code under which an uncaught error is reported: the host's if it is the host's error, unchanged.
  const codeOf = (error) => {
    if (!isObject(error)) return "runtime_error";
    const known = weakGet(ours, error);
    if (known === undefined) return isExhaustion(error) ? "memory_limit" : "runtime_error";
    const unchanged = ownData(error, "code") === known.code && ownData(error, "message") === known.message;
    return unchanged ? known.code : "runtime_error";
  };

  const textOr = (fallback, read) => {
    try {
      const text = read();
      return typeof text === "string" ? wellFormed(slice(text, 0, MESSAGE_CHARS_MAX)) : fallback;
    } catch {
      return fallback;
    }
  };

  const describe = (error) => {
    let code = "runtime_error";
    try {
      code = codeOf(error);
    } catch {
      // A proxy may throw at every look.
    }
    let message;
    if (isObject(error)) message = textOr(undefined, () => error.message);
    if (message === undefined) message = textOr("a value that cannot be shown", () => NativeString(error));
    host.described(code, message);
  };

  // ---- Tools ----

  const calls = create(null);
  let nCalls = 0;

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
    new NativePromise((resolve, reject) => {
      const json = jsonOf(argument);
      if (json === undefined) return reject(failed("serialization_error", NO_JSON));
      const id = nCalls + 1;
      const refusal = host.call(id, provider, tool, json);
      if (refusal !== undefined && refusal !== null) return reject(failed("serialization_error", refusal));
      nCalls = id;
      calls[id] = { __proto__: null, resolve, reject };
    });

  const takeCall = (id) => {
    const pending = calls[id];
    delete calls[id];
    return pending;
  };
  const resolveCall = (id, value) => takeCall(id).resolve(value);
  const rejectCall = (id, code, message) => takeCall(id).reject(failed(code, message));

  // Runs before guest code, so that the array may be walked. Some names (`undefined`) cannot be had; that is no error.
  const provide = (name, tools) => {
    const namespace = {};
    for (const tool of tools) {
      const named = { [tool]: (...args) => call(name, tool, args[0]) };
      define(namespace, tool, named[tool], true);
    }
    define(globalThis, name, namespace, true);
  };

  // ---- Console ----

  let linesLeft = 0;
  let charsLeft = 0;

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
  const showObject = (object) => {
    try {
      const shown = isError(object)
        ? { __proto__: null, name: object.name, message: object.message, stack: object.stack }
        : object;
      const json = stringify(shown);
      return json === undefined ? "undefined" : json;
    } catch (error) {
      if (isExhaustion(error)) throw error;
      return textOr("[object Object]", () => NativeString(object));
    }
  };
  // What does not fit the limits is not even looked at: a flood costs nothing.
  const print = (args) => {
    if (linesLeft <= 0 || charsLeft <= 0) return;
    let text = "";
    for (let at = 0; at < args.length && text.length <= charsLeft; at += 1) {
      text += at === 0 ? show(args[at]) : " " + show(args[at]);
    }
    if (text.length > charsLeft) text = slice(text, 0, charsLeft);
    linesLeft -= 1;
    charsLeft -= text.length;
    host.log(wellFormed(text));
  };
  define(globalThis, "console", {
    log: (...args) => print(args),
    info: (...args) => print(args),
    warn: (...args) => print(args),
    error: (...args) => print(args),
  }, false);

  // Shared memory would let a guest wait without end and outside its limits; the rest execbox's guests do not have either.
  const absent = [
    "Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry", "InternalError", "performance", "queueMicrotask",
    "navigator", "DOMException", "atob", "btoa", "gc",
  ];
  for (const name of absent) delete globalThis[name];
  delete InternalErrorPrototype.constructor;

  const start = (lines, chars) => {
    linesLeft = lines;
    charsLeft = chars;
  };
  return { start, provide, resolveCall, rejectCall, describe };
})
