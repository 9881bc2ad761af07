// Bytes of the guest's on their way to the host: as base64, which the engine writes and reads fast.
(function (kit) {
  "use strict";

  const { isView } = kit;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeUint8Array, toBase64 } = kit.Uint8Array;
  const typed = kit.TypedArray, view = kit.DataView, buffer = kit.ArrayBuffer;

  // A buffer, or a look at one, as bytes; not a copy.
  const bytesOf = (source) => {
    if (isView(source)) {
      const { buffer: bufferOf, byteOffset, byteLength } = typed.type(source) === undefined ? view : typed;
      return new NativeUint8Array(bufferOf(source), byteOffset(source), byteLength(source));
    }
    try {
      buffer.byteLength(source);
    } catch {
      throw new NativeTypeError("an ArrayBuffer, a typed array or a DataView is needed");
    }
    return new NativeUint8Array(source);
  };

  return { __proto__: null, bytesOf, base64Of: (source) => toBase64(bytesOf(source)) };
})
