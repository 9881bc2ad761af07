//! A store that lost entries, or may have: what a server does and says before anything continues.

use crate::print;
use lifecycle::Utc;
use store::Journal as _;
use store::sqlite::SqliteStore;

/// Ends browser sessions where the store lost entries, and says what follows. The engine parks what is unfinished.
pub(super) async fn announce(store: &SqliteStore) -> anyhow::Result<()> {
    let Some(loss) = store.data_loss().await? else { return Ok(()) };
    server::auth::end_all_sessions(store).await?;
    let until = match loss.known_until {
        Some(at) => format!("up to {} at least", Utc::from(at)),
        None => "up to a time that nothing says".to_owned(),
    };
    print::note(&format!(
        "WARNING: {}. Entries may be lost: unfinished executions are parked, and browser sessions have ended. Policies, \
         tokens and settings are known {until}; review them. Then `airlock executions continue ID`, or `--all`, lets \
         executions continue.",
        loss.cause
    ));
    Ok(())
}
