// Values as people want to read them. Nothing of the guest's is run for it, as far as the language lets us: getters are
// named, not called. Here is what most values are made of; the rest is in show_kinds.
(function (kit) {
  "use strict";

  const { getOwnPropertyDescriptor, getPrototypeOf, isArray, ownKeys, stringify, trunc } = kit;
  const { iterator, toStringTag } = kit.symbols;
  const { charCodeAt, indexOf, slice, self: NativeString } = kit.String;
  const { self: NativeNumber } = kit.Number;
  const { toString: symbolToString } = kit.Symbol;
  const { prototype: ObjectPrototype } = kit.Object.self;
  const { prototype: ArrayPrototype } = kit.Array.self;
  const { LINE_CHARS_MAX } = kit;

  const DEPTH_MAX = 4; // what is nested deeper is named, not shown
  const ITEMS_MAX = 100; // of one array, map, set or object
  const TEXT_CHARS_MAX = 10000; // of one string inside something
  const ANCESTORS_MAX = 100; // that are asked for a name

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

  const ownData = (object, name) => {
    const property = getOwnPropertyDescriptor(object, name);
    return property === undefined ? undefined : property.value;
  };
  const nameOf = (fn) => {
    const name = ownData(fn, "name");
    return typeof name === "string" ? name : "";
  };
  // The nearest constructor's name; "" if there is none.
  const className = (object) => {
    let above = getPrototypeOf(object);
    if (above === null) return "[Object: null prototype]";
    for (let n = 0; above !== null && n < ANCESTORS_MAX; n += 1) {
      const type = ownData(above, "constructor");
      if (typeof type === "function" && nameOf(type) !== "") return nameOf(type);
      above = getPrototypeOf(above);
    }
    return "";
  };

  // ---- Lists between brackets ----

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

  const showKey = (key) =>
    typeof key === "symbol" ? "[" + symbolToString(key) + "]" : isWord(key) ? key : quoted(key);
  const showProperty = (object, key, within) => {
    const property = getOwnPropertyDescriptor(object, key);
    if (property === undefined || !property.enumerable) return undefined;
    if (property.get !== undefined) return property.set === undefined ? "[Getter]" : "[Getter/Setter]";
    return property.set === undefined ? show(property.value, within) : "[Setter]";
  };
  const isIndex = (key) => typeof key === "string" && key === NativeString(trunc(NativeNumber(key))) && NativeNumber(key) >= 0;
  // `skips` says of a key whether it has been shown already, or need not be.
  const addProperties = (list, object, within, skips) => {
    const keys = ownKeys(object);
    for (let at = 0; at < keys.length; at += 1) {
      const key = keys[at];
      if (skips !== undefined && skips(key)) continue;
      const value = showProperty(object, key, within);
      if (value !== undefined) list.add(() => showKey(key) + ": " + value);
    }
  };
  const showArray = (array, n, within, open) => {
    const list = items(open, "]");
    const shown = n < ITEMS_MAX ? n : ITEMS_MAX;
    for (let at = 0; at < shown; at += 1) {
      const value = showProperty(array, NativeString(at), within);
      list.add(() => (value === undefined ? "<empty>" : value));
    }
    if (n <= ITEMS_MAX) addProperties(list, array, within, isIndex);
    return list.end(n - shown);
  };

  // ---- Nesting ----

  const nested = (object, outer, named, showWithin) => {
    for (let above = outer; above !== undefined; above = above.outer) {
      if (above.object === object) return "[Circular]";
    }
    const depth = outer === undefined ? 1 : outer.depth + 1;
    const depthMax = outer === undefined ? DEPTH_MAX : outer.depthMax;
    if (depth > depthMax) return named;
    return showWithin({ __proto__: null, object, outer, depth, depthMax });
  };
  const addAll = (object, within, open) => {
    const list = items(open, "}");
    addProperties(list, object, within, undefined);
    return list.end(0);
  };
  // Neither with a tag of its own, nor the arguments of a function.
  const isPlain = (object) =>
    getOwnPropertyDescriptor(object, toStringTag) === undefined && getOwnPropertyDescriptor(object, iterator) === undefined;
  const showWithin = (object, within) => {
    const above = getPrototypeOf(object);
    if (above === ArrayPrototype && isArray(object)) return showArray(object, object.length, within, "[");
    if (above === ObjectPrototype && isPlain(object)) return addAll(object, within, "{");
    const kinds = kit.load("show_kinds");
    let special;
    try {
      special = kinds.special(object, within);
    } catch (error) {
      // Trying again at every level of something deep would take for ever.
      if (within.depth > DEPTH_MAX) throw error;
      special = undefined;
    }
    return special === undefined ? addAll(object, within, kinds.title(object) + "{") : special;
  };
  const showObject = (object, outer) => {
    const named = isArray(object) ? "[Array]" : "[" + (className(object) || "Object") + "]";
    return nested(object, outer, named, (within) => showWithin(object, within));
  };
  const show = (value, outer) => {
    switch (typeof value) {
      case "string": return outer === undefined ? value : quoted(value);
      case "bigint": return NativeString(value) + "n";
      case "symbol": return symbolToString(value);
      case "number": return value === 0 && 1 / value < 0 ? "-0" : NativeString(value);
      case "function": return kit.load("show_kinds").showFunction(value, outer);
      case "object": return value === null ? "null" : showObject(value, outer);
      default: return NativeString(value);
    }
  };

  // Shown as if inside something: strings with quotes, and this many levels of objects.
  const inspect = (value, depthMax) => show(value, { __proto__: null, object: undefined, outer: undefined, depth: 0, depthMax });

  return { __proto__: null, ANCESTORS_MAX, DEPTH_MAX, show, inspect, quoted, nested, items, addProperties, isIndex, showArray, addAll, nameOf, className, ownData };
})
