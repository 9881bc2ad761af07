//! The printed and emitted output of a program, collected for its `done`. It is collected here and not by the runner,
//! so that the host also receives it for a program that had to be killed. The runner bounds it too, but is not
//! trusted to. Lines are JSON texts, so that unpaired surrogates survive in them.

use lifecycle::Json;
use protocols::execbox::wire::RawJson;

/// Maximum number of retained lines of one program.
const LINES_MAX: usize = 1 << 16;

/// Maximum size of the retained lines of one program: the most that a million UTF-16 units can take.
const LINES_BYTES_MAX: usize = 3 << 20;

/// Maximum size of the retained items of one program.
const ITEMS_BYTES_MAX: usize = 1 << 20;

/// Lines and items in order of arrival.
#[derive(Debug, Default)]
pub(super) struct ProgramOutput {
    lines: Vec<String>,
    lines_bytes: usize,
    items: Vec<Json>,
    items_bytes: usize,
}

impl ProgramOutput {
    pub(super) fn print(&mut self, line: String) {
        let lines_bytes = self.lines_bytes + line.len();
        if self.lines.len() < LINES_MAX && lines_bytes <= LINES_BYTES_MAX {
            self.lines_bytes = lines_bytes;
            self.lines.push(line);
        }
    }

    pub(super) fn emit(&mut self, item: Json) {
        let items_bytes = self.items_bytes + item.as_text().len();
        if items_bytes <= ITEMS_BYTES_MAX {
            self.items_bytes = items_bytes;
            self.items.push(item);
        }
    }

    pub(super) fn lines(&self) -> Vec<RawJson<'_>> {
        self.lines.iter().filter_map(|line| RawJson::parse(line)).collect()
    }

    pub(super) fn items(&self) -> Vec<RawJson<'_>> {
        self.items.iter().map(RawJson::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_says_more_than_it_may_is_not_listened_to() {
        let mut output = ProgramOutput::default();
        for _ in 0..LINES_MAX + 10 {
            output.print("\"x\"".to_owned());
            output.emit(Json::parse("1".repeat(1 << 10)).unwrap());
        }
        assert_eq!((output.lines().len(), output.items().len()), (LINES_MAX, 1 << 10));
        output.print("y".repeat(LINES_BYTES_MAX));
        assert_eq!(output.lines().len(), LINES_MAX);
    }
}
