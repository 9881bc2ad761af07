// Records the results of Node's Intl for tests/against_node.rs:
//
//   node record.mjs > recorded.jsonl
//
// The first line names the versions. Each other line is a case: the operation, its arguments, and Node's result.
const LOCALES = ["en-US", "en-GB", "de", "de-AT", "de-CH", "fr", "fr-CA", "es", "es-MX", "it", "pt-BR", "pt-PT", "nl", "pl", "ja", "zh-CN", "zh-TW", "ko", "ar", "ar-EG", "hi"];
const { node, v8, icu, cldr, tz, unicode } = process.versions;
const lines = [JSON.stringify({ node, v8, icu, cldr, tz, unicode })];
const texts = (options) => Object.fromEntries(Object.entries(options).map(([name, value]) => [name, value === false && name === "useGrouping" ? "=false" : value === true && name === "useGrouping" ? "always" : String(value)]));
const record = (service, locale, options, value, answer) => lines.push(JSON.stringify([service, locale, texts(options), value, answer]));

const NUMBERS = [
  [{}, ["0", "-0", "1234.5", "-1234567.891", "1e21", "0.00001", "NaN", "Infinity", "-Infinity", "12345"]],
  [{ minimumFractionDigits: 2 }, ["3", "1.005"]],
  [{ maximumSignificantDigits: 3 }, ["123456", "0.0012345"]],
  [{ style: "percent" }, ["0.256", "-1.5", "12"]],
  [{ style: "percent", maximumFractionDigits: 1, signDisplay: "exceptZero" }, ["0.1234", "0"]],
  [{ style: "currency", currency: "EUR" }, ["1234.5", "-0.5", "0"]],
  [{ style: "currency", currency: "USD" }, ["1234.5", "-1234.5"]],
  [{ style: "currency", currency: "JPY" }, ["1234.5"]],
  [{ style: "currency", currency: "USD", currencyDisplay: "code" }, ["9.99", "-9.99"]],
  [{ style: "currency", currency: "EUR", currencyDisplay: "name" }, ["1", "2.5"]],
  [{ style: "currency", currency: "CAD", currencyDisplay: "narrowSymbol" }, ["7"]],
  [{ style: "currency", currency: "USD", currencySign: "accounting" }, ["-42", "42"]],
  [{ style: "currency", currency: "USD", notation: "compact" }, ["1234567"]],
  [{ notation: "compact" }, ["999", "1234", "999999", "1234567", "-15000000", "1.2", "0"]],
  [{ notation: "compact", compactDisplay: "long" }, ["1234", "2000000", "1500000000"]],
  [{ notation: "scientific" }, ["123456", "0.00012"]],
  [{ notation: "engineering" }, ["123456"]],
  [{ style: "unit", unit: "kilometer" }, ["5", "1.5"]],
  [{ style: "unit", unit: "liter", unitDisplay: "long" }, ["1", "16"]],
  [{ style: "unit", unit: "hour", unitDisplay: "narrow" }, ["3"]],
  [{ signDisplay: "always" }, ["5", "-5", "0"]],
  [{ useGrouping: false }, ["1234567"]],
  [{ useGrouping: "min2" }, ["1234", "12345"]],
  [{ minimumIntegerDigits: 3 }, ["7"]],
  [{ roundingMode: "floor", maximumFractionDigits: 0 }, ["-1.5"]],
  [{ roundingIncrement: 5, maximumFractionDigits: 2, minimumFractionDigits: 2 }, ["1.07"]],
  [{ numberingSystem: "arab" }, ["1234.5"]],
];
const AT = Date.UTC(2026, 2, 5, 6, 8, 9, 45), EVENING = Date.UTC(2025, 10, 19, 21, 4, 30);
const DATES = [
  {}, { dateStyle: "full" }, { dateStyle: "long" }, { dateStyle: "medium" }, { dateStyle: "short" },
  { timeStyle: "full" }, { timeStyle: "long" }, { timeStyle: "medium" }, { timeStyle: "short" },
  { dateStyle: "full", timeStyle: "short" }, { dateStyle: "long", timeStyle: "medium" }, { dateStyle: "medium", timeStyle: "short" }, { dateStyle: "short", timeStyle: "short" },
  { dateStyle: "short", timeStyle: "short", hour12: true }, { timeStyle: "short", hourCycle: "h23" },
  { year: "numeric", month: "2-digit", day: "2-digit" }, { year: "2-digit", month: "numeric", day: "numeric" },
  { year: "numeric", month: "short", day: "numeric" }, { year: "numeric", month: "long" }, { month: "long", day: "numeric" },
  { weekday: "short", year: "numeric", month: "short", day: "numeric" }, { weekday: "long", month: "short", day: "numeric", year: "numeric" },
  { weekday: "long" }, { weekday: "narrow" }, { month: "long" }, { month: "narrow" }, { year: "numeric" }, { day: "numeric" }, { month: "numeric", day: "numeric" },
  { hour: "numeric" }, { hour: "numeric", minute: "2-digit" }, { hour: "2-digit", minute: "2-digit", hour12: false }, { hour: "numeric", minute: "numeric", hour12: true },
  { hour: "numeric", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }, { minute: "2-digit", second: "2-digit" },
  { weekday: "short", hour: "numeric" }, { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" },
  { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "numeric", timeZoneName: "short" },
  { hour: "numeric", minute: "numeric", timeZoneName: "long" }, { hour: "numeric", timeZoneName: "shortOffset" }, { year: "numeric", month: "numeric", day: "numeric", timeZoneName: "longOffset" },
  { hour: "numeric", timeZoneName: "shortGeneric" }, { hour: "numeric", timeZoneName: "longGeneric" },
  { year: "numeric", era: "short" }, { era: "long", year: "numeric", month: "long", day: "numeric" }, { hour: "numeric", dayPeriod: "long", hour12: true },
];
const ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"];
for (const locale of LOCALES) {
  for (const [options, values] of NUMBERS) {
    const format = new Intl.NumberFormat(locale, options);
    for (const value of values) record("number", locale, options, value, format.format(value));
  }
  record("number.parts", locale, { style: "currency", currency: "EUR" }, "-1234.5", new Intl.NumberFormat(locale, { style: "currency", currency: "EUR" }).formatToParts(-1234.5));
  record("number.parts", locale, { style: "percent" }, "12.5", new Intl.NumberFormat(locale, { style: "percent" }).formatToParts(12.5));
  record("number.parts", locale, { notation: "compact", compactDisplay: "long" }, "1234567", new Intl.NumberFormat(locale, { notation: "compact", compactDisplay: "long" }).formatToParts(1234567));
  record("number.resolved", locale, { style: "currency", currency: "JPY" }, "", new Intl.NumberFormat(locale, { style: "currency", currency: "JPY" }).resolvedOptions());
  DATES.forEach((options, index) => {
    const timeZone = ZONES[index % ZONES.length], time = index % 2 === 0 ? AT : EVENING;
    const format = new Intl.DateTimeFormat(locale, { ...options, timeZone });
    record("date", locale, { ...options, timeZone }, String(time), format.format(time));
    if (index % 5 === 1) record("date.parts", locale, { ...options, timeZone }, String(time), format.formatToParts(time));
    if (index % 5 === 3) record("date.resolved", locale, { ...options, timeZone }, "", format.resolvedOptions());
  });
  for (const [style, numeric] of [["long", "auto"], ["long", "always"], ["short", "always"], ["narrow", "auto"]]) {
    const format = new Intl.RelativeTimeFormat(locale, { style, numeric });
    for (const [value, unit] of [[-1, "day"], [0, "day"], [2, "days"], [-3.5, "hours"], [1, "month"], [-5, "minute"], [1000, "year"], [-1, "quarter"], [1, "week"], [-30, "seconds"]]) {
      record("relative", locale, { style, numeric }, `${unit} ${value}`, format.format(value, unit));
    }
    record("relative.parts", locale, { style, numeric }, "minutes 12", format.formatToParts(12, "minutes"));
  }
  for (const type of ["conjunction", "disjunction", "unit"]) for (const style of ["long", "short", "narrow"]) {
    const format = new Intl.ListFormat(locale, { type, style });
    for (const list of [["A"], ["A", "B"], ["A", "B", "C"]]) record("list", locale, { type, style }, JSON.stringify(list), format.format(list));
  }
  for (const type of ["cardinal", "ordinal"]) {
    const rules = new Intl.PluralRules(locale, { type });
    for (const value of ["0", "1", "2", "3", "5", "11", "21", "1.5", "100", "1000000"]) record("plural", locale, { type }, value, rules.select(Number(value)));
    record("plural.resolved", locale, { type }, "", rules.resolvedOptions());
  }
  const words = ["z", "ä", "a", "Ä", "Zebra", "apple", "Apfel", "ö", "o", "ñ", "n", "ch", "c", "é", "e", "ł", "l", "10", "2", "日", "本", "あ", "ア", "가", "힣", "ب", "ا", "क", "-x", "x"];
  for (const options of [{}, { numeric: true }, { sensitivity: "base" }, { sensitivity: "accent" }, { sensitivity: "case" }, { caseFirst: "upper" }, { ignorePunctuation: true }, { usage: "search" }]) {
    const collator = new Intl.Collator(locale, options);
    const sorted = [...words].sort(collator.compare);
    const text = sorted.reduce((text, word, at) => text + (at === 0 ? "" : collator.compare(sorted[at - 1], word) === 0 ? " = " : " < ") + word, "");
    record("compare", locale, options, JSON.stringify(words), text);
  }
  record("collator.resolved", locale, { numeric: true }, "", new Intl.Collator(locale, { numeric: true }).resolvedOptions());
}
process.stdout.write(lines.join("\n") + "\n");
