// Hosts of URLs: domains, IPv4, IPv6, and names that mean nothing to us. Each function answers undefined for what is none.
(function (kit) {
  "use strict";

  const { create, fromCharCode, parseInt } = kit;
  const { charCodeAt, codePointAt, indexOf, lastIndexOf, normalize, slice, toLowerCase } = kit.String;
  const { toString: numberToString } = kit.Number;
  const percent = kit.load("percent");

  const FORBIDDEN = "\0\t\n\r #/:<>?@[\\]^|";
  const DIGITS = "0123456789";
  const HEX_DIGITS = "0123456789abcdefABCDEF";
  const DOTS = ".\u3002\uff0e\uff61"; // what people type for a dot

  const only = (text, allowed) => {
    for (let at = 0; at < text.length; at += 1) if (indexOf(allowed, text[at]) < 0) return false;
    return true;
  };
  const hasAnyOf = (text, chars) => {
    for (let at = 0; at < text.length; at += 1) if (indexOf(chars, text[at]) >= 0) return true;
    return false;
  };
  const isAscii = (text) => {
    for (let at = 0; at < text.length; at += 1) if (charCodeAt(text, at) > 0x7f) return false;
    return true;
  };

  // ---- IPv4 ----

  const partOf = (text) => {
    if (text === "") return undefined;
    const hex = slice(text, 0, 2) === "0x" || slice(text, 0, 2) === "0X";
    const octal = !hex && text.length > 1 && text[0] === "0";
    const digits = hex ? slice(text, 2) : text;
    if (!only(digits, hex ? HEX_DIGITS : octal ? "01234567" : DIGITS)) return undefined;
    return digits === "" ? 0 : parseInt(digits, hex ? 16 : octal ? 8 : 10);
  };
  const lastLabel = (domain) => {
    const text = domain[domain.length - 1] === "." ? slice(domain, 0, -1) : domain;
    return slice(text, lastIndexOf(text, ".") + 1);
  };
  const endsInNumber = (domain) => {
    const label = lastLabel(domain);
    return label !== "" && (only(label, DIGITS) || (label[0] === "0" && partOf(label) !== undefined));
  };
  const ipv4 = (domain) => {
    let text = domain[domain.length - 1] === "." ? slice(domain, 0, -1) : domain;
    let address = 0;
    for (let left = 4; left > 0; left -= 1) {
      const dot = indexOf(text, ".");
      const number = partOf(dot < 0 ? text : slice(text, 0, dot));
      if (number === undefined) return undefined;
      if (dot < 0) return number < 256 ** left ? dotted(address * 256 ** left + number) : undefined;
      if (number > 255) return undefined;
      address = address * 256 + number;
      text = slice(text, dot + 1);
    }
    return undefined;
  };
  const dotted = (address) =>
    (address >>> 24) + "." + ((address >>> 16) & 255) + "." + ((address >>> 8) & 255) + "." + (address & 255);

  // ---- IPv6 ----

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

  // ---- Names beyond ASCII: punycode (RFC 3492) ----

  const adapted = (delta, n, first) => {
    let left = first ? (delta / 700) | 0 : delta >> 1;
    let k = 0;
    left += (left / n) | 0;
    for (; left > 455; k += 36) left = (left / 35) | 0;
    return k + ((36 * left / (left + 38)) | 0);
  };
  const threshold = (k, bias) => (k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias);
  const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
  const LABEL_CODES_MAX = 1000; // far more than the 63 that can be looked up; encoding takes time squared

  const codesOf = (text) => {
    const codes = { __proto__: null, n: 0 };
    for (let at = 0; at < text.length; ) {
      const code = codePointAt(text, at);
      codes[codes.n] = code;
      codes.n += 1;
      at += code > 0xffff ? 2 : 1;
    }
    return codes;
  };
  // One number of the code, as letters.
  const digitsOf = (delta, bias) => {
    let text = "", left = delta;
    for (let k = 36; ; k += 36) {
      const limit = threshold(k, bias);
      if (left < limit) return text + LETTERS[left];
      text += LETTERS[limit + ((left - limit) % (36 - limit))];
      left = ((left - limit) / (36 - limit)) | 0;
    }
  };
  const punycode = (label) => {
    const codes = codesOf(label);
    if (codes.n > LABEL_CODES_MAX) return undefined;
    let text = "";
    for (let at = 0; at < codes.n; at += 1) if (codes[at] < 0x80) text += fromCharCode(codes[at]);
    const basic = text.length;
    let done = basic, code = 0x80, delta = 0, bias = 72;
    if (basic > 0) text += "-";
    while (done < codes.n) {
      let next = 0x110000;
      for (let at = 0; at < codes.n; at += 1) if (codes[at] >= code && codes[at] < next) next = codes[at];
      delta += (next - code) * (done + 1);
      code = next;
      for (let at = 0; at < codes.n; at += 1) {
        if (codes[at] < code) delta += 1;
        if (codes[at] !== code) continue;
        text += digitsOf(delta, bias);
        bias = adapted(delta, done + 1, done === basic);
        delta = 0;
        done += 1;
      }
      delta += 1;
      code += 1;
    }
    return "xn--" + text;
  };
  // Whether an encoded label means something beyond ASCII; `text` is what follows "xn--".
  const decodes = (text) => {
    const hyphen = lastIndexOf(text, "-");
    let n = hyphen < 0 ? 0 : hyphen, code = 0x80, index = 0, bias = 72;
    if (hyphen === text.length - 1) return false;
    for (let at = hyphen + 1; at < text.length; ) {
      const before = index;
      for (let k = 36, weight = 1; ; k += 36) {
        const digit = at < text.length ? indexOf(LETTERS, text[at]) : -1;
        if (digit < 0) return false;
        at += 1;
        index += digit * weight;
        if (index > 0x7fffffff) return false;
        const limit = threshold(k, bias);
        if (digit < limit) break;
        weight *= 36 - limit;
      }
      n += 1;
      bias = adapted(index - before, n, before === 0);
      code += (index / n) | 0;
      if (code > 0x10ffff) return false;
      index = (index % n) + 1;
    }
    return true;
  };

  // ---- Domains ----

  const isIgnored = (code) =>
    code === 0xad || code === 0x34f || code === 0x200b || code === 0x2060 || code === 0xfeff ||
    (code >= 0x180b && code <= 0x180d) || (code >= 0xfe00 && code <= 0xfe0f);
  const isRefused = (code) =>
    code === 0xfffd || (code >= 0x80 && code < 0xa0) || (code >= 0xe000 && code < 0xf900) || (code & 0xfffe) === 0xfffe ||
    (code >= 0x200c && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0xfdd0 && code <= 0xfdef);
  // Compatibility forms are composed, letters made small, dots made dots: Unicode's IDNA mapping, but for a few dozen
  // characters that no registry accepts.
  const mapped = (domain) => {
    const composed = normalize(domain, "NFKC");
    let text = "";
    for (let at = 0; at < composed.length; ) {
      const code = codePointAt(composed, at);
      const char = slice(composed, at, at + (code > 0xffff ? 2 : 1));
      at += char.length;
      if (isRefused(code)) return undefined;
      // One at a time: together, a last sigma would become another one.
      if (!isIgnored(code)) text += indexOf(DOTS, char) >= 0 ? "." : toLowerCase(char);
    }
    return normalize(text, "NFKC");
  };
  const labelToAscii = (label) => {
    if (!isAscii(label)) return punycode(label);
    return slice(label, 0, 4) !== "xn--" || decodes(slice(label, 4)) ? label : undefined;
  };
  const toAscii = (domain) => {
    const text = isAscii(domain) ? toLowerCase(domain) : mapped(domain);
    if (text === undefined || (isAscii(text) && indexOf(text, "xn--") < 0)) return text;
    let ascii = "";
    for (let from = 0; ; ) {
      const dot = indexOf(text, ".", from);
      const label = labelToAscii(slice(text, from, dot < 0 ? text.length : dot));
      if (label === undefined) return undefined;
      ascii += label;
      if (dot < 0) return ascii;
      ascii += ".";
      from = dot + 1;
    }
  };
  const isForbidden = (domain) => {
    for (let at = 0; at < domain.length; at += 1) {
      const code = charCodeAt(domain, at);
      if (code < 0x20 || code === 0x7f || code === 0x25) return true;
    }
    return hasAnyOf(domain, FORBIDDEN);
  };

  const parseHost = (text, isSpecial) => {
    if (text[0] === "[") return text[text.length - 1] === "]" ? ipv6(slice(text, 1, -1)) : undefined;
    if (!isSpecial) return hasAnyOf(text, FORBIDDEN) ? undefined : percent.encode(text, "");
    const domain = toAscii(percent.decode(text));
    if (domain === undefined || domain === "" || isForbidden(domain)) return undefined;
    return endsInNumber(domain) ? ipv4(domain) : domain;
  };

  return { __proto__: null, parseHost };
})
