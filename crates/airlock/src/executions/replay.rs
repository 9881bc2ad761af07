//! Lives through a journal again, in a jail of our own, and tells what it saw.

use crate::{Exit, print};
use engine::{Replayed, replay};
use lifecycle::{Entry, Json, Phase, Seq, Stage};
use sandbox::Sandbox;
use serde_json::{Value, json};

/// Longest text in a line.
const TEXT_CHARS_MAX: usize = 300;

pub(super) async fn run(entries: &[Entry], until: Option<Seq>, as_json: bool) -> Exit {
    let config = sandbox::Config { warm_runners: 1, ..sandbox::Config::default() };
    let sandbox = match Sandbox::start(config).await {
        Ok(sandbox) => sandbox,
        Err(error) => {
            print::error(&format!("no jail could be started: {error}"));
            return Exit::Fault;
        }
    };
    let replayed = replay(&sandbox, entries, until).await;
    sandbox.shutdown().await;
    match replayed {
        Ok(replayed) => {
            match as_json {
                true => print::report(&object(&replayed).to_string()),
                false => lines(&replayed).iter().for_each(|line| print::report(line)),
            }
            match &replayed.strayed {
                None => Exit::Good,
                Some(what) => {
                    print::error(&format!("it took another path than is recorded at {what}"));
                    Exit::Failed
                }
            }
        }
        Err(fault) => {
            print::error(&fault.to_string());
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
            Stage::Deferred(args) => Some((args, "waits for its source")),
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

/// The same in one line of JSON, with nothing cut short.
fn object(replayed: &Replayed) -> Value {
    let state = &replayed.state;
    let printed = replayed.printed.iter();
    let printed: Vec<_> = printed
        .map(|(level, line)| json!({ "level": super::line::level_name(*level), "line": line }))
        .collect();
    let waiting = state.calls.iter().filter_map(|(call, known)| {
        let (args, stage) = match &known.stage {
            Stage::Held(args) => (args, "held"),
            Stage::Deferred(args) => (args, "deferred"),
            Stage::Dispatched(args) => (args, "dispatched"),
            Stage::Asking(args) => (args, "asking"),
            Stage::Settled => return None,
        };
        Some(json!({ "call": call, "tool": known.tool, "args": read(args), "stage": stage }))
    });
    let asked = state.open_questions().map(
        |question| json!({ "id": question.id, "call": question.call, "message": question.message }),
    );
    let mut object = json!({
        "lastEvent": replayed.last,
        "printed": printed,
        "emitted": replayed.emitted.iter().map(read).collect::<Vec<_>>(),
        "calls": waiting.collect::<Vec<_>>(),
        "questions": asked.collect::<Vec<_>>(),
        "strayed": replayed.strayed,
    });
    match replayed.ended.as_ref().filter(|_| state.phase == Phase::Finished) {
        Some(Ok(value)) => object["result"] = value.as_ref().map(read).unwrap_or_default(),
        Some(Err(failure)) => object["error"] = failure.message.clone().into(),
        None => {}
    }
    object
}

/// JSON that no parser takes, such as half a surrogate pair, is shown as the text that it is.
fn read(json: &Json) -> Value {
    serde_json::from_str(json.text()).unwrap_or_else(|_| json.text().into())
}

fn short(text: &str) -> String {
    super::line::cut(text, TEXT_CHARS_MAX)
}
