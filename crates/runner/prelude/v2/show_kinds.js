// How values look that are neither plain objects nor arrays.
(function (kit) {
  "use strict";

  const { getOwnPropertyDescriptor, getPrototypeOf, isArray, isError, isView, ownKeys, views } = kit;
  const { toStringTag } = kit.symbols;
  const { indexOf, self: NativeString, valueOf: stringOf } = kit.String;
  const { valueOf: numberOf } = kit.Number;
  const { valueOf: booleanOf } = kit.Boolean;
  const { valueOf: bigIntOf } = kit.BigInt;
  const { valueOf: symbolOf } = kit.Symbol;
  const { toString: objectToString } = kit.Object;
  const { toString: functionToString } = kit.Function;
  const { toISOString, getTime } = kit.Date;
  const { toString: regExpToString } = kit.RegExp;
  const { forEach: mapForEach, size: mapSize } = kit.Map;
  const { forEach: setForEach, size: setSize } = kit.Set;
  const { byteLength: bufferBytes } = kit.ArrayBuffer;
  const { type: typeOfArray, length: lengthOf } = kit.TypedArray;
  const { byteLength: viewBytes, byteOffset: viewOffset } = kit.DataView;
  const { name: domName } = kit.DOMException;
  const { eachLineIndented, explained, textOr } = kit.load("errors");
  const { ANCESTORS_MAX, show, quoted, nested, items, addProperties, isIndex, showArray, addAll, nameOf, className, ownData } = kit.load("show");

  const tagOf = (object) => {
    let at = object;
    for (let n = 0; at !== null && n < ANCESTORS_MAX; n += 1) {
      const tag = ownData(at, toStringTag);
      if (typeof tag === "string") return tag;
      at = getPrototypeOf(at);
    }
    return "";
  };
  // What stands before the brackets of an object.
  const title = (object) => {
    const name = className(object), tag = tagOf(object);
    if (tag !== "" && tag !== name) return (name === "" ? "Object" : name) + " [" + tag + "] ";
    return name === "" || name === "Object" ? "" : name + " ";
  };

  // The enumerable properties that something has besides what it is; "" if none.
  const extras = (object, within, skips) => {
    const list = items("{", "}");
    addProperties(list, object, within, skips);
    const text = list.end(0);
    return text === "{}" ? "" : " " + text;
  };

  // Asking a proxy for its source would ask it for properties, and `tools` takes that for a call: only what has a class's
  // prototype is asked.
  const isClass = (fn) => {
    const prototype = getOwnPropertyDescriptor(fn, "prototype");
    return prototype !== undefined && !prototype.writable && indexOf(functionToString(fn), "class") === 0;
  };
  const showFunction = (fn, outer) => {
    let kind = "Function", parent = "";
    const above = getPrototypeOf(fn);
    if (isClass(fn)) {
      kind = "class";
      if (typeof above === "function" && nameOf(above) !== "") parent = " extends " + nameOf(above);
    } else if (above !== null) {
      const tag = ownData(above, toStringTag);
      if (typeof tag === "string") kind = tag;
    }
    const name = nameOf(fn);
    const text = "[" + kind + (name === "" ? " (anonymous)" : ": " + name) + parent + "]";
    return ownKeys(fn).length === 0 ? text : nested(fn, outer, text, (within) => text + extras(fn, within, undefined));
  };
  const arrayTitle = (array) => {
    const name = className(array);
    return name === "Array" || name === "" ? "[" : name + "(" + array.length + ") [";
  };
  const showMap = (map, within) => {
    const list = items(sized(map, "Map", mapSize(map)), "}");
    mapForEach(map, (value, key) => list.add(() => show(key, within) + " => " + show(value, within)));
    return list.end(0);
  };
  const showSet = (set, within) => {
    const list = items(sized(set, "Set", setSize(set)), "}");
    setForEach(set, (value) => list.add(() => show(value, within)));
    return list.end(0);
  };
  const sized = (object, kind, size) => (className(object) || kind) + "(" + size + ") {";

  const isUsual = (key) => key === "stack" || key === "name" || key === "message" || key === "cause" || key === "errors";
  // As in Node: the stack, the properties, what caused it. Inside of other things an error is one line.
  const showError = (error, within) => {
    const name = textOr("Error", () => error.name), given = textOr("", () => error.message);
    const { message, frames } = explained(error, name, given);
    let text = message === "" ? name : name + ": " + message;
    const inner = within.outer !== undefined && within.outer.isCause === true;
    if (within.depth > 1 && (!inner || frames === "")) return "[" + text + "]" + extras(error, within, isUsual);
    if (frames !== "") text += "\n" + frames;
    text += extras(error, within, isUsual);
    const cause = getOwnPropertyDescriptor(error, "cause");
    if (cause !== undefined && cause.get === undefined) {
      within.isCause = true;
      text += "\n  [cause]: " + eachLineIndented(show(cause.value, within), "  ");
      within.isCause = false;
    }
    const errors = ownData(error, "errors");
    return isArray(errors) ? text + "\n  [errors]: " + eachLineIndented(show(errors, within), "  ") : text;
  };
  const boxed = (kind, value, object, within) =>
    "[" + kind + ": " + (kind === "String" ? quoted(value) : show(value, within)) + "]" + extras(object, within, kind === "String" ? isIndex : undefined);
  // A tag can be forged; the captured functions throw then, and the object is shown as what it also is.
  const showTagged = (object, within) => {
    switch (objectToString(object)) {
      case "[object Map]": return showMap(object, within);
      case "[object Set]": return showSet(object, within);
      case "[object Date]":
        return (getTime(object) === getTime(object) ? toISOString(object) : "Invalid Date") + extras(object, within, undefined);
      case "[object RegExp]": return NativeString(regExpToString(object)) + extras(object, within, undefined);
      case "[object ArrayBuffer]": return "ArrayBuffer { byteLength: " + bufferBytes(object) + " }";
      case "[object Number]": return boxed("Number", numberOf(object), object, within);
      case "[object String]": return boxed("String", stringOf(object), object, within);
      case "[object Boolean]": return boxed("Boolean", booleanOf(object), object, within);
      case "[object BigInt]": return boxed("BigInt", bigIntOf(object), object, within);
      case "[object Symbol]": return boxed("Symbol", symbolOf(object), object, within);
      case "[object Arguments]": return showArray(object, object.length, within, "[Arguments] [");
      case "[object DOMException]": return domName(object) && showError(object, within);
      case "[object WeakMap]": return "WeakMap { <items unknown> }";
      case "[object WeakSet]": return "WeakSet { <items unknown> }";
      default: return undefined;
    }
  };
  const showView = (object, within) => {
    const type = typeOfArray(object);
    if (type !== undefined) return showArray(object, lengthOf(object), within, type + "(" + lengthOf(object) + ") [");
    return "DataView { byteLength: " + viewBytes(object) + ", byteOffset: " + viewOffset(object) + " }";
  };
  const showOurs = (object, within) => {
    for (let at = 0; at < kit.nViews; at += 1) {
      const view = views[at](object);
      if (view !== undefined) {
        return addAll(view.value, within, view.name + " {");
      }
    }
    return undefined;
  };
  const special = (object, within) => {
    if (isArray(object)) return showArray(object, object.length, within, arrayTitle(object));
    if (isView(object)) return showView(object, within);
    if (isError(object)) return showError(object, within);
    const view = showOurs(object, within);
    return view === undefined ? showTagged(object, within) : view;
  };

  return { __proto__: null, special, title, showFunction };
})
