//! Tickets: a browser cannot send headers with a WebSocket or an `EventSource`, so it puts a ticket into the URL. A
//! ticket is valid once, for one path, for half a minute.

use super::elevation::ElevationKey;
use super::expiring::{ExpiringKind, ExpiryTime, remove, secret_key};
use super::session::BrowserSessionId;
use crate::auth::tokens::{MintedSecret, TokenError, TokenId};
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};
use store::{RecordStore, StoreError};

const TICKET: ExpiringKind =
    ExpiringKind { name: "browser_ticket", age_ms_max: 30 * 1_000, retained_ms: 0, n_max: 1_000 };

/// Maximum length of a ticket's path.
pub(crate) const TICKET_PATH_BYTES_MAX: usize = 1_024;

/// The credential for which a ticket is valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TicketHolder {
    Token(TokenId),
    Session { id: BrowserSessionId, elevation: Option<ElevationKey> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TicketRecord {
    path: String,
    holder: TicketHolder,
}

/// A ticket that has not been used yet.
pub(crate) struct IssuedTicket {
    pub(crate) ticket: String,
    pub(crate) expires: Timestamp,
}

pub(super) async fn issue(
    records: &dyn RecordStore,
    holder: TicketHolder,
    path: &str,
    now: Timestamp,
) -> Result<IssuedTicket, TokenError> {
    let ticket = MintedSecret::bare()?;
    let record = TicketRecord { path: path.to_owned(), holder };
    let expires = TICKET.add(records, &secret_key(&ticket), record, now).await?;
    Ok(IssuedTicket { ticket, expires })
}

/// Marks a ticket as used, even if it is for another path.
pub(super) async fn redeem(
    records: &dyn RecordStore,
    ticket: &str,
    path: &str,
    now: Timestamp,
) -> Result<Option<TicketHolder>, StoreError> {
    let key = secret_key(ticket);
    let Some((found, version)) = TICKET.get::<TicketRecord>(records, &key).await? else {
        return Ok(None);
    };
    let is_first = remove(records, TICKET.name, &key, version).await?;
    let now = ExpiryTime::read(records, now).await?;
    let counts = is_first && found.is_valid(now) && found.value.path == path;
    Ok(counts.then_some(found.value.holder))
}
