// What a session has besides: values as JSON that never fails, names that fit, commands, and the globals Repl and Time.
// Nothing here runs a getter, except where a value is shown whole, as JSON.stringify does.
(function (kit) {
  "use strict";

  const { apply, create, define, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, isArray, isError, isView, ownKeys, stringify, world } = kit;
  const { self: NativeString, charCodeAt, indexOf, slice, toWellFormed } = kit.String;
  const { self: NativeError } = kit.Error;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativePromise, then: promiseThen } = kit.Promise;
  const { forEach: mapForEach, size: mapSize } = kit.Map;
  const { forEach: setForEach, size: setSize } = kit.Set;
  const { sort } = kit.Array;
  const { shift, slice: slices } = kit.Array.self.prototype;
  const { inspect, className } = kit.load("show");
  const { describe, isExhaustion, isObject, ownData, textOr } = kit.load("errors");

  const DEPTH_MAX = 64; // of a value that is shown: what lies deeper is named
  const NAMES_MAX = 501; // that are told at once: the server keeps one fewer, and says that there are more
  const ANCESTORS_MAX = 100; // that are searched for names
  const HISTORY_MAX = 100; // texts that are remembered
  const CODE_CHARS_MAX = 1024; // of a text that is remembered
  const COMMANDS_MAX = 256; // that one session registers
  const COMMAND_CHARS_MAX = 128; // of a command's name
  const OURS = "configured:"; // begins the names of commands that the server puts here
  const NOTHING = "a value that cannot be shown";

  return (session, elementsMax, charsMax) => {
    // ---- Values ----

    const typeName = (value) => {
      if (value === null) return "null";
      if (typeof value !== "object") return typeof value;
      if (session.isProxy(value)) return isArray(value) ? "Array" : "Object";
      const name = className(value);
      return name === "" || indexOf(name, "[") === 0 ? "Object" : name;
    };

    // The text so far, and whether it is too long already.
    const writer = () => {
      let text = "", full = false, skipped = 0;
      const put = (part) => {
        if (full) return;
        text += part;
        full = text.length > charsMax;
      };
      // Of a long text no more is written than is told: a copy of it might not fit the memory.
      const putText = (long) => {
        if (!full && long.length > charsMax) skipped += long.length - charsMax;
        put(stringify(long.length > charsMax ? slice(long, 0, charsMax) : long));
      };
      return { __proto__: null, put, putText, isFull: () => full, text: () => text, skipped: () => skipped };
    };
    const attempt = (out, run) => {
      try {
        return run();
      } catch (error) {
        if (isExhaustion(error)) throw error;
        out.put(stringify("[" + textOr(NOTHING, () => "threw " + NativeString(error)) + "]"));
        return undefined;
      }
    };
    const isWithin = (object, within) => {
      for (let above = within; above !== undefined; above = above.outer) if (above.object === object) return true;
      return false;
    };
    const sizeOf = (size, object) => {
      try {
        return size(object);
      } catch {
        return undefined;
      }
    };
    const list = (out, n, item) => {
      out.put("[");
      for (let at = 0; at < n && !out.isFull(); at += 1) {
        if (at > 0) out.put(",");
        item(at);
      }
      out.put("]");
    };
    const limited = (n, depth) => (depth === 1 && n > elementsMax ? elementsMax : n);
    const writeArray = (out, array, inner) =>
      list(out, limited(array.length, inner.depth), (at) => {
        attempt(out, () => write(out, array[at], inner, true));
      });
    const writeMembers = (out, object, inner) => {
      const keys = ownKeys(object);
      let n = 0;
      out.put("{");
      for (let at = 0; at < keys.length && !out.isFull(); at += 1) {
        const key = keys[at];
        if (typeof key !== "string") continue;
        const property = getOwnPropertyDescriptor(object, key);
        if (property === undefined || !property.enumerable) continue;
        if (property.get === undefined && (typeof property.value === "function" || typeof property.value === "symbol" || property.value === undefined)) continue;
        out.put((n === 0 ? "" : ",") + stringify(key) + ":");
        n += 1;
        attempt(out, () => write(out, property.get === undefined ? property.value : object[key], inner, true));
      }
      out.put("}");
    };
    const collected = (each, object, pair) => {
      const items = create(null);
      let n = 0;
      each(object, (value, key) => {
        if (n < elementsMax || n < 1000) items[n] = pair ? [key, value] : value;
        n += 1;
      });
      return { __proto__: null, items, n };
    };
    const writeCollection = (out, each, object, pair, inner) => {
      const { items, n } = collected(each, object, pair);
      list(out, limited(n < 1000 ? n : 1000, inner.depth), (at) => {
        attempt(out, () => write(out, items[at], inner, true));
      });
    };
    const writeObject = (out, object, inner) => {
      if (isArray(object)) return writeArray(out, object, inner);
      if (sizeOf(mapSize, object) !== undefined) return writeCollection(out, mapForEach, object, true, inner);
      if (sizeOf(setSize, object) !== undefined) return writeCollection(out, setForEach, object, false, inner);
      if (isView(object)) {
        const kind = kit.TypedArray.type(object);
        if (kind === "Uint8Array") return out.put(stringify(kit.Uint8Array.toBase64(object)));
        if (kind !== undefined) return list(out, limited(kit.TypedArray.length(object), inner.depth), (at) => out.put(scalar(object[at])));
      }
      if (isError(object)) return out.put(stringify({ __proto__: null, name: textOr("Error", () => object.name), message: textOr("", () => object.message) }));
      return writeMembers(out, object, inner);
    };
    const scalar = (value) => {
      if (typeof value === "bigint") return '"' + NativeString(value) + '"';
      const json = stringify(value);
      return json === undefined ? "null" : json;
    };
    const write = (out, given, within, isMember) => {
      let value = given;
      if (isObject(value) && !session.isProxy(value)) {
        const toJSON = value.toJSON;
        if (typeof toJSON === "function") value = apply(toJSON, value, [""]);
      }
      if (typeof value === "function" || typeof value === "symbol") return out.put(isMember ? "null" : stringify(NativeString(value)));
      if (value === undefined) return out.put("null");
      if (typeof value === "string") return out.putText(value);
      if (typeof value !== "object" || value === null) return out.put(scalar(value));
      if (isWithin(value, within)) return out.put('"[Circular]"');
      const depth = within === undefined ? 1 : within.depth + 1;
      if (depth > DEPTH_MAX) return out.put(isArray(value) ? '"[Array]"' : '"[Object]"');
      return writeObject(out, value, { __proto__: null, object: value, outer: within, depth });
    };
    const present = (value) => {
      const out = writer();
      if (typeof value === "number" && value - value !== 0) out.put(stringify(NativeString(value)));
      else attempt(out, () => write(out, value, undefined, false));
      const json = out.text();
      // One part alone may be longer than all that is told: a message would not hold it.
      const told = json.length > charsMax ? toWellFormed(slice(json, 0, charsMax)) : json;
      session.shown(typeName(value), told, json.length + out.skipped());
    };

    // ---- Names ----

    // A property as it is found along the prototypes, if it is plain data.
    const lookUp = (from, name) => {
      let object = from;
      for (let n = 0; object !== null && n < ANCESTORS_MAX; n += 1) {
        if (session.isProxy(object)) return undefined;
        if (object === world) kit.settle(name);
        const property = getOwnPropertyDescriptor(object, name);
        if (property !== undefined) return property.value;
        object = getPrototypeOf(object);
      }
      return undefined;
    };
    const asObject = (value) => {
      if (isObject(value)) return value;
      switch (typeof value) {
        case "string": return kit.String.self.prototype;
        case "number": return kit.Number.self.prototype;
        case "boolean": return kit.Boolean.self.prototype;
        case "bigint": return kit.BigInt.self.prototype;
        case "symbol": return kit.Symbol.self.prototype;
        default: return undefined;
      }
    };
    const isName = (name) => {
      for (let at = 0; at < name.length; at += 1) {
        const c = charCodeAt(name, at);
        const letter = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95 || c === 36 || c > 127;
        if (!letter && !(at > 0 && c >= 48 && c <= 57)) return false;
      }
      return name !== "";
    };
    const complete = (path, prefix) => {
      let object = world;
      for (let at = 0; at < path.length; at += 1) {
        const name = path[at];
        object = at === 0 && name === "this" ? world : asObject(lookUp(object, name));
        if (object === undefined || session.isProxy(object)) return [];
      }
      const seen = create(null);
      const names = [];
      for (let n = 0; object !== null && n < ANCESTORS_MAX; n += 1) {
        if (session.isProxy(object)) break;
        const keys = ownKeys(object);
        for (let at = 0; at < keys.length && names.length < NAMES_MAX; at += 1) {
          const key = keys[at];
          if (typeof key !== "string" || indexOf(key, prefix) !== 0 || seen[key] === true || !isName(key)) continue;
          seen[key] = true;
          defineProperty(names, names.length, { __proto__: null, value: key, writable: true, enumerable: true, configurable: true });
        }
        object = getPrototypeOf(object);
      }
      return sort(names);
    };

    // ---- Commands ----

    const commands = create(null);
    let nCommands = 0;
    const isText = (value) => typeof value === "string";
    const schemaOf = (value, name) => {
      if (value === undefined) return undefined;
      if (!isObject(value) || isArray(value)) throw new NativeTypeError(name + " must be a JSON Schema, an object");
      return value;
    };
    // Words of letters, digits, "_" and "-", with dots between them.
    const isCommandName = (name) => {
      let isWord = false;
      for (let at = 0; at < name.length; at += 1) {
        const c = charCodeAt(name, at);
        const belongs = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c === 95 || c === 45;
        if (!belongs && !(c === 46 && isWord)) return false;
        isWord = belongs;
      }
      return isWord && name.length <= COMMAND_CHARS_MAX;
    };
    const command = (given, handler) => {
      if (!isObject(given) || !isText(given.name) || given.name === "") throw new NativeTypeError("a command needs a name, a text");
      if (typeof handler !== "function") throw new NativeTypeError("a command needs a function to run");
      const { name, kind = "sync", version = 1, mutatesState = false, replace = false } = given;
      if (!isText(name) || (indexOf(name, OURS) !== 0 && !isCommandName(name))) {
        throw new NativeTypeError('the name of a command is words of letters, digits, "_" and "-" with dots between them, at most ' + COMMAND_CHARS_MAX + " characters");
      }
      if (kind !== "sync" && kind !== "job") throw new NativeTypeError('the kind of a command is "sync" or "job"');
      if (typeof version !== "number" || !(version >= 1) || version % 1 !== 0) throw new NativeTypeError("the version of a command is a whole number from 1 on");
      const isNew = commands[name] === undefined;
      if (!isNew && replace !== true) throw new NativeError("there is a command " + name + " already; replace: true takes its place");
      if (isNew && nCommands >= COMMANDS_MAX) throw new NativeError("a session registers at most " + COMMANDS_MAX + " commands");
      const json = stringify({
        __proto__: null, name, kind, version, mutatesState: mutatesState === true,
        inputSchema: schemaOf(given.inputSchema, "inputSchema"),
        outputSchema: schemaOf(given.outputSchema, "outputSchema"),
        artifactsSchema: schemaOf(given.artifactsSchema, "artifactsSchema"),
      });
      if (!session.registered(json)) throw new NativeError("the command's descriptor is too large or nested too deeply: it has at most 262144 bytes of JSON and 128 levels");
      commands[name] = handler;
      if (isNew) nCommands += 1;
      return {
        name,
        dispose() {
          if (commands[name] !== handler) return;
          delete commands[name];
          nCommands -= 1;
          session.unregistered(name);
        },
      };
    };
    const bytesOf = (data) => {
      if (isText(data)) return new (kit.load("text").TextEncoder)().encode(data);
      if (isView(data)) return new (kit.arrays.Uint8Array)(data.buffer, data.byteOffset, data.byteLength);
      if (isObject(data) && !isArray(data) && sizeOf(kit.ArrayBuffer.byteLength, data) !== undefined) return new (kit.arrays.Uint8Array)(data);
      throw new NativeTypeError("an artifact is a text or bytes");
    };
    const contextOf = (task) => ({
      progress(value) {
        const json = stringify(value);
        session.progress(task, json === undefined ? "null" : json);
      },
      artifact(name, data, contentType) {
        if (!isText(name)) throw new NativeTypeError("an artifact needs a name, a text");
        const type = isText(contentType) ? contentType : isText(data) ? "text/plain; charset=utf-8" : "application/octet-stream";
        if (!session.wrote(task, name, type, kit.Uint8Array.toBase64(bytesOf(data)))) {
          throw new NativeError("a command writes at most 64 artifacts, each with a name and a content type of at most 128 bytes and with at most 12 MB");
        }
      },
    });
    // A promise of the output, as JSON.
    const invoke = (name, args, task) =>
      new NativePromise((resolve, reject) => {
        const handler = commands[name];
        const done = new NativePromise((settle) => settle(apply(handler, undefined, [args, contextOf(task)])));
        // What is thrown in here would be thrown at nobody: the task would wait for ever.
        promiseThen(done, (output) => {
          let json;
          try {
            json = stringify(output);
          } catch (error) {
            reject(isExhaustion(error) ? error : new NativeTypeError("the output of the command has no JSON: " + textOr(NOTHING, () => NativeString(error))));
            return;
          }
          resolve(json === undefined ? "{}" : json);
        }, reject);
      });

    // What an error of a command says of itself, for those who called it.
    const describeTask = (error) => {
      describe(error);
      if (!isObject(error) || session.isProxy(error)) return;
      const kind = ownData(error, "kind"), code = ownData(error, "code"), details = ownData(error, "details");
      if (!isText(kind)) return;
      let json = "";
      try {
        json = details === undefined ? "" : stringify(details);
      } catch {
        json = "";
      }
      session.claimed(kind, isText(code) ? code : "handlerFailed", isText(json) ? json : "");
    };

    // ---- Repl and Time ----

    const history = [];
    const remember = (code) => {
      const text = code.length > CODE_CHARS_MAX ? slice(code, 0, CODE_CHARS_MAX) + "…" : code;
      if (history.length >= HISTORY_MAX) apply(shift, history, []);
      defineProperty(history, history.length, { __proto__: null, value: text, writable: true, enumerable: true, configurable: true });
    };
    const HELP = [
      "Repl.help(): these lines",
      "Repl.inspect(value, depth = 2): the value as text, with its nested values to a depth",
      "Repl.describe(value): the names and types of a value's members; runs no getter",
      "Repl.history(limit = 20): the texts evaluated last, newest first",
      "Repl.command({ name, kind, inputSchema, outputSchema }, handler): registers a typed command",
      "Time.frameCount, Time.time: the virtual clock that watches tick by",
      "tools.*: the tools of the catalogue; `await tools.search({ query })` finds them",
    ];
    const members = (value) => {
      const object = asObject(value);
      if (object === undefined || session.isProxy(object)) return typeName(value);
      let text = typeName(value);
      const keys = ownKeys(object);
      for (let at = 0; at < keys.length && at < NAMES_MAX; at += 1) {
        const property = getOwnPropertyDescriptor(object, keys[at]);
        if (property === undefined) continue;
        text += "\n  " + NativeString(keys[at]) + ": " + (property.get !== undefined || property.set !== undefined ? "accessor" : typeName(property.value));
      }
      return text;
    };
    const Repl = {
      help: () => apply(slices, HELP, []),
      inspect: (value, depth = 2) => inspect(value, depth),
      describe: (value) => members(value),
      history: (limit = 20) => {
        const shown = [];
        for (let at = history.length - 1; at >= 0 && shown.length < limit; at -= 1) {
          defineProperty(shown, shown.length, { __proto__: null, value: history[at], writable: true, enumerable: true, configurable: true });
        }
        return shown;
      },
      command,
    };
    let frame = 0;
    const startedAt = kit.clock.now;
    const Time = {
      get frameCount() { return frame; },
      get time() { return (kit.clock.now - startedAt) / 1000; },
    };
    define(world, "Repl", Repl);
    define(world, "Time", Time);

    return {
      __proto__: null,
      present,
      complete,
      invoke,
      knows: (name) => commands[name] !== undefined,
      describe: describeTask,
      remember,
      turn: (at, now) => {
        kit.clock.now = at;
        frame = now;
      },
    };
  };
})
