// The methods of the language's own objects that depend on a locale. What they need is loaded when one is first called.
(function (kit) {
  "use strict";

  const { apply, define } = kit;
  const { valueOf: numberOf } = kit.Number;
  const { valueOf: bigIntOf } = kit.BigInt;
  const { getTime } = kit.Date;
  const { toUpperCase, toLowerCase } = String.prototype;
  const { self: NativeTypeError } = kit.TypeError;
  const intl = () => kit.load("intl");

  kit.parseJson = JSON.parse;
  const redefine = (owner, methods) => {
    const names = kit.ownKeys(methods);
    for (let at = 0; at < names.length; at += 1) define(owner, names[at], methods[names[at]]);
  };

  // Defaults make them as long as the standard's.
  redefine(Number.prototype, {
    toLocaleString(locales = undefined, options = undefined) { return intl().numberText(numberOf(this), locales, options); },
  });
  redefine(BigInt.prototype, {
    toLocaleString(locales = undefined, options = undefined) { return intl().numberText(bigIntOf(this), locales, options); },
  });
  redefine(Date.prototype, {
    toLocaleString(locales = undefined, options = undefined) { return intl().dateText(getTime(this), locales, options, "any", "all"); },
    toLocaleDateString(locales = undefined, options = undefined) { return intl().dateText(getTime(this), locales, options, "date", "date"); },
    toLocaleTimeString(locales = undefined, options = undefined) { return intl().dateText(getTime(this), locales, options, "time", "time"); },
  });

  const textOf = (value, method) => {
    if (value === undefined || value === null) throw new NativeTypeError(`String.prototype.${method} called on null or undefined`);
    return `${value}`;
  };
  redefine(String.prototype, {
    localeCompare(that, locales = undefined, options = undefined) {
      const text = textOf(this, "localeCompare");
      return intl().compareTexts(text, `${that}`, locales, options);
    },
    toLocaleUpperCase(locales = undefined) {
      const text = textOf(this, "toLocaleUpperCase");
      return locales === undefined ? apply(toUpperCase, text, []) : intl().cased(text, locales, "upper", toUpperCase);
    },
    toLocaleLowerCase(locales = undefined) {
      const text = textOf(this, "toLocaleLowerCase");
      return locales === undefined ? apply(toLowerCase, text, []) : intl().cased(text, locales, "lower", toLowerCase);
    },
  });

  // Lists that are being written: one that contains itself is empty there.
  const open = { __proto__: null, n: 0 };
  const joined = (list, length, locales, options) => {
    for (let at = 0; at < open.n; at += 1) if (open[at] === list) return "";
    open[open.n] = list;
    open.n += 1;
    try {
      let text = "";
      for (let at = 0; at < length; at += 1) {
        if (at > 0) text += ",";
        const item = list[at];
        if (item !== undefined && item !== null) text += `${apply(item.toLocaleString, item, [locales, options])}`;
      }
      return text;
    } finally {
      open.n -= 1;
      open[open.n] = undefined;
    }
  };
  const { self: NativeObject } = kit.Object;
  const { trunc } = kit;
  const lengthOf = kit.TypedArray.length;
  const typeOf = kit.TypedArray.type;
  redefine(Array.prototype, {
    toLocaleString(locales = undefined, options = undefined) {
      if (this === undefined || this === null) throw new NativeTypeError("Array.prototype.toLocaleString called on null or undefined");
      const list = NativeObject(this);
      const length = trunc(+list.length);
      return joined(list, length > 0 ? length : 0, locales, options);
    },
  });
  redefine(kit.getPrototypeOf(Uint8Array.prototype), {
    toLocaleString(locales = undefined, options = undefined) {
      if (typeOf(this) === undefined) throw new NativeTypeError("this is not a typed array");
      return joined(this, lengthOf(this), locales, options);
    },
  });
})
