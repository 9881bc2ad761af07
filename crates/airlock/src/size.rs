//! Sizes as people write them: `500MB`, `4GB`, `1GiB`.

/// Parses a size in bytes; the error is a sentence for a person.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let n_digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(n_digits);
    let amount: u64 =
        number.parse().map_err(|_| "write a number and a unit, such as 500MB".to_owned())?;
    let bytes = match unit.trim() {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "" => return Err(format!("{number} of what? Write {number}MB or {number}GB")),
        other => return Err(format!("there is no unit {other}; use kB, MB, GB or TB")),
    };
    match amount.checked_mul(bytes) {
        Some(0) | None => Err("a size is between 1B and 18000000TB".into()),
        Some(bytes) => Ok(bytes),
    }
}

/// Formats a size for people, in the largest unit that leaves a number of at least 1.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let Some((unit, size)) = units.into_iter().find(|(_, size)| bytes >= *size) else {
        return format!("{bytes} B");
    };
    format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_shown_with_one_digit_behind_the_point() {
        let shown = [7, 999, 1_000, 12_345_678, 4_000_000_000].map(shown_bytes);
        assert_eq!(shown, ["7 B", "999 B", "1.0 kB", "12.3 MB", "4.0 GB"]);
    }

    #[test]
    fn sizes_mean_what_they_say() {
        for (text, bytes) in
            [("1B", 1), ("500MB", 500_000_000), ("4 GB", 4_000_000_000), ("1KiB", 1_024)]
        {
            assert_eq!((text, parse(text)), (text, Ok(bytes)));
        }
        for text in ["", "MB", "5", "5X", "0MB", "-1GB", "99999999999TB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
