// Calls: `tools.any.path(args)` becomes a message, and a promise that the host settles.
(function (kit) {
  "use strict";

  const { host, create, freeze, stringify } = kit;
  const { toPrimitive } = kit.symbols;
  const { toWellFormed } = kit.String;
  const { self: NativePromise } = kit.Promise;
  const { self: NativeProxy } = kit.Proxy;
  const { self: NativeTypeError } = kit.TypeError;
  const { failed, unserializable } = kit.load("errors");

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
      const refusal = host.call(id, toWellFormed(path), json === undefined ? "null" : json);
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

  const fetch = () => {
    throw new NativeTypeError("fetch is not available here: everything outside is reached through tools.*");
  };

  return {
    __proto__: null,
    tools: toolsAt(""),
    emit,
    fetch,
    resolveCall: (id, value) => takeCall(id).resolve(value),
    rejectCall: (id, code, message, name, details) => takeCall(id).reject(failed(code, message, name, details)),
  };
})
