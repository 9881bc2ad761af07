//! The list of executions: a table for people, tabs for programs.

use crate::table::cell;
use crate::{duration, table};
use client::ExecutionRow;
use lifecycle::UtcTime;
use std::time::Duration;

const HEAD: [&str; 8] =
    ["EXECUTION", "STATUS", "CALLER", "STARTED", "EVENTS", "OUTCOME", "DURATION", "TOOLS"];

/// Prints one line per execution.
pub(super) fn print(listed: &[ExecutionRow]) {
    let rows: Vec<_> = listed.iter().map(row).collect();
    table::print(&HEAD, &rows, "There are no executions.");
}

fn row(listed: &ExecutionRow) -> [String; 8] {
    let outcome = listed.outcome.as_deref().unwrap_or_default();
    let code = listed.code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
    let took = listed.duration_ms.map(|ms| duration::format_duration(Duration::from_millis(ms)));
    [
        listed.execution.to_string(),
        listed.status.as_str().to_owned(),
        cell(&listed.caller),
        UtcTime::from(listed.created).to_string(),
        listed.last.to_string(),
        cell(&format!("{outcome}{code}")),
        took.unwrap_or_default(),
        cell(&listed.tools.join(",")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::ExecutionStatus;
    use lifecycle::{Json, Seq, Timestamp};

    fn listed(caller: &str) -> ExecutionRow {
        ExecutionRow {
            execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
            status: ExecutionStatus::Finished,
            caller: caller.to_owned(),
            created: Timestamp(0),
            last: Seq(12),
            outcome: Some("failed".into()),
            code: Some("timeout".into()),
            duration_ms: Some(1_250),
            tools: vec!["a.b".into(), "c.d".into()],
            json: Json::null(),
        }
    }

    #[test]
    fn a_pipe_gets_tabs_and_no_head() {
        let expected = "run_00000000-0000-0000-0000-000000000001\tfinished\ta b\t1970-01-01T00:00:00Z\t12\t\
                        failed (timeout)\t1.2s\ta.b,c.d";
        assert_eq!(table::rendered(&HEAD, &[row(&listed("a\tb"))], false), [expected]);
    }

    #[test]
    fn a_terminal_gets_columns_below_a_head() {
        let rows =
            [row(&listed("ann")), row(&ExecutionRow { outcome: None, code: None, ..listed("bo") })];
        let shown = table::rendered(&HEAD, &rows, true);
        assert!(
            shown[0].ends_with("STARTED               EVENTS  OUTCOME           DURATION  TOOLS")
        );
        assert!(shown[2].contains("12                        1.2s      a.b,c.d"), "{shown:?}");
    }
}
