//! The reports of a check and of a recovery, for people and as JSON.

use lifecycle::{ExecutionPhase, Timestamp, UtcTime};
use serde_json::{Value, json};
use store::sqlite::{MarkReport, RecoveryReport, RowReport, StoreReport};

const fn phase_name(phase: ExecutionPhase) -> &'static str {
    match phase {
        ExecutionPhase::Unborn => "unborn",
        ExecutionPhase::Running => "running",
        ExecutionPhase::Paused => "paused",
        ExecutionPhase::Parked => "parked",
        ExecutionPhase::Finished => "finished",
    }
}

fn time(at: Timestamp) -> String {
    UtcTime::from(at).to_string()
}

pub(super) fn check_json(found: &StoreReport) -> Value {
    json!({
        "sound": found.is_sound(),
        "missing": found.missing,
        "damage": found.damage,
        "mark": match found.mark {
            MarkReport::Missing => json!("missing"),
            MarkReport::Damaged => json!("damaged"),
            MarkReport::Sound(at) => json!(at.0),
        },
        "framesLost": found.n_frames_lost,
        "rows": found.rows.as_ref().map(rows_json),
    })
}

fn rows_json(rows: &RowReport) -> Value {
    let phases = rows.executions.iter().map(|(phase, n)| (phase_name(*phase).to_owned(), json!(n)));
    json!({
        "executions": phases.collect::<serde_json::Map<_, _>>(),
        "entries": rows.n_entries,
        "records": rows.n_records,
        "cut": rows.cut.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "nCut": rows.n_cut,
        "unreadableRows": rows.is_unreadable,
        "newestEntry": rows.newest.map(|at| at.0),
    })
}

pub(super) fn recover_json(done: &RecoveryReport) -> Value {
    json!({
        "copies": done.copies,
        "framesLost": done.n_frames_lost,
        "rowsLost": done.has_lost_rows,
        "knownUntil": done.rows.newest.map(|at| at.0),
        "rows": rows_json(&done.rows),
    })
}

pub(super) fn check_text(found: &StoreReport) -> String {
    let mut lines = vec![match found.mark {
        MarkReport::Missing => "mark      missing: nothing says what was acknowledged".to_owned(),
        MarkReport::Damaged => "mark      damaged: nothing says what was acknowledged".to_owned(),
        MarkReport::Sound(at) => format!("mark      written {}", time(at)),
    }];
    lines.extend(found.damage.iter().map(|damage| format!("DAMAGED   {damage}")));
    lines.extend(found.missing.iter().map(|missing| format!("MISSING   {missing}")));
    lines.extend(found.rows.iter().flat_map(rows_text));
    match (found.is_sound(), found.n_frames_lost) {
        (true, _) => lines.push("Everything that was acknowledged is here.".into()),
        (false, Some(0)) => {
            lines.push(
                "A start would lose what the log holds; `airlock store recover` saves all of it."
                    .into(),
            );
        }
        (false, Some(n)) => lines.push(format!(
            "`airlock store recover` saves what can be read; {n} frames of the log are lost."
        )),
        (false, None) => lines.push(
            "Restore a backup, or save what can be read with `airlock store recover`.".into(),
        ),
    }
    lines.join("\n")
}

fn rows_text(rows: &RowReport) -> Vec<String> {
    let by_phase = rows.executions.iter().map(|(phase, n)| format!("{n} {}", phase_name(*phase)));
    let by_phase = by_phase.collect::<Vec<_>>().join(", ");
    let executions = if by_phase.is_empty() { "none".to_owned() } else { by_phase };
    let mut lines = vec![
        format!("readable  executions: {executions}; {} entries", rows.n_entries),
        format!("readable  {} records: policies, tokens, settings and others", rows.n_records),
    ];
    if let Some(newest) = rows.newest {
        lines.push(format!("newest    entry made {}", time(newest)));
    }
    if rows.n_cut > 0 {
        let named = rows.cut.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        lines.push(format!("CUT       {} executions have lost entries: {named}", rows.n_cut));
    }
    if rows.is_unreadable {
        lines.push("DAMAGED   some executions, records or notes cannot be read".into());
    }
    lines
}

pub(super) fn recover_text(done: &RecoveryReport) -> String {
    let mut lines = rows_text(&done.rows);
    if done.n_frames_lost > 0 {
        lines.push(format!(
            "LOST      {} frames of the log: executions or parts of them",
            done.n_frames_lost
        ));
    }
    if done.has_lost_rows {
        lines.push(
            "LOST      rows of the database; policies, tokens or settings may be among them".into(),
        );
    }
    lines.push(match done.rows.newest {
        Some(at) => format!("Policies, tokens and settings are known up to {} at least.", time(at)),
        None => "Nothing says up to when policies, tokens and settings are known.".to_owned(),
    });
    lines.push(format!("The files as they were: {}", done.copies.display()));
    lines.push(
        "The directory can be used again. The next start parks everything unfinished and ends browser sessions; \
         `airlock executions continue ID`, or `--all`, lets executions continue."
            .into(),
    );
    lines.join("\n")
}
