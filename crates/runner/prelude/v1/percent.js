// Percent-encoding, as the URL standard has it.
(function (kit) {
  "use strict";

  const { decodeURIComponent, encodeURIComponent, host } = kit;
  const { charCodeAt, indexOf, slice } = kit.String;
  const { self: NativeUint8Array, toBase64 } = kit.Uint8Array;
  const { buffer: bufferOf, length: lengthOf } = kit.TypedArray;

  const HEX = "0123456789ABCDEF";
  const hexOf = (code) => "%" + HEX[code >> 4] + HEX[code & 15];

  // Each set adds to the controls and to what is not ASCII, which are always encoded.
  const FRAGMENT = ' "<>`';
  const QUERY = ' "#<>';
  const SPECIAL_QUERY = QUERY + "'";
  const PATH = QUERY + "?^`{}";
  const USERINFO = PATH + "/:;=@[\\]|";
  const FORM = USERINFO + "$%&+,!'()~";

  const encode = (text, set) => {
    let encoded = "", done = 0, at = 0;
    while (at < text.length) {
      const code = charCodeAt(text, at);
      if (code > 0x7f) {
        let end = at + 1;
        while (end < text.length && charCodeAt(text, end) > 0x7f) end += 1;
        encoded += slice(text, done, at) + encodeURIComponent(slice(text, at, end));
        done = at = end;
        continue;
      }
      if (code < 0x20 || code === 0x7f || indexOf(set, text[at]) >= 0) {
        encoded += slice(text, done, at) + hexOf(code);
        done = at + 1;
      }
      at += 1;
    }
    return done === 0 ? text : encoded + slice(text, done);
  };

  const digitOf = (byte) => {
    if (byte >= 48 && byte <= 57) return byte - 48;
    const letter = byte | 32;
    return letter >= 97 && letter <= 102 ? letter - 87 : -1;
  };
  const decodeSlowly = (text) => {
    const bytes = new NativeUint8Array(host.utf8(text));
    const n = lengthOf(bytes);
    let to = 0;
    for (let at = 0; at < n; at += 1, to += 1) {
      const high = bytes[at] === 37 && at + 2 < n ? digitOf(bytes[at + 1]) : -1;
      const low = high < 0 ? -1 : digitOf(bytes[at + 2]);
      if (low < 0) bytes[to] = bytes[at];
      else {
        bytes[to] = high * 16 + low;
        at += 2;
      }
    }
    return host.text(toBase64(new NativeUint8Array(bufferOf(bytes), 0, to)), false);
  };
  // The engine decodes fast what is well encoded, and refuses the rest.
  const decode = (text) => {
    if (indexOf(text, "%") < 0) return text;
    try {
      return decodeURIComponent(text);
    } catch {
      return decodeSlowly(text);
    }
  };

  return { __proto__: null, encode, decode, FRAGMENT, QUERY, SPECIAL_QUERY, PATH, USERINFO, FORM };
})
