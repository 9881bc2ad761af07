//! Lists: columns for people, tabs for programs.

use crate::print;
use std::io::{self, IsTerminal as _};
use unicode_width::UnicodeWidthStr as _;

/// One line per row: on a terminal in columns below a head; otherwise with tabs and without the head, for programs.
pub(crate) fn lines<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> Vec<String> {
    rendered(head, rows, io::stdout().is_terminal())
}

/// Prints a list. On a terminal, `none` takes the place of an empty one.
pub(crate) fn print<const N: usize>(head: &[&str; N], rows: &[[String; N]], none: &str) {
    if rows.is_empty() && io::stdout().is_terminal() {
        print::report(none);
        return;
    }
    lines(head, rows).iter().for_each(|line| print::report(line));
}

/// A text as a cell: one line, without what separates cells, and unable to steer a terminal.
pub(crate) fn cell(text: &str) -> String {
    print::tamed(text).replace(['\t', '\n'], " ")
}

/// Like [`lines`], with the choice between a terminal and programs as an argument.
pub(crate) fn rendered<const N: usize>(
    head: &[&str; N],
    rows: &[[String; N]],
    is_terminal: bool,
) -> Vec<String> {
    if !is_terminal {
        return rows.iter().map(|row| row.join("\t").trim_end().to_owned()).collect();
    }
    let head = head.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(&head).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(*row) {
            *width = cell.width().max(*width);
        }
    }
    rows.iter().map(|row| columns(row.as_slice(), &widths)).collect()
}

fn columns(row: &[String], widths: &[usize]) -> String {
    let padded = row.iter().zip(widths).map(|(cell, width)| {
        let n_missing = width.saturating_sub(cell.width());
        format!("{cell}{}", " ".repeat(n_missing))
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_columns_and_a_pipe_gets_tabs() {
        let rows = [["漢字", "1", ""], ["a", "22", "b"]].map(|row| row.map(str::to_owned));
        let head = ["NAME", "N", "MORE"];
        assert_eq!(rendered(&head, &rows, true), ["NAME  N   MORE", "漢字  1", "a     22  b"]);
        assert_eq!(rendered(&head, &rows, false), ["漢字\t1", "a\t22\tb"]);
    }
}
