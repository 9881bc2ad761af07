// URL. Its search parameters are a part of their own: the two change each other.
(function (kit) {
  "use strict";

  const { define, views } = kit;
  const { toStringTag } = kit.symbols;
  const { self: NativeString, slice, toWellFormed } = kit.String;
  const { self: NativeTypeError } = kit.TypeError;
  const parser = kit.load("url_parse");
  const { parse, hrefOf, hostOf, pathOf, queryOf, fragmentOf, isSpecial, cannotHavePort, withoutBreaks } = parser;

  const textOf = (value) => toWellFormed("" + value);
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
      const text = textOf(value);
      if (cannotHavePort(this.#url)) return;
      if (text === "") this.#url.port = null;
      else parser.setPort(this.#url, withoutBreaks(text));
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
      const text = textOf(value);
      const bare = slice(text, 0, 1) === "?" ? slice(text, 1) : text;
      this.#url.query = text === "" ? null : queryOf(this.#url, withoutBreaks(bare));
      this.#refresh();
    }
    get searchParams() {
      if (this.#params === undefined) {
        const { join, newParams } = kit.load("search_params");
        this.#params = newParams();
        this.#refresh();
        join(this.#params, (text) => {
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
      const text = textOf(value);
      const bare = slice(text, 0, 1) === "#" ? slice(text, 1) : text;
      this.#url.fragment = text === "" ? null : fragmentOf(withoutBreaks(bare));
    }
    toString() { return hrefOf(this.#url); }
    toJSON() { return hrefOf(this.#url); }
    #refresh() {
      if (this.#params !== undefined) kit.load("search_params").replace(this.#params, this.#url.query);
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

  views[kit.nViews] = viewUrl;
  kit.nViews += 1;
  return { __proto__: null, URL };
})
