//! Compares what two executions did: their events by content, without numbers, times and ids.

use crate::{VerbExit, print};
use lifecycle::Entry;
use serde_json::{Value, json};

/// Members that differ between any two executions and carry no information about their actions.
const PASSING: [&str; 6] = ["id", "question", "due", "active_ms", "seed", "fingerprint"];

/// Differing events that are compared pairwise; a longer section is reported as a whole.
const MIDDLE_MAX: usize = 2_000;

/// Longest event in a line.
const TEXT_CHARS_MAX: usize = 300;

/// Prints the differences; as `diff` does, exits with 0 for the same and 1 for a difference.
pub(super) fn print_differences(a: &[Entry], b: &[Entry], json: bool) -> VerbExit {
    let (a, b) = (contents(a), contents(b));
    let differences = differences(&a, &b);
    for difference in &differences {
        match json {
            true => print::json(&difference.json()),
            false => print::report(&difference.line()),
        }
    }
    if differences.is_empty() { VerbExit::Good } else { VerbExit::Failed }
}

/// An event that only one of two executions has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JournalDifference<'a> {
    only: DiffSide,
    /// Its number there.
    seq: usize,
    event: &'a str,
}

/// The execution that has the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffSide {
    A,
    B,
}

impl JournalDifference<'_> {
    fn line(&self) -> String {
        let sign = match self.only {
            DiffSide::A => '-',
            DiffSide::B => '+',
        };
        format!("{sign}{:>5}  {}", self.seq, super::line::cut(self.event, TEXT_CHARS_MAX))
    }

    fn json(&self) -> Value {
        let only = match self.only {
            DiffSide::A => "a",
            DiffSide::B => "b",
        };
        let event: Value = serde_json::from_str(self.event).unwrap_or_else(|_| self.event.into());
        json!({ "only": only, "seq": self.seq, "event": event })
    }
}

/// The events as text, without the members that always differ.
fn contents(entries: &[Entry]) -> Vec<String> {
    let content = |entry: &Entry| {
        let mut event = serde_json::to_value(&entry.event).unwrap_or_default();
        // An event is its name and one object; deeper data belongs to the program and the tools.
        if let Some(event) = event.as_object_mut() {
            event.values_mut().for_each(strip);
        }
        event.to_string()
    };
    entries.iter().map(content).collect()
}

fn strip(members: &mut Value) {
    if let Some(members) = members.as_object_mut() {
        members.retain(|name, _| !PASSING.contains(&name.as_str()));
    }
}

/// The events that only one of them has, each with its number; empty where both did the same.
fn differences<'a>(a: &'a [String], b: &'a [String]) -> Vec<JournalDifference<'a>> {
    let n_same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a[n_same..], &b[n_same..]);
    let n_tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a_mid, b_mid) = (&a_rest[..a_rest.len() - n_tail], &b_rest[..b_rest.len() - n_tail]);
    let mut found = vec![];
    let mut add = |only: DiffSide, at: usize, event: &'a str| {
        found.push(JournalDifference { only, seq: n_same + at + 1, event });
    };
    let (mut i, mut j) = (0, 0);
    if a_mid.len() <= MIDDLE_MAX && b_mid.len() <= MIDDLE_MAX {
        let common = common(a_mid, b_mid);
        while i < a_mid.len() && j < b_mid.len() {
            if a_mid[i] == b_mid[j] {
                (i, j) = (i + 1, j + 1);
            } else if common[i + 1][j] >= common[i][j + 1] {
                add(DiffSide::A, i, &a_mid[i]);
                i += 1;
            } else {
                add(DiffSide::B, j, &b_mid[j]);
                j += 1;
            }
        }
    }
    a_mid.iter().enumerate().skip(i).for_each(|(at, text)| add(DiffSide::A, at, text));
    b_mid.iter().enumerate().skip(j).for_each(|(at, text)| add(DiffSide::B, at, text));
    found
}

/// How many events the ends of both, from there on, have in common at most.
fn common(a: &[String], b: &[String]) -> Vec<Vec<u16>> {
    let mut table = vec![vec![0_u16; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            table[i][j] = match a[i] == b[j] {
                true => table[i + 1][j + 1] + 1,
                false => table[i + 1][j].max(table[i][j + 1]),
            };
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(a: &str, b: &str) -> Vec<String> {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        differences(&split(a), &split(b)).iter().map(JournalDifference::line).collect()
    }

    #[test]
    fn a_difference_is_one_line_of_json() {
        let (a, b) = ([r#"{"prepared":{}}"#.to_owned()], []);
        let expected = json!({ "only": "a", "seq": 1, "event": { "prepared": {} } });
        assert_eq!(differences(&a, &b)[0].json(), expected);
    }

    #[test]
    fn what_only_one_has_is_told_with_its_number() {
        assert_eq!(told("a b c", "a b c"), [""; 0]);
        assert_eq!(told("a b c", "a c"), ["-    2  b"]);
        assert_eq!(told("a c", "a b c"), ["+    2  b"]);
        assert_eq!(told("a x c y e", "a c z e"), ["-    2  x", "-    4  y", "+    3  z"]);
        assert_eq!(told("", "a"), ["+    1  a"]);
    }

    #[test]
    fn ids_and_times_do_not_count_and_arguments_do() {
        let entry = |text: &str| serde_json::from_str::<Entry>(text).unwrap();
        let asked = |at: i64, id: u32, message: &str| {
            entry(&format!(
                r#"{{"seq":4,"at":{at},"event":{{"call_asked":{{"id":"exec_00000000-0000-0000-0000-00000000000{id}","call":1,"kind":"approval","message":"{message}"}}}}}}"#
            ))
        };
        let contents = |entry: Entry| contents(&[entry]);
        assert_eq!(contents(asked(1, 1, "a?")), contents(asked(2, 2, "a?")));
        assert_ne!(contents(asked(1, 1, "a?")), contents(asked(1, 1, "b?")));
    }
}
