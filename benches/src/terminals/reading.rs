//! Megabytes through a screen.

use super::content::{self, MEGABYTES, PIECE_BYTES};
use super::{PLAN, SHARE, SIZE, library};
use anyhow::{Result, ensure};
use bench::{Contender, Report, Target};
use processes::TerminalScreen;

pub(super) fn run(report: &mut Report) -> Result<()> {
    for content in content::all() {
        agree(&content.bytes)?;
        let mut screen = TerminalScreen::new(SIZE);
        let ours = || {
            content.bytes.chunks(PIECE_BYTES).for_each(|piece| screen.apply_bytes(piece));
            Ok(())
        };
        let ours = Contender::new(format!("1 MB of {} through a screen", content.name), ours);
        let mut parser = library();
        let alone = || {
            content.bytes.chunks(PIECE_BYTES).for_each(|piece| parser.process(piece));
            Ok(())
        };
        let alone = Contender::new("the same through the library alone", alone);
        let measured = PLAN.compare(ours.batch(MEGABYTES), alone.batch(MEGABYTES))?;
        report.add(measured, vec![Target::RatioMax(1.0 / SHARE)]);
    }
    Ok(())
}

/// A fast but wrong result would be useless.
fn agree(bytes: &[u8]) -> Result<()> {
    let (mut screen, mut parser) = (TerminalScreen::new(SIZE), library());
    screen.apply_bytes(bytes);
    parser.process(bytes);
    ensure!(screen.visible_text() == parser.screen().contents(), "the two do not show the same");
    Ok(())
}
