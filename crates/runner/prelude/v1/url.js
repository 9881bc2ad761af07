// URL and URLSearchParams, which change each other.
(function (kit) {
  "use strict";

  const { apply, define, freeze, ownKeys, setPrototypeOf, getOwnPropertyDescriptor, views } = kit;
  const { iterator, toStringTag } = kit.symbols;
  const { indexOf, self: NativeString, slice, toWellFormed } = kit.String;
  const { sort: arraySort } = kit.Array;
  const { self: NativeTypeError } = kit.TypeError;
  const { isObject } = kit.load("errors");
  const percent = kit.load("percent");
  const parser = kit.load("url_parse");
  const { parse, hrefOf, hostOf, pathOf, queryOf, fragmentOf, isSpecial, cannotHavePort, withoutBreaks } = parser;

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

  // ---- URLSearchParams ----

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
        kit.defineProperty(found, n, { __proto__: null, value: list[at].value, writable: true, enumerable: true, configurable: true });
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
      params.#changed = changed;
    }
    static write(params) {
      return writeForm(params.#list);
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
  const { join, replace, write, view: viewParams } = URLSearchParams;
  delete URLSearchParams.join;
  delete URLSearchParams.replace;
  delete URLSearchParams.write;
  delete URLSearchParams.view;
  define(URLSearchParams.prototype, iterator, URLSearchParams.prototype.entries);
  define(URLSearchParams.prototype, toStringTag, "URLSearchParams");

  // ---- URL ----

  const parsed = (input, base) => {
    if (base === undefined) return parse(textOf(input), undefined);
    const from = parse(textOf(base), undefined);
    return from === undefined ? undefined : parse(textOf(input), from);
  };
  const invalid = (input) => {
    const error = new NativeTypeError("Invalid URL: " + textOf(input));
    define(error, "code", "ERR_INVALID_URL");
    return error;
  };
  const cleaned = (value) => withoutBreaks(textOf(value));
  const originOf = (url) => {
    if (url.scheme === "blob") {
      const inner = parse(pathOf(url), undefined);
      return inner !== undefined && (inner.scheme === "http" || inner.scheme === "https") ? originOf(inner) : "null";
    }
    return isSpecial(url) && url.scheme !== "file" ? url.scheme + "://" + hostOf(url) : "null";
  };

  class URL {
    #url;
    #params;
    constructor(input, base = undefined) {
      this.#url = parsed(input, base);
      if (this.#url === undefined) throw invalid(input);
    }
    static canParse(input, base = undefined) {
      return parsed(input, base) !== undefined;
    }
    static parse(input, base = undefined) {
      const url = parsed(input, base);
      return url === undefined ? null : new URL(hrefOf(url));
    }
    get href() { return hrefOf(this.#url); }
    set href(value) {
      const url = parse(textOf(value), undefined);
      if (url === undefined) throw invalid(value);
      this.#url = url;
      this.#refresh();
    }
    get origin() { return originOf(this.#url); }
    get protocol() { return this.#url.scheme + ":"; }
    set protocol(value) {
      parser.setScheme(this.#url, cleaned(value));
    }
    get username() { return this.#url.username; }
    set username(value) {
      const text = textOf(value);
      if (!cannotHavePort(this.#url)) this.#url.username = parser.encodeUserinfo(text);
    }
    get password() { return this.#url.password; }
    set password(value) {
      const text = textOf(value);
      if (!cannotHavePort(this.#url)) this.#url.password = parser.encodeUserinfo(text);
    }
    get host() { return hostOf(this.#url); }
    set host(value) {
      const text = cleaned(value);
      if (!this.#url.opaque) parser.setHost(this.#url, text, false);
    }
    get hostname() { return this.#url.host === null ? "" : this.#url.host; }
    set hostname(value) {
      const text = cleaned(value);
      if (!this.#url.opaque) parser.setHost(this.#url, text, true);
    }
    get port() { return this.#url.port === null ? "" : NativeString(this.#url.port); }
    set port(value) {
      const text = cleaned(value);
      if (cannotHavePort(this.#url)) return;
      if (text === "") this.#url.port = null;
      else parser.setPort(this.#url, text);
    }
    get pathname() { return pathOf(this.#url); }
    set pathname(value) {
      const text = cleaned(value);
      if (!this.#url.opaque) parser.setPath(this.#url, text);
    }
    get search() {
      const { query } = this.#url;
      return query === null || query === "" ? "" : "?" + query;
    }
    set search(value) {
      const text = cleaned(value);
      const bare = slice(text, 0, 1) === "?" ? slice(text, 1) : text;
      this.#url.query = text === "" ? null : queryOf(this.#url, bare);
      this.#refresh();
    }
    get searchParams() {
      if (this.#params === undefined) {
        const params = new URLSearchParams();
        this.#params = params;
        this.#refresh();
        join(params, () => {
          const text = write(params);
          this.#url.query = text === "" ? null : text;
        });
      }
      return this.#params;
    }
    get hash() {
      const { fragment } = this.#url;
      return fragment === null || fragment === "" ? "" : "#" + fragment;
    }
    set hash(value) {
      const text = cleaned(value);
      this.#url.fragment = text === "" ? null : fragmentOf(slice(text, 0, 1) === "#" ? slice(text, 1) : text);
    }
    toString() { return hrefOf(this.#url); }
    toJSON() { return hrefOf(this.#url); }
    #refresh() {
      if (this.#params !== undefined) replace(this.#params, this.#url.query);
    }
    static view(object) {
      if (!(#url in object)) return undefined;
      const url = object.#url;
      const { fragment, query } = url;
      return {
        __proto__: null,
        name: "URL",
        value: {
          __proto__: null,
          href: hrefOf(url),
          origin: originOf(url),
          protocol: url.scheme + ":",
          host: hostOf(url),
          pathname: pathOf(url),
          search: query === null || query === "" ? "" : "?" + query,
          hash: fragment === null || fragment === "" ? "" : "#" + fragment,
        },
      };
    }
  }
  const { view: viewUrl } = URL;
  delete URL.view;
  define(URL.prototype, toStringTag, "URL");

  views[kit.nViews] = (object) => viewUrl(object) || viewParams(object);
  kit.nViews += 1;
  return freeze({ __proto__: null, URL, URLSearchParams });
})
