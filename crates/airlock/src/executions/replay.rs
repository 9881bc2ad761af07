//! Lives through a journal again, in a jail of our own, and tells what it saw.

use crate::{Exit, print};
use engine::{Replayed, replay};
use lifecycle::{Entry, Phase, Seq, Stage};
use sandbox::Sandbox;

/// Longest text in a line.
const TEXT_CHARS_MAX: usize = 300;

pub(super) async fn run(entries: &[Entry], until: Option<Seq>) -> Exit {
    let config = sandbox::Config { warm_runners: 1, ..sandbox::Config::default() };
    let sandbox = match Sandbox::start(config).await {
        Ok(sandbox) => sandbox,
        Err(error) => {
            print::note(&format!("no jail could be started: {error}"));
            return Exit::Fault;
        }
    };
    let replayed = replay(&sandbox, entries, until).await;
    sandbox.shutdown().await;
    match replayed {
        Ok(replayed) => {
            lines(&replayed).iter().for_each(|line| print::report(line));
            match &replayed.strayed {
                None => Exit::Good,
                Some(what) => {
                    print::note(&format!("it took another path than is recorded at {what}"));
                    Exit::Failed
                }
            }
        }
        Err(fault) => {
            print::note(&fault.to_string());
            Exit::Fault
        }
    }
}

/// What was printed and handed out, what waits, what is asked, and how it ended.
fn lines(replayed: &Replayed) -> Vec<String> {
    let state = &replayed.state;
    let mut lines = vec![];
    for (level, line) in &replayed.printed {
        lines.push(format!("[{}] {}", super::line::level_name(*level), short(line)));
    }
    lines.extend(replayed.emitted.iter().map(|item| format!("emitted {}", short(item.text()))));
    for (call, known) in &state.calls {
        let waits = match &known.stage {
            Stage::Held(args) => Some((args, "waits for an answer")),
            Stage::Dispatched(args) => Some((args, "is with its tool")),
            Stage::Asking(args) => Some((args, "is with its tool, which asks")),
            Stage::Settled => None,
        };
        if let Some((args, how)) = waits {
            lines.push(format!("call {call} {how}: {} {}", known.tool, short(args.text())));
        }
    }
    for question in state.open_questions() {
        let first = question.message.lines().next().unwrap_or_default();
        lines.push(format!("{} asks: {}", question.id, short(first)));
    }
    let stopped = format!("stopped after event {}", replayed.last);
    lines.push(match (&replayed.ended, state.phase) {
        (Some(Ok(Some(value))), Phase::Finished) => format!("returned {}", short(value.text())),
        (Some(Ok(None)), Phase::Finished) => "returned nothing".into(),
        (Some(Err(failure)), Phase::Finished) => format!("failed: {}", short(&failure.message)),
        (None, Phase::Finished) => "did not end by itself".into(),
        (_, Phase::Unborn | Phase::Running | Phase::Paused | Phase::Parked) => stopped,
    });
    lines
}

fn short(text: &str) -> String {
    super::line::cut(text, TEXT_CHARS_MAX)
}
