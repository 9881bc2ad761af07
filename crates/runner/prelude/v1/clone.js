// structuredClone: a copy of a value that shares nothing with it, loops and all.
(function (kit) {
  "use strict";

  const { create, define, defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, isArray, isError, isView, ownKeys, stackOf, views } = kit;
  const { self: NativeDOMException, name: domName, message: domMessage } = kit.DOMException;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeObject, toString: objectToString } = kit.Object;
  const { self: NativePromise } = kit.Promise;
  const { self: NativeMap, get: mapGet, set: mapSet, forEach: mapForEach, size: mapSize } = kit.Map;
  const { self: NativeSet, add: setAdd, has: setHas, forEach: setForEach, size: setSize } = kit.Set;
  const { self: NativeDate, getTime } = kit.Date;
  const { self: NativeRegExp } = kit.RegExp;
  const { toWellFormed, valueOf: stringOf } = kit.String;
  const { valueOf: numberOf } = kit.Number;
  const { valueOf: booleanOf } = kit.Boolean;
  const { valueOf: bigIntOf } = kit.BigInt;
  const { toString: symbolToString } = kit.Symbol;
  const { self: NativeArrayBuffer, transfer: bufferTransfer, byteLength: bufferBytes, resizable, maxByteLength } = kit.ArrayBuffer;
  const { self: NativeUint8Array } = kit.Uint8Array;
  const { self: NativeDataView } = kit.DataView;
  const typed = kit.TypedArray, dataView = kit.DataView;
  const NativeArray = kit.Array.self;
  const { prototype: ObjectPrototype } = NativeObject;
  const { prototype: PromisePrototype } = NativePromise;

  const errorTypes = create(null);
  errorTypes.Error = kit.Error.self;
  errorTypes.TypeError = kit.TypeError.self;
  errorTypes.RangeError = kit.RangeError.self;
  errorTypes.SyntaxError = kit.SyntaxError.self;
  errorTypes.ReferenceError = kit.ReferenceError.self;
  errorTypes.EvalError = kit.EvalError.self;
  errorTypes.URIError = kit.URIError.self;
  freeze(errorTypes);

  const refused = (what) => new NativeDOMException(what + " could not be cloned.", "DataCloneError");
  const nameOf = (value) => {
    if (typeof value === "symbol") return symbolToString(value);
    if (typeof value === "function") return "a function";
    return "#<" + (kit.load("show").className(value) || "Object") + ">";
  };

  // An ordinary property, whatever stands in the way on the prototype.
  const put = (object, key, value) =>
    defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  const copyProperties = (from, to, memory) => {
    const keys = ownKeys(from);
    for (let at = 0; at < keys.length; at += 1) {
      const key = keys[at];
      if (typeof key !== "string") continue;
      const property = getOwnPropertyDescriptor(from, key);
      // Getters are run here, as everywhere else that structuredClone exists.
      if (property !== undefined && property.enumerable) put(to, key, clone(from[key], memory));
    }
    return to;
  };
  const remember = (memory, value, copy) => {
    mapSet(memory, value, copy);
    return copy;
  };

  const cloneArray = (array, memory) => {
    const copy = remember(memory, array, new NativeArray(array.length));
    return copyProperties(array, copy, memory);
  };
  const cloneMap = (map, memory) => {
    mapSize(map);
    const copy = remember(memory, map, new NativeMap());
    const keys = create(null), values = create(null);
    let n = 0;
    // Copied first: a getter that is run while cloning may change the map.
    mapForEach(map, (value, key) => {
      keys[n] = key;
      values[n] = value;
      n += 1;
    });
    for (let at = 0; at < n; at += 1) mapSet(copy, clone(keys[at], memory), clone(values[at], memory));
    return copy;
  };
  const cloneSet = (set, memory) => {
    setSize(set);
    const copy = remember(memory, set, new NativeSet());
    const values = create(null);
    let n = 0;
    setForEach(set, (value) => {
      values[n] = value;
      n += 1;
    });
    for (let at = 0; at < n; at += 1) setAdd(copy, clone(values[at], memory));
    return copy;
  };

  const FLAGS = freeze({
    __proto__: null, d: "hasIndices", g: "global", i: "ignoreCase", m: "multiline", s: "dotAll", u: "unicode", v: "unicodeSets", y: "sticky",
  });
  const cloneRegExp = (regExp) => {
    const letters = ownKeys(FLAGS);
    let flags = "";
    for (let at = 0; at < letters.length; at += 1) if (kit.RegExp[FLAGS[letters[at]]](regExp)) flags += letters[at];
    return new NativeRegExp(kit.RegExp.source(regExp), flags);
  };

  // Not ArrayBuffer's own slice: it asks the buffer for its constructor, which is the guest's to change.
  const cloneBuffer = (buffer, memory) => {
    const n = bufferBytes(buffer);
    const options = resizable(buffer) ? { __proto__: null, maxByteLength: maxByteLength(buffer) } : undefined;
    const copy = new NativeArrayBuffer(n, options);
    typed.set(new NativeUint8Array(copy), new NativeUint8Array(buffer));
    return remember(memory, buffer, copy);
  };
  const cloneView = (view, memory) => {
    const type = typed.type(view);
    const { buffer, byteOffset, byteLength } = type === undefined ? dataView : typed;
    const copy = clone(buffer(view), memory);
    const Type = type === undefined ? NativeDataView : kit.arrays[type];
    return remember(memory, view, new Type(copy, byteOffset(view), type === undefined ? byteLength(view) : typed.length(view)));
  };

  const ownText = (error, name) => {
    const property = getOwnPropertyDescriptor(error, name);
    return property === undefined || property.get !== undefined ? undefined : toWellFormed("" + property.value);
  };
  const cloneError = (error, memory) => {
    const name = "" + error.name;
    const known = errorTypes[name];
    const copy = remember(memory, error, new (known === undefined ? errorTypes.Error : known)(ownText(error, "message")));
    const stack = stackOf(error);
    if (typeof stack === "string") define(copy, "stack", stack);
    const cause = getOwnPropertyDescriptor(error, "cause");
    if (cause !== undefined && cause.get === undefined) define(copy, "cause", clone(cause.value, memory));
    return copy;
  };

  // A tag can be forged; the captured functions throw a TypeError then, and the object is cloned as an ordinary one.
  const cloneTagged = (value, memory) => {
    switch (objectToString(value)) {
      case "[object Map]": return cloneMap;
      case "[object Set]": return cloneSet;
      case "[object Date]": return (date) => remember(memory, date, new NativeDate(getTime(date)));
      case "[object RegExp]": return (regExp) => remember(memory, regExp, cloneRegExp(regExp));
      case "[object ArrayBuffer]": return cloneBuffer;
      case "[object Boolean]": return (boxed) => remember(memory, boxed, NativeObject(booleanOf(boxed)));
      case "[object Number]": return (boxed) => remember(memory, boxed, NativeObject(numberOf(boxed)));
      case "[object String]": return (boxed) => remember(memory, boxed, NativeObject(stringOf(boxed)));
      case "[object BigInt]": return (boxed) => remember(memory, boxed, NativeObject(bigIntOf(boxed)));
      case "[object DOMException]":
        return (error) => remember(memory, error, new NativeDOMException(domMessage(error), domName(error)));
      case "[object WeakMap]":
      case "[object WeakSet]":
      case "[object Symbol]":
      case "[object Generator]":
      case "[object AsyncGenerator]": throw refused(nameOf(value));
      default: return undefined;
    }
  };
  const isOurs = (value) => {
    for (let at = 0; at < kit.nViews; at += 1) if (views[at](value) !== undefined) return true;
    return false;
  };

  const cloneObject = (value, memory) => {
    const above = getPrototypeOf(value);
    if (isArray(value)) return cloneArray(value, memory);
    if (isView(value)) return cloneView(value, memory);
    if (isError(value)) return cloneError(value, memory);
    if (above !== ObjectPrototype && above !== null) {
      if (above === PromisePrototype || isOurs(value)) throw refused(nameOf(value));
      const special = cloneTagged(value, memory);
      if (special !== undefined && isWhatItSays(value)) return special(value, memory);
    }
    return copyProperties(value, remember(memory, value, {}), memory);
  };
  const brands = freeze({
    __proto__: null,
    "[object Map]": mapSize, "[object Set]": setSize, "[object Date]": getTime, "[object RegExp]": kit.RegExp.global,
    "[object ArrayBuffer]": bufferBytes, "[object Boolean]": booleanOf, "[object Number]": numberOf,
    "[object String]": stringOf, "[object BigInt]": bigIntOf, "[object DOMException]": domName,
  });
  const isWhatItSays = (value) => {
    try {
      brands[objectToString(value)](value);
      return true;
    } catch {
      return false;
    }
  };

  const clone = (value, memory) => {
    if (typeof value === "symbol" || typeof value === "function") throw refused(nameOf(value));
    if (typeof value !== "object" || value === null) return value;
    const known = mapGet(memory, value);
    return known === undefined ? cloneObject(value, memory) : known;
  };

  // Buffers that are handed over: what is left behind is empty. They are emptied last: a look at an empty buffer no
  // longer knows its size.
  const handedOver = (options) => {
    const list = options === undefined || options === null ? undefined : options.transfer;
    const buffers = create(null);
    if (list === undefined) return buffers;
    if (!isArray(list)) throw new NativeTypeError("transfer needs an array");
    const seen = new NativeSet();
    for (let at = 0; at < list.length; at += 1) {
      const buffer = list[at];
      try {
        bufferBytes(buffer);
      } catch {
        throw new NativeDOMException("only an ArrayBuffer can be transferred", "DataCloneError");
      }
      if (setHas(seen, buffer)) throw new NativeDOMException("a buffer is transferred twice", "DataCloneError");
      setAdd(seen, buffer);
      buffers[at] = buffer;
    }
    return buffers;
  };
  const structuredClone = (...args) => {
    if (args.length === 0) throw new NativeTypeError("structuredClone needs a value");
    const memory = new NativeMap();
    const buffers = handedOver(args[1]);
    const copy = clone(args[0], memory);
    for (let at = 0; buffers[at] !== undefined; at += 1) bufferTransfer(buffers[at]);
    return copy;
  };
  define(structuredClone, "length", 1);

  return { __proto__: null, structuredClone };
})
