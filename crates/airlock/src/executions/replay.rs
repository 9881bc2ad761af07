//! Replays a journal in a jail of this process, and prints the result.

use crate::{VerbExit, print};
use engine::{ReplayOutcome, replay};
use lifecycle::{CallStage, Entry, ExecutionPhase, Json, Seq};
use sandbox::Sandbox;
use serde_json::{Value, json};

/// Longest text in a line.
const TEXT_CHARS_MAX: usize = 300;

pub(super) async fn run(entries: &[Entry], until: Option<Seq>, as_json: bool) -> VerbExit {
    let config = sandbox::Config { warm_runners: 1, ..sandbox::Config::default() };
    let sandbox = match Sandbox::start(config).await {
        Ok(sandbox) => sandbox,
        Err(error) => {
            print::error(&format!("no jail could be started: {error}"));
            return VerbExit::Fault;
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
                None => VerbExit::Good,
                Some(what) => {
                    print::error(&format!("it deviated from the journal at {what}"));
                    VerbExit::Failed
                }
            }
        }
        Err(fault) => {
            print::error(&fault.to_string());
            VerbExit::Fault
        }
    }
}

/// The output and emitted values, open calls and questions, and the outcome.
fn lines(replayed: &ReplayOutcome) -> Vec<String> {
    let state = &replayed.state;
    let mut lines = vec![];
    for (level, line) in &replayed.printed {
        lines.push(format!("[{}] {}", super::line::level_name(*level), short(line)));
    }
    lines.extend(replayed.emitted.iter().map(|item| format!("emitted {}", short(item.as_text()))));
    for (call, known) in &state.calls {
        let waits = match &known.stage {
            CallStage::Held(args) => Some((args, "waits for an answer")),
            CallStage::Deferred(args) => Some((args, "waits for its source")),
            CallStage::Dispatched(args) => Some((args, "is with its tool")),
            CallStage::Asking(args) => Some((args, "is with its tool, which asks")),
            CallStage::Settled => None,
        };
        if let Some((args, how)) = waits {
            lines.push(format!("call {call} {how}: {} {}", known.tool, short(args.as_text())));
        }
    }
    for question in state.open_questions() {
        let first = question.message.lines().next().unwrap_or_default();
        lines.push(format!("{} asks: {}", question.id, short(first)));
    }
    let stopped = format!("stopped after event {}", replayed.last);
    lines.push(match (&replayed.ended, state.phase) {
        (Some(Ok(Some(value))), ExecutionPhase::Finished) => {
            format!("returned {}", short(value.as_text()))
        }
        (Some(Ok(None)), ExecutionPhase::Finished) => "returned nothing".into(),
        (Some(Err(failure)), ExecutionPhase::Finished) => {
            format!("failed: {}", short(&failure.message))
        }
        (None, ExecutionPhase::Finished) => "did not end by itself".into(),
        (
            _,
            ExecutionPhase::Unborn
            | ExecutionPhase::Running
            | ExecutionPhase::Paused
            | ExecutionPhase::Parked,
        ) => stopped,
    });
    lines
}

/// The full result as one line of JSON.
fn object(replayed: &ReplayOutcome) -> Value {
    let state = &replayed.state;
    let printed = replayed.printed.iter();
    let printed: Vec<_> = printed
        .map(|(level, line)| json!({ "level": super::line::level_name(*level), "line": line }))
        .collect();
    let waiting = state.calls.iter().filter_map(|(call, known)| {
        let (args, stage) = match &known.stage {
            CallStage::Held(args) => (args, "held"),
            CallStage::Deferred(args) => (args, "deferred"),
            CallStage::Dispatched(args) => (args, "dispatched"),
            CallStage::Asking(args) => (args, "asking"),
            CallStage::Settled => return None,
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
    match replayed.ended.as_ref().filter(|_| state.phase == ExecutionPhase::Finished) {
        Some(Ok(value)) => object["result"] = value.as_ref().map(read).unwrap_or_default(),
        Some(Err(failure)) => object["error"] = failure.message.clone().into(),
        None => {}
    }
    object
}

/// JSON that no parser accepts, such as half a surrogate pair, is shown as text.
fn read(json: &Json) -> Value {
    serde_json::from_str(json.as_text()).unwrap_or_else(|_| json.as_text().into())
}

fn short(text: &str) -> String {
    super::line::cut(text, TEXT_CHARS_MAX)
}
