//! The list of executions: a table for people, tabs for programs.

use crate::print::tamed;
use crate::table;
use client::Listed;
use lifecycle::Utc;

const HEAD: [&str; 5] = ["EXECUTION", "STATUS", "CALLER", "STARTED", "EVENTS"];

/// One line per execution; on a terminal below a head, in columns.
pub(super) fn lines(listed: &[Listed], is_terminal: bool) -> Vec<String> {
    let rows: Vec<[String; 5]> = listed.iter().map(row).collect();
    if is_terminal && rows.is_empty() {
        return vec!["There are no executions.".into()];
    }
    table::rendered(&HEAD, &rows, is_terminal)
}

fn row(listed: &Listed) -> [String; 5] {
    [
        listed.execution.to_string(),
        listed.status.as_str().to_owned(),
        // A name has no tabs; whoever speaks for the server may lie.
        tamed(&listed.caller).replace(['\t', '\n'], " "),
        Utc::from(listed.created).to_string(),
        listed.last.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Status;
    use lifecycle::{Json, Seq, Timestamp};

    fn listed(caller: &str) -> Listed {
        Listed {
            execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
            status: Status::Paused,
            caller: caller.to_owned(),
            created: Timestamp(0),
            last: Seq(12),
            json: Json::null(),
        }
    }

    #[test]
    fn a_pipe_gets_tabs_and_no_head() {
        let expected =
            "run_00000000-0000-0000-0000-000000000001\tpaused\ta b\t1970-01-01T00:00:00Z\t12";
        assert_eq!(lines(&[listed("a\tb")], false), [expected]);
        assert_eq!(lines(&[], false), [""; 0]);
    }

    #[test]
    fn a_terminal_gets_columns_below_a_head() {
        let expected = [
            "EXECUTION                                 STATUS  CALLER   STARTED               EVENTS",
            "run_00000000-0000-0000-0000-000000000001  paused  ann      1970-01-01T00:00:00Z  12",
            "run_00000000-0000-0000-0000-000000000001  paused  webhook  1970-01-01T00:00:00Z  12",
        ];
        assert_eq!(lines(&[listed("ann"), listed("webhook")], true), expected);
        assert_eq!(lines(&[], true), ["There are no executions."]);
    }
}
