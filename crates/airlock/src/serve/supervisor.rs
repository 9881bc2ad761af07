//! Detects whether a supervisor runs this server: then clients wait for it instead of starting another.

use std::io::IsTerminal as _;

/// The facts that distinguish a supervised process from one that a person started.
#[derive(Debug, Clone, Copy)]
struct ProcessFacts<'a> {
    /// `--supervised`.
    is_named: bool,
    pid: u32,
    /// Whether the process has a terminal for input.
    is_on_terminal: bool,
    /// systemd's variable.
    invocation_id: Option<&'a str>,
    exec_pid: Option<&'a str>,
}

/// Whether a supervisor started this process. `is_named` is the flag for it.
pub(super) fn is_supervised(is_named: bool) -> bool {
    let variable = |name| std::env::var(name).ok();
    let (invocation_id, exec_pid) = (variable("INVOCATION_ID"), variable("SYSTEMD_EXEC_PID"));
    judge(ProcessFacts {
        is_named,
        pid: std::process::id(),
        is_on_terminal: std::io::stdin().is_terminal(),
        invocation_id: invocation_id.as_deref(),
        exec_pid: exec_pid.as_deref(),
    })
}

/// Terminals of a desktop session are systemd units too and pass their variables on: in a terminal, or in a child of
/// another process, the variables are no evidence.
fn judge(facts: ProcessFacts<'_>) -> bool {
    let is_unit = facts.invocation_id.is_some_and(|id| !id.is_empty())
        && !facts.is_on_terminal
        && facts.exec_pid.is_none_or(|pid| pid == facts.pid.to_string());
    facts.is_named || facts.pid == 1 || is_unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_a_container_and_a_flag_are_supervised_and_a_terminal_is_not() {
        let usual = ProcessFacts {
            is_named: false,
            pid: 7,
            is_on_terminal: false,
            invocation_id: None,
            exec_pid: None,
        };
        let id = Some("a1");
        assert!(!judge(usual));
        assert!(judge(ProcessFacts { is_named: true, ..usual }));
        assert!(judge(ProcessFacts { pid: 1, is_on_terminal: true, ..usual }));
        assert!(judge(ProcessFacts { invocation_id: id, ..usual }));
        assert!(judge(ProcessFacts { invocation_id: id, exec_pid: Some("7"), ..usual }));
        assert!(!judge(ProcessFacts { invocation_id: id, exec_pid: Some("3"), ..usual }));
        assert!(!judge(ProcessFacts { invocation_id: id, is_on_terminal: true, ..usual }));
        assert!(!judge(ProcessFacts { invocation_id: Some(""), ..usual }));
    }
}
