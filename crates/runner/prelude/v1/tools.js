// Calls: `tools.any.path(args)` becomes a message, and a promise that the host settles.
(function (kit) {
  "use strict";

  const { host, create, defineProperty, freeze, isArray, stringify } = kit;
  const { toPrimitive } = kit.symbols;
  const { toWellFormed } = kit.String;
  const { self: NativePromise, then: promiseThen } = kit.Promise;
  const { self: NativeProxy } = kit.Proxy;
  const { self: NativeTypeError } = kit.TypeError;
  const { failed, isObject, unserializable } = kit.load("errors");

  const calls = create(null);
  let nCalls = 0;

  // A promise of what `send` asks for under a new number; if it answers with an error, there is no call. To write the
  // arguments down runs code of the guest's, which may call: the number is taken after it.
  const issue = (write, send) =>
    new NativePromise((resolve, reject) => {
      const written = write();
      if (typeof written !== "string") {
        reject(written);
        return;
      }
      const id = nCalls + 1;
      const refusal = send(id, written);
      if (refusal !== undefined) {
        reject(refusal);
        return;
      }
      nCalls = id;
      calls[id] = { __proto__: null, resolve, reject };
    });

  const call = (path, args) =>
    issue(
      () => {
        try {
          const json = stringify(args.length === 0 ? null : args[0]);
          return json === undefined ? "null" : json;
        } catch (error) {
          return unserializable("the arguments of tools." + path, error);
        }
      },
      (id, json) => {
        const refusal = host.call(id, toWellFormed(path), json);
        return refusal === undefined || refusal === null ? undefined : failed("validation", refusal);
      },
    );

  const takeCall = (id) => {
    const pending = calls[id];
    delete calls[id];
    return pending;
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

  // Names need not be paths of identifiers: `callTool("users:list", {})`.
  const callTool = (name, args) => {
    if (typeof name !== "string") throw new NativeTypeError("callTool needs the name of a tool, a text");
    return call(name, args === undefined ? [] : [args]);
  };

  // All at once, or at most `concurrency` at a time; the first failure is everybody's.
  const parallel = (items, each, options) => {
    if (!isArray(items)) throw new NativeTypeError("parallel needs an array of items");
    if (each !== undefined && typeof each !== "function") throw new NativeTypeError("parallel needs a function of an item");
    const n = items.length;
    const asked = isObject(options) ? options.concurrency : options;
    const atOnce = typeof asked === "number" && asked >= 1 ? asked : n;
    const run = (at) => {
      const item = items[at];
      if (each !== undefined) return each(item, at);
      return typeof item === "function" ? item() : item;
    };
    return new NativePromise((resolve, reject) => {
      const results = [];
      let next = 0, nDone = 0;
      const more = () => {
        const at = next;
        next += 1;
        let running;
        try {
          running = run(at);
        } catch (error) {
          reject(error);
          return;
        }
        const settled = new NativePromise((settle) => settle(running));
        promiseThen(settled, (value) => {
          defineProperty(results, at, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
          nDone += 1;
          if (nDone === n) resolve(results);
          else if (next < n) more();
        }, reject);
      };
      if (n === 0) resolve(results);
      while (next < atOnce && next < n) more();
    });
  };

  // Not there for those who ask whether it is; a clear word for those who call it.
  const fetch = host.unseen({
    fetch() {
      const way = kit.outside === "" ? "and this program was given no tools" : "everything outside is reached through " + kit.outside;
      throw new NativeTypeError("fetch is not available here" + (kit.outside === "" ? ", " : ": ") + way);
    },
  }.fetch);

  return {
    __proto__: null,
    tools: toolsAt(""),
    emit,
    fetch,
    callTool,
    parallel,
    issue,
    resolveCall: (id, value) => takeCall(id).resolve(value),
    rejectCall: (id, code, message, name, details) => takeCall(id).reject(failed(code, message, name, details)),
  };
})
