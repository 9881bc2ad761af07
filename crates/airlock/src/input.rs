//! Text input of a verb: bounded, with errors for people.

use std::io::Read;

/// Reads all of `from`, which errors call `name`, if it is no longer than `bytes_max`.
pub(crate) fn read(name: &str, from: impl Read, bytes_max: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = from.take(bytes_max + 1).read_to_string(&mut text);
    let n_bytes = read.map_err(|error| format!("cannot read {name}: {error}"))?;
    if n_bytes as u64 > bytes_max {
        return Err(format!("{name} is longer than {} MB", bytes_max >> 20));
    }
    Ok(text)
}
