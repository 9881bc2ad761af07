// The URL standard's parser. A record holds a URL's parts; `parse` makes one, or undefined.
(function (kit) {
  "use strict";

  const { setPrototypeOf } = kit;
  const { charCodeAt, indexOf, lastIndexOf, slice, toLowerCase } = kit.String;
  const { join } = kit.Array;
  const { self: NativeString } = kit.String;
  const percent = kit.load("percent");
  const { encode, FRAGMENT, PATH, QUERY, SPECIAL_QUERY, USERINFO } = percent;
  const { parseHost } = kit.load("url_host");

  const PORT_MAX = 65535;
  const DIGITS = "0123456789";
  // Schemes whose URLs always have a host, and their ports.
  const SPECIAL = { __proto__: null, http: 80, https: 443, ws: 80, wss: 443, ftp: 21, file: null };

  const isSpecial = (url) => SPECIAL[url.scheme] !== undefined;
  const newPath = () => setPrototypeOf([], null);
  const copyPath = (path) => {
    const copy = newPath();
    for (let at = 0; at < path.length; at += 1) copy[at] = path[at];
    return copy;
  };
  const newRecord = (scheme) => ({
    __proto__: null, scheme, username: "", password: "", host: null, port: null, opaque: false, path: newPath(), query: null, fragment: null,
  });

  // ---- Text ----

  const trimmed = (text) => {
    let from = 0, to = text.length;
    while (from < to && charCodeAt(text, from) <= 0x20) from += 1;
    while (to > from && charCodeAt(text, to - 1) <= 0x20) to -= 1;
    return slice(text, from, to);
  };
  const isBreak = (char) => char === "\t" || char === "\n" || char === "\r";
  const withoutBreaks = (text) => {
    let kept = "", done = 0;
    for (let at = 0; at < text.length; at += 1) {
      if (!isBreak(text[at])) continue;
      kept += slice(text, done, at);
      done = at + 1;
    }
    return done === 0 ? text : kept + slice(text, done);
  };
  const isLetter = (char) => {
    const code = char === undefined || char === "" ? 0 : charCodeAt(char, 0) | 32;
    return code >= 97 && code <= 122 && charCodeAt(char, 0) < 0x80;
  };
  const isSchemeChar = (char) => isLetter(char) || indexOf("0123456789+-.", char) >= 0;
  // Up to where a text is a scheme: 0 if it does not begin with one.
  const schemeEnd = (text) => {
    if (!isLetter(slice(text, 0, 1))) return 0;
    let at = 1;
    while (at < text.length && isSchemeChar(text[at])) at += 1;
    return at;
  };
  const isSlash = (url, char) => char === "/" || (char === "\\" && isSpecial(url));
  const firstOf = (text, chars) => {
    for (let at = 0; at < text.length; at += 1) if (indexOf(chars, text[at]) >= 0) return at;
    return text.length;
  };
  const isDriveLetter = (text) => text.length === 2 && isLetter(text[0]) && (text[1] === ":" || text[1] === "|");
  const startsWithDriveLetter = (text) =>
    isDriveLetter(slice(text, 0, 2)) && (text.length === 2 || indexOf("/\\?#", text[2]) >= 0);

  // ---- Path, query, fragment ----

  const isSingleDot = (segment) => segment === "." || (segment.length === 3 && toLowerCase(segment) === "%2e");
  const isDoubleDot = (segment) => {
    if (segment === "..") return true;
    if (segment.length < 4 || segment.length > 6) return false;
    const text = toLowerCase(segment);
    return text === ".%2e" || text === "%2e." || text === "%2e%2e";
  };
  const shorten = (url) => {
    const { path } = url;
    const drive = url.scheme === "file" && path.length === 1 && isDriveLetter(path[0]) && path[0][1] === ":";
    if (!drive && path.length > 0) path.length -= 1;
  };
  const addSegment = (url, segment, isLast) => {
    const { path } = url;
    if (isDoubleDot(segment)) {
      shorten(url);
      if (isLast) path[path.length] = "";
    } else if (isSingleDot(segment)) {
      if (isLast) path[path.length] = "";
    } else {
      const drive = url.scheme === "file" && path.length === 0 && isDriveLetter(segment);
      path[path.length] = drive ? segment[0] + ":" : encode(segment, PATH);
    }
  };
  // Adds the segments of a text that has lost its first slash.
  const addPath = (url, text) => {
    let from = 0;
    for (let at = 0; at <= text.length; at += 1) {
      if (at < text.length && !isSlash(url, text[at])) continue;
      addSegment(url, slice(text, from, at), at === text.length);
      from = at + 1;
    }
  };
  // The path that follows a host.
  const startPath = (url, text) => {
    if (isSpecial(url)) addPath(url, isSlash(url, slice(text, 0, 1)) ? slice(text, 1) : text);
    else if (text !== "") addPath(url, text[0] === "/" ? slice(text, 1) : text);
  };
  const queryOf = (url, text) => encode(text, isSpecial(url) ? SPECIAL_QUERY : QUERY);
  const fragmentOf = (text) => encode(text, FRAGMENT);
  // Gives `rest` up to its "?" to `take`; what follows is the query.
  const withQuery = (url, rest, take) => {
    const mark = indexOf(rest, "?");
    if (mark >= 0) url.query = queryOf(url, slice(rest, mark + 1));
    return take(url, mark < 0 ? rest : slice(rest, 0, mark));
  };
  const opaquePath = (url, text) => {
    const marked = url.query !== null || url.fragment !== null;
    const last = marked && text[text.length - 1] === " ";
    url.opaque = true;
    url.path = encode(last ? slice(text, 0, -1) : text, "") + (last ? "%20" : "");
    return url;
  };

  // ---- Authority ----

  const portOf = (url, digits) => {
    let port = 0;
    for (let at = 0; at < digits.length; at += 1) {
      const digit = indexOf(DIGITS, digits[at]);
      port = port * 10 + digit;
      if (digit < 0 || port > PORT_MAX) return undefined;
    }
    return digits === "" || port === SPECIAL[url.scheme] ? null : port;
  };
  // Where the port's colon is: not one inside brackets; -1 if there is none.
  const portColon = (text) => {
    let inside = false;
    for (let at = 0; at < text.length; at += 1) {
      const char = text[at];
      if (char === "[") inside = true;
      else if (char === "]") inside = false;
      else if (char === ":" && !inside) return at;
    }
    return -1;
  };
  const setCredentials = (url, text) => {
    const colon = indexOf(text, ":");
    url.username = encode(colon < 0 ? text : slice(text, 0, colon), USERINFO);
    url.password = colon < 0 ? "" : encode(slice(text, colon + 1), USERINFO);
  };
  const setHostAndPort = (url, text) => {
    const colon = portColon(text);
    const name = colon < 0 ? text : slice(text, 0, colon);
    if (name === "" && (colon >= 0 || isSpecial(url))) return false;
    const host = name === "" ? "" : parseHost(name, isSpecial(url));
    const port = colon < 0 ? null : portOf(url, slice(text, colon + 1));
    if (host === undefined || port === undefined) return false;
    url.host = host;
    url.port = port;
    return true;
  };
  const authority = (url, rest) => {
    const end = firstOf(rest, isSpecial(url) ? "/\\?" : "/?");
    const text = slice(rest, 0, end);
    const at = lastIndexOf(text, "@");
    if (at >= 0) {
      if (at === text.length - 1) return undefined;
      setCredentials(url, slice(text, 0, at));
    }
    if (!setHostAndPort(url, slice(text, at + 1))) return undefined;
    withQuery(url, slice(rest, end), startPath);
    return url;
  };
  const authorityAfterSlashes = (url, rest) => {
    let at = 0;
    while (at < rest.length && isSlash(url, rest[at])) at += 1;
    return authority(url, slice(rest, at));
  };

  // ---- Relative to another URL ----

  const copyAuthority = (url, base) => {
    url.username = base.username;
    url.password = base.password;
    url.host = base.host;
    url.port = base.port;
  };
  const relative = (url, rest, base) => {
    if (isSlash(url, slice(rest, 0, 1))) {
      if (isSlash(url, slice(rest, 1, 2))) {
        return isSpecial(url) ? authorityAfterSlashes(url, slice(rest, 2)) : authority(url, slice(rest, 2));
      }
      copyAuthority(url, base);
      withQuery(url, slice(rest, 1), addPath);
      return url;
    }
    copyAuthority(url, base);
    return relativePath(url, rest, base);
  };
  const relativePath = (url, rest, base) => {
    url.path = copyPath(base.path);
    if (rest === "") url.query = base.query;
    else if (rest[0] === "?") url.query = queryOf(url, slice(rest, 1));
    else {
      shorten(url);
      withQuery(url, rest, addPath);
    }
    return url;
  };

  // ---- Files ----

  const file = (url, rest, base) => {
    url.host = "";
    const from = base !== undefined && base.scheme === "file" ? base : undefined;
    if (isSlash(url, slice(rest, 0, 1))) return fileSlash(url, slice(rest, 1), from);
    if (from === undefined) {
      withQuery(url, rest, addPath);
      return url;
    }
    url.host = from.host;
    if (!startsWithDriveLetter(rest)) return relativePath(url, rest, from);
    withQuery(url, rest, addPath);
    return url;
  };
  const fileSlash = (url, rest, base) => {
    if (isSlash(url, slice(rest, 0, 1))) return fileHost(url, slice(rest, 1));
    if (base !== undefined) {
      url.host = base.host;
      const { path } = base;
      const drive = path.length > 0 && isDriveLetter(path[0]) && path[0][1] === ":";
      if (drive && !startsWithDriveLetter(rest)) url.path[0] = path[0];
    }
    withQuery(url, rest, addPath);
    return url;
  };
  const fileHost = (url, rest) => {
    const end = firstOf(rest, "/\\?");
    const name = slice(rest, 0, end);
    if (isDriveLetter(name)) {
      withQuery(url, rest, addPath);
      return url;
    }
    if (!setFileHost(url, name)) return undefined;
    withQuery(url, slice(rest, end), startPath);
    return url;
  };
  const setFileHost = (url, name) => {
    const host = name === "" ? "" : parseHost(name, true);
    if (host === undefined) return false;
    url.host = host === "localhost" ? "" : host;
    return true;
  };

  // ---- The whole ----

  const withScheme = (url, rest, base) => {
    if (url.scheme === "file") return file(url, rest, base);
    if (isSpecial(url)) {
      const same = base !== undefined && base.scheme === url.scheme;
      return same && slice(rest, 0, 2) !== "//" ? relative(url, rest, base) : authorityAfterSlashes(url, rest);
    }
    if (slice(rest, 0, 2) === "//") return authority(url, slice(rest, 2));
    return withQuery(url, rest, rest[0] === "/" ? (it, text) => (addPath(it, slice(text, 1)), it) : opaquePath);
  };
  const withoutScheme = (url, rest, base) => {
    if (base.opaque) {
      if (rest !== "" || url.fragment === null) return undefined;
      url.opaque = true;
      url.path = base.path;
      url.query = base.query;
      return url;
    }
    return base.scheme === "file" ? file(url, rest, base) : relative(url, rest, base);
  };
  const parse = (input, base) => {
    const text = withoutBreaks(trimmed(input));
    const hash = indexOf(text, "#");
    const before = hash < 0 ? text : slice(text, 0, hash);
    const end = schemeEnd(before);
    const hasScheme = end > 0 && before[end] === ":";
    if (!hasScheme && base === undefined) return undefined;
    const url = newRecord(hasScheme ? toLowerCase(slice(before, 0, end)) : base.scheme);
    if (hash >= 0) url.fragment = fragmentOf(slice(text, hash + 1));
    return hasScheme ? withScheme(url, slice(before, end + 1), base) : withoutScheme(url, before, base);
  };

  const pathOf = (url) => (url.opaque ? url.path : url.path.length === 0 ? "" : "/" + join(url.path, "/"));
  const hostOf = (url) => (url.host === null ? "" : url.port === null ? url.host : url.host + ":" + NativeString(url.port));
  const credentialsOf = (url) => {
    if (url.username === "" && url.password === "") return "";
    return url.username + (url.password === "" ? "" : ":" + url.password) + "@";
  };
  const hrefOf = (url) => {
    const path = pathOf(url);
    let text = url.scheme + ":";
    if (url.host !== null) text += "//" + credentialsOf(url) + hostOf(url);
    // Without this, a path that begins with two slashes would become a host.
    else if (!url.opaque && url.path.length > 1 && url.path[0] === "") text += "/.";
    text += path;
    if (url.query !== null) text += "?" + url.query;
    return url.fragment === null ? text : text + "#" + url.fragment;
  };

  // ---- Changing one part: what does not fit is ignored ----

  const cannotHavePort = (url) => url.host === null || url.host === "" || url.scheme === "file";
  const setScheme = (url, value) => {
    const end = schemeEnd(value);
    if (end === 0 || (end < value.length && value[end] !== ":")) return;
    const scheme = toLowerCase(slice(value, 0, end));
    if ((SPECIAL[scheme] !== undefined) !== isSpecial(url)) return;
    if (scheme === "file" && (credentialsOf(url) !== "" || url.port !== null)) return;
    if (url.scheme === "file" && url.host === "") return;
    url.scheme = scheme;
    if (url.port === SPECIAL[scheme]) url.port = null;
  };
  // Host and port as far as they are understood; a host name alone may have no port.
  const setHost = (url, value, alone) => {
    const text = slice(value, 0, firstOf(value, isSpecial(url) ? "/\\?#" : "/?#"));
    if (url.scheme === "file") {
      setFileHost(url, text);
      return;
    }
    const colon = portColon(text);
    const name = colon < 0 ? text : slice(text, 0, colon);
    if ((colon >= 0 && (alone || name === "")) || (name === "" && isSpecial(url))) return;
    if (name === "" && (credentialsOf(url) !== "" || url.port !== null)) return;
    const host = name === "" ? "" : parseHost(name, isSpecial(url));
    if (host === undefined) return;
    url.host = host;
    if (colon >= 0) setPort(url, slice(text, colon + 1));
  };
  const setPort = (url, value) => {
    let end = 0;
    while (end < value.length && indexOf(DIGITS, value[end]) >= 0) end += 1;
    const port = end === 0 ? undefined : portOf(url, slice(value, 0, end));
    if (port !== undefined) url.port = port;
  };
  const setPath = (url, value) => {
    url.path = newPath();
    startPath(url, value);
    if (value === "" && url.host === null) url.path[0] = "";
  };

  return {
    __proto__: null, parse, hrefOf, hostOf, pathOf, queryOf, fragmentOf, isSpecial, cannotHavePort, withoutBreaks,
    setScheme, setHost, setPort, setPath, encodeUserinfo: (text) => encode(text, USERINFO),
  };
})
