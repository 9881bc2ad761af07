//! WebSockets and event streams, counted by caller: each may last for days, and one caller must not use all slots.

use super::refusal::ConnectionRefusal;
use axum::http::header::{ACCEPT, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method};
use lifecycle::CallerName;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The streams of all callers.
#[derive(Debug)]
pub(super) struct CallerStreams {
    /// Callers with at least one stream.
    open: Mutex<HashMap<CallerName, usize>>,
    per_caller_max: usize,
}

/// One stream of one caller, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPlace {
    streams: Arc<CallerStreams>,
    caller: CallerName,
}

impl CallerStreams {
    pub(super) fn new(per_caller_max: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), per_caller_max })
    }

    pub(super) fn admit_stream(
        self: &Arc<Self>,
        caller: &CallerName,
    ) -> Result<StreamPlace, ConnectionRefusal> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let n_open = open.get(caller).copied().unwrap_or(0);
        if n_open >= self.per_caller_max {
            return Err(ConnectionRefusal::Caller(self.per_caller_max));
        }
        open.insert(caller.clone(), n_open + 1);
        Ok(StreamPlace { streams: Arc::clone(self), caller: caller.clone() })
    }

    /// The number of streams.
    pub(super) fn n_open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.caller) {
            Some(n_open) if *n_open > 1 => *n_open -= 1,
            Some(_) | None => drop(open.remove(&self.caller)),
        }
    }
}

/// Whether a request asks for a WebSocket or an event stream, whose answer occupies its connection. `POST /mcp` is
/// not one: its answer ends with the program that it started.
pub(crate) fn opens_stream(parts: &Parts) -> bool {
    let says = |header: HeaderName, word: &str| contains(&parts.headers, &header, word);
    let path = parts.uri.path();
    let is_session_stream = path.starts_with("/sessions/") && path.ends_with("/stream");
    match parts.method {
        Method::GET => {
            says(UPGRADE, "websocket") || says(ACCEPT, "text/event-stream") || is_session_stream
        }
        Method::POST => path == "/sessions",
        _ => false,
    }
}

fn contains(headers: &HeaderMap, header: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.into_iter().any(|value| value.to_ascii_lowercase().contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_so_many_streams_and_another_one_as_many() {
        let streams = CallerStreams::new(2);
        let (ann, bob) = (CallerName("ann".into()), CallerName("bob".into()));
        let first = streams.admit_stream(&ann).unwrap();
        let _second = streams.admit_stream(&ann).unwrap();
        assert_eq!(streams.admit_stream(&ann).unwrap_err(), ConnectionRefusal::Caller(2));
        let _other = streams.admit_stream(&bob).unwrap();
        assert_eq!(streams.n_open(), 3);
        drop(first);
        let _third = streams.admit_stream(&ann).unwrap();
        assert_eq!(streams.n_open(), 3);
    }

    #[test]
    fn requests_whose_answers_go_on_are_known_before_they_are_answered() {
        type Case<'c> = (&'c str, &'c str, &'c [(&'c str, &'c str)], bool);
        let cases: [Case<'_>; 9] = [
            ("GET", "/exec", &[("upgrade", "websocket")], true),
            ("GET", "/any", &[("upgrade", "WebSocket")], true),
            ("GET", "/api/questions", &[("accept", "text/event-stream")], true),
            ("GET", "/api/questions", &[("accept", "application/json")], false),
            ("GET", "/sessions/s/stream", &[], true),
            ("POST", "/sessions", &[], true),
            ("POST", "/mcp", &[("accept", "application/json, text/event-stream")], false),
            ("GET", "/mcp", &[("accept", "text/event-stream")], true),
            ("GET", "/readyz", &[], false),
        ];
        for (method, path, headers, expected) in cases {
            let mut request = axum::http::Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            assert_eq!((method, path, opens_stream(&parts)), (method, path, expected));
        }
    }
}
