// Hosts of URLs: domains, addresses, and names that mean nothing to us. Each function answers undefined for what is none.
(function (kit) {
  "use strict";

  const { parseInt } = kit;
  const { charCodeAt, indexOf, lastIndexOf, slice, toLowerCase } = kit.String;
  const percent = kit.load("percent");

  const FORBIDDEN = "\0\t\n\r #/:<>?@[\\]^|";
  const DIGITS = "0123456789";
  const HEX_DIGITS = "0123456789abcdefABCDEF";

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

  // ---- Domains ----

  // Most names are plain ASCII and mean what they say.
  const toAscii = (domain) => {
    if (!isAscii(domain)) return kit.load("idna").toAscii(domain);
    const text = toLowerCase(domain);
    return indexOf(text, "xn--") < 0 ? text : kit.load("idna").toAscii(text);
  };
  const isForbidden = (domain) => {
    for (let at = 0; at < domain.length; at += 1) {
      const code = charCodeAt(domain, at);
      if (code < 0x20 || code === 0x7f || code === 0x25) return true;
    }
    return hasAnyOf(domain, FORBIDDEN);
  };

  const parseHost = (text, isSpecial) => {
    if (text[0] === "[") return text[text.length - 1] === "]" ? kit.load("ipv6").ipv6(slice(text, 1, -1)) : undefined;
    if (!isSpecial) return hasAnyOf(text, FORBIDDEN) ? undefined : percent.encode(text, "");
    const domain = toAscii(percent.decode(text));
    if (domain === undefined || domain === "" || isForbidden(domain)) return undefined;
    return endsInNumber(domain) ? ipv4(domain) : domain;
  };

  return { __proto__: null, parseHost };
})
