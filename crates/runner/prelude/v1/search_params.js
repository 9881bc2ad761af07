// URLSearchParams, alone or of a URL.
(function (kit) {
  "use strict";

  const { apply, define, defineProperty, ownKeys, setPrototypeOf, getOwnPropertyDescriptor, views } = kit;
  const { iterator, toStringTag } = kit.symbols;
  const { indexOf, slice, toWellFormed } = kit.String;
  const { sort: arraySort } = kit.Array;
  const { self: NativeTypeError } = kit.TypeError;
  const { isObject } = kit.load("errors");
  const percent = kit.load("percent");

  const textOf = (value) => toWellFormed("" + value);
  const newList = () => setPrototypeOf([], null);

  // ---- application/x-www-form-urlencoded ----

  const spaced = (text) => {
    let result = "", done = 0;
    for (let at = indexOf(text, "+"); at >= 0; at = indexOf(text, "+", done)) {
      result += slice(text, done, at) + " ";
      done = at + 1;
    }
    return percent.decode(result + slice(text, done));
  };
  const parseForm = (text) => {
    const list = newList();
    for (let from = 0; from <= text.length; ) {
      let end = indexOf(text, "&", from);
      if (end < 0) end = text.length;
      const pair = slice(text, from, end);
      from = end + 1;
      if (pair === "") continue;
      const equals = indexOf(pair, "=");
      const name = equals < 0 ? pair : slice(pair, 0, equals);
      list[list.length] = { __proto__: null, name: spaced(name), value: equals < 0 ? "" : spaced(slice(pair, equals + 1)) };
    }
    return list;
  };
  const plussed = (text) => {
    let result = "", done = 0;
    for (let at = indexOf(text, " "); at >= 0; at = indexOf(text, " ", done)) {
      result += percent.encode(slice(text, done, at), percent.FORM) + "+";
      done = at + 1;
    }
    return result + percent.encode(slice(text, done), percent.FORM);
  };
  const writeForm = (list) => {
    let text = "";
    for (let at = 0; at < list.length; at += 1) {
      text += (at === 0 ? "" : "&") + plussed(list[at].name) + "=" + plussed(list[at].value);
    }
    return text;
  };

  // ---- The class ----

  const fromPairs = (pairs) => {
    const list = newList();
    const all = pairs[iterator]();
    for (let next = all.next(); !next.done; next = all.next()) {
      const pair = next.value;
      const parts = newList();
      if (isObject(pair) && typeof pair[iterator] === "function") {
        const both = pair[iterator]();
        for (let part = both.next(); !part.done && parts.length < 3; part = both.next()) parts[parts.length] = part.value;
      }
      if (parts.length !== 2) throw new NativeTypeError("each pair must have a name and a value");
      list[list.length] = { __proto__: null, name: textOf(parts[0]), value: textOf(parts[1]) };
    }
    return list;
  };
  const fromRecord = (record) => {
    const list = newList();
    const keys = ownKeys(record);
    for (let at = 0; at < keys.length; at += 1) {
      const property = typeof keys[at] === "string" ? getOwnPropertyDescriptor(record, keys[at]) : undefined;
      if (property === undefined || !property.enumerable) continue;
      list[list.length] = { __proto__: null, name: textOf(keys[at]), value: textOf(record[keys[at]]) };
    }
    return list;
  };
  const listOf = (init) => {
    if (!isObject(init)) {
      const text = textOf(init);
      return parseForm(slice(text, 0, 1) === "?" ? slice(text, 1) : text);
    }
    return typeof init[iterator] === "function" ? fromPairs(init) : fromRecord(init);
  };
  const matches = (pair, name, value) => pair.name === name && (value === undefined || pair.value === value);

  class URLSearchParams {
    #list = newList();
    #changed = () => {};
    constructor(init = "") {
      this.#list = listOf(init);
    }
    get size() { return this.#list.length; }
    append(name, value) {
      const list = this.#list;
      list[list.length] = { __proto__: null, name: textOf(name), value: textOf(value) };
      this.#changed();
    }
    delete(name, value = undefined) {
      const wanted = textOf(name), only = value === undefined ? undefined : textOf(value);
      const kept = newList(), list = this.#list;
      for (let at = 0; at < list.length; at += 1) if (!matches(list[at], wanted, only)) kept[kept.length] = list[at];
      this.#list = kept;
      this.#changed();
    }
    get(name) {
      const wanted = textOf(name), list = this.#list;
      for (let at = 0; at < list.length; at += 1) if (list[at].name === wanted) return list[at].value;
      return null;
    }
    getAll(name) {
      const wanted = textOf(name), list = this.#list;
      const found = [];
      for (let at = 0, n = 0; at < list.length; at += 1) {
        if (list[at].name !== wanted) continue;
        defineProperty(found, n, { __proto__: null, value: list[at].value, writable: true, enumerable: true, configurable: true });
        n += 1;
      }
      return found;
    }
    has(name, value = undefined) {
      const wanted = textOf(name), only = value === undefined ? undefined : textOf(value);
      const list = this.#list;
      for (let at = 0; at < list.length; at += 1) if (matches(list[at], wanted, only)) return true;
      return false;
    }
    set(name, value) {
      const wanted = textOf(name), given = textOf(value);
      const kept = newList(), list = this.#list;
      let isSet = false;
      for (let at = 0; at < list.length; at += 1) {
        if (list[at].name !== wanted) kept[kept.length] = list[at];
        else if (!isSet) {
          kept[kept.length] = { __proto__: null, name: wanted, value: given };
          isSet = true;
        }
      }
      if (!isSet) kept[kept.length] = { __proto__: null, name: wanted, value: given };
      this.#list = kept;
      this.#changed();
    }
    sort() {
      arraySort(this.#list, (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
      this.#changed();
    }
    toString() {
      return writeForm(this.#list);
    }
    forEach(visit, self = undefined) {
      if (typeof visit !== "function") throw new NativeTypeError("forEach needs a function to call");
      for (let at = 0; at < this.#list.length; at += 1) {
        const { name, value } = this.#list[at];
        apply(visit, self, [value, name, this]);
      }
    }
    *entries() {
      for (let at = 0; at < this.#list.length; at += 1) yield [this.#list[at].name, this.#list[at].value];
    }
    *keys() {
      for (let at = 0; at < this.#list.length; at += 1) yield this.#list[at].name;
    }
    *values() {
      for (let at = 0; at < this.#list.length; at += 1) yield this.#list[at].value;
    }
    // What a URL needs; taken away below, before the guest sees the class.
    static join(params, changed) {
      params.#changed = () => changed(writeForm(params.#list));
    }
    static replace(params, query) {
      params.#list = parseForm(query === null ? "" : query);
    }
    static view(object) {
      if (!(#list in object)) return undefined;
      const value = { __proto__: null };
      for (let at = 0; at < object.#list.length; at += 1) value[object.#list[at].name] = object.#list[at].value;
      return { __proto__: null, name: "URLSearchParams", value };
    }
  }
  const { join, replace, view } = URLSearchParams;
  delete URLSearchParams.join;
  delete URLSearchParams.replace;
  delete URLSearchParams.view;
  define(URLSearchParams.prototype, iterator, URLSearchParams.prototype.entries);
  define(URLSearchParams.prototype, toStringTag, "URLSearchParams");

  views[kit.nViews] = view;
  kit.nViews += 1;
  return { __proto__: null, URLSearchParams, join, replace, newParams: () => new URLSearchParams() };
})
