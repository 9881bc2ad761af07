// crypto: random values from the seeded stream, and digests. There are no keys here: secrets live with the tools.
(function (kit) {
  "use strict";

  const { host, define, isView } = kit;
  const { toStringTag } = kit.symbols;
  const { indexOf, padStart, slice, toWellFormed } = kit.String;
  const { toString: numberToString } = kit.Number;
  const { self: NativePromise } = kit.Promise;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeDOMException } = kit.DOMException;
  const { self: NativeUint8Array } = kit.Uint8Array;
  const { type: typeOfArray, buffer: bufferOf, byteOffset: offsetOf, byteLength: bytesOf } = kit.TypedArray;
  const { secret } = kit.load("random");
  const { base64Of } = kit.load("bytes");

  const RANDOM_BYTES_MAX = 65536; // as in browsers

  const getRandomValues = (array) => {
    const type = isView(array) ? typeOfArray(array) : undefined;
    if (type === undefined || indexOf(type, "Float") === 0) {
      throw new NativeTypeError("getRandomValues needs an array of integers");
    }
    const n = bytesOf(array);
    if (n > RANDOM_BYTES_MAX) {
      throw new NativeDOMException("getRandomValues gives at most 65536 bytes", "QuotaExceededError");
    }
    const bytes = new NativeUint8Array(bufferOf(array), offsetOf(array), n);
    for (let at = 0; at < n; at += 1) bytes[at] = secret() >>> 24;
    return array;
  };

  const hex8 = (word) => padStart(numberToString(word >>> 0, 16), 8, "0");
  const randomUUID = () => {
    const a = hex8(secret());
    const b = hex8((secret() & 0xffff0fff) | 0x4000);
    const c = hex8((secret() & 0x3fffffff) | 0x80000000);
    const d = hex8(secret());
    return a + "-" + slice(b, 0, 4) + "-" + slice(b, 4) + "-" + slice(c, 0, 4) + "-" + slice(c, 4) + d;
  };

  // The name of an algorithm, or an object that has it as its name.
  const nameOf = (algorithm) => toWellFormed("" + (typeof algorithm === "string" ? algorithm : algorithm.name));
  const digest = (algorithm, data) =>
    new NativePromise((resolve) => {
      const name = nameOf(algorithm);
      const sum = host.digest(name, base64Of(data));
      if (sum === undefined) {
        throw new NativeDOMException("digest knows SHA-1, SHA-256, SHA-384 and SHA-512, not " + name, "NotSupportedError");
      }
      resolve(sum);
    });

  const subtle = { digest };
  define(subtle, toStringTag, "SubtleCrypto");
  const crypto = { randomUUID, getRandomValues, subtle };
  define(crypto, toStringTag, "Crypto");
  return { __proto__: null, crypto };
})
