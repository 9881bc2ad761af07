//! Quotas: how much one caller may use at a time, how it is counted, and the text of a refusal.

use crate::engine_fixture::{House, me, value};
use crate::repl_client::{self, Spoken};
use crate::server_fixture::{self, Served};
use engine::{Error, ManualClock, QuotaSettings};
use futures_util::{SinkExt as _, StreamExt as _};
use lifecycle::{
    Event, ExecutionLimits, ExecutionOutcome, QuotaKind, QuotaLimits, Rejection, Timestamp,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::ListFilter;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

const ASKS: &str = "return (await tools.demo.ask({ text: 'may I?' })).approved";

const SLEEPS: &str = "await tools.demo.sleep({ ms: 600_000 })";

const PLENTY: QuotaLimits = QuotaLimits {
    running_max: 1_000,
    waiting_max: 1_000,
    cpu_seconds_per_hour_max: 1_000,
    held_runners_max: 1_000,
};

fn settings(usual: QuotaLimits) -> QuotaSettings {
    QuotaSettings { usual, ..QuotaSettings::default() }
}

async fn submit(house: &House, source: &str) -> Result<lifecycle::ExecutionId, Rejection> {
    let convention = lifecycle::ValueConvention::ExplicitReturn;
    let program = lifecycle::Program { source: source.to_owned(), convention };
    let start =
        engine::ExecutionStart { program, caller: me(), limits: ExecutionLimits::default() };
    match house.engine.submit(start).await {
        Ok(execution) => Ok(execution),
        Err(Error::Rejected(rejection)) => Err(rejection),
        Err(Error::Fault(fault)) => panic!("{fault}"),
    }
}

fn reached(quota: QuotaKind, max: u64) -> Rejection {
    Rejection::QuotaReached { quota, max }
}

/// The numbers of executions of `me` that count as running and as waiting.
fn counted(house: &House) -> (u64, u64) {
    let report = house.engine.quotas().report();
    let line = report.iter().find(|line| line.caller == Some(me()));
    line.map_or((0, 0), |line| (line.used[&QuotaKind::Running], line.used[&QuotaKind::Waiting]))
}

async fn until_counted(house: &House, expected: (u64, u64)) {
    while counted(house) != expected {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn n_listed(house: &House) -> usize {
    let filter = ListFilter { phases: vec![], caller: None, after: None, n_max: 100 };
    house.engine.list_executions(filter).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_starts_for_one_place_one_is_admitted_and_the_others_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = QuotaLimits { running_max: 1, ..PLENTY };
    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    let submitted = futures_util::future::join_all((0..20).map(|_| submit(&house, SLEEPS))).await;
    let (admitted, refused): (Vec<_>, Vec<_>) = submitted.into_iter().partition(Result::is_ok);
    assert_eq!(admitted.len(), 1);
    assert!(refused.iter().all(|one| *one == Err(reached(QuotaKind::Running, 1))), "{refused:?}");
    assert_eq!(n_listed(&house).await, 1);
    let report = house.engine.quotas().report();
    assert_eq!(report[0].refused, [(QuotaKind::Running, 19)].into());
    // The place is free as soon as the end is known.
    let running = admitted.into_iter().next().unwrap().unwrap();
    house.engine.cancel(running, me()).await.unwrap();
    for _ in 0..20 {
        let execution = submit(&house, "return 1").await.unwrap();
        assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "1");
    }
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_that_wait_are_counted_from_the_journal_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = QuotaLimits { waiting_max: 2, ..PLENTY };
    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    let first = submit(&house, ASKS).await.unwrap();
    let second = submit(&house, ASKS).await.unwrap();
    let question = house.question(first).await;
    house.question(second).await;
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Waiting, 2)));
    house.close().await;

    let house = House::open(folder.path(), |config| config.quotas = settings(quotas)).await;
    assert_eq!(counted(&house), (0, 2));
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Waiting, 2)));
    // A waiting execution may still end while the quota is exceeded.
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(first).await.unwrap()), "true");
    assert_eq!(counted(&house), (0, 1));
    submit(&house, "return 1").await.unwrap();
    house.engine.cancel(second, me()).await.unwrap();
    until_counted(&house, (0, 0)).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_its_timer_counts_as_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let quotas = QuotaLimits { running_max: 1, ..PLENTY };
    let (house, clock) =
        House::wound(folder.path(), |config| config.quotas = settings(quotas)).await;
    let sleeps = "await new Promise((done) => setTimeout(done, 60_000)); return 1";
    let execution = submit(&house, sleeps).await.unwrap();
    until_counted(&house, (0, 1)).await;
    clock.advance(Duration::from_mins(1));
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "1");
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fails_loses_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |config| config.quotas = settings(PLENTY)).await;
    let execution = submit(&house, ASKS).await.unwrap();
    let question = house.question(execution).await;
    house.mischief.full.store(true, Ordering::SeqCst);
    let answer = lifecycle::Answer::Accept { content: None };
    house.engine.answer_question(question.id, answer, me()).await.unwrap_err();
    house.mischief.full.store(false, Ordering::SeqCst);
    until_counted(&house, (0, 1)).await;
    house.accept(&question).await;
    assert_eq!(value(&house.engine.outcome(execution).await.unwrap()), "true");
    assert_eq!(counted(&house), (0, 0));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_is_charged_and_a_restart_does_not_forget_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
    let quotas = QuotaLimits { cpu_seconds_per_hour_max: 1, ..PLENTY };
    let open =
        || House::open_noting(folder.path(), &clock, |config| config.quotas = settings(quotas));
    let house = open().await;
    let limits = ExecutionLimits { cpu_ms_max: 1_100, ..ExecutionLimits::default() };
    let ExecutionOutcome::Failed(_) = house.run("for (;;) {}", limits).await else {
        panic!("it ended")
    };
    let refused = || Err(reached(QuotaKind::CpuSeconds, 1));
    assert_eq!(submit(&house, "return 1").await, refused());
    house.close().await;

    let house = open().await;
    assert_eq!(submit(&house, "return 1").await, refused());
    clock.advance(Duration::from_mins(61));
    submit(&house, "return 1").await.unwrap();
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_does_not_use_the_places_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut quotas = settings(PLENTY);
    quotas.callers.insert(me(), QuotaLimits { running_max: 1, ..PLENTY });
    let house = House::open(folder.path(), |config| config.quotas = quotas).await;
    let mine = submit(&house, SLEEPS).await.unwrap();
    house.until(mine, |event| matches!(event, Event::CallDispatched { .. })).await;
    assert_eq!(submit(&house, "return 1").await, Err(reached(QuotaKind::Running, 1)));
    let embedders = house.engine.run("return 2").await.unwrap();
    assert_eq!(value(&house.engine.outcome(embedders).await.unwrap()), "2");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_refuses_in_its_own_words_and_metrics_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("airlock.toml");
    let text = "[quotas]\nrunning_max = 1\nheld_runners_max = 1\n[quotas.callers.admin]\nrunning_max = 5\n";
    std::fs::write(&config, text).unwrap();
    let more = ["--config", config.to_str().unwrap()];
    let served = Served::start(&folder.path().join("data"), &more);
    let agent = served.client("run");
    let sentence = "this caller has reached its quota running_max of 1 running executions; wait until one has ended, or \
                    cancel one";
    let program = json!({ "code": SLEEPS }).to_string();
    assert_eq!(agent.post("/api/executions?wait=0", &program).status, 202);

    let refused = agent.post("/api/executions?wait=0", &program);
    let body: Value = serde_json::from_str(&refused.body).unwrap();
    let expected = json!({
        "_tag": "QuotaReachedError",
        "code": "quota_reached",
        "message": format!("Nothing was started: {sentence}."),
    });
    assert_eq!((refused.status, refused.header("retry-after"), body), (429, Some("1"), expected));

    let session = agent.post("/sessions", &json!({ "code": "return 1" }).to_string());
    let body: Value = serde_json::from_str(&session.body).unwrap();
    let expected = json!({
        "code": "QUOTA_REACHED",
        "message": format!("The session was not started: {sentence}."),
    });
    assert_eq!((session.status, body), (429, expected));

    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "execute", "arguments": { "code": "return 1" } } });
    let accept =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let told = agent.send("POST", "/mcp", &accept, &call.to_string());
    assert!(told.body.contains(sentence), "{told:?}");

    let metrics = served.client("admin").get("/metrics").body;
    for line in [
        "airlock_caller_executions{caller=\"run\",state=\"running\"} 1",
        "airlock_quota_refusals_total{caller=\"run\",quota=\"running_max\"} 3",
    ] {
        assert!(metrics.lines().any(|seen| seen == line), "{line}\n{metrics}");
    }
    let another =
        served.client("admin").post("/api/executions", &json!({ "code": "return 3" }).to_string());
    assert_eq!(another.status, 200, "{another:?}");
}

// ---- Runners that channels and sessions hold ----

/// Reached only if an event never happens.
const PATIENCE: Duration = Duration::from_secs(60);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn configured(folder: &Path, text: &str, more: &[&str]) -> Served {
    let config = folder.join("named.toml");
    std::fs::write(&config, text).unwrap();
    let more: Vec<_> = ["--config", config.to_str().unwrap()].iter().chain(more).copied().collect();
    Served::start(&folder.join("data"), &more)
}

/// Opens a WebSocket with a token, or returns the status and the body of the refusal.
async fn open(served: &Served, token: &str, path: &str) -> Result<Socket, (u16, Value)> {
    let url = format!("{}{path}", served.url.replacen("http", "ws", 1));
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {}", served.client(token).secret);
    request.headers_mut().insert("Authorization", bearer.parse().unwrap());
    match tokio_tungstenite::connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(SocketError::Http(response)) => {
            let body = serde_json::from_slice(response.body().as_deref().unwrap()).unwrap();
            Err((response.status().as_u16(), body))
        }
        Err(error) => panic!("{error}"),
    }
}

/// Opens a channel to the runner.
async fn channel(served: &Served, token: &str) -> Socket {
    open(served, token, "/execbox").await.unwrap()
}

/// Orders a program on a channel that runs several concurrently.
async fn order(channel: &mut Socket, id: &str, code: &str, timeout_ms: u64) {
    let options = json!({ "timeoutMs": timeout_ms, "memoryLimitBytes": 64 << 20, "maxLogLines": 10,
        "maxLogChars": 1_000, "multiplex": true });
    let execute =
        json!({ "type": "execute", "id": id, "code": code, "options": options, "providers": [] });
    channel.send(Message::Text(execute.to_string().into())).await.unwrap();
}

/// The next message of this type on a channel.
async fn until(channel: &mut Socket, kind: &str) -> Value {
    let looked = async {
        loop {
            let Message::Text(text) = channel.next().await.unwrap().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["type"] == kind {
                return message;
            }
        }
    };
    tokio::time::timeout(PATIENCE, looked).await.expect(kind)
}

fn has_metric(served: &Served, line: &str) -> bool {
    served.client("admin").get("/metrics").body.lines().any(|seen| seen == line)
}

const WAITS: &str = "await new Promise((done) => setTimeout(done, 600_000))";

#[tokio::test(flavor = "multi_thread")]
async fn channels_their_further_programs_and_sessions_share_one_quota_of_held_runners() {
    let folder = tempfile::tempdir().unwrap();
    let served = configured(folder.path(), "[quotas]\nheld_runners_max = 1\n", &[]);
    let sentence = "this caller has reached its quota held_runners_max of 1 held runners; close an execbox channel or a \
                    REPL session";
    let mut first = channel(&served, "run").await;
    for path in ["/execbox", "/repl"] {
        let (status, body) = open(&served, "run", path).await.unwrap_err();
        assert_eq!((status, &body["code"]), (429, &json!("quota_reached")), "{path}");
        assert!(body["message"].as_str().unwrap().contains(sentence), "{path}: {body}");
    }
    order(&mut first, "a", WAITS, 60_000).await;
    until(&mut first, "started").await;
    order(&mut first, "b", "1", 60_000).await;
    let refused = until(&mut first, "done").await;
    let expected = json!({ "code": "internal_error", "message": sentence });
    assert_eq!((&refused["id"], &refused["error"]), (&json!("b"), &expected));
    let refusals = "airlock_quota_refusals_total{caller=\"run\",quota=\"held_runners_max\"} 3";
    assert!(has_metric(&served, refusals));
    assert!(has_metric(&served, "airlock_caller_held_runners{caller=\"run\"} 1"));
    let others = channel(&served, "admin").await;
    drop((first, others));
    // The place is free again once the server has noticed that the host disconnected.
    loop {
        if open(&served, "run", "/repl").await.is_ok() {
            break;
        }
    }
    served.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_of_a_channel_is_charged_and_refuses_its_next_program() {
    let folder = tempfile::tempdir().unwrap();
    let served = configured(folder.path(), "[quotas]\ncpu_seconds_per_hour_max = 1\n", &[]);
    let sentence = "this caller has reached its quota cpu_seconds_per_hour_max of 1 CPU seconds within an hour; try again \
                    later";
    let mut channel = channel(&served, "run").await;
    let refused = loop {
        order(&mut channel, "a", "for (;;) {}", 400).await;
        let done = until(&mut channel, "done").await;
        if done["error"]["code"] != "timeout" {
            break done;
        }
    };
    assert_eq!(refused["error"], json!({ "code": "internal_error", "message": sentence }));
    let program = json!({ "code": "return 1" }).to_string();
    assert_eq!(served.client("run").post("/api/executions", &program).status, 429);
    assert_eq!(open(&served, "run", "/repl").await.unwrap_err().0, 429);
    assert_eq!(served.client("admin").post("/api/executions", &program).status, 200);
    served.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_of_a_session_is_charged_and_ends_its_watches() {
    let folder = tempfile::tempdir().unwrap();
    let served = configured(folder.path(), "[quotas]\ncpu_seconds_per_hour_max = 1\n", &[]);
    let mut repl = repl_client::spoken(&served).await;
    repl.ask(json!({ "type": "command_call", "name": "nothing", "args": {} })).await;
    let watch = json!({ "type": "subscribe", "code": "7", "intervalFrames": 1, "limit": 0 });
    let watch = repl.send(watch).await;
    repl.answer(&watch).await;
    let busy = json!({ "type": "eval", "code": "for (;;) {}", "timeoutMs": 400 });
    let refused = loop {
        let frame = repl.ask(busy.clone()).await;
        if frame["error"]["code"] != "evalTimeout" {
            break frame;
        }
    };
    let code = |frame: &Value| frame["error"]["code"].clone();
    assert_eq!(
        (code(&refused), &refused["error"]["kind"]),
        (json!("quotaReached"), &json!("busy"))
    );
    let ended = last_of_watch(&mut repl, &watch).await;
    assert_eq!((code(&ended), &ended["final"]), (json!("quotaReached"), &json!(true)));
    let complete = json!({ "type": "complete", "code": "Math.", "cursorPos": 5 });
    assert_eq!(code(&repl.ask(complete).await), "quotaReached");
    served.stop();
}

async fn last_of_watch(repl: &mut Spoken, id: &str) -> Value {
    loop {
        let frame = repl.answer(id).await;
        if frame["type"] == "subscribe_error" {
            return frame;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_channels_wait_in_its_own_queue() {
    let folder = tempfile::tempdir().unwrap();
    let served = configured(folder.path(), "", &["--memory-budget", "128MiB"]);
    let mut many = vec![];
    for _ in 0..4 {
        many.push(channel(&served, "run").await);
    }
    for (n, channel) in many.iter_mut().enumerate() {
        order(channel, "a", WAITS, 600_000).await;
        match n {
            0 | 1 => drop(until(channel, "started").await),
            _ => {
                let waiting = format!("airlock_runners_waiting {}", n - 1);
                server_fixture::wait_for(|| has_metric(&served, &waiting).then_some(()));
            }
        }
    }
    let mut other = channel(&served, "admin").await;
    order(&mut other, "b", "20 + 22", 60_000).await;
    server_fixture::wait_for(|| has_metric(&served, "airlock_runners_waiting 3").then_some(()));
    drop(many.remove(0));
    assert_eq!(until(&mut other, "done").await["result"], 42);
    served.stop();
}
