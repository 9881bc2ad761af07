// URL, parsed and changed by the host: see the runner's urls.rs. Its search parameters are a part of their own: the two
// change each other.
(function (kit) {
  "use strict";

  const { define, host, views } = kit;
  const { toStringTag } = kit.symbols;
  const { slice, toWellFormed } = kit.String;
  const { self: NativeTypeError } = kit.TypeError;

  const textOf = (value) => toWellFormed("" + value);
  const parsed = (input, base) => (base === undefined ? host.urlParse(textOf(input)) : host.urlParse(textOf(input), textOf(base)));
  const invalid = (input) => {
    const error = new NativeTypeError("Invalid URL: " + textOf(input));
    define(error, "code", "ERR_INVALID_URL");
    return error;
  };
  const queryOf = (href) => slice(host.urlPart(href, "search"), 1);

  class URL {
    #href;
    #params;
    constructor(input, base = undefined) {
      this.#href = parsed(input, base);
      if (this.#href === undefined) throw invalid(input);
    }
    static canParse(input, base = undefined) {
      return parsed(input, base) !== undefined;
    }
    static parse(input, base = undefined) {
      const href = parsed(input, base);
      return href === undefined ? null : new URL(href);
    }
    get href() { return this.#href; }
    set href(value) {
      const href = host.urlParse(textOf(value));
      if (href === undefined) throw invalid(value);
      this.#href = href;
      this.#refresh();
    }
    get origin() { return this.#part("origin"); }
    get protocol() { return this.#part("protocol"); }
    set protocol(value) { this.#change("protocol", value); }
    get username() { return this.#part("username"); }
    set username(value) { this.#change("username", value); }
    get password() { return this.#part("password"); }
    set password(value) { this.#change("password", value); }
    get host() { return this.#part("host"); }
    set host(value) { this.#change("host", value); }
    get hostname() { return this.#part("hostname"); }
    set hostname(value) { this.#change("hostname", value); }
    get port() { return this.#part("port"); }
    set port(value) { this.#change("port", value); }
    get pathname() { return this.#part("pathname"); }
    set pathname(value) { this.#change("pathname", value); }
    get search() { return this.#part("search"); }
    set search(value) {
      this.#change("search", value);
      this.#refresh();
    }
    get searchParams() {
      if (this.#params === undefined) {
        const { join, newParams } = kit.load("search_params");
        this.#params = newParams();
        this.#refresh();
        join(this.#params, (text) => this.#change("search", text));
      }
      return this.#params;
    }
    get hash() { return this.#part("hash"); }
    set hash(value) { this.#change("hash", value); }
    toString() { return this.#href; }
    toJSON() { return this.#href; }
    #part(name) {
      return host.urlPart(this.#href, name);
    }
    #change(name, value) {
      this.#href = host.urlWith(this.#href, name, textOf(value));
    }
    #refresh() {
      if (this.#params !== undefined) kit.load("search_params").replace(this.#params, queryOf(this.#href));
    }
    static view(object) {
      if (!(#href in object)) return undefined;
      const href = object.#href;
      const part = (name) => host.urlPart(href, name);
      return {
        __proto__: null,
        name: "URL",
        value: {
          __proto__: null,
          href,
          origin: part("origin"),
          protocol: part("protocol"),
          host: part("host"),
          pathname: part("pathname"),
          search: part("search"),
          hash: part("hash"),
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
