//! Fields of date patterns: their letters, and a pattern as a list of fields and texts.

/// The meaning of a letter of a pattern, in the order in which patterns are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DateField {
    Era,
    Year,
    Month,
    Weekday,
    Day,
    DayPeriod,
    Hour,
    Minute,
    Second,
    Fraction,
    Zone,
}

pub(crate) const FIELDS: [DateField; 11] = [
    DateField::Era,
    DateField::Year,
    DateField::Month,
    DateField::Weekday,
    DateField::Day,
    DateField::DayPeriod,
    DateField::Hour,
    DateField::Minute,
    DateField::Second,
    DateField::Fraction,
    DateField::Zone,
];

impl DateField {
    pub(crate) fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'G' => Self::Era,
            'y' | 'Y' | 'u' | 'r' => Self::Year,
            'M' | 'L' => Self::Month,
            'E' | 'c' | 'e' => Self::Weekday,
            'd' => Self::Day,
            'a' | 'b' | 'B' => Self::DayPeriod,
            'h' | 'H' | 'K' | 'k' => Self::Hour,
            'm' => Self::Minute,
            's' => Self::Second,
            'S' => Self::Fraction,
            'z' | 'v' | 'O' => Self::Zone,
            _ => return None,
        })
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// The letter by which tables name the field.
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Era => 'G',
            Self::Year => 'y',
            Self::Month => 'M',
            Self::Weekday => 'E',
            Self::Day => 'd',
            Self::DayPeriod => 'a',
            Self::Hour => 'H',
            Self::Minute => 'm',
            Self::Second => 's',
            Self::Fraction => 'S',
            Self::Zone => 'z',
        }
    }
}

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternPiece {
    Field(char, usize),
    /// Text as it is shown, without quotes.
    Text(String),
}

/// Reads a pattern: letters are fields, what is quoted and what is no letter is text.
pub(crate) fn parse_pattern(pattern: &str) -> Vec<PatternPiece> {
    let mut pieces = vec![];
    let mut chars = pattern.chars().peekable();
    let mut is_quoted = false;
    while let Some(letter) = chars.next() {
        if letter == '\'' {
            if chars.next_if_eq(&'\'').is_some() {
                push_text(&mut pieces, '\'');
            } else {
                is_quoted = !is_quoted;
            }
        } else if is_quoted || !letter.is_ascii_alphabetic() {
            push_text(&mut pieces, letter);
        } else {
            let mut length = 1;
            while chars.next_if_eq(&letter).is_some() {
                length += 1;
            }
            pieces.push(PatternPiece::Field(letter, length));
        }
    }
    pieces
}

fn push_text(pieces: &mut Vec<PatternPiece>, letter: char) {
    match pieces.last_mut() {
        Some(PatternPiece::Text(text)) => text.push(letter),
        _ => pieces.push(PatternPiece::Text(letter.to_string())),
    }
}

/// The pattern of a list of pieces.
pub(crate) fn pattern_of(pieces: &[PatternPiece]) -> String {
    let mut pattern = String::new();
    for piece in pieces {
        match piece {
            PatternPiece::Field(letter, length) => {
                pattern.extend(std::iter::repeat_n(*letter, *length))
            }
            PatternPiece::Text(text) => pattern.push_str(&quote(text)),
        }
    }
    pattern
}

/// A text for a pattern.
pub(crate) fn quote(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.chars().any(|it| it.is_ascii_alphabetic()) { format!("'{doubled}'") } else { doubled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_and_written() {
        let pieces = parse_pattern("d 'de' MMMM 'o''clock' ''y");
        assert_eq!(pattern_of(&pieces), "d' de 'MMMM' o''clock '''y");
        assert_eq!(parse_pattern(&pattern_of(&pieces)), pieces);
        assert_eq!(pieces[1], PatternPiece::Text(" de ".into()));
    }
}
