//! Which characters letters stand for: lines and boxes are drawn with letters of another set.

/// The characters that letters stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CharacterSets {
    /// Whether each of the two sets is that of lines and boxes.
    pub(super) is_drawing: [bool; 2],
    /// Whether the second set is in use.
    pub(super) is_shifted: bool,
}

impl CharacterSets {
    pub(super) const fn are_drawn(self) -> bool {
        self.is_drawing[self.is_shifted as usize]
    }
}

/// What a letter of the set of lines and boxes looks like.
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
