// Writes patterns.txt: what ICU4X does not give of CLDR, of the version that Node's ICU has.
//
//   npm install --ignore-scripts cldr-core@48.1.0 cldr-dates-full@48.1.0 cldr-numbers-full@48.1.0
//   node generate.mjs node_modules > patterns.txt
//
// ICU4X selects date patterns by "field sets", which cannot express all options of ECMA-402 and give other texts for some that
// they can (`new Date().toLocaleDateString("de")` among them). So the patterns are CLDR's, chosen as ICU chooses them; names and
// digits are ICU4X's.
//
// A locale's lines begin with `@locale parent`; then `key=value`, only what differs from the parent's. Locales are sorted.
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";

const [packages] = process.argv.slice(2);
const json = (...path) => JSON.parse(readFileSync(join(packages, ...path), "utf8"));
const parents = json("cldr-core", "supplemental", "parentLocales.json").supplemental.parentLocales.parentLocale;
const { effectiveCoverageLevels } = json("cldr-core", "coverageLevels.json");
const { defaultContent } = json("cldr-core", "defaultContent.json");
const { dayPeriodRuleSet } = json("cldr-core", "supplemental", "dayPeriods.json").supplemental;
const { timeData } = json("cldr-core", "supplemental", "timeData.json").supplemental;
const dates = readdirSync(join(packages, "cldr-dates-full", "main"));

const STYLES = ["full", "long", "medium", "short"];
const APPENDED = { Era: "G", Year: "y", Month: "M", "Day-Of-Week": "E", Day: "d", Hour: "H", Minute: "m", Second: "s", Timezone: "z" };
const FIELDS = { Era: "era", Year: "year", Month: "month", "Day-Of-Week": "weekday", Day: "day", Hour: "hour", Minute: "minute", Second: "second", Timezone: "zone" };

const parentOf = (locale) => {
  if (parents[locale] !== undefined) return parents[locale] === "und" ? "und" : parents[locale];
  const cut = locale.lastIndexOf("-");
  return cut < 0 ? "und" : locale.slice(0, cut);
};

// A pattern may be an object that names the numbering systems of its fields.
const text = (pattern) => (typeof pattern === "object" ? pattern._value : pattern);

// `name@hour` or `name:from-before`; both in hours.
const rangeOf = (period, { _at, _from, _before }) => {
  const hour = (time) => Number(time.split(":")[0]);
  return _at !== undefined ? `${period}@${hour(_at)}` : `${period}:${hour(_from)}-${hour(_before)}`;
};

const entriesOf = (locale) => {
  const { calendars, fields } = { ...json("cldr-dates-full", "main", locale, "ca-gregorian.json").main[locale].dates,
    ...json("cldr-dates-full", "main", locale, "dateFields.json").main[locale].dates };
  const calendar = calendars.gregorian;
  const entries = {};
  for (const style of STYLES) {
    entries[`d:${style}`] = text(calendar.dateFormats[style]);
    entries[`t:${style}`] = text(calendar.timeFormats[style]);
    entries[`g:${style}`] = text((calendar["dateTimeFormats-atTime"]?.standard ?? calendar.dateTimeFormats)[style]);
  }
  for (const [skeleton, pattern] of Object.entries(calendar.dateTimeFormats.availableFormats)) {
    // Quarters and weeks cannot be asked for; ICU reads no alternatives.
    if (!/[-QwW]/.test(skeleton)) entries[skeleton] = text(pattern);
  }
  for (const [item, field] of Object.entries(APPENDED)) {
    entries[`a:${field}`] = text(calendar.dateTimeFormats.appendItems[item]);
    entries[`n:${field}`] = fields[FIELDS[item]].displayName;
  }
  for (const [width, letter] of [["wide", "w"], ["abbreviated", "a"], ["narrow", "n"]]) {
    for (const [period, name] of Object.entries(calendar.dayPeriods.format[width])) {
      if (!/^(am|pm)|-/.test(period)) entries[`p:${letter}:${period}`] = name;
    }
  }
  const rules = dayPeriodRuleSet[locale] ?? dayPeriodRuleSet[locale.split("-")[0]];
  if (rules !== undefined) entries.periods = Object.entries(rules).map(([period, rule]) => rangeOf(period, rule)).join(" ");
  const zones = json("cldr-dates-full", "main", locale, "timeZoneNames.json").main[locale].dates.timeZoneNames;
  entries["gmt"] = zones.gmtFormat;
  entries["gmt:0"] = zones.gmtZeroFormat;
  entries["gmt:hour"] = zones.hourFormat;
  const numbersPath = ["cldr-numbers-full", "main", locale, "numbers.json"];
  if (existsSync(join(packages, ...numbersPath))) {
    const { numbers } = json(...numbersPath).main[locale];
    entries.nu = numbers.defaultNumberingSystem;
    for (const [name, value] of Object.entries(numbers)) {
      const system = /^symbols-numberSystem-(\w+)$/.exec(name)?.[1];
      if (system === undefined) continue;
      entries[`nan:${system}`] = value.nan;
      entries[`inf:${system}`] = value.infinity;
      entries[`exp:${system}`] = value.exponential;
      entries[`cgrp:${system}`] = value.currencyGroup;
      // ICU4X has the percent sign of Latin digits only, and other digits between a locale's own separators.
      if (system !== "latn") entries[`pct:${system}`] = value.percentSign;
      if (system === "arab" || system === "arabext") {
        entries[`dec:${system}`] = value.decimal;
        entries[`grp:${system}`] = value.group;
      }
    }
  }
  // ICU4X has no symbols that are codes, and takes the root's for them.
  const currencies = (of) => json("cldr-numbers-full", "main", of, "currencies.json").main[of].numbers.currencies;
  if (existsSync(join(packages, "cldr-numbers-full", "main", locale, "currencies.json"))) {
    const root = currencies("und");
    const codes = Object.entries(currencies(locale)).filter(([code, { symbol }]) => symbol === code && (root[code]?.symbol ?? code) !== code);
    if (codes.length > 0) entries.codes = codes.map(([code]) => code).join(" ");
  }
  // The root's Arabic symbols are not in the JSON: they are those of Arabic.
  if (locale === "und") {
    const arabic = entriesOf("ar");
    for (const key of ["dec:arab", "grp:arab", "pct:arab"]) entries[key] = arabic[key];
  }
  return entries;
};

const known = new Map();
const read = (locale) => {
  if (!known.has(locale)) known.set(locale, entriesOf(locale));
  return known.get(locale);
};

const isWanted = (locale) => {
  if (locale === "und") return true;
  const level = effectiveCoverageLevels[locale] ?? effectiveCoverageLevels[locale.split("-")[0]];
  // Digits of another calendar, pinyin and the like are spelled as keywords elsewhere.
  return level === "modern" && !locale.startsWith("en-Dsrt") && !locale.startsWith("en-Shaw") && !/POSIX|VALENCIA/i.test(locale);
};

const lines = [
  `# CLDR ${json("cldr-dates-full", "package.json").version}, written by generate.mjs; terms: Unicode License v3 (https://www.unicode.org/license.txt).`,
];
const regions = Object.entries(timeData).filter(([region, { _preferred }]) => /^([A-Z]{2}|[a-z]{2}-[A-Z]{2})$/.test(region) && /^[hK]/.test(_preferred));
lines.push(`12-hour clock: ${regions.map(([region]) => region).join(" ")}`);
const exceptions = Object.entries(timeData).filter(([region, { _preferred }]) => /^[a-z]{2}-[A-Z]{2}$/.test(region) && _preferred === "H");
lines.push(`24-hour clock: ${exceptions.map(([region]) => region).join(" ")}`);
lines.push(`default content: ${defaultContent.filter(isWanted).join(" ")}`);
const wanted = dates.filter(isWanted).sort((a, b) => (a < b ? -1 : 1));
const blocks = [];
for (const locale of wanted) {
  let parent = parentOf(locale);
  if (locale === "und") parent = "";
  while (parent !== "" && parent !== "und" && !wanted.includes(parent)) parent = parentOf(parent);
  const own = read(locale), theirs = parent === "" ? {} : read(parent);
  const block = [`@${locale} ${parent}`.trim()];
  if (theirs.codes !== undefined) own.codes ??= "-";
  for (const [key, value] of Object.entries(own)) if (value !== undefined && theirs[key] !== value) block.push(`${key}=${value}`);
  // A value that the parent has and the child has not.
  for (const key of Object.keys(theirs)) if (own[key] === undefined && key !== "periods" && key !== "codes" && !/:/.test(key)) block.push(`${key}=`);
  blocks.push(block);
}
for (const block of blocks) lines.push(...block);
process.stdout.write(lines.join("\n") + "\n");
