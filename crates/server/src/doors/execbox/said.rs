//! What a program says on the way: lines and items, kept for its end. Kept here and not by the runner, so that they are
//! told also of a program that had to be killed. A runner bounds them itself; nobody relies on it. Lines are JSON texts,
//! so that halves of surrogate pairs survive in them.

use protocols::execbox::wire::RawJson;

/// Most lines that are kept of one program.
const LINES_MAX: usize = 1 << 16;

/// Most bytes of lines that are kept of one program: a million UTF-16 units take at most so many.
const LINES_BYTES_MAX: usize = 3 << 20;

/// Most bytes of items that are kept of one program.
const ITEMS_BYTES_MAX: usize = 1 << 20;

/// Lines and items in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Said {
    lines: Vec<String>,
    lines_bytes: usize,
    items: Vec<String>,
    items_bytes: usize,
}

impl Said {
    pub(super) fn print(&mut self, line: String) {
        let lines_bytes = self.lines_bytes + line.len();
        if self.lines.len() < LINES_MAX && lines_bytes <= LINES_BYTES_MAX {
            self.lines_bytes = lines_bytes;
            self.lines.push(line);
        }
    }

    pub(super) fn emit(&mut self, item: String) {
        let items_bytes = self.items_bytes + item.len();
        if items_bytes <= ITEMS_BYTES_MAX {
            self.items_bytes = items_bytes;
            self.items.push(item);
        }
    }

    pub(super) fn lines(&self) -> Vec<RawJson<'_>> {
        self.lines.iter().filter_map(|line| RawJson::parse(line)).collect()
    }

    pub(super) fn items(&self) -> Vec<RawJson<'_>> {
        self.items.iter().filter_map(|item| RawJson::parse(item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_says_more_than_it_may_is_not_listened_to() {
        let mut said = Said::default();
        for _ in 0..LINES_MAX + 10 {
            said.print("\"x\"".to_owned());
            said.emit("1".repeat(1 << 10));
        }
        assert_eq!((said.lines().len(), said.items().len()), (LINES_MAX, 1 << 10));
        said.print("y".repeat(LINES_BYTES_MAX));
        assert_eq!(said.lines().len(), LINES_MAX);
    }
}
