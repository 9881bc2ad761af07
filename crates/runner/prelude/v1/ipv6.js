// IPv6 addresses, read and written.
(function (kit) {
  "use strict";

  const { create, parseInt } = kit;
  const { indexOf, slice } = kit.String;
  const { toString: numberToString } = kit.Number;

  const DIGITS = "0123456789";
  const HEX_DIGITS = "0123456789abcdefABCDEF";

  const only = (text, allowed) => {
    for (let at = 0; at < text.length; at += 1) if (indexOf(allowed, text[at]) < 0) return false;
    return true;
  };

  // The four numbers of an IPv4 address at the end of an IPv6 one: two pieces, or undefined.
  const embedded = (text) => {
    const numbers = create(null);
    let at = 0;
    for (let n = 0; n < 4; n += 1) {
      if (n > 0) {
        if (text[at] !== ".") return undefined;
        at += 1;
      }
      const from = at;
      while (at < text.length && indexOf(DIGITS, text[at]) >= 0) at += 1;
      const digits = slice(text, from, at);
      if (digits === "" || digits.length > 3 || (digits.length > 1 && digits[0] === "0")) return undefined;
      numbers[n] = parseInt(digits, 10);
      if (numbers[n] > 255) return undefined;
    }
    if (at !== text.length) return undefined;
    return { __proto__: null, high: numbers[0] * 256 + numbers[1], low: numbers[2] * 256 + numbers[3] };
  };
  // The pieces of one side of the "::".
  const piecesOf = (text, mayEmbed) => {
    const pieces = { __proto__: null, n: 0 };
    if (text === "") return pieces;
    for (let from = 0; ; ) {
      const colon = indexOf(text, ":", from);
      const piece = slice(text, from, colon < 0 ? text.length : colon);
      if (colon < 0 && mayEmbed && indexOf(piece, ".") >= 0) {
        const last = embedded(piece);
        if (last === undefined) return undefined;
        pieces[pieces.n] = last.high;
        pieces[pieces.n + 1] = last.low;
        pieces.n += 2;
        return pieces;
      }
      if (piece === "" || piece.length > 4 || !only(piece, HEX_DIGITS) || pieces.n >= 8) return undefined;
      pieces[pieces.n] = parseInt(piece, 16);
      pieces.n += 1;
      if (colon < 0) return pieces;
      from = colon + 1;
    }
  };
  const ipv6 = (text) => {
    const gap = indexOf(text, "::");
    const first = piecesOf(gap < 0 ? text : slice(text, 0, gap), gap < 0);
    const second = piecesOf(gap < 0 ? "" : slice(text, gap + 2), true);
    if (first === undefined || second === undefined) return undefined;
    const n = first.n + second.n;
    if (gap < 0 ? n !== 8 : n > 7) return undefined;
    const address = create(null);
    for (let at = 0; at < 8; at += 1) {
      const fromEnd = at - (8 - second.n);
      address[at] = at < first.n ? first[at] : fromEnd >= 0 ? second[fromEnd] : 0;
    }
    return "[" + compressed(address) + "]";
  };
  // The first of the longest runs of zeros becomes "::", if it is longer than one.
  const compressed = (address) => {
    let best = -1, bestLength = 1;
    for (let at = 0; at < 8; at += 1) {
      let length = 0;
      while (at + length < 8 && address[at + length] === 0) length += 1;
      if (length > bestLength) {
        best = at;
        bestLength = length;
      }
    }
    let text = "";
    for (let at = 0; at < 8; at += 1) {
      if (at === best) {
        text += at === 0 ? "::" : ":";
        at += bestLength - 1;
      } else text += numberToString(address[at], 16) + (at < 7 ? ":" : "");
    }
    return text;
  };

  return { __proto__: null, ipv6 };
})
