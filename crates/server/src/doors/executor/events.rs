//! `GET /api/executions/{id}/events`: the journal, as a page or as a stream.

use super::inbound::find;
use super::outbound;
use crate::answering::{AnswerPath, PageOrigin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use crate::turns::{TurnMeter, in_turns};
use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use lifecycle::{ExecutionId, ExecutionPhase, Seq};
use protocols::executor::QuestionReader;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::ExecutionOverview;

/// Maximum number of entries in one page, unless its byte limit is reached first; `last` is where the next page
/// begins.
const PAGE_ENTRIES_MAX: usize = 1_000;

/// Approximate maximum size of one page: the last entry may exceed it.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of entries that are read for one page, if only some types are requested.
const PAGE_READ_MAX: usize = 20_000;

/// Maximum number of entries that are rendered on the connection's own thread. More are rendered on a thread for long
/// journals.
const RENDERED_HERE_MAX: u64 = 256;

/// Proxies close connections that are silent for a minute; some after half of that.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) async fn events(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    pages: PageOrigin,
    PathId(id): PathId,
    (query, headers): (QueryMembers, HeaderMap),
) -> Result<Response, RequestError> {
    let (execution, _) = find(&app, &id).await?;
    let ExecutionOverview { listed, has_asked } = app.engine.overview(execution).await?;
    let (owner, newest) = (&listed.standing.caller, listed.last);
    caller.may_see(owner, has_asked).map_err(|denied| RequestError::denied(denied, &id))?;
    let after = after(&query, &headers)?;
    let reader = pages.reader(&caller, owner, AnswerPath::Request);
    let kinds = EventTypeFilter::from_query(&query);
    let is_long = newest.0.saturating_sub(after.0) > RENDERED_HERE_MAX;
    if !wants_stream(&headers) {
        let page = page(Arc::clone(&app), execution, (after, newest), (kinds, reader));
        return if is_long { app.render_thread.run(page).await } else { page.await };
    }
    // The status by which a client that reconnects to a finished execution stops reconnecting.
    if listed.standing.phase == ExecutionPhase::Finished && after >= newest {
        return Ok(outbound::about(execution, StatusCode::NO_CONTENT.into_response()));
    }
    let heartbeat = KeepAlive::new().interval(HEARTBEAT).text("");
    let events = stream(&app, &caller, execution, after, (kinds, reader));
    let events = if is_long { app.render_thread.stream(events).boxed() } else { events.boxed() };
    let events = Sse::new(events).keep_alive(heartbeat);
    Ok(outbound::about(execution, events.into_response()))
}

/// Which types of events are requested; none means all.
struct EventTypeFilter(Option<Vec<String>>);

impl EventTypeFilter {
    fn from_query(query: &QueryMembers) -> Self {
        let listed = |text: &str| text.split(',').map(|kind| kind.trim().to_owned()).collect();
        Self(query.text_member("type").map(listed))
    }

    fn has(&self, event: &lifecycle::Event) -> bool {
        let kind = protocols::executor::kind(event);
        self.0.as_ref().is_none_or(|wanted| wanted.iter().any(|wanted| wanted == kind))
    }
}

async fn page(
    app: Arc<AppState>,
    execution: ExecutionId,
    (after, newest): (Seq, Seq),
    (kinds, reader): (EventTypeFilter, QuestionReader),
) -> Result<Response, RequestError> {
    let mut entries = app.engine.follow(execution, after);
    let (mut last, mut n_entries, mut n_read) = (after, 0, 0);
    let mut body = String::from("{\"events\":[");
    let mut meter = TurnMeter::default();
    while last < newest
        && n_entries < PAGE_ENTRIES_MAX
        && n_read < PAGE_READ_MAX
        && body.len() < PAGE_BYTES_MAX
        && let Some(entry) = entries.next().await
    {
        let entry = entry?;
        (last, n_read) = (entry.seq, n_read + 1);
        if !kinds.has(&entry.event) {
            continue;
        }
        if n_entries > 0 {
            body.push(',');
        }
        let line = protocols::executor::outbound::entry_for(&entry, &reader);
        body.push_str(&line);
        n_entries += 1;
        meter.count(line.len()).await;
    }
    let has_more = last < newest;
    body.push_str(&format!("],\"last\":{last},\"more\":{has_more}}}"));
    Ok(outbound::envelope(execution, StatusCode::OK, body))
}

/// Sends every entry once, until the execution, the server or the caller's credential ends. A journal error also ends
/// the stream: the client reconnects with the last number it received.
fn stream(
    app: &Arc<AppState>,
    caller: &Caller,
    execution: ExecutionId,
    after: Seq,
    (kinds, reader): (EventTypeFilter, QuestionReader),
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let ended = Arc::clone(app).connection_end(caller.clone());
    let entries = app.engine.follow(execution, after);
    let lines =
        entries.take_while(|entry| std::future::ready(entry.is_ok())).filter_map(move |entry| {
            let wanted = entry.ok().filter(|entry| kinds.has(&entry.event));
            let line = wanted.map(|entry| {
                (entry.seq, protocols::executor::outbound::entry_for(&entry, &reader))
            });
            std::future::ready(line)
        });
    let events = in_turns(lines, |(_, line)| line.len())
        .map(|(seq, line)| Ok(Event::default().id(seq.to_string()).data(line)));
    events.take_until(Box::pin(ended))
}

/// Where to continue: after the last event that the client received.
fn after(query: &QueryMembers, headers: &HeaderMap) -> Result<Seq, RequestError> {
    let from_query = query.get::<u64>("after", "the number of an event")?;
    let from_header = headers.get("last-event-id").map(|header| {
        let number = header.to_str().ok().and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| {
            RequestError::bad_request("Last-Event-ID must be the number of an event.")
        })
    });
    let after = from_header.transpose()?.or(from_query).unwrap_or(0);
    Ok(Seq(after))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepts.flat_map(|accept| accept.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}
