// Errors of ours, and what the host is told about errors nobody caught.
(function (kit) {
  "use strict";

  const { host, define, freeze, getOwnPropertyDescriptor, getPrototypeOf, InternalErrorPrototype } = kit;
  const { self: NativeError } = kit.Error;
  const { self: NativeString, toWellFormed } = kit.String;
  const { self: NativeWeakMap, get: weakGet, set: weakSet } = kit.WeakMap;

  // Which error objects came from us, and with what: only these may carry a code of ours out again.
  const ours = new NativeWeakMap();

  const failed = (code, message, name, details) => {
    const error = new NativeError(message);
    define(error, "code", code);
    if (name !== undefined) define(error, "name", name);
    if (details !== undefined) define(error, "details", details);
    weakSet(ours, error, freeze({ __proto__: null, code, message }));
    return error;
  };

  const unserializable = (what, error) =>
    failed("serialization", what + " cannot be turned into JSON" + textOr("", () => ": " + error.message));

  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  const ownData = (object, name) => {
    const property = getOwnPropertyDescriptor(object, name);
    return property === undefined ? undefined : property.value;
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

  const describe = (error) => {
    let code = "runtime", isOurs = false;
    try {
      code = codeOf(error);
      isOurs = isObject(error) && weakGet(ours, error) !== undefined;
    } catch {
      // A proxy may throw at every look.
    }
    const described = isObject(error);
    const plain = textOr("a value that cannot be shown", () => NativeString(error));
    host.described(
      code,
      isOurs,
      described ? textOr(plain, () => error.message) : plain,
      described ? textOr("", () => error.name) : "",
      described ? textOr("", () => error.stack) : "",
    );
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
    describe,
    crashed,
    describeCrash: () => describe(crash),
  };
})
