//! A dozen metrics in Prometheus' text format. Written without a library: a recorder and an exporter would add ten
//! packages for what one map holds.

mod callers;
mod capacity;

use crate::app::AppState;
use crate::auth::Caller;
use crate::edge::ConnectionTable;
use crate::error::RequestError;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use engine::{CallerReport, CapacityUse};
use lifecycle::{ExecutionOutcome, ExecutionPhase};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Paused executions are counted up to this number.
const PAUSED_COUNTED_MAX: usize = 10_000;

pub(crate) struct ServerMetrics {
    since: Instant,
    started: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    /// By route, then by method and status: all three from short static lists.
    requests: Mutex<BTreeMap<String, RequestCounts>>,
}

/// The number of requests, by method and status.
type RequestCounts = BTreeMap<(&'static str, u16), u64>;

impl Default for ServerMetrics {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            started: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            requests: Mutex::default(),
        }
    }
}

impl ServerMetrics {
    /// The uptime of the server.
    pub(crate) fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn count_start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_end(&self, outcome: &ExecutionOutcome) {
        let counter = match outcome {
            ExecutionOutcome::Completed { .. } => &self.completed,
            ExecutionOutcome::Failed(_) => &self.failed,
            ExecutionOutcome::Cancelled { .. } => &self.cancelled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_request(&self, method: &'static str, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly always present: a key is created only for the first request.
        let of_route = match requests.get_mut(route) {
            Some(of_route) => of_route,
            None => requests.entry(route.to_owned()).or_default(),
        };
        *of_route.entry((method, status)).or_default() += 1;
    }

    fn render(&self, now: &CurrentGauges, connections: &ConnectionTable) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, u64)]| {
            write_family(&mut text, (name, kind, help), lines);
        };
        let one = |value: u64| vec![(String::new(), value)];
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let ended = [
            ("completed", &self.completed),
            ("failed", &self.failed),
            ("cancelled", &self.cancelled),
        ];
        let ended = ended.map(|(outcome, n)| (format!("{{outcome=\"{outcome}\"}}"), count(n)));
        let requests: Vec<_> = {
            let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let line = |route: &str, (method, status): &(&str, u16), n: u64| {
                (format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}"), n)
            };
            let of_route = |(route, counts): (&String, &RequestCounts)| {
                counts.iter().map(|(key, n)| line(route, key, *n)).collect::<Vec<_>>()
            };
            requests.iter().flat_map(of_route).collect()
        };
        family(
            "airlock_executions_started_total",
            "counter",
            "Executions started here.",
            &one(count(&self.started)),
        );
        family(
            "airlock_executions_finished_total",
            "counter",
            "Executions whose end was reported here, by outcome.",
            &ended,
        );
        family("airlock_executions_live", "gauge", "Executions in memory.", &one(now.live));
        family(
            "airlock_executions_paused",
            "gauge",
            "Executions that wait for people.",
            &one(now.paused),
        );
        family("airlock_runners_live", "gauge", "Runners in use or warm.", &one(now.runners));
        family("airlock_runners_idle", "gauge", "Runners that wait for a program.", &one(now.idle));
        family(
            "airlock_runners_waiting",
            "gauge",
            "Programs that wait for a runner.",
            &one(now.waiting),
        );
        let families = callers::families(&now.callers).into_iter();
        for (name, kind, help, lines) in families.chain(capacity::families(&now.capacity)) {
            family(name, kind, help, &lines);
        }
        family("airlock_http_requests_total", "counter", "Requests answered.", &requests);
        family(
            "airlock_uptime_seconds",
            "gauge",
            "Seconds since the start.",
            &one(self.since.elapsed().as_secs()),
        );
        write_connections(&mut text, connections);
        text
    }
}

fn write_family(
    text: &mut String,
    (name, kind, help): (&str, &str, &str),
    lines: &[(String, u64)],
) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// Writes the counters of the edge.
fn write_connections(text: &mut String, connections: &ConnectionTable) {
    let labelled = |label: &str, counts: &[(&str, u64)]| {
        counts.iter().map(|(name, n)| (format!("{{{label}=\"{name}\"}}"), *n)).collect::<Vec<_>>()
    };
    let one = |value: u64| vec![(String::new(), value)];
    let families = [
        (
            ("airlock_connections", "gauge", "Connections, by what they do."),
            labelled("state", &connections.counts()),
        ),
        (
            ("airlock_connections_accepted_total", "counter", "Connections accepted."),
            one(connections.n_accepted()),
        ),
        (
            (
                "airlock_connections_refused_total",
                "counter",
                "Connections and streams refused or closed, by the limit.",
            ),
            labelled("reason", &connections.count_refusal().counts()),
        ),
        (
            ("airlock_caller_streams", "gauge", "WebSockets and event streams of callers."),
            one(connections.n_streams()),
        ),
    ];
    for (family, lines) in families {
        write_family(text, family, &lines);
    }
}

/// Values that are not counted but read when the metrics are requested.
struct CurrentGauges {
    live: u64,
    paused: u64,
    runners: u64,
    idle: u64,
    waiting: u64,
    /// The callers' use of their quotas.
    callers: Vec<CallerReport>,
    /// What was done to free capacity.
    capacity: CapacityUse,
}

/// `GET /metrics`.
pub(crate) async fn metrics(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    caller.may_administer().map_err(|denied| RequestError::denied(denied, ""))?;
    let paused = app.engine.count(ExecutionPhase::Paused, PAUSED_COUNTED_MAX).await?;
    let load = app.engine.load();
    let now = CurrentGauges {
        live: app.engine.n_live() as u64,
        paused: paused as u64,
        runners: load.live_runners as u64,
        idle: load.idle_runners as u64,
        waiting: load.waiting as u64,
        callers: app.engine.quotas().report(),
        capacity: app.engine.capacity_use(),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], app.metrics.render(&now, &app.connections)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::ConnectionLimits;

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let metrics = ServerMetrics::default();
        metrics.count_start();
        metrics.count_end(&ExecutionOutcome::Completed { value: None });
        metrics.count_request("GET", "/api/executions/{id}", 404);
        let (callers, capacity) = (vec![], CapacityUse::default());
        let now = CurrentGauges {
            live: 1,
            paused: 2,
            runners: 3,
            idle: 4,
            waiting: 5,
            callers,
            capacity,
        };
        let table = ConnectionTable::new(ConnectionLimits::default());
        let _open = table.admit_connection("127.0.0.1:1".parse().unwrap()).unwrap();
        let text = metrics.render(&now, &table);
        for line in [
            "# TYPE airlock_executions_started_total counter",
            "airlock_executions_started_total 1",
            "airlock_executions_finished_total{outcome=\"completed\"} 1",
            "airlock_executions_finished_total{outcome=\"failed\"} 0",
            "airlock_runners_waiting 5",
            "airlock_connections{state=\"head\"} 1",
            "airlock_connections{state=\"stream\"} 0",
            "airlock_connections_accepted_total 1",
            "airlock_connections_refused_total{reason=\"address\"} 0",
            "airlock_caller_streams 0",
            "airlock_http_requests_total{method=\"GET\",route=\"/api/executions/{id}\",status=\"404\"} 1",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line}\n{text}");
        }
    }
}
