//! What a terminal takes: one that nobody has looked at, and one with a full screen and all that left its top.

use super::{SHARE, SIZE, content, library};
use crate::catalogue::resident_bytes;
use anyhow::Result;
use bench::{Report, Size};
use processes::Screen;

const N_TERMINALS: usize = 40;

/// One that nobody looks at keeps no screen.
const UNSEEN_BYTES_MAX: f64 = 4e3;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let [lines, ..] = content::all();
    let unseen = each(|| Screen::new(SIZE))?;
    report.add_size(Size {
        name: "a terminal that nobody has looked at".into(),
        bytes: unseen,
        bytes_max: Some(UNSEEN_BYTES_MAX),
    });
    let alone = each(|| {
        let mut parser = library();
        parser.process(&lines.bytes);
        parser
    })?;
    let ours = each(|| {
        let mut screen = Screen::new(SIZE);
        screen.say(&lines.bytes);
        screen
    })?;
    let bytes_max = Some(alone / SHARE);
    report.add_size(Size { name: "a screen and its scrollback".into(), bytes: ours, bytes_max });
    report.add_size(Size { name: "the library alone".into(), bytes: alone, bytes_max: None });
    Ok(())
}

/// What one of many takes.
fn each<T>(make: impl Fn() -> T) -> Result<f64> {
    let before = resident_bytes()?;
    let made: Vec<T> = (0..N_TERMINALS).map(|_| make()).collect();
    let after = resident_bytes()?;
    drop(made);
    Ok(after.saturating_sub(before) as f64 / N_TERMINALS as f64)
}
