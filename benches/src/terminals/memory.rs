//! The memory of a terminal: one without a viewer, and one with a full screen and scrollback.

use super::{SHARE, SIZE, content, library};
use crate::catalogue::resident_bytes;
use anyhow::Result;
use bench::{Report, Size};
use processes::TerminalScreen;

/// Enough for a measurable difference.
const N_UNSEEN: usize = 20_000;
const N_SEEN: usize = 40;

/// A terminal without a viewer stores no screen.
const UNSEEN_BYTES_MAX: f64 = 400.0;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let [lines, ..] = content::all();
    let unseen = each(N_UNSEEN, || TerminalScreen::new(SIZE))?;
    report.add_size(Size {
        name: "a terminal that nobody has looked at".into(),
        bytes: unseen,
        bytes_max: Some(UNSEEN_BYTES_MAX),
    });
    let alone = each(N_SEEN, || {
        let mut parser = library();
        parser.process(&lines.bytes);
        parser
    })?;
    let ours = each(N_SEEN, || {
        let mut screen = TerminalScreen::new(SIZE);
        screen.apply_bytes(&lines.bytes);
        screen
    })?;
    let bytes_max = Some(alone / SHARE);
    report.add_size(Size { name: "a screen and its scrollback".into(), bytes: ours, bytes_max });
    report.add_size(Size { name: "the library alone".into(), bytes: alone, bytes_max: None });
    Ok(())
}

/// The memory of one of many.
fn each<T>(n: usize, make: impl Fn() -> T) -> Result<f64> {
    let before = resident_bytes()?;
    let made: Vec<T> = (0..n).map(|_| make()).collect();
    let after = resident_bytes()?;
    drop(made);
    Ok(after.saturating_sub(before) as f64 / n as f64)
}
