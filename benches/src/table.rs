//! Numbers and tables for people.

/// Aligns columns: the first to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let width = |column| rows.iter().map(|row| cell(row, column).chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, &width) in widths.iter().enumerate() {
            let text = cell(row, column);
            line += &match column {
                0 => format!("{text:<width$}"),
                _ => format!("  {text:>width$}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Formats a time in a suitable unit, with three digits or more.
pub(crate) fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns < 10_000.0 => format!("{ns:.0} ns"),
        ns if ns < 10_000_000.0 => format!("{:.1} µs", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

/// Formats a size in a suitable unit.
pub(crate) fn bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 10_000.0 => format!("{bytes:.0} B"),
        bytes if bytes < 10_000_000.0 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_short_rows_are_filled() {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let rows = [row(&["what", "median"]), row(&["µ", "1"]), row(&["longer"])];
        assert_eq!(table(&rows), "what    median\nµ            1\nlonger\n");
    }

    #[test]
    fn a_time_has_the_unit_that_suits_it() {
        assert_eq!(nanoseconds(9_999.0), "9999 ns");
        assert_eq!(nanoseconds(27_040.0), "27.0 µs");
        assert_eq!(nanoseconds(12_500_000.0), "12.5 ms");
    }

    #[test]
    fn a_size_has_the_unit_that_suits_it() {
        assert_eq!(bytes(-3.2), "-3 B");
        assert_eq!(bytes(27_040.0), "27.0 kB");
        assert_eq!(bytes(30e6), "30.0 MB");
    }
}
