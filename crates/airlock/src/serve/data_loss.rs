//! The reaction of a server to a store that lost entries, or may have, before anything continues.

use crate::print;
use lifecycle::{ExecutionId, UtcTime};
use store::Journal as _;
use store::sqlite::SqliteStore;

/// Executions that the notice names; the log names all.
const NAMED_MAX: usize = 20;

/// Ends browser sessions where the store lost entries, and prints the consequences. The engine parks unfinished executions.
pub(super) async fn announce(store: &SqliteStore) -> anyhow::Result<()> {
    let Some(loss) = store.data_loss().await? else { return Ok(()) };
    server::auth::end_all_sessions(store).await?;
    let until = match loss.known_until {
        Some(at) => format!("up to {} at least", UtcTime::from(at)),
        None => "up to a time that nothing says".to_owned(),
    };
    print::print_note(&format!(
        "WARNING: {}. Entries may be lost: unfinished executions are parked, and browser sessions have ended. Policies, \
         tokens and settings are known {until}; review them. Then `airlock executions continue ID`, or `--all`, lets \
         executions continue.",
        loss.cause
    ));
    Ok(())
}

/// Names the unreadable executions: a person may restore them from a backup.
pub(super) fn announce_unreadable(executions: &[ExecutionId]) {
    if executions.is_empty() {
        return;
    }
    let named: Vec<_> = executions.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let n_more = executions.len().saturating_sub(NAMED_MAX);
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    print::print_note(&format!(
        "WARNING: the journals of {} unfinished executions cannot be read: {}{more}. They are parked and cannot continue, and \
         calls of theirs may have run. Restore a backup if you need them.",
        executions.len(),
        named.join(" ")
    ));
}
