// Values of the guest's as JSON: what JSON.stringify makes of them, and a form for what it has none for. Its replacer sees
// each value after `toJSON` and before its members, so the guest's getters and methods run as they do for JSON.stringify.
(function (kit) {
  "use strict";

  const { create, defineProperty, getOwnPropertyDescriptor, host, isArray, ownKeys, parseJson, stringify } = kit;
  const { self: NativeString, indexOf } = kit.String;
  const { self: NativeTypeError } = kit.TypeError;
  const { forEach: mapForEach } = kit.Map;
  const { forEach: setForEach } = kit.Set;
  const { join, length: lengthOf } = kit.TypedArray;
  const { ownData, textOr } = kit.load("errors");

  // What `host.kindOf` answers about an object that has a form of its own.
  const MAP = 1, SET = 2, BYTES = 3, NUMBERS = 4, BIGINTS = 5, ERROR = 6;

  const append = (list, value) =>
    defineProperty(list, list.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

  // An object where every key is a text, otherwise a list of pairs.
  const mapForm = (map) => {
    const object = create(null);
    const pairs = [];
    let isObject = true;
    mapForEach(map, (value, key) => {
      if (typeof key !== "string") isObject = false;
      if (isObject) object[key] = value;
      append(pairs, [key, value]);
    });
    return isObject ? object : pairs;
  };
  const setForm = (set) => {
    const list = [];
    setForEach(set, (value) => append(list, value));
    return list;
  };
  const numbersForm = (array) => {
    const text = join(array, ",");
    // NaN and Infinity are no JSON.
    if (indexOf(text, "N") < 0 && indexOf(text, "I") < 0) return parseJson("[" + text + "]");
    const list = [];
    const n = lengthOf(array);
    for (let at = 0; at < n; at += 1) append(list, array[at]);
    return list;
  };
  const bigIntsForm = (array) => (lengthOf(array) === 0 ? [] : parseJson('["' + join(array, '","') + '"]'));
  // Its name and message, what its maker gave it beside them, and its own enumerable members.
  const errorForm = (error) => {
    const form = create(null);
    form.name = textOr("Error", () => error.name);
    form.message = textOr("", () => error.message);
    const hidden = ["code", "details", "errors", "cause"];
    for (let at = 0; at < hidden.length; at += 1) {
      const value = ownData(error, hidden[at]);
      if (value !== undefined) form[hidden[at]] = value;
    }
    const keys = ownKeys(error);
    for (let at = 0; at < keys.length; at += 1) {
      const property = typeof keys[at] === "string" ? getOwnPropertyDescriptor(error, keys[at]) : undefined;
      if (property !== undefined && property.enumerable) form[keys[at]] = error[keys[at]];
    }
    return form;
  };
  const formOf = (value) => {
    switch (host.kindOf(value)) {
      case MAP: return mapForm(value);
      case SET: return setForm(value);
      case BYTES: return kit.load("files").formOf(value);
      case NUMBERS: return numbersForm(value);
      case BIGINTS: return bigIntsForm(value);
      case ERROR: return errorForm(value);
      default: return value;
    }
  };

  // JSON.stringify notices an object inside itself, but not a map: each of its forms is a new object. So what leads from
  // the outermost form to the present holder is kept here, beside what each of them is the form of.
  const replacerFor = () => {
    const path = create(null);
    let n = 0;
    const enter = (form, source) => {
      for (let at = 0; at < n; at += 1) {
        if (path[at].source === source) throw new NativeTypeError("circular reference");
      }
      path[n] = { __proto__: null, form, source };
      n += 1;
    };
    return function (_key, value) {
      while (n > 0 && path[n - 1].form !== this) n -= 1;
      switch (typeof value) {
        case "object": {
          if (value === null) return null;
          const form = isArray(value) ? value : formOf(value);
          if (n > 0 || form !== value) enter(form, value);
          return form;
        }
        case "number": return value - value === 0 ? value : NativeString(value);
        case "bigint": return NativeString(value);
        default: return value;
      }
    };
  };

  return { __proto__: null, write: (value) => stringify(value, replacerFor()) };
})
