//! Times as texts: numbers are written here, names are ICU4X's.

use super::fields::{PatternPiece, parse_pattern};
use super::periods::period_name;
use super::settings::DateSettings;
use super::zones::{self, TimeZoneId};
use crate::failure::IntlError;
use crate::locales::with_numbers;
use crate::numbers::decimal_symbols;
use crate::parts::{TextPart, push};
use crate::tables::LocaleTable;
use icu_calendar::types::Weekday;
use icu_calendar::{Date, Gregorian};
use icu_datetime::fieldsets::enums::CompositeFieldSet;
use icu_datetime::pattern::{DateTimePattern, FixedCalendarDateTimeNames};
use icu_locale::Locale;
use icu_time::zone::models::AtTime;
use icu_time::zone::{UtcOffset, ZoneNameTimestamp};
use icu_time::{Time, TimeZone, TimeZoneInfo, ZonedDateTime};
use std::cell::RefCell;
use writeable::TryWriteable as _;

type FieldNames = FixedCalendarDateTimeNames<Gregorian, CompositeFieldSet>;

pub(crate) struct DateFormatter {
    pieces: Vec<PatternPiece>,
    zone: TimeZoneId,
    zone_id: TimeZone,
    digits: [char; 10],
    locale: Locale,
    table: LocaleTable,
    /// One set for each piece that is a name: a set holds names of one width.
    names: RefCell<Vec<(String, FieldNames)>>,
}

/// A time on a wall clock.
struct WallTime {
    year: i64,
    month: u8,
    day: u8,
    weekday: Weekday,
    hour: u8,
    minute: u8,
    second: u8,
    millisecond: u16,
    offset_s: i32,
    epoch_s: i64,
}

impl DateFormatter {
    pub(crate) fn new(settings: DateSettings) -> Result<Self, IntlError> {
        let locale = with_numbers(&settings.locale, &settings.numbering_system);
        let (zone, name) = zones::find(&settings.zone)?;
        Ok(Self {
            pieces: parse_pattern(&settings.pattern),
            zone_id: match zone {
                TimeZoneId::Utc => TimeZone::from_iana_id("UTC"),
                TimeZoneId::Offset(_) => TimeZone::UNKNOWN,
                TimeZoneId::Named(_) => TimeZone::from_iana_id(&name),
            },
            zone,
            digits: decimal_symbols(&locale)?.digits,
            table: LocaleTable::for_locale(&locale.id),
            locale,
            names: RefCell::default(),
        })
    }

    pub(crate) fn format(&self, time_ms: i64) -> Result<Vec<TextPart>, IntlError> {
        let wall = WallTime::from_time_ms(time_ms, &self.zone);
        let mut parts = vec![];
        for piece in &self.pieces {
            let part = match piece {
                PatternPiece::Text(text) => TextPart::literal(plain_spaces(text)),
                PatternPiece::Field(letter, length) => self.field(*letter, *length, &wall)?,
            };
            push(&mut parts, part);
        }
        Ok(parts)
    }

    fn field(&self, letter: char, length: usize, wall: &WallTime) -> Result<TextPart, IntlError> {
        let number = |kind, value: i64| Ok(TextPart::new(kind, self.number(value, length)));
        let hour = i64::from(wall.hour);
        match letter {
            'y' | 'Y' | 'u' | 'r' => {
                let year = if wall.year > 0 { wall.year } else { 1 - wall.year };
                number("year", if length == 2 { year % 100 } else { year })
            }
            'M' | 'L' if length < 3 => number("month", wall.month.into()),
            'd' => number("day", wall.day.into()),
            'H' => number("hour", hour),
            'k' => number("hour", if hour == 0 { 24 } else { hour }),
            'K' => number("hour", hour % 12),
            'h' => number("hour", if hour % 12 == 0 { 12 } else { hour % 12 }),
            'm' => number("minute", wall.minute.into()),
            's' => number("second", wall.second.into()),
            'S' => {
                let scale = 10_i64.pow(3_u32.saturating_sub(u32::try_from(length).unwrap_or(3)));
                number("fractionalSecond", i64::from(wall.millisecond) / scale)
            }
            'B' | 'b' => self.period(length, wall),
            _ => {
                let kind = match letter {
                    'G' => "era",
                    'M' | 'L' => "month",
                    'a' => "dayPeriod",
                    'z' | 'v' | 'O' => "timeZoneName",
                    _ => "weekday",
                };
                if kind == "timeZoneName" {
                    return Ok(TextPart::new(kind, self.zone_name(letter, length, wall)?));
                }
                Ok(TextPart::new(kind, self.name(letter, length, wall)?))
            }
        }
    }

    fn number(&self, value: i64, width: usize) -> String {
        let text = format!("{value:0width$}");
        text.bytes().map(|byte| self.digits[usize::from(byte - b'0')]).collect()
    }

    fn period(&self, length: usize, wall: &WallTime) -> Result<TextPart, IntlError> {
        let shows_minutes = self.pieces.iter().any(|it| matches!(it, PatternPiece::Field('m', _)));
        let is_exact = !shows_minutes || wall.minute == 0 && wall.second == 0;
        match period_name(&self.table, length, wall.hour, is_exact) {
            Some(name) => Ok(TextPart::new("dayPeriod", name)),
            None => Ok(TextPart::new("dayPeriod", self.name('a', length, wall)?)),
        }
    }

    /// The zone's name, or its offset as CLDR writes it: where ICU4X gives an offset, its parts are in another order in
    /// some languages.
    fn zone_name(&self, letter: char, length: usize, wall: &WallTime) -> Result<String, IntlError> {
        let is_long = length > 3;
        if letter == 'O' {
            return Ok(self.offset_text(wall.offset_s, is_long));
        }
        let name = self.name(letter, length, wall)?;
        let is_offset = name == self.name('O', 4, wall)? || name == self.name('O', 1, wall)?;
        let is_utc = matches!(self.zone, TimeZoneId::Utc);
        Ok(if is_offset && !is_utc { self.offset_text(wall.offset_s, is_long) } else { name })
    }

    /// `GMT+5:30`, in the language's form.
    fn offset_text(&self, offset_s: i32, is_long: bool) -> String {
        let text = |key: &str, default| self.table.get(key).unwrap_or(default);
        if offset_s == 0 && !is_long {
            return text("gmt:0", "GMT").to_owned();
        }
        let forms = text("gmt:hour", "+HH:mm;-HH:mm");
        let (positive, negative) = forms.split_once(';').unwrap_or((forms, forms));
        let form = if offset_s < 0 { negative } else { positive };
        let seconds = i64::from(offset_s.abs());
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        let has_minutes = is_long || minutes != 0;
        let mut written = String::new();
        for piece in parse_pattern(form) {
            match piece {
                PatternPiece::Field('H', _) => {
                    written.push_str(&self.number(hours, if is_long { 2 } else { 1 }));
                }
                PatternPiece::Field('m', _) if has_minutes => {
                    written.push_str(&self.number(minutes, 2))
                }
                PatternPiece::Text(literal) if has_minutes => written.push_str(&literal),
                PatternPiece::Text(literal) => {
                    written.push_str(literal.trim_end_matches([':', '.']))
                }
                PatternPiece::Field(..) => {}
            }
        }
        text("gmt", "GMT{0}").replace("{0}", &written)
    }

    /// A name, as ICU4X has it.
    fn name(&self, letter: char, length: usize, wall: &WallTime) -> Result<String, IntlError> {
        let letter = if letter == 'e' { 'E' } else { letter };
        let text = letter.to_string().repeat(length);
        let pattern = DateTimePattern::try_from_pattern_str(&text)
            .map_err(|_| IntlError::missing(format!("the field {text}")))?;
        let mut sets = self.names.borrow_mut();
        if !sets.iter().any(|(known, _)| *known == text) {
            let names = FieldNames::try_new((&self.locale).into()).map_err(IntlError::no_data)?;
            sets.push((text.clone(), names));
        }
        let names = sets
            .iter_mut()
            .find(|(known, _)| *known == text)
            .map(|(_, names)| names)
            .expect("it was added");
        let formatter =
            names.include_for_pattern(&pattern).map_err(|_| IntlError::no_data(&text))?;
        let input = wall.input(self.zone_id)?;
        let formatted = formatter.format(&input);
        let written = formatted.try_write_to_string().map_err(|_| IntlError::no_data(&text))?;
        Ok(plain_spaces(&written))
    }
}

/// Node writes a plain space where CLDR has a narrow one that does not break, in dates only.
fn plain_spaces(text: &str) -> String {
    text.replace('\u{202f}', " ")
}

impl WallTime {
    fn from_time_ms(time_ms: i64, zone: &TimeZoneId) -> Self {
        let offset_s = zone.offset_at(time_ms);
        let local_ms = time_ms + i64::from(offset_s) * 1_000;
        let days = local_ms.div_euclid(86_400_000);
        let of_day = local_ms.rem_euclid(86_400_000);
        let (year, month, day) = civil_date(days);
        let part = |unit: i64, modulo: i64| of_day / unit % modulo;
        let byte = |value: i64| u8::try_from(value).expect("hours, minutes and seconds are small");
        Self {
            year,
            month,
            day,
            weekday: Weekday::from_days_since_sunday(
                isize::try_from((days + 4).rem_euclid(7)).expect("one of seven"),
            ),
            hour: byte(part(3_600_000, 24)),
            minute: byte(part(60_000, 60)),
            second: byte(part(1_000, 60)),
            millisecond: u16::try_from(part(1, 1_000)).expect("one of a thousand"),
            offset_s,
            epoch_s: time_ms.div_euclid(1_000),
        }
    }

    /// What ICU4X is given: only names are asked of it, so the date is one that has the same month, weekday and era.
    fn input(
        &self,
        zone_id: TimeZone,
    ) -> Result<ZonedDateTime<Gregorian, TimeZoneInfo<AtTime>>, IntlError> {
        let date = self.date_with_the_same_names()?;
        let time =
            Time::try_new(self.hour, self.minute, self.second, 0).map_err(IntlError::no_data)?;
        // Names follow from offsets of whole minutes; local mean times had seconds.
        let offset = UtcOffset::try_from_seconds(self.offset_s).map_err(IntlError::no_data)?;
        let zone = zone_id.with_offset(Some(offset));
        let zone =
            zone.with_zone_name_timestamp(ZoneNameTimestamp::from_epoch_seconds(self.epoch_s));
        Ok(ZonedDateTime { date, time, zone })
    }

    fn date_with_the_same_names(&self) -> Result<Date<Gregorian>, IntlError> {
        let years = if self.year > 0 { 2000..2028 } else { -27..1 };
        for year in years {
            for day in 1..=7 {
                let date =
                    Date::try_new_gregorian(year, self.month, day).map_err(IntlError::no_data)?;
                if date.weekday() == self.weekday {
                    return Ok(date);
                }
            }
        }
        Err(IntlError::no_data("a weekday"))
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar without a beginning.
fn civil_date(days: i64) -> (i64, u8, u8) {
    let shifted = days + 719_468; // since 0000-03-01
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let byte = |value: i64| u8::try_from(value).expect("months and days are small");
    let day = byte(day_of_year - (153 * from_march + 2) / 5 + 1);
    let month = byte(if from_march < 10 { from_march + 3 } else { from_march - 9 });
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates_on_both_sides_of_1970() {
        assert_eq!(civil_date(0), (1970, 1, 1));
        assert_eq!(civil_date(-1), (1969, 12, 31));
        assert_eq!(civil_date(11_016), (2000, 2, 29));
        assert_eq!(civil_date(-719_529), (-1, 12, 31));
        assert_eq!(civil_date(100_000_000), (275_760, 9, 13));
        assert_eq!(civil_date(-100_000_000), (-271_821, 4, 20));
    }
}
