// Intl. Options are read here, once each and in the standard's order; what they mean, the host knows. An object's state is a
// text, its settings, which the host reads again each time.
(function (kit) {
  "use strict";

  const { apply, clock, construct, define, defineProperty, host, parseJson, stringify } = kit;
  const { toStringTag } = kit.symbols;
  const { indexOf, slice, toWellFormed } = kit.String;
  const { self: NativeObject } = kit.Object;
  const { self: NativeTypeError } = kit.TypeError;
  const { self: NativeRangeError } = kit.RangeError;
  const { self: NativeWeakMap, get: stateOf, set: remember } = kit.WeakMap;

  // A reply begins with "=", or with the error that it is.
  const ask = (operation, first, second) => {
    const reply = host.intl(operation, first, second);
    const text = slice(reply, 1);
    if (reply[0] === "=") return text;
    throw new (reply[0] === "T" ? NativeTypeError : NativeRangeError)(text);
  };

  // ---- Locales and options ----

  const TAGS_MAX = 1000;
  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
  const states = new NativeWeakMap();
  const stateIn = (object, name, method) => {
    const state = isObject(object) ? stateOf(states, object) : undefined;
    if (state === undefined || state.name !== name) {
      throw new NativeTypeError(`Method Intl.${name}.prototype.${method} called on incompatible receiver`);
    }
    return state;
  };
  const tagOf = (value) => {
    if (typeof value === "string") return toWellFormed(value);
    if (!isObject(value)) throw new NativeTypeError("Incorrect locale information provided: a locale is a text or an Intl.Locale");
    const state = stateOf(states, value);
    return state !== undefined && state.name === "Locale" ? state.shown.tag : toWellFormed(`${value}`);
  };
  // The tags that a guest asks for, as JSON.
  const tagsOf = (locales) => {
    if (locales === undefined) return "";
    if (locales === null) throw new NativeTypeError("Cannot convert undefined or null to object");
    const state = isObject(locales) ? stateOf(states, locales) : undefined;
    if (typeof locales === "string" || (state !== undefined && state.name === "Locale")) return `[${stringify(tagOf(locales))}]`;
    const list = NativeObject(locales);
    const length = +list.length;
    if (length > TAGS_MAX) throw new NativeRangeError(`more than ${TAGS_MAX} locales`);
    let json = "";
    for (let at = 0; at < length; at += 1) {
      if (at in list) json += (json === "" ? "" : ",") + stringify(tagOf(list[at]));
    }
    return `[${json}]`;
  };
  const TEXT = 0, FLAG = 1, NUMBER = 2, GROUPING = 3;
  const optionText = (value, kind) => {
    if (kind === FLAG) return value ? "true" : "false";
    if (kind === NUMBER) return `${+value}`;
    // No text of a guest's is "=false".
    if (kind === GROUPING && value === true) return "always";
    if (kind === GROUPING && !value) return "=false";
    const text = toWellFormed(`${value}`);
    return kind === GROUPING && text === "=false" ? "=" : text;
  };
  const bagOf = (options, names) => {
    const bag = { __proto__: null };
    if (options === undefined) return bag;
    if (options === null) throw new NativeTypeError("Cannot convert undefined or null to object");
    for (let at = 0; at < names.length; at += 2) {
      const value = options[names[at]];
      if (value !== undefined) bag[names[at]] = optionText(value, names[at + 1]);
    }
    return bag;
  };
  // The state of a new object: settings for the host, and what resolvedOptions shows.
  const stateFor = (name, service, tags, bag) => {
    const reply = ask(service, tags, stringify(bag));
    const end = indexOf(reply, "\n");
    return { __proto__: null, name, settings: slice(reply, 0, end), shown: slice(reply, end + 1), bound: undefined };
  };

  // ---- Values ----

  const numberText = (value) => {
    if (typeof value === "string") return toWellFormed(value);
    if (typeof value === "bigint") return `${value}`;
    const number = +value;
    return number === 0 && 1 / number < 0 ? "-0" : `${number}`;
  };
  const timeText = (date) => `${date === undefined ? clock.now : +date}`;
  const listText = (list) => {
    if (list === undefined) return "[]";
    const method = list[kit.symbols.iterator];
    if (typeof method !== "function") throw new NativeTypeError("the list is not iterable");
    const iterator = apply(method, list, []);
    const { next } = iterator;
    let json = "";
    for (;;) {
      const step = apply(next, iterator, []);
      if (!isObject(step)) throw new NativeTypeError("an iterator's step is not an object");
      if (step.done) return `[${json}]`;
      const { value } = step;
      if (typeof value !== "string") {
        const { return: close } = iterator;
        if (close !== undefined) apply(close, iterator, []);
        throw new NativeTypeError("Iterable yielded a value which is not a string");
      }
      json += (json === "" ? "" : ",") + stringify(toWellFormed(value));
    }
  };
  const compared = (settings, left, right) => host.intlCompare(settings, toWellFormed(left), toWellFormed(right));

  // ---- Constructors ----

  const Intl = {};
  define(Intl, "getCanonicalLocales", { getCanonicalLocales(locales) { return parseJson(ask("locales.canonical", tagsOf(locales), "")); } }.getCanonicalLocales);
  define(Intl, "supportedValuesOf", { supportedValuesOf(key) { return parseJson(ask("values", toWellFormed(`${key}`), "")); } }.supportedValuesOf);
  const tag = (object, text) => defineProperty(object, toStringTag, { __proto__: null, value: text, writable: false, enumerable: false, configurable: true });
  tag(Intl, "Intl");

  const addMethods = (name, Service, methods) => {
    const keys = kit.ownKeys(methods);
    for (let at = 0; at < keys.length; at += 1) define(Service.prototype, keys[at], methods[keys[at]]);
    defineProperty(Service, "prototype", { __proto__: null, writable: false });
    tag(Service.prototype, `Intl.${name}`);
    define(Intl, name, Service);
  };
  const service = (name, operation, names, needsNew, methods) => {
    const Service = {
      [name]: function (locales = undefined, options = undefined) {
        if (needsNew && new.target === undefined) throw new NativeTypeError(`Constructor Intl.${name} requires 'new'`);
        const object = construct(NativeObject, [], new.target === undefined ? Service : new.target);
        remember(states, object, stateFor(name, operation, tagsOf(locales), bagOf(options, names)));
        return object;
      },
    }[name];
    addMethods(name, Service, methods);
    define(Service.prototype, "resolvedOptions", { resolvedOptions() { return parseJson(stateIn(this, name, "resolvedOptions").shown); } }.resolvedOptions);
    define(Service, "supportedLocalesOf", {
      supportedLocalesOf(locales, options = undefined) {
        return parseJson(ask("locales.supported", tagsOf(locales), stringify(bagOf(options, ["localeMatcher", TEXT]))));
      },
    }.supportedLocalesOf);
    return Service;
  };
  // A function that is made once for each object, so that it can be handed to map and sort.
  const bound = (name, Service, property, make) => {
    const { get } = kit.getOwnPropertyDescriptor({
      get [property]() {
        const state = stateIn(this, name, property);
        if (state.bound === undefined) {
          state.bound = make(state);
          defineProperty(state.bound, "name", { __proto__: null, value: "", writable: false, enumerable: false, configurable: true });
        }
        return state.bound;
      },
    }, property);
    defineProperty(Service.prototype, property, { __proto__: null, get, set: undefined, enumerable: false, configurable: true });
  };

  const MATCHER = ["localeMatcher", TEXT];
  const DIGITS = [
    "minimumIntegerDigits", NUMBER, "minimumFractionDigits", NUMBER, "maximumFractionDigits", NUMBER, "minimumSignificantDigits", NUMBER,
    "maximumSignificantDigits", NUMBER, "roundingIncrement", NUMBER, "roundingMode", TEXT, "roundingPriority", TEXT, "trailingZeroDisplay", TEXT,
  ];
  const listed = (first, second, third) => {
    const names = [];
    const add = (list) => { for (let at = 0; at < list.length; at += 1) define(names, names.length, list[at]); };
    add(first);
    add(second);
    if (third !== undefined) add(third);
    return names;
  };
  const NUMBER_OPTIONS = listed(
    ["localeMatcher", TEXT, "numberingSystem", TEXT, "style", TEXT, "currency", TEXT, "currencyDisplay", TEXT, "currencySign", TEXT, "unit", TEXT, "unitDisplay", TEXT, "notation", TEXT],
    DIGITS,
    ["compactDisplay", TEXT, "useGrouping", GROUPING, "signDisplay", TEXT],
  );
  const DATE_OPTIONS = [
    "localeMatcher", TEXT, "calendar", TEXT, "numberingSystem", TEXT, "hour12", FLAG, "hourCycle", TEXT, "timeZone", TEXT, "weekday", TEXT, "era", TEXT,
    "year", TEXT, "month", TEXT, "day", TEXT, "dayPeriod", TEXT, "hour", TEXT, "minute", TEXT, "second", TEXT, "fractionalSecondDigits", NUMBER,
    "timeZoneName", TEXT, "formatMatcher", TEXT, "dateStyle", TEXT, "timeStyle", TEXT,
  ];
  const COLLATOR_OPTIONS = ["usage", TEXT, "localeMatcher", TEXT, "collation", TEXT, "numeric", FLAG, "caseFirst", TEXT, "sensitivity", TEXT, "ignorePunctuation", FLAG];

  const NumberFormat = service("NumberFormat", "number.new", NUMBER_OPTIONS, false, {
    formatToParts(value) { return parseJson(ask("number.parts", stateIn(this, "NumberFormat", "formatToParts").settings, numberText(value))); },
  });
  bound("NumberFormat", NumberFormat, "format", (state) => (value) => ask("number.text", state.settings, numberText(value)));

  const DateTimeFormat = service("DateTimeFormat", "date.new", DATE_OPTIONS, false, {
    formatToParts(date) { return parseJson(ask("date.parts", stateIn(this, "DateTimeFormat", "formatToParts").settings, timeText(date))); },
  });
  bound("DateTimeFormat", DateTimeFormat, "format", (state) => (date) => ask("date.text", state.settings, timeText(date)));

  const Collator = service("Collator", "collator", COLLATOR_OPTIONS, false, {});
  bound("Collator", Collator, "compare", (state) => (left, right) => {
    const first = `${left}`;
    return compared(state.settings, first, `${right}`);
  });

  const PluralRules = service("PluralRules", "plural.new", listed(MATCHER, ["type", TEXT], DIGITS), true, {
    select(value) {
      const { settings } = stateIn(this, "PluralRules", "select");
      return ask("plural.text", settings, numberText(+value));
    },
  });
  const relative = (object, method, value, unit, operation) => {
    const { settings } = stateIn(object, "RelativeTimeFormat", method);
    const number = numberText(+value);
    return ask(operation, settings, `${toWellFormed(`${unit}`)} ${number}`);
  };
  service("RelativeTimeFormat", "relative.new", listed(MATCHER, ["numberingSystem", TEXT, "style", TEXT, "numeric", TEXT]), true, {
    format(value, unit) { return relative(this, "format", value, unit, "relative.text"); },
    formatToParts(value, unit) { return parseJson(relative(this, "formatToParts", value, unit, "relative.parts")); },
  });
  service("ListFormat", "list.new", listed(MATCHER, ["type", TEXT, "style", TEXT]), true, {
    format(list) {
      const { settings } = stateIn(this, "ListFormat", "format");
      return ask("list.text", settings, listText(list));
    },
    formatToParts(list) {
      const { settings } = stateIn(this, "ListFormat", "formatToParts");
      return parseJson(ask("list.parts", settings, listText(list)));
    },
  });

  const LOCALE_OPTIONS = ["language", TEXT, "script", TEXT, "region", TEXT, "calendar", TEXT, "collation", TEXT, "hourCycle", TEXT, "caseFirst", TEXT, "numeric", FLAG, "numberingSystem", TEXT];
  const localeFor = (target, text, options) => {
    const shown = parseJson(ask("locales.describe", text, stringify(bagOf(options, LOCALE_OPTIONS))));
    const object = construct(NativeObject, [], target);
    remember(states, object, { __proto__: null, name: "Locale", shown });
    return object;
  };
  const Locale = {
    Locale: function (text, options = undefined) {
      if (new.target === undefined) throw new NativeTypeError("Constructor Intl.Locale requires 'new'");
      if (typeof text !== "string" && !isObject(text)) throw new NativeTypeError("First argument to Intl.Locale constructor can't be empty or missing");
      return localeFor(new.target, tagOf(text), options);
    },
  }.Locale;
  addMethods("Locale", Locale, {
    maximize() { return localeFor(Locale, ask("locales.maximize", stateIn(this, "Locale", "maximize").shown.tag, ""), undefined); },
    minimize() { return localeFor(Locale, ask("locales.minimize", stateIn(this, "Locale", "minimize").shown.tag, ""), undefined); },
    toString() { return stateIn(this, "Locale", "toString").shown.tag; },
  });
  const SHOWN = ["baseName", "calendar", "caseFirst", "collation", "hourCycle", "language", "numberingSystem", "numeric", "region", "script"];
  for (let at = 0; at < SHOWN.length; at += 1) {
    const name = SHOWN[at];
    const { get } = kit.getOwnPropertyDescriptor({
      get [name]() {
        const value = stateIn(this, "Locale", name).shown[name];
        return value === null ? (name === "numeric" ? false : undefined) : name === "numeric" ? value === "true" : value;
      },
    }, name);
    defineProperty(Locale.prototype, name, { __proto__: null, get, set: undefined, enumerable: false, configurable: true });
  }

  // ---- What is not provided: not there for those who ask whether it is; a clear word for those who call it ----

  const absent = (owner, prefix, name, way) => {
    const full = `${prefix}${name}`;
    define(owner, name, host.unseen({
      [name]: function () { throw new NativeTypeError(`this host's Intl does not provide ${full}: ${way}`); },
    }[name]));
  };
  const BOTH = "format both ends and join them";
  const AS_TEXT = "the program must know it itself";
  absent(Intl, "Intl.", "DisplayNames", AS_TEXT);
  absent(Intl, "Intl.", "DurationFormat", "join what NumberFormat writes of each unit with ListFormat");
  absent(Intl, "Intl.", "Segmenter", "[...text] gives code points, text.split(/\\s+/) words");
  absent(NumberFormat.prototype, "Intl.NumberFormat.prototype.", "formatRange", BOTH);
  absent(NumberFormat.prototype, "Intl.NumberFormat.prototype.", "formatRangeToParts", BOTH);
  absent(DateTimeFormat.prototype, "Intl.DateTimeFormat.prototype.", "formatRange", BOTH);
  absent(DateTimeFormat.prototype, "Intl.DateTimeFormat.prototype.", "formatRangeToParts", BOTH);
  absent(PluralRules.prototype, "Intl.PluralRules.prototype.", "selectRange", "select takes one number");
  const OF_LOCALES = ["getCalendars", "getCollations", "getHourCycles", "getNumberingSystems", "getTextInfo", "getTimeZones", "getWeekInfo"];
  for (let at = 0; at < OF_LOCALES.length; at += 1) absent(Locale.prototype, "Intl.Locale.prototype.", OF_LOCALES[at], AS_TEXT);

  // ---- The methods of other objects: what they used last is found again, unless options must be read again ----

  const last = { __proto__: null };
  const stateOnce = (key, name, operation, locales, options, names, bag) => {
    const isPlain = options === undefined && (locales === undefined || typeof locales === "string");
    const known = isPlain ? last[key] : undefined;
    if (known !== undefined && known.locales === locales) return known.state;
    const tags = tagsOf(locales);
    const all = bagOf(options, names);
    if (bag !== undefined) {
      all["=required"] = bag.required;
      all["=defaults"] = bag.defaults;
    }
    const state = stateFor(name, operation, tags, all);
    if (isPlain) last[key] = { __proto__: null, locales, state };
    return state;
  };

  // Languages whose letters have other capitals than the language's own methods give.
  const cased = (text, locales, which, native) => {
    const tags = tagsOf(locales);
    const known = parseJson(ask("locales.canonical", tags, ""));
    const first = known.length > 0 ? slice(known[0], 0, 2) : "";
    const special = (known.length > 0 && (known[0].length === 2 || known[0][2] === "-")) && (first === "tr" || first === "az" || first === "lt" || first === "el" || first === "hy");
    return special ? ask(`case.${which}`, tags, toWellFormed(text)) : apply(native, text, []);
  };

  return {
    __proto__: null,
    Intl,
    numberText: (value, locales, options) => {
      const state = stateOnce("number", "NumberFormat", "number.new", locales, options, NUMBER_OPTIONS, undefined);
      return ask("number.text", state.settings, numberText(value));
    },
    dateText: (time, locales, options, required, defaults) => {
      const bag = { __proto__: null, required, defaults };
      const state = stateOnce(`date ${defaults}`, "DateTimeFormat", "date.new", locales, options, DATE_OPTIONS, bag);
      return time !== time ? "Invalid Date" : ask("date.text", state.settings, `${time}`);
    },
    compareTexts: (left, right, locales, options) => {
      const state = stateOnce("collator", "Collator", "collator", locales, options, COLLATOR_OPTIONS, undefined);
      return compared(state.settings, left, right);
    },
    cased,
  };
})
