// TextEncoder and TextDecoder, for UTF-8.
(function (kit) {
  "use strict";

  const { host, define } = kit;
  const { toStringTag } = kit.symbols;
  const { charCodeAt, indexOf, slice, toLowerCase, toWellFormed, trim } = kit.String;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeRangeError } = kit.RangeError;
  const { self: NativeUint8Array, toBase64 } = kit.Uint8Array;
  const { type: typeOfArray, set: copyInto, length: lengthOf, buffer: bufferOf, byteOffset: offsetOf } = kit.TypedArray;
  const { bytesOf } = kit.load("bytes");

  const LABELS = " unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8 ";
  const NOTHING = new NativeUint8Array(0);

  const encode = (text) => new NativeUint8Array(host.utf8(text));

  // How many code units of a text fit into so many bytes of UTF-8.
  const fitting = (text, room) => {
    let bytes = 0, units = 0;
    while (units < text.length) {
      const unit = charCodeAt(text, units);
      const pair = unit >= 0xd800 && unit < 0xdc00;
      const more = unit < 0x80 ? 1 : unit < 0x800 ? 2 : pair ? 4 : 3;
      if (bytes + more > room) break;
      bytes += more;
      units += pair ? 2 : 1;
    }
    return units;
  };

  class TextEncoder {
    #brand = true;
    get encoding() {
      return this.#brand && "utf-8";
    }
    encode(input = "") {
      return this.#brand && encode(toWellFormed("" + input));
    }
    encodeInto(source, destination) {
      const text = this.#brand && toWellFormed("" + source);
      if (typeof destination !== "object" || destination === null || typeOfArray(destination) !== "Uint8Array") {
        throw new NativeTypeError("encodeInto needs a Uint8Array to write to");
      }
      const read = fitting(text, lengthOf(destination));
      const bytes = encode(slice(text, 0, read));
      copyInto(destination, bytes);
      return { read, written: lengthOf(bytes) };
    }
  }

  // How many bytes at the end begin a character that the next chunk may complete.
  const unfinished = (bytes) => {
    const n = lengthOf(bytes);
    for (let back = 1; back <= 3 && back <= n; back += 1) {
      const lead = bytes[n - back];
      if (lead >= 0x80 && lead < 0xc0) continue;
      const size = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 && lead < 0xe0 ? 2 : 1;
      return size > back && (back === 1 || mayFollow(lead, bytes[n - back + 1])) ? back : 0;
    }
    return 0;
  };
  // Overlong forms, surrogates and what lies beyond Unicode are told by the second byte.
  const mayFollow = (lead, second) => {
    if (lead === 0xe0) return second >= 0xa0;
    if (lead === 0xed) return second < 0xa0;
    if (lead === 0xf0) return second >= 0x90;
    return lead !== 0xf4 || second < 0x90;
  };
  // Not subarray: that asks the array's constructor, which is the guest's to change.
  const part = (bytes, from, to) => new NativeUint8Array(bufferOf(bytes), offsetOf(bytes) + from, to - from);
  const joined = (first, second) => {
    const n = lengthOf(first);
    if (n === 0) return second;
    const bytes = new NativeUint8Array(n + lengthOf(second));
    copyInto(bytes, first);
    copyInto(bytes, second, n);
    return bytes;
  };

  class TextDecoder {
    #fatal = false;
    #ignoreBOM = false;
    #kept = NOTHING;
    #started = false;
    constructor(label = "utf-8", options = undefined) {
      const name = toLowerCase(trim("" + label));
      if (indexOf(name, " ") >= 0 || indexOf(LABELS, " " + name + " ") < 0) {
        throw new NativeRangeError("TextDecoder knows utf-8 only, not " + name);
      }
      if (options !== undefined && options !== null) {
        this.#fatal = !!options.fatal;
        this.#ignoreBOM = !!options.ignoreBOM;
      }
    }
    get encoding() {
      return this.#kept && "utf-8";
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input = NOTHING, options = undefined) {
      const stream = options !== undefined && options !== null && !!options.stream;
      const bytes = joined(this.#kept, bytesOf(input));
      const cut = lengthOf(bytes) - (stream ? unfinished(bytes) : 0);
      const begun = this.#started;
      this.#kept = NOTHING;
      this.#started = false;
      const text = host.text(toBase64(part(bytes, 0, cut)), this.#fatal);
      if (text === undefined) throw new NativeTypeError("the bytes are not valid UTF-8");
      if (stream) {
        // A copy: the guest may write over its own bytes.
        this.#kept = new NativeUint8Array(part(bytes, cut, lengthOf(bytes)));
        this.#started = begun || cut > 0;
      }
      return !begun && !this.#ignoreBOM && text[0] === "\ufeff" ? slice(text, 1) : text;
    }
  }

  define(TextEncoder.prototype, toStringTag, "TextEncoder");
  define(TextDecoder.prototype, toStringTag, "TextDecoder");
  return { __proto__: null, TextEncoder, TextDecoder };
})
