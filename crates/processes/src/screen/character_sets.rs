//! Maps letters to characters: lines and boxes are drawn with letters of another character set.

/// The selected character sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CharacterSets {
    /// Whether each of the two sets is the line-drawing set.
    pub(super) is_drawing: [bool; 2],
    /// Whether the second set is in use.
    pub(super) is_shifted: bool,
}

impl CharacterSets {
    pub(super) const fn are_drawn(self) -> bool {
        self.is_drawing[self.is_shifted as usize]
    }
}

/// The character of a letter in the line-drawing set.
pub(super) const fn drawn(c: char) -> char {
    match c {
        '`' => '◆',
        'a' => '▒',
        'b' => '␉',
        'c' => '␌',
        'd' => '␍',
        'e' => '␊',
        'f' => '°',
        'g' => '±',
        'h' => '␤',
        'i' => '␋',
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'o' => '⎺',
        'p' => '⎻',
        'q' => '─',
        'r' => '⎼',
        's' => '⎽',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'y' => '≤',
        'z' => '≥',
        '{' => 'π',
        '|' => '≠',
        '}' => '£',
        '~' => '·',
        other => other,
    }
}
