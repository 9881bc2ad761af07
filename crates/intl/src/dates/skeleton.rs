//! Finds the pattern for the fields that a guest requests: UTS 35's matching of skeletons, as in ICU.

use super::fields::{DateField, FIELDS, PatternPiece, parse_pattern, pattern_of, quote};
use crate::tables::LocaleTable;

// How unlike a field of another kind is: numeric forms grow with their width, texts are ordered by length.
const NARROW: i32 = -0x101;
const SHORTER: i32 = -0x102;
const SHORT: i32 = -0x103;
const LONG: i32 = -0x104;
const NUMERIC: i32 = 0x100;
const DELTA: i32 = 0x10;

// What a field costs that a pattern has too many or too few.
const EXTRA_FIELD: i32 = 0x10000;
const MISSING_FIELD: i32 = 0x1000;

/// The kind of a field: numbers are positive. And how many letters its plain form has.
fn kind_of(letter: char, length: usize) -> (i32, usize) {
    let text = |shift: i32| match length {
        4 => (LONG + shift, 4),
        5 => (NARROW + shift, 5),
        6 => (SHORTER + shift, 6),
        _ => (SHORT + shift, 3),
    };
    match letter {
        'G' => (text(0).0, if length < 4 { 1 } else { length }),
        'y' | 'd' | 'm' | 's' | 'S' | 'h' => (NUMERIC, 1),
        'Y' | 'K' => (NUMERIC + DELTA, 1),
        'u' => (NUMERIC + 2 * DELTA, 1),
        'r' => (NUMERIC + 3 * DELTA, 1),
        'H' => (NUMERIC + 10 * DELTA, 1),
        'k' => (NUMERIC + 11 * DELTA, 1),
        'M' if length < 3 => (NUMERIC, 1),
        'M' => text(0),
        'L' if length < 3 => (NUMERIC + DELTA, 1),
        'L' => text(-DELTA),
        'E' => (text(0).0, if length < 4 { 1 } else { length }),
        'c' if length < 3 => (NUMERIC + 2 * DELTA, 1),
        'c' => text(-2 * DELTA),
        'e' if length < 3 => (NUMERIC + DELTA, 1),
        'e' => text(-DELTA),
        'a' => (text(0).0, if length < 4 { 1 } else { length }),
        'b' => (text(-DELTA).0, if length < 4 { 1 } else { length }),
        'B' => (text(-3 * DELTA).0, if length < 4 { 1 } else { length }),
        'z' => (if length < 4 { SHORT } else { LONG }, if length < 4 { 1 } else { 4 }),
        'O' => {
            (if length < 4 { SHORT - DELTA } else { LONG - DELTA }, if length < 4 { 1 } else { 4 })
        }
        _ => (
            if length < 4 { SHORT - 2 * DELTA } else { LONG - 2 * DELTA },
            if length < 4 { 1 } else { 4 },
        ),
    }
}

/// The fields of a pattern or of a request, by place in [`FIELDS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DateSkeleton {
    /// Letter and length; length 0 where the field is absent.
    asked: [(char, usize); 11],
    kinds: [i32; 11],
    /// Lengths of the plain forms.
    plain: [(char, usize); 11],
}

impl DateSkeleton {
    pub(crate) fn from_pattern(pattern: &str) -> Self {
        let mut skeleton = Self::default();
        for piece in parse_pattern(pattern) {
            if let PatternPiece::Field(letter, length) = piece {
                skeleton.set(letter, length);
            }
        }
        let has = |field: DateField| skeleton.asked[field.index()].1 > 0;
        let hour = skeleton.asked[DateField::Hour.index()].0;
        let needs_second =
            has(DateField::Minute) && has(DateField::Fraction) && !has(DateField::Second);
        let has_period = has(DateField::DayPeriod);
        if needs_second {
            skeleton.set('s', 1);
        }
        match hour {
            'h' | 'K' if !has_period => skeleton.set('a', 1),
            'H' | 'k' => skeleton.clear(DateField::DayPeriod),
            _ => {}
        }
        skeleton
    }

    fn set(&mut self, letter: char, length: usize) {
        let Some(field) = DateField::from_letter(letter) else { return };
        let (kind, plain) = kind_of(letter, length);
        let width = i32::try_from(length).unwrap_or(i32::MAX / 2);
        self.asked[field.index()] = (letter, length);
        self.kinds[field.index()] = if kind > 0 { kind.saturating_add(width) } else { kind };
        self.plain[field.index()] = (letter, plain);
    }

    fn clear(&mut self, field: DateField) {
        self.asked[field.index()] = ('\0', 0);
        self.kinds[field.index()] = 0;
        self.plain[field.index()] = ('\0', 0);
    }

    fn mask(&self) -> u16 {
        FIELDS.iter().filter(|it| self.kinds[it.index()] != 0).map(|it| bit(*it)).sum()
    }

    fn length(&self, field: DateField) -> usize {
        self.asked[field.index()].1
    }

    /// How unlike another skeleton is, and the fields it lacks.
    fn distance(&self, other: &Self, included: u16) -> (i32, u16) {
        let (mut distance, mut missing) = (0_i32, 0);
        for field in FIELDS {
            let mine = if included & bit(field) == 0 { 0 } else { self.kinds[field.index()] };
            let theirs = other.kinds[field.index()];
            if mine == theirs {
            } else if mine == 0 {
                distance += EXTRA_FIELD;
            } else if theirs == 0 {
                distance += MISSING_FIELD;
                missing |= bit(field);
            } else {
                distance = distance.saturating_add((mine - theirs).abs());
            }
        }
        (distance, missing)
    }

    /// In which order candidates are compared: by their first letter.
    fn rank(&self) -> char {
        let first = self.plain.iter().find(|(_, length)| *length > 0);
        first.map_or('\0', |(letter, _)| *letter)
    }
}

const fn bit(field: DateField) -> u16 {
    1 << field.index()
}

const DATE_MASK: u16 = 0b1_1111;

/// A pattern that may be chosen.
#[derive(Debug)]
struct PatternCandidate {
    skeleton: DateSkeleton,
    pattern: &'static str,
    /// Whether CLDR names its skeleton. Otherwise it follows from the pattern.
    has_own_skeleton: bool,
}

/// Chooses patterns of one locale.
#[derive(Debug)]
pub(crate) struct PatternChooser<'a> {
    table: &'a LocaleTable,
    candidates: Vec<PatternCandidate>,
}

/// Single fields, each of which can always be shown.
const SINGLE_FIELDS: [&str; 11] = ["G", "y", "M", "E", "d", "a", "H", "m", "s", "S", "v"];

/// Longest chain of appended parts: one for each field.
const APPENDED_MAX: usize = 11;

impl<'a> PatternChooser<'a> {
    pub(crate) fn new(table: &'a LocaleTable) -> Self {
        let mut chooser = Self { table, candidates: vec![] };
        for field in SINGLE_FIELDS {
            chooser.add(DateSkeleton::from_pattern(field), field, false);
        }
        for style in ["full", "long", "medium", "short"] {
            for what in ["d", "t"] {
                if let Some(pattern) = table.get(&format!("{what}:{style}")) {
                    chooser.add(DateSkeleton::from_pattern(pattern), pattern, false);
                }
            }
        }
        for (key, pattern) in table.entries() {
            if key.bytes().all(|byte| byte.is_ascii_alphabetic())
                && !matches!(key, "nu" | "periods" | "codes" | "gmt")
            {
                chooser.add(DateSkeleton::from_pattern(key), pattern, true);
            }
        }
        // ICU looks through them by first letter.
        chooser.candidates.sort_by_key(|it| it.skeleton.rank());
        chooser
    }

    fn add(&mut self, skeleton: DateSkeleton, pattern: &'static str, has_own_skeleton: bool) {
        let same = self.candidates.iter_mut().find(|it| it.skeleton.asked == skeleton.asked);
        match same {
            Some(known) if has_own_skeleton => {
                known.pattern = pattern;
                known.has_own_skeleton = true;
            }
            Some(_) => {}
            None => self.candidates.push(PatternCandidate { skeleton, pattern, has_own_skeleton }),
        }
    }

    /// The pattern that shows these fields, in the order and with the texts of the locale.
    pub(crate) fn best(&self, request: &str) -> String {
        let request = DateSkeleton::from_pattern(request);
        let (candidate, distance, missing) = self.nearest(&request, u16::MAX);
        if missing == 0 && distance < EXTRA_FIELD {
            return adjusted(candidate, &request, false);
        }
        let needed = request.mask();
        let date = self.appended(&request, needed & DATE_MASK);
        let time = self.appended(&request, needed & !DATE_MASK);
        match (date, time) {
            (Some(date), Some(time)) => self.joined(&request, &date, &time),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => String::new(),
        }
    }

    /// A date and a time together.
    fn joined(&self, request: &DateSkeleton, date: &str, time: &str) -> String {
        let style = match (request.length(DateField::Month), request.length(DateField::Weekday)) {
            (4, weekday) if weekday > 0 => "full",
            (4, _) => "long",
            (3, _) => "medium",
            _ => "short",
        };
        self.glued(style, date, time)
    }

    pub(crate) fn glued(&self, style: &str, date: &str, time: &str) -> String {
        let glue = self.table.get(&format!("g:{style}")).unwrap_or("{1} {0}");
        glue.replace("{1}", date).replace("{0}", time)
    }

    fn nearest(&self, request: &DateSkeleton, included: u16) -> (&PatternCandidate, i32, u16) {
        let mut best: Option<(&PatternCandidate, i32, u16)> = None;
        for candidate in &self.candidates {
            let (distance, missing) = request.distance(&candidate.skeleton, included);
            let is_better = best.is_none_or(|(_, known, known_missing)| {
                distance < known || (distance == known && known_missing < missing)
            });
            if is_better {
                best = Some((candidate, distance, missing));
            }
            if distance == 0 {
                break;
            }
        }
        best.expect("single fields are candidates")
    }

    /// A pattern for some of the fields: what no pattern has is appended.
    fn appended(&self, request: &DateSkeleton, fields: u16) -> Option<String> {
        if fields == 0 {
            return None;
        }
        let (candidate, _, mut missing) = self.nearest(request, fields);
        let (mut candidate, mut pattern) = (candidate, adjusted(candidate, request, false));
        let mut before = 0;
        for _ in 0..APPENDED_MAX {
            if missing == 0 || missing == before {
                break;
            }
            let fraction = bit(DateField::Fraction);
            let both = fraction | bit(DateField::Second);
            if missing & both == fraction && fields & both == both {
                pattern = adjusted_text(&pattern, candidate, request, true);
                missing &= !fraction;
                continue;
            }
            let starting = missing;
            let (next, _, still) = self.nearest(request, missing);
            candidate = next;
            let addition = adjusted(next, request, false);
            missing = still;
            let found = starting & !missing;
            if let Some(top) = FIELDS.iter().rev().find(|it| found & bit(**it) != 0) {
                pattern = self.append(*top, &pattern, &addition);
            }
            before = starting;
        }
        Some(pattern)
    }

    fn append(&self, field: DateField, pattern: &str, addition: &str) -> String {
        let letter = field.letter();
        let form = self.table.get(&format!("a:{letter}")).unwrap_or("{0} \u{251c}{2}: {1}\u{2524}");
        let name = self.table.get(&format!("n:{letter}")).unwrap_or_default();
        form.replace("{0}", pattern).replace("{1}", addition).replace("{2}", &quote(name))
    }
}

fn adjusted(candidate: &PatternCandidate, request: &DateSkeleton, with_fraction: bool) -> String {
    adjusted_text(candidate.pattern, candidate, request, with_fraction)
}

/// A pattern whose fields have the requested widths.
fn adjusted_text(
    pattern: &str,
    candidate: &PatternCandidate,
    request: &DateSkeleton,
    with_fraction: bool,
) -> String {
    let own = candidate.has_own_skeleton.then_some(&candidate.skeleton);
    let mut pieces = vec![];
    for piece in parse_pattern(pattern) {
        let PatternPiece::Field(letter, length) = piece else {
            pieces.push(piece);
            continue;
        };
        let Some(field) = DateField::from_letter(letter) else { continue };
        if with_fraction && field == DateField::Second {
            pieces.push(PatternPiece::Field(letter, length));
            // Which separator it is depends on the digits.
            pieces.push(PatternPiece::Text("\0".into()));
            pieces.push(PatternPiece::Field('S', request.length(DateField::Fraction)));
        } else {
            let (letter, length) = adjusted_field(field, letter, length, request, own);
            pieces.push(PatternPiece::Field(letter, length));
        }
    }
    pattern_of(&pieces)
}

fn adjusted_field(
    field: DateField,
    letter: char,
    length: usize,
    request: &DateSkeleton,
    own: Option<&DateSkeleton>,
) -> (char, usize) {
    let (asked_letter, asked_length) = request.asked[field.index()];
    if asked_length == 0 {
        return (letter, length);
    }
    let asked_length = if asked_letter == 'E' { asked_length.max(3) } else { asked_length };
    let mut adjusted = asked_length;
    if matches!(field, DateField::Minute | DateField::Second) {
        adjusted = length;
    } else if let Some(own) = own.filter(|_| !matches!(asked_letter, 'c' | 'e')) {
        let is_number = kind_of(letter, length).0 > 0;
        let asks_number = request.kinds[field.index()] > 0;
        if own.length(field) == asked_length || is_number != asks_number {
            adjusted = length;
        }
    }
    let keeps_letter = matches!(field, DateField::Hour | DateField::Month | DateField::Weekday)
        || (field == DateField::Year && asked_letter != 'Y');
    (if keeps_letter { letter } else { asked_letter }, adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(locale: &str, request: &str) -> String {
        PatternChooser::new(&LocaleTable::for_locale(&locale.parse().unwrap())).best(request)
    }

    #[test]
    fn patterns_are_the_locales_own_with_the_widths_that_were_asked_for() {
        assert_eq!(best("en", "yMMdd"), "MM/dd/y");
        assert_eq!(best("de", "yMd"), "d.M.y");
        assert_eq!(best("de", "Hm"), "HH:mm");
        assert_eq!(best("en", "yMMMMEEEEd"), "EEEE, MMMM d, y");
        assert_eq!(best("es", "yMMMEEEEd"), "EEEE, d' de 'MMM' de 'y");
    }

    #[test]
    fn what_no_pattern_has_is_joined_or_appended() {
        assert_eq!(best("en", "yMMMMdhm").replace('\u{202f}', " "), "MMMM d, y 'at' h:mm a");
        assert_eq!(best("en", "hmsSSS").replace('\u{202f}', " "), "h:mm:ss\0SSS a");
        assert_eq!(best("de", "yMdz"), "d.M.y, z");
    }
}
