//! The bytes that draw the screen for a new viewer.

use super::{PLAN, SHARE, SIZE, content, library};
use anyhow::Result;
use bench::{Contender, Report, Target};
use processes::TerminalScreen;
use std::hint::black_box;

pub(super) fn run(report: &mut Report) -> Result<()> {
    for content in content::all() {
        let mut screen = TerminalScreen::new(SIZE);
        screen.apply_bytes(&content.bytes);
        let ours = || {
            black_box(screen.paint());
            Ok(())
        };
        let ours = Contender::new(format!("paint a screen of {}", content.name), ours);
        let mut parser = library();
        parser.process(&content.bytes);
        let alone = || {
            black_box(parser.screen().state_formatted());
            Ok(())
        };
        let measured = PLAN.compare(ours, Contender::new("the library alone", alone))?;
        report.add(measured, vec![Target::RatioMax(1.0 / SHARE)]);
    }
    Ok(())
}
