// Names of hosts beyond ASCII, as IDNA writes them in ASCII. Answers are undefined where there is none.
(function (kit) {
  "use strict";

  const { fromCharCode, fromCodePoint, setPrototypeOf } = kit;
  const { charCodeAt, codePointAt, indexOf, lastIndexOf, normalize, slice, toLowerCase } = kit.String;
  const { join } = kit.Array;

  const DOTS = ".\u3002\uff0e\uff61"; // what people type for a dot

  const newList = () => setPrototypeOf([], null);
  const isAscii = (text) => {
    for (let at = 0; at < text.length; at += 1) if (charCodeAt(text, at) > 0x7f) return false;
    return true;
  };

  // ---- Punycode (RFC 3492) ----

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
  // What an encoded label means; `text` is what follows "xn--". Undefined if it means nothing.
  const unpunycode = (text) => {
    const hyphen = lastIndexOf(text, "-");
    if (text.length > LABEL_CODES_MAX || hyphen === text.length - 1) return undefined;
    let decoded = newList(), code = 0x80, index = 0, bias = 72;
    for (let at = 0; at < hyphen; at += 1) decoded[at] = text[at];
    for (let at = hyphen + 1; at < text.length; ) {
      const before = index;
      for (let k = 36, weight = 1; ; k += 36) {
        const digit = at < text.length ? indexOf(LETTERS, text[at]) : -1;
        if (digit < 0) return undefined;
        at += 1;
        index += digit * weight;
        if (index > 0x7fffffff) return undefined;
        const limit = threshold(k, bias);
        if (digit < limit) break;
        weight *= 36 - limit;
      }
      const n = decoded.length + 1;
      bias = adapted(index - before, n, before === 0);
      code += (index / n) | 0;
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined;
      index %= n;
      decoded = withInserted(decoded, index, fromCodePoint(code));
      index += 1;
    }
    return join(decoded, "");
  };
  const withInserted = (list, index, item) => {
    const longer = newList();
    for (let at = 0; at <= list.length; at += 1) longer[at] = at < index ? list[at] : at === index ? item : list[at - 1];
    return longer;
  };

  // ---- Mapping ----

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
    const encoded = slice(label, 0, 4) === "xn--";
    if (!isAscii(label)) return encoded ? undefined : punycode(label);
    if (!encoded) return label;
    // What is encoded must be what we would have encoded.
    const meant = unpunycode(slice(label, 4));
    return meant !== undefined && !isAscii(meant) && mapped(meant) === meant ? label : undefined;
  };
  const toAscii = (domain) => {
    const text = mapped(domain);
    if (text === undefined) return undefined;
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

  return { __proto__: null, toAscii };
})
