//! One connection: its phase, whether its caller is authenticated, and what it holds besides its slot.

use super::limits::ConnectionLimits;
use super::peer::{PeerKey, RequestPeer};
use super::refusal::ConnectionRefusal;
use super::streams::StreamPlace;
use super::table::{AddressPlace, ConnectionTable};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use lifecycle::CallerName;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ConnectionPhase {
    /// At most a part of its first head has arrived.
    FirstHead = 0,
    /// A request is being answered.
    Request = 1,
    /// Its last answer is complete; another request may come.
    Idle = 2,
    /// A WebSocket, or an answer that continues.
    Stream = 3,
}

impl ConnectionPhase {
    pub(crate) const ALL: [(Self, &str); 4] = [
        (Self::FirstHead, "head"),
        (Self::Request, "request"),
        (Self::Idle, "idle"),
        (Self::Stream, "stream"),
    ];

    fn from_number(number: u8) -> Self {
        let found = Self::ALL.into_iter().find(|(phase, _)| *phase as u8 == number);
        found.map_or(Self::Request, |(phase, _)| phase)
    }
}

/// One connection. Its fields change without a lock, because each request changes some.
#[derive(Debug)]
pub(crate) struct ConnectionEntry {
    pub(super) id: u64,
    /// The key that it is counted by; none if it is not limited.
    pub(super) peer: Option<PeerKey>,
    /// Whether it was accepted from the reserve, because all slots were taken.
    is_reserve: bool,
    phase: AtomicU8,
    is_authenticated: AtomicBool,
    /// Whether its client reads too slowly for what is sent.
    is_blocked: AtomicBool,
    /// When its phase changed last, as a number in the order of all changes.
    changed: AtomicU64,
    table: Arc<ConnectionTable>,
    held: Mutex<ConnectionHold>,
    ending: CancellationToken,
    refusal: OnceLock<ConnectionRefusal>,
}

/// Slots that a connection holds for its current request, or for as long as it is a stream.
#[derive(Debug, Default)]
struct ConnectionHold {
    stream: Option<StreamPlace>,
    address: Option<AddressPlace>,
}

/// A connection's slot in the table, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(pub(crate) Arc<ConnectionEntry>);

/// The connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle(pub(crate) Arc<ConnectionEntry>);

impl ConnectionEntry {
    pub(super) fn new(
        (id, is_reserve): (u64, bool),
        peer: Option<PeerKey>,
        table: Arc<ConnectionTable>,
    ) -> Self {
        Self {
            id,
            peer,
            is_reserve,
            phase: AtomicU8::new(ConnectionPhase::FirstHead as u8),
            is_authenticated: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            changed: AtomicU64::new(id),
            table,
            held: Mutex::default(),
            ending: CancellationToken::new(),
            refusal: OnceLock::new(),
        }
    }

    pub(crate) fn phase(&self) -> ConnectionPhase {
        ConnectionPhase::from_number(self.phase.load(Ordering::Relaxed))
    }

    pub(crate) const fn is_reserve(&self) -> bool {
        self.is_reserve
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Records that its caller is authenticated.
    pub(crate) fn authenticate(&self) {
        if !self.is_authenticated() {
            self.is_authenticated.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        self.table.limits()
    }

    /// Its rank in the order in which connections are displaced; none for those that may not be. Connections of
    /// unauthenticated callers come first: unfinished heads, then the others. Within each class, the one whose phase
    /// changed longest ago comes first.
    pub(super) fn rank(&self) -> Option<(u8, u64)> {
        let class = match (self.phase(), self.is_authenticated()) {
            (ConnectionPhase::FirstHead, _) => 0,
            (ConnectionPhase::Request | ConnectionPhase::Idle, false) => 1,
            (ConnectionPhase::Idle, true) if !self.is_blocked.load(Ordering::Relaxed) => 2,
            (ConnectionPhase::Request | ConnectionPhase::Idle, true)
            | (ConnectionPhase::Stream, _) => return None,
        };
        Some((class, self.changed.load(Ordering::Relaxed)))
    }

    fn enter_phase(&self, phase: ConnectionPhase) {
        self.changed.store(self.table.next_change(), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Records that the head of a request has arrived.
    pub(crate) fn begin_request(&self) {
        self.enter_phase(ConnectionPhase::Request);
    }

    /// Counts the request for the peer that a trusted proxy names, if it named one.
    pub(crate) fn admit_peer(&self, peer: RequestPeer) -> Result<(), ConnectionRefusal> {
        let Some(key) = peer.key() else { return Ok(()) };
        let place = self.table.admit_request(key)?;
        self.held().address = Some(place);
        Ok(())
    }

    /// Counts a WebSocket or an event stream for its caller.
    pub(crate) fn admit_stream(&self, caller: &CallerName) -> Result<(), ConnectionRefusal> {
        let mut held = self.held();
        if held.stream.is_none() {
            held.stream = Some(self.table.admit_stream(caller)?);
        }
        Ok(())
    }

    /// The origin of the request.
    pub(crate) fn request_peer(&self, peer: SocketAddr, headers: &HeaderMap) -> RequestPeer {
        RequestPeer::from_request(self.table.limits(), peer, headers)
    }

    /// Follows an answer to its end; an upgraded connection ends only when it is closed.
    pub(crate) fn follow(self: &Arc<Self>, mut response: Response) -> Response {
        if self.is_reserve {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.enter_phase(ConnectionPhase::Stream);
            return response;
        }
        if response.body().size_hint().exact().is_some() {
            self.end_request();
            return response;
        }
        self.enter_phase(ConnectionPhase::Stream);
        let connection = RequestEnd(Arc::clone(self));
        response.map(|body| Body::new(FollowedBody { body, _end: connection }))
    }

    fn end_request(&self) {
        *self.held() = ConnectionHold::default();
        self.enter_phase(ConnectionPhase::Idle);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, ConnectionHold> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether the client accepts what is sent.
    pub(crate) fn set_blocked(&self, is_blocked: bool) {
        if self.is_blocked.load(Ordering::Relaxed) != is_blocked {
            self.is_blocked.store(is_blocked, Ordering::Relaxed);
        }
    }

    /// Ends the connection for this reason.
    pub(crate) fn end_connection(&self, refusal: ConnectionRefusal) {
        if self.refusal.set(refusal).is_ok() {
            self.table.count_refusal().count(refusal);
        }
        self.ending.cancel();
    }

    /// Waits until it is to end.
    pub(crate) async fn ended(&self) {
        self.ending.cancelled().await;
    }

    /// The reason for its end, if its client has received no answer yet and can still be informed.
    pub(crate) fn last_words(&self) -> Option<ConnectionRefusal> {
        self.refusal.get().copied().filter(|_| self.phase() == ConnectionPhase::FirstHead)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.table.remove(&self.0);
        // Requests may hold the entry slightly longer than the socket.
        *self.0.held() = ConnectionHold::default();
    }
}

/// Ends a request when it is dropped.
struct RequestEnd(Arc<ConnectionEntry>);

impl Drop for RequestEnd {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// A body whose end is recorded.
struct FollowedBody {
    body: Body,
    _end: RequestEnd,
}

impl HttpBody for FollowedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
