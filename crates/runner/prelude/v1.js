// The guest's world, version 1. Evaluated once per world, before any guest code, with the host's functions as `host`.
//
// A journal remembers which version a program ran with and replays it with that version: never change what a
// version does once it has been released; add the next one instead.
//
// Guest code may later replace every global and every method of every prototype. Whatever runs after that time must
// therefore use captured functions only: no method calls on values, no spread, no for-of, no array destructuring.
(function (host) {
  "use strict";

  const { apply, construct, ownKeys, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { create, freeze } = Object;
  const { stringify } = JSON;
  const { isArray } = Array;
  const { isSafeInteger } = Number;
  const { trunc } = Math;
  const { toPrimitive } = Symbol;
  const NativePromise = Promise, NativeDate = Date, NativeError = Error, NativeTypeError = TypeError;
  const NativeString = String, NativeNumber = Number, NativeProxy = Proxy, NativeUint8Array = Uint8Array;
  const RESULT_UNKNOWN = create(null);
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const method = (type, name) => uncurry(type.prototype[name]);
  const getter = (type, name) => uncurry(getOwnPropertyDescriptor(type.prototype, name).get);

  const wellFormed = method(String, "toWellFormed");
  const indexOf = method(String, "indexOf");
  const slice = method(String, "slice");
  const padStart = method(String, "padStart");
  const numberToString = method(Number, "toString");
  const weakGet = method(WeakMap, "get");
  const weakSet = method(WeakMap, "set");

  const define = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });

  // ---- Errors ----

  // Which error objects came from us, and with what: only these may carry a code of ours out again.
  const ours = new WeakMap();
  const InternalErrorPrototype = InternalError.prototype;

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

  // The guest cannot construct an InternalError: the constructor is taken away below.
  const isExhaustion = (error) => {
    if (getPrototypeOf(error) !== InternalErrorPrototype) return false;
    const message = ownData(error, "message");
    return message === "out of memory" || message === "string too long" || message === "out of memory in regexp execution";
  };

  const textOr = (fallback, read) => {
    try {
      const text = read();
      return typeof text === "string" ? wellFormed(text) : fallback;
    } catch {
      return fallback;
    }
  };

  const describe = (error) => {
    let code = "runtime";
    try {
      code = codeOf(error);
    } catch {
      // A proxy may throw at every look.
    }
    const described = isObject(error);
    const plain = textOr("a value that cannot be shown", () => NativeString(error));
    host.described(
      code,
      described ? textOr(plain, () => error.message) : plain,
      described ? textOr("", () => error.name) : "",
      described ? textOr("", () => error.stack) : "",
    );
  };

  let crash = RESULT_UNKNOWN;
  const crashed = (error) => {
    if (crash !== RESULT_UNKNOWN) return;
    crash = error;
    host.crashed();
  };
  const describeCrash = () => describe(crash);

  // ---- Tools ----

  const calls = create(null);
  let nCalls = 0;

  const call = (path, args) => {
    let json;
    try {
      json = stringify(args.length === 0 ? null : args[0]);
    } catch (error) {
      return new NativePromise((_, reject) => reject(unserializable("the arguments of tools." + path, error)));
    }
    return new NativePromise((resolve, reject) => {
      const id = nCalls + 1;
      const refusal = host.call(id, wellFormed(path), json === undefined ? "null" : json);
      if (refusal !== undefined && refusal !== null) {
        reject(failed("validation", refusal));
        return;
      }
      nCalls = id;
      calls[id] = { __proto__: null, resolve, reject };
    });
  };

  const takeCall = (id) => {
    const pending = calls[id];
    delete calls[id];
    return pending;
  };
  const resolveCall = (id, at, value) => {
    if (at !== undefined) now = at;
    takeCall(id).resolve(value);
  };
  const rejectCall = (id, at, code, message, name, details) => {
    if (at !== undefined) now = at;
    takeCall(id).reject(failed(code, message, name, details));
  };

  const callable = () => {};
  const traps = freeze({
    __proto__: null,
    // `then` would make it a promise, `toJSON` would be called by JSON.stringify; as text it is its path, not a call of
    // a tool named toString.
    get(_, name) {
      if (name === toPrimitive) return () => (this.path === "" ? "tools" : "tools." + this.path);
      if (typeof name !== "string" || name === "then" || name === "toJSON") return undefined;
      return toolsAt(this.path === "" ? name : this.path + "." + name);
    },
    apply(_, self, args) {
      if (this.path === "") throw new NativeTypeError("Tool path missing in invocation");
      return call(this.path, args);
    },
    has: (_, name) => typeof name === "string",
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
    getOwnPropertyDescriptor: () => undefined,
    ownKeys: () => [],
  });
  const toolsAt = (path) => new NativeProxy(callable, { __proto__: traps, path });

  // ---- Time ----

  let now = 0;
  let startedAt = 0;

  const timers = create(null);
  const intervals = create(null);
  let nTimers = 0;

  // As in Node: less than a millisecond, and what is no number, is one millisecond.
  const delayOf = (delay) => {
    const ms = trunc(NativeNumber(delay));
    return ms >= 1 ? (isSafeInteger(ms) ? ms : NativeNumber.MAX_SAFE_INTEGER) : 1;
  };
  const setTimer = (run, args, delay, interval) => {
    if (typeof run !== "function") throw new NativeTypeError("a timer needs a function to call");
    const ms = delayOf(delay);
    nTimers += 1;
    const timer = { __proto__: null, run, args, ms, interval: interval === 0 ? nTimers : interval };
    timers[nTimers] = timer;
    if (timer.interval !== undefined) intervals[timer.interval] = nTimers;
    host.timerSet(nTimers, ms);
    return nTimers;
  };
  const clearTimer = (handle) => {
    if (typeof handle !== "number") return;
    const id = intervals[handle] === undefined ? handle : intervals[handle];
    delete intervals[handle];
    if (timers[id] === undefined) return;
    delete timers[id];
    host.timerCleared(id);
  };
  const fire = (id, at) => {
    now = at;
    const timer = timers[id];
    delete timers[id];
    try {
      apply(timer.run, undefined, timer.args);
    } catch (error) {
      crashed(error);
    }
    if (timer.interval !== undefined && intervals[timer.interval] === id) {
      setTimer(timer.run, timer.args, timer.ms, timer.interval);
    }
  };

  const dateToString = method(Date, "toString");
  const GuestDate = function Date(...args) {
    if (new.target === undefined) return dateToString(new NativeDate(now));
    return construct(NativeDate, args.length === 0 ? [now] : args, new.target);
  };
  defineProperty(GuestDate, "length", { __proto__: null, value: 7 });
  defineProperty(GuestDate, "prototype", { __proto__: null, value: NativeDate.prototype, writable: false });
  define(GuestDate, "now", { now: () => now }.now);
  define(GuestDate, "parse", NativeDate.parse);
  define(GuestDate, "UTC", NativeDate.UTC);
  define(NativeDate.prototype, "constructor", GuestDate);

  // ---- Randomness: sfc32, one stream for Math.random, one for crypto ----

  const stream = () => {
    let a = 0, b = 0, c = 0, counter = 1;
    const next = () => {
      const sum = (((a + b) | 0) + counter) | 0;
      counter = (counter + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + sum) | 0;
      return sum >>> 0;
    };
    const seed = (s0, s1, s2, s3) => {
      a = s0 | 0;
      b = s1 | 0;
      c = s2 | 0;
      counter = s3 | 0;
      for (let round = 0; round < 15; round += 1) next();
    };
    return { __proto__: null, next, seed };
  };
  const numbers = stream();
  const secrets = stream();

  const random = () => (numbers.next() >>> 5) / 134217728 + (numbers.next() >>> 6) / 9007199254740992;

  const TypedArray = getPrototypeOf(Uint8Array);
  const typeOfArray = getter(TypedArray, Symbol.toStringTag);
  const bufferOf = getter(TypedArray, "buffer");
  const offsetOf = getter(TypedArray, "byteOffset");
  const bytesOf = getter(TypedArray, "byteLength");
  const RANDOM_BYTES_MAX = 65536; // as in browsers
  const getRandomValues = (array) => {
    const type = isObject(array) ? typeOfArray(array) : undefined;
    if (type === undefined || indexOf(type, "Float") === 0) {
      throw new NativeTypeError("getRandomValues needs an array of integers");
    }
    const n = bytesOf(array);
    if (n > RANDOM_BYTES_MAX) throw new NativeTypeError("getRandomValues gives at most 65536 bytes");
    const bytes = new NativeUint8Array(bufferOf(array), offsetOf(array), n);
    for (let at = 0; at < n; at += 1) bytes[at] = secrets.next() >>> 24;
    return array;
  };
  const hex8 = (word) => padStart(numberToString(word >>> 0, 16), 8, "0");
  const randomUUID = () => {
    const a = hex8(secrets.next());
    const b = hex8((secrets.next() & 0xffff0fff) | 0x4000);
    const c = hex8((secrets.next() & 0x3fffffff) | 0x80000000);
    const d = hex8(secrets.next());
    return a + "-" + slice(b, 0, 4) + "-" + slice(b, 4) + "-" + slice(c, 0, 4) + "-" + slice(c, 4) + d;
  };

  // ---- Console ----

  const DEPTH_MAX = 4; // what is nested deeper is named, not shown
  const ITEMS_MAX = 100; // of one array, map, set or object
  const TEXT_CHARS_MAX = 10000; // of one string inside something
  const LINE_CHARS_MAX = 65536; // of one call of console

  const objectToString = method(Object, "toString");
  const functionToString = method(Function, "toString");
  const symbolToString = method(Symbol, "toString");
  const regExpToString = method(RegExp, "toString");
  const dateToISOString = method(Date, "toISOString");
  const timeOf = method(Date, "getTime");
  const mapForEach = method(Map, "forEach");
  const mapSize = getter(Map, "size");
  const setForEach = method(Set, "forEach");
  const setSize = getter(Set, "size");
  const bufferBytes = getter(ArrayBuffer, "byteLength");
  const isError = Error.isError;
  const charCodeAt = method(String, "charCodeAt");
  // A regular expression would do, but RegExp.prototype.test looks up `exec`, which the guest may replace.
  const isWord = (text) => {
    if (text === "" || text.length > 200) return false;
    for (let at = 0; at < text.length; at += 1) {
      const c = charCodeAt(text, at);
      const letter = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95 || c === 36;
      if (!letter && !(at > 0 && c >= 48 && c <= 57)) return false;
    }
    return true;
  };

  const quoted = (text) => {
    const shown = text.length > TEXT_CHARS_MAX ? slice(text, 0, TEXT_CHARS_MAX) : text;
    const more = text.length - shown.length;
    const json = stringify(shown);
    const simple = indexOf(json, "'") < 0 && indexOf(json, '\\"') < 0;
    return (simple ? "'" + slice(json, 1, -1) + "'" : json) + (more > 0 ? "... " + more + " more characters" : "");
  };

  const nameOf = (fn) => {
    const name = ownData(fn, "name");
    return typeof name === "string" ? name : "";
  };
  // Asking a proxy for its source would ask it for properties, and `tools` takes that for a call: only what has a class's
  // prototype is asked.
  const isClass = (fn) => {
    const prototype = getOwnPropertyDescriptor(fn, "prototype");
    return prototype !== undefined && !prototype.writable && indexOf(functionToString(fn), "class") === 0;
  };
  const showFunction = (fn) => {
    const kind = isClass(fn) ? "class" : "Function";
    const name = nameOf(fn);
    return name === "" ? "[" + kind + " (anonymous)]" : "[" + kind + ": " + name + "]";
  };
  const className = (object) => {
    const prototype = getPrototypeOf(object);
    if (prototype === null) return "[Object: null prototype]";
    const type = ownData(prototype, "constructor");
    return typeof type === "function" ? nameOf(type) : "";
  };
  const header = (error) => {
    const name = textOr("Error", () => error.name);
    const message = textOr("", () => error.message);
    return message === "" ? name : name + ": " + message;
  };

  const showKey = (key) =>
    typeof key === "symbol" ? "[" + symbolToString(key) + "]" : isWord(key) ? key : quoted(key);
  const showProperty = (object, key, within) => {
    const property = getOwnPropertyDescriptor(object, key);
    if (property === undefined || !property.enumerable) return undefined;
    if (property.get !== undefined) return property.set === undefined ? "[Getter]" : "[Getter/Setter]";
    return property.set === undefined ? show(property.value, within) : "[Setter]";
  };

  // Collects the items of one object between its brackets.
  const items = (open, close) => {
    let text = "", n = 0, left = 0;
    const add = (item) => {
      if (n >= ITEMS_MAX || text.length > LINE_CHARS_MAX) left += 1;
      else {
        text += (n === 0 ? " " : ", ") + item();
        n += 1;
      }
    };
    const end = (more) => {
      const rest = left + more;
      if (rest > 0) text += (n === 0 ? " " : ", ") + "... " + rest + (rest === 1 ? " more item" : " more items");
      return text === "" ? open + close : open + text + " " + close;
    };
    return { __proto__: null, add, end };
  };
  const addProperties = (list, object, within, skipIndices) => {
    const keys = ownKeys(object);
    for (let at = 0; at < keys.length; at += 1) {
      const key = keys[at];
      if (skipIndices && typeof key === "string" && isIndex(key)) continue;
      const value = showProperty(object, key, within);
      if (value !== undefined) list.add(() => showKey(key) + ": " + value);
    }
  };
  const isIndex = (key) => key === NativeString(trunc(NativeNumber(key))) && NativeNumber(key) >= 0;

  const showArray = (array, within, open) => {
    const list = items(open, "]");
    const n = array.length;
    const shown = n < ITEMS_MAX ? n : ITEMS_MAX;
    for (let at = 0; at < shown; at += 1) {
      const value = showProperty(array, NativeString(at), within);
      list.add(() => (value === undefined ? "<empty>" : value));
    }
    if (n <= ITEMS_MAX) addProperties(list, array, within, true);
    return list.end(n - shown);
  };
  const showMap = (map, within) => {
    const list = items("Map(" + mapSize(map) + ") {", "}");
    mapForEach(map, (value, key) => list.add(() => show(key, within) + " => " + show(value, within)));
    return list.end(0);
  };
  const showSet = (set, within) => {
    const list = items("Set(" + setSize(set) + ") {", "}");
    setForEach(set, (value) => list.add(() => show(value, within)));
    return list.end(0);
  };
  const showError = (error, within) => {
    const text = header(error);
    if (within.depth > 1) return "[" + text + "]";
    const frames = host.frames(textOr("", () => error.stack));
    return frames === "" ? text : text + "\n" + frames;
  };
  const showPlain = (object, within) => {
    const name = className(object);
    const list = items((name === "" || name === "Object" ? "" : name + " ") + "{", "}");
    addProperties(list, object, within, false);
    return list.end(0);
  };
  // A tag can be forged; the captured functions throw then, and the object is shown as what it also is.
  const showSpecial = (object, within) => {
    if (isArray(object)) return showArray(object, within, "[");
    const typed = typeOfArray(object);
    if (typed !== undefined) return showArray(object, within, typed + "(" + object.length + ") [");
    if (isError(object)) return showError(object, within);
    switch (objectToString(object)) {
      case "[object Map]": return showMap(object, within);
      case "[object Set]": return showSet(object, within);
      case "[object Date]": return timeOf(object) === timeOf(object) ? dateToISOString(object) : "Invalid Date";
      case "[object RegExp]": return NativeString(regExpToString(object));
      case "[object ArrayBuffer]": return "ArrayBuffer { byteLength: " + bufferBytes(object) + " }";
      default: return undefined;
    }
  };
  const showObject = (object, outer) => {
    for (let above = outer; above !== undefined; above = above.outer) {
      if (above.object === object) return "[Circular]";
    }
    const depth = outer === undefined ? 1 : outer.depth + 1;
    if (depth > DEPTH_MAX) return isArray(object) ? "[Array]" : "[" + (className(object) || "Object") + "]";
    const within = { __proto__: null, object, outer, depth };
    let special;
    try {
      special = showSpecial(object, within);
    } catch {
      special = undefined;
    }
    return special === undefined ? showPlain(object, within) : special;
  };
  const show = (value, outer) => {
    switch (typeof value) {
      case "string": return outer === undefined ? value : quoted(value);
      case "bigint": return NativeString(value) + "n";
      case "symbol": return symbolToString(value);
      case "number": return value === 0 && 1 / value < 0 ? "-0" : NativeString(value);
      case "function": return showFunction(value);
      case "object": return value === null ? "null" : showObject(value, outer);
      default: return NativeString(value);
    }
  };
  const line = (args) => {
    let text = "";
    for (let at = 0; at < args.length; at += 1) {
      let shown;
      try {
        shown = show(args[at], undefined);
      } catch {
        shown = "[a value that cannot be shown]";
      }
      text += at === 0 ? shown : " " + shown;
      if (text.length > LINE_CHARS_MAX) break;
    }
    const more = text.length - LINE_CHARS_MAX;
    return wellFormed(more > 0 ? slice(text, 0, LINE_CHARS_MAX) + "... " + more + " more characters" : text);
  };

  // ---- What the guest sees ----

  const console = {
    log: (...args) => host.log("log", line(args)),
    info: (...args) => host.log("info", line(args)),
    warn: (...args) => host.log("warn", line(args)),
    error: (...args) => host.log("error", line(args)),
    debug: (...args) => host.log("debug", line(args)),
  };
  const emit = (value) => {
    let json;
    try {
      json = stringify(value);
    } catch (error) {
      throw unserializable("an emitted item", error);
    }
    if (json === undefined && value !== undefined) {
      throw failed("serialization", "a " + typeof value + " cannot be turned into JSON");
    }
    host.emit(json === undefined ? "null" : json);
  };
  const { defer } = host;
  const guest = {
    console,
    emit,
    tools: toolsAt(""),
    Date: GuestDate,
    setTimeout: (run, delay, ...args) => setTimer(run, args, delay, undefined),
    setInterval: (run, delay, ...args) => setTimer(run, args, delay, 0),
    clearTimeout: (handle) => clearTimer(handle),
    clearInterval: (handle) => clearTimer(handle),
    queueMicrotask: (run) => {
      if (typeof run !== "function") throw new NativeTypeError("queueMicrotask needs a function to call");
      defer(() => {
        try {
          apply(run, undefined, []);
        } catch (error) {
          crashed(error);
        }
      });
    },
    performance: { now: () => now - startedAt, get timeOrigin() { return startedAt; } },
    crypto: { randomUUID, getRandomValues },
    fetch: () => {
      throw new NativeTypeError("fetch is not available here: everything outside is reached through tools.*");
    },
  };
  const names = ownKeys(guest);
  for (let at = 0; at < names.length; at += 1) define(globalThis, names[at], guest[names[at]]);
  define(Math, "random", { random }.random);

  delete globalThis.WeakRef;
  delete globalThis.FinalizationRegistry;
  delete globalThis.Atomics;
  delete globalThis.SharedArrayBuffer;
  delete globalThis.InternalError;
  delete InternalErrorPrototype.constructor;

  const start = (at, a, b, c, d, e, f, g, h) => {
    now = startedAt = at;
    numbers.seed(a, b, c, d);
    secrets.seed(e, f, g, h);
  };
  return { start, resolveCall, rejectCall, fire, describe, describeCrash };
})
