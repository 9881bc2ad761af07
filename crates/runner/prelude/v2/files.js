// ToolFile: bytes with a name and a media type, as tools give and take them and as `emit` shows them. Its own members are its
// JSON form, so it can be spread, written and passed on like any other object; the methods read what the members say.
(function (kit) {
  "use strict";

  const { create, define, defineProperty, getPrototypeOf, host, isArray, isView, ownKeys, setPrototypeOf } = kit;
  const { toStringTag } = kit.symbols;
  const { indexOf, slice, toWellFormed } = kit.String;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeRangeError } = kit.RangeError;
  const { self: NativeUint8Array, fromBase64, toBase64 } = kit.Uint8Array;
  const { length: lengthOf } = kit.TypedArray;
  const { hasOwnProperty } = kit.Object;
  const { bytesOf } = kit.load("bytes");
  const { isExhaustion, ownData } = kit.load("errors");

  const BYTES = 3; // what `host.kindOf` answers about an ArrayBuffer
  const BYTES_TYPE = "application/octet-stream", TEXT_TYPE = "text/plain";
  const BASE64_URL = { __proto__: null, alphabet: "base64url" };

  const put = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  const assign = (file, bytes, name, mimeType) => {
    const n = lengthOf(bytes);
    if (n > host.fileBytesMax) throw new NativeRangeError(n + " bytes are more than the " + host.fileBytesMax + " that fit a message");
    file._tag = "ToolFile";
    if (name !== undefined) file.name = name;
    file.mimeType = mimeType;
    file.encoding = "base64";
    file.data = toBase64(bytes);
    file.byteLength = n;
    return file;
  };
  // The JSON form of bytes that are no ToolFile.
  const formOf = (source) => assign(create(null), bytesOf(source), undefined, BYTES_TYPE);

  const textOption = (options, name) => {
    const value = options === undefined || options === null ? undefined : options[name];
    if (value !== undefined && typeof value !== "string") throw new NativeTypeError("the " + name + " of a ToolFile is a text");
    return value;
  };
  const contentOf = (source) => {
    if (typeof source === "string") return new NativeUint8Array(host.utf8(toWellFormed(source)));
    if (typeof source === "object" && source !== null && (isView(source) || host.kindOf(source) === BYTES)) return bytesOf(source);
    throw new NativeTypeError("a ToolFile is made of a text, an ArrayBuffer or a view of one");
  };
  const bytesIn = (file) => {
    // Blocks of MCP name it so.
    const data = file.data === undefined ? file.blob : file.data;
    if (typeof data !== "string") throw new NativeTypeError("this ToolFile has no data");
    try {
      return fromBase64(data, indexOf(data, "-") >= 0 || indexOf(data, "_") >= 0 ? BASE64_URL : undefined);
    } catch (error) {
      if (isExhaustion(error)) throw error;
      throw new NativeTypeError("the data of this ToolFile is not base64");
    }
  };

  class ToolFile {
    constructor(source, options = undefined) {
      const bytes = contentOf(source);
      const name = textOption(options, "name");
      const mimeType = textOption(options, "mimeType");
      const given = assign(create(null), bytes, name, mimeType === undefined ? (typeof source === "string" ? TEXT_TYPE : BYTES_TYPE) : mimeType);
      const keys = ownKeys(given);
      for (let at = 0; at < keys.length; at += 1) put(this, keys[at], given[keys[at]]);
    }
    bytes() {
      return bytesIn(this);
    }
    text() {
      const text = host.text(toBase64(bytesIn(this)), false);
      return text[0] === "\ufeff" ? slice(text, 1) : text;
    }
  }
  const { prototype } = ToolFile;
  define(prototype, toStringTag, "ToolFile");

  // ---- Results of tools ----

  // What was just parsed has no getters.
  const own = (object, name) => (hasOwnProperty(object, name) ? object[name] : undefined);
  const isText = (object, name) => typeof own(object, name) === "string";
  // A ToolFile's form, or the part of an MCP content block that holds bytes.
  const isFile = (object) => {
    if (own(object, "_tag") === "ToolFile") return isText(object, "data");
    const type = own(object, "type");
    if (type === "image" || type === "audio") return isText(object, "data") && isText(object, "mimeType");
    return isText(object, "blob") && isText(object, "uri");
  };
  // Gives the files inside a value that was just parsed their methods. Without recursion: results may be nested deeply.
  const receive = (value) => {
    const left = create(null);
    let n = 0;
    const add = (found) => {
      if (typeof found !== "object" || found === null) return;
      left[n] = found;
      n += 1;
    };
    add(value);
    while (n > 0) {
      n -= 1;
      const object = left[n];
      if (isArray(object)) {
        for (let at = 0; at < object.length; at += 1) add(object[at]);
        continue;
      }
      if (isFile(object)) setPrototypeOf(object, prototype);
      const keys = ownKeys(object);
      for (let at = 0; at < keys.length; at += 1) add(object[keys[at]]);
    }
    return value;
  };

  // A file as the console shows it: without its data, which nobody reads.
  const view = (object) => {
    if (getPrototypeOf(object) !== prototype || ownData(object, "_tag") !== "ToolFile") return undefined;
    const value = { __proto__: null };
    const names = ["name", "mimeType", "byteLength"];
    for (let at = 0; at < names.length; at += 1) {
      const member = ownData(object, names[at]);
      if (member !== undefined) value[names[at]] = member;
    }
    return { __proto__: null, name: "ToolFile", value };
  };

  return { __proto__: null, ToolFile, formOf, receive, view };
})
