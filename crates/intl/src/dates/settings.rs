//! Options of `Intl.DateTimeFormat` (ECMA-402, section 11.1).

use super::fields::{DateField, PatternPiece, parse_pattern, pattern_of};
use super::skeleton::PatternChooser;
use super::zones;
use crate::bag::OptionsBag;
use crate::failure::{IntlError, quoted};
use crate::locales::{ResolvedLocale, type_option};
use crate::numbers::{check_numbering_system, decimal_symbols};
use crate::tables::{LocaleTable, prefers_12_hours};
use crate::tags;
use icu_locale::{LanguageIdentifier, LocaleExpander};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DateSettings {
    /// Language, script and region, by which data are found.
    pub(crate) locale: String,
    pub(crate) numbering_system: String,
    pub(crate) zone: String,
    pub(crate) pattern: String,
}

const TEXT_WIDTHS: &[&str] = &["narrow", "short", "long"];
const NUMBER_WIDTHS: &[&str] = &["2-digit", "numeric"];
const STYLES: &[&str] = &["full", "long", "medium", "short"];
const ZONE_NAMES: &[&str] =
    &["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];

/// Components that make up a pattern, in the order in which `resolvedOptions` shows them.
#[derive(Debug, Default)]
struct DateComponents {
    weekday: Option<&'static str>,
    era: Option<&'static str>,
    year: Option<&'static str>,
    month: Option<&'static str>,
    day: Option<&'static str>,
    day_period: Option<&'static str>,
    hour: Option<&'static str>,
    minute: Option<&'static str>,
    second: Option<&'static str>,
    fraction: Option<u8>,
    zone_name: Option<&'static str>,
}

pub(crate) fn read(locales: &str, bag: &OptionsBag) -> Result<(DateSettings, Value), IntlError> {
    bag.check_matcher()?;
    let mut locale = ResolvedLocale::resolve(locales)?;
    check_calendar(bag, &locale)?;
    locale.keyword("ca", None, |it| it == "gregory");
    let option = type_option(bag, "numberingSystem")?;
    check_numbering_system(&locale, option)?;
    let numbers = locale.keyword("nu", option, tags::is_numbering_system);
    let table = LocaleTable::for_locale(&locale.id);
    let numbers = numbers.unwrap_or_else(|| table.get("nu").unwrap_or("latn").to_owned());
    let cycle = read_cycle(bag, &mut locale)?;
    let (_, zone) = zones::find(bag.get("timeZone").unwrap_or("UTC"))?;
    let mut components = DateComponents::read(bag)?;
    bag.choice("formatMatcher", &["best fit", "basic"])?;
    let date_style = bag.one_of("dateStyle", STYLES)?;
    let time_style = bag.one_of("timeStyle", STYLES)?;
    let has_style = date_style.is_some() || time_style.is_some();
    if has_style && components.is_any() {
        return Err(IntlError::type_error(
            "dateStyle and timeStyle cannot be used together with single components",
        ));
    }
    if !has_style {
        components.add_defaults(bag.get("=required"), bag.get("=defaults"));
    } else if bag.get("=required") == Some("date") && time_style.is_some()
        || bag.get("=required") == Some("time") && date_style.is_some()
    {
        return Err(IntlError::type_error(
            "Invalid option : dateStyle and timeStyle must fit the method",
        ));
    }
    let chooser = PatternChooser::new(&table);
    let pattern = if has_style {
        let is_fixed = bag.has("hour12") || cycle.is_asked;
        styled(&chooser, &table, date_style, time_style, is_fixed.then_some(cycle.letter))
    } else {
        chooser.best(&components.request(cycle.letter))
    };
    let mut pieces = parse_pattern(&pattern);
    set_hour_letter(&mut pieces, cycle.letter);
    let decimal = decimal_symbols(&locale.data(&numbers))?.decimal;
    for piece in &mut pieces {
        if let PatternPiece::Text(text) = piece {
            *text = text.replace('\0', &decimal);
        }
    }
    let shown = resolved_options(
        &locale,
        (&numbers, &zone),
        &pieces,
        (date_style, time_style),
        &components,
    );
    let settings = DateSettings {
        locale: locale.id.to_string(),
        numbering_system: numbers,
        zone,
        pattern: pattern_of(&pieces),
    };
    Ok((settings, shown))
}

/// One calendar is supported; requests for others are refused, not ignored.
fn check_calendar(bag: &OptionsBag, locale: &ResolvedLocale) -> Result<(), IntlError> {
    let option = type_option(bag, "calendar")?.map(str::to_ascii_lowercase);
    match option.or_else(|| locale.asked_keyword("ca")).as_deref() {
        Some("gregory") => Ok(()),
        Some(other) => {
            Err(IntlError::missing(format!("the calendar {}, only \"gregory\"", quoted(other))))
        }
        None => usual_calendar(&locale.id).map_or(Ok(()), |usual| {
            let tag = locale.tag();
            Err(IntlError::missing(format!(
                "the calendar \"{usual}\", in which {tag} writes dates: pass calendar: \"gregory\""
            )))
        }),
    }
}

/// The calendar that a locale's region uses, if it is another than the Gregorian one.
fn usual_calendar(id: &LanguageIdentifier) -> Option<&'static str> {
    let mut full = id.clone();
    LocaleExpander::new_extended().maximize(&mut full);
    match full.region?.as_str() {
        "TH" => Some("buddhist"),
        "AF" | "IR" => Some("persian"),
        _ => None,
    }
}

struct HourCycle {
    letter: char,
    /// Whether the guest requested it.
    is_asked: bool,
}

fn read_cycle(bag: &OptionsBag, locale: &mut ResolvedLocale) -> Result<HourCycle, IntlError> {
    let hour12 = bag.boolean("hour12");
    let option = bag.one_of("hourCycle", &["h11", "h12", "h23", "h24"])?;
    let is_cycle = |it: &str| matches!(it, "h11" | "h12" | "h23" | "h24");
    let keyword = if hour12.is_none() { locale.keyword("hc", option, is_cycle) } else { None };
    let likes_12 = prefers_12_hours(&locale.id);
    let is_japan = locale.id.language.as_str() == "ja";
    let (default, is_asked) = match (hour12, keyword.as_deref()) {
        (Some(true), _) => (if is_japan { 'K' } else { 'h' }, true),
        (Some(false), _) => ('H', true),
        (None, Some("h11")) => ('K', true),
        (None, Some("h12")) => ('h', true),
        (None, Some("h23")) => ('H', true),
        (None, Some(_)) => ('k', true),
        (None, None) => (if likes_12 { 'h' } else { 'H' }, false),
    };
    Ok(HourCycle { letter: default, is_asked })
}

/// The pattern of a style; with another hour cycle than the locale's, the nearest one.
fn styled(
    chooser: &PatternChooser<'_>,
    table: &LocaleTable,
    date_style: Option<&str>,
    time_style: Option<&str>,
    cycle: Option<char>,
) -> String {
    let pattern =
        |what: &str, style: &str| table.get(&format!("{what}:{style}")).unwrap_or_default();
    let time = time_style.map(|style| {
        let plain = pattern("t", style);
        let hour = parse_pattern(plain).into_iter().find_map(|piece| match piece {
            PatternPiece::Field(letter, _)
                if DateField::from_letter(letter) == Some(DateField::Hour) =>
            {
                Some(letter)
            }
            PatternPiece::Field(..) | PatternPiece::Text(_) => None,
        });
        match cycle.filter(|cycle| Some(is_12_hours(*cycle)) != hour.map(is_12_hours)) {
            Some(cycle) => chooser.best(&request_of(plain, cycle)),
            None => plain.to_owned(),
        }
    });
    match (date_style, time) {
        (Some(date), Some(time)) => chooser.glued(date, pattern("d", date), &time),
        (Some(date), None) => pattern("d", date).to_owned(),
        (None, time) => time.unwrap_or_default(),
    }
}

const fn is_12_hours(letter: char) -> bool {
    matches!(letter, 'h' | 'K')
}

/// The fields of a time pattern, with another hour.
fn request_of(pattern: &str, cycle: char) -> String {
    let mut request = String::new();
    for piece in parse_pattern(pattern) {
        let PatternPiece::Field(letter, length) = piece else { continue };
        match DateField::from_letter(letter) {
            Some(DateField::Hour) => request.extend(std::iter::repeat_n(cycle, length)),
            Some(DateField::DayPeriod) | None => {}
            Some(_) => request.extend(std::iter::repeat_n(letter, length)),
        }
    }
    request
}

fn set_hour_letter(pieces: &mut [PatternPiece], cycle: char) {
    for piece in pieces {
        if let PatternPiece::Field(letter, _) = piece
            && DateField::from_letter(*letter) == Some(DateField::Hour)
            && is_12_hours(*letter) == is_12_hours(cycle)
        {
            *letter = cycle;
        }
    }
}

impl DateComponents {
    fn read(bag: &OptionsBag) -> Result<Self, IntlError> {
        Ok(Self {
            weekday: bag.one_of("weekday", TEXT_WIDTHS)?,
            era: bag.one_of("era", TEXT_WIDTHS)?,
            year: bag.one_of("year", NUMBER_WIDTHS)?,
            month: bag.one_of("month", &["2-digit", "numeric", "narrow", "short", "long"])?,
            day: bag.one_of("day", NUMBER_WIDTHS)?,
            day_period: bag.one_of("dayPeriod", TEXT_WIDTHS)?,
            hour: bag.one_of("hour", NUMBER_WIDTHS)?,
            minute: bag.one_of("minute", NUMBER_WIDTHS)?,
            second: bag.one_of("second", NUMBER_WIDTHS)?,
            fraction: bag.integer("fractionalSecondDigits", 1, 3)?,
            zone_name: bag.one_of("timeZoneName", ZONE_NAMES)?,
        })
    }

    fn is_any(&self) -> bool {
        self.has_date() || self.has_time() || self.era.is_some() || self.zone_name.is_some()
    }

    fn has_date(&self) -> bool {
        self.weekday.or(self.year).or(self.month).or(self.day).is_some()
    }

    fn has_time(&self) -> bool {
        self.day_period.or(self.hour).or(self.minute).or(self.second).is_some()
            || self.fraction.is_some()
    }

    /// The default components if none of those that a method requires is requested.
    fn add_defaults(&mut self, required: Option<&str>, defaults: Option<&str>) {
        let (required, defaults) = (required.unwrap_or("any"), defaults.unwrap_or("date"));
        let is_needed = match required {
            "date" => !self.has_date(),
            "time" => !self.has_time(),
            _ => !self.has_date() && !self.has_time(),
        };
        if is_needed && matches!(defaults, "date" | "all") {
            (self.year, self.month, self.day) = (Some("numeric"), Some("numeric"), Some("numeric"));
        }
        if is_needed && matches!(defaults, "time" | "all") {
            (self.hour, self.minute, self.second) =
                (Some("numeric"), Some("numeric"), Some("numeric"));
        }
    }

    /// The fields as a skeleton.
    fn request(&self, hour_letter: char) -> String {
        let text = |letter: char, width: Option<&str>, least: usize| {
            let length = match width {
                Some("long") => 4,
                Some("narrow") => 5,
                Some(_) => least,
                None => 0,
            };
            letter.to_string().repeat(length)
        };
        let number = |letter: char, width: Option<&str>| {
            let length = match width {
                Some("2-digit") => 2,
                Some(_) => 1,
                None => 0,
            };
            letter.to_string().repeat(length)
        };
        let month = match self.month {
            Some("2-digit" | "numeric") => number('M', self.month),
            _ => text('M', self.month, 3),
        };
        let zone = match self.zone_name {
            Some("short") => "z",
            Some("long") => "zzzz",
            Some("shortOffset") => "O",
            Some("longOffset") => "OOOO",
            Some("shortGeneric") => "v",
            Some(_) => "vvvv",
            None => "",
        };
        let period = if is_12_hours(hour_letter) || self.hour.is_none() {
            text('B', self.day_period, 1)
        } else {
            String::new()
        };
        [
            text('G', self.era, 3),
            number('y', self.year),
            month,
            text('E', self.weekday, 3),
            number('d', self.day),
            period,
            number(hour_letter, self.hour),
            number('m', self.minute),
            number('s', self.second),
            "S".repeat(self.fraction.unwrap_or(0).into()),
            zone.to_owned(),
        ]
        .concat()
    }
}

fn resolved_options(
    locale: &ResolvedLocale,
    (numbers, zone): (&str, &str),
    pieces: &[PatternPiece],
    (date_style, time_style): (Option<&str>, Option<&str>),
    components: &DateComponents,
) -> Value {
    let mut shown = Map::new();
    let mut add = |name: &str, value: Value| drop(shown.insert(name.into(), value));
    add("locale", json!(locale.tag()));
    add("calendar", json!("gregory"));
    add("numberingSystem", json!(numbers));
    add("timeZone", json!(zone));
    let field = |field: DateField| {
        pieces.iter().find_map(|piece| match piece {
            PatternPiece::Field(letter, length)
                if DateField::from_letter(*letter) == Some(field) =>
            {
                Some((*letter, *length))
            }
            PatternPiece::Field(..) | PatternPiece::Text(_) => None,
        })
    };
    if let Some((letter, _)) = field(DateField::Hour) {
        let cycle = match letter {
            'K' => "h11",
            'h' => "h12",
            'H' => "h23",
            _ => "h24",
        };
        add("hourCycle", json!(cycle));
        add("hour12", json!(is_12_hours(letter)));
    }
    if date_style.is_none() && time_style.is_none() {
        let names = [
            ("weekday", DateField::Weekday),
            ("era", DateField::Era),
            ("year", DateField::Year),
            ("month", DateField::Month),
            ("day", DateField::Day),
            ("hour", DateField::Hour),
            ("minute", DateField::Minute),
            ("second", DateField::Second),
        ];
        for (name, of) in names {
            if name == "hour"
                && let Some(width) = components.day_period
            {
                add("dayPeriod", json!(width));
            }
            if let Some((_, length)) = field(of) {
                add(name, json!(width_of(of, length)));
            }
        }
        if let Some(digits) = components.fraction {
            add("fractionalSecondDigits", json!(digits));
        }
        if let Some(name) = components.zone_name {
            add("timeZoneName", json!(name));
        }
    }
    if let Some(style) = date_style {
        add("dateStyle", json!(style));
    }
    if let Some(style) = time_style {
        add("timeStyle", json!(style));
    }
    Value::Object(shown)
}

fn width_of(field: DateField, length: usize) -> &'static str {
    let is_number = match field {
        DateField::Year
        | DateField::Day
        | DateField::Hour
        | DateField::Minute
        | DateField::Second => true,
        DateField::Month => length < 3,
        DateField::Era
        | DateField::Weekday
        | DateField::DayPeriod
        | DateField::Fraction
        | DateField::Zone => false,
    };
    match (is_number, length) {
        (true, 2) => "2-digit",
        (true, _) => "numeric",
        (false, 4) => "long",
        (false, 5) => "narrow",
        (false, _) => "short",
    }
}
