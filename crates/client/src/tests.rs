//! The client against a scripted server.

use crate::follow::RetryPolicy;
use crate::{
    AirlockClient, Error, EventKind, EventOutcome, ExecutionEvent, ExecutionFilter, ExecutionRef,
    ExecutionStanding, ExecutionStatus,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use lifecycle::{
    Answer, CallId, CallOutcome, CallerName, Entry, ExecutionOutcome, Failure, FailureCode, Json,
    LimitKind, LogLevel, Question, QuestionKind, Seq, TimerId, Timestamp,
};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const RUN: &str = "run_00000000-0000-0000-0000-000000000001";
const ASKED: &str = "exec_00000000-0000-0000-0000-000000000002";

/// Runs a server that gives one answer per connection and then closes it. Returns the requests.
async fn speak(listener: TcpListener, answers: &[String]) -> Vec<String> {
    let mut requests = vec![];
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        requests.push(request(&mut stream).await);
        // In small pieces, as on a slow network.
        for piece in answer.as_bytes().chunks(7) {
            stream.write_all(piece).await.unwrap();
        }
    }
    requests
}

async fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0; 1];
    while !text.ends_with("\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).await.unwrap(), 1, "hung up after {text}");
        text.push(char::from(byte[0]));
    }
    let mut body = vec![0; header(&text, "content-length").map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    text + std::str::from_utf8(&body).unwrap()
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = request.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(header, _)| *header == name).map(|(_, value)| value)
}

fn says(status: &str, body: &str) -> String {
    let n_bytes = body.len();
    format!(
        "HTTP/1.1 {status}\r\nairlock-execution: {RUN}\r\ncontent-type: application/json\r\n\
         content-length: {n_bytes}\r\n\r\n{body}"
    )
}

/// Without a length: it ends when the connection does.
fn streams(lines: &[&str]) -> String {
    let mut text = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n:\n\n".to_owned();
    lines.iter().for_each(|line| text.push_str(&format!("id: 0\ndata: {line}\n\n")));
    text
}

fn log(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"at":0,"type":"log","level":"log","line":"{seq}"}}"#)
}

fn finished(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"at":0,"type":"finished","status":"completed","activeMs":1}}"#)
}

async fn listen() -> (TcpListener, AirlockClient) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let patience = RetryPolicy {
        n_attempts_max: 3,
        delay: Duration::from_millis(1),
        delay_max: Duration::from_millis(1),
        silence_max: Duration::from_secs(60),
    };
    let mut client = AirlockClient::new(&url, Some("alk_x")).unwrap();
    client.patience = patience;
    (listener, client)
}

fn id(text: &str) -> ExecutionRef {
    text.parse().unwrap()
}

async fn seqs(client: &AirlockClient, after: u64) -> Result<Vec<u64>, Error> {
    client.follow(id(RUN), Seq(after)).map_ok(|event| event.seq.0).try_collect().await
}

#[tokio::test]
async fn a_follower_that_loses_its_connection_hears_each_event_once() {
    let (listener, client) = listen().await;
    let half = streams(&[&log(4), &log(5)]) + "id: 6\ndata: {\"seq\":6,";
    let script = [
        streams(&[&log(2), &log(3), &log(4)]),
        half,
        says("503 Service Unavailable", r#"{"_tag":"ShuttingDownError","message":"Stopping."}"#),
        "HTTP/1.1 200 O".to_owned(),
        streams(&[&log(5), &log(6), &finished(7), &log(8)]),
    ];
    let (heard, requests) = tokio::join!(seqs(&client, 1), speak(listener, &script));
    assert_eq!(heard, Ok(vec![2, 3, 4, 5, 6, 7]));
    let asked: Vec<_> = requests
        .iter()
        .map(|request| (request.lines().next().unwrap(), header(request, "last-event-id").unwrap()))
        .collect();
    let line = |after: u64| format!("GET /api/executions/{RUN}/events?after={after} HTTP/1.1");
    let (one, four, five) = (line(1), line(4), line(5));
    assert_eq!(
        asked,
        [
            (one.as_str(), "1"),
            (four.as_str(), "4"),
            (five.as_str(), "5"),
            (five.as_str(), "5"),
            (five.as_str(), "5")
        ]
    );
}

#[tokio::test]
async fn a_follower_gives_up_when_it_hears_nothing_new() {
    let (listener, client) = listen().await;
    let script = [streams(&[&log(1)]), streams(&[&log(1)]), streams(&[]), streams(&[])];
    let (heard, _) =
        tokio::join!(client.follow(id(RUN), Seq(0)).collect::<Vec<_>>(), speak(listener, &script));
    let heard: Vec<_> = heard.into_iter().map(|event| event.map(|event| event.seq.0)).collect();
    assert_eq!(heard, [Ok(1), Err(client.broke_off("the events ended before the execution did"))]);
}

#[tokio::test]
async fn a_follower_that_never_got_through_is_told_at_once() {
    let (listener, client) = listen().await;
    drop(listener);
    assert!(matches!(seqs(&client, 0).await, Err(Error::CannotConnect { .. })));
    let (listener, client) = listen().await;
    let script = [says("404 Not Found", r#"{"_tag":"ExecutionNotFoundError","message":"No."}"#)];
    let (heard, _) = tokio::join!(seqs(&client, 0), speak(listener, &script));
    let tag = "ExecutionNotFoundError".into();
    assert_eq!(heard, Err(Error::Refused { status: 404, tag, message: "No.".into() }));
}

#[tokio::test]
async fn there_is_nothing_to_hear_after_the_end() {
    let (listener, client) = listen().await;
    let script = ["HTTP/1.1 204 No Content\r\n\r\n".to_owned()];
    let (heard, _) = tokio::join!(seqs(&client, 9), speak(listener, &script));
    assert_eq!(heard, Ok(vec![]));
}

#[tokio::test]
async fn events_that_make_no_sense_end_the_following() {
    for line in ["{", "{}", r#"{"seq":1,"at":0,"type":"log"}"#] {
        let (listener, client) = listen().await;
        let script = [streams(&[line])];
        let (heard, _) = tokio::join!(seqs(&client, 0), speak(listener, &script));
        assert!(matches!(heard, Err(Error::Protocol(_))), "{line}: {heard:?}");
    }
}

#[tokio::test]
async fn an_answer_is_sent_as_it_was_given_and_what_follows_is_read() {
    let (listener, client) = listen().await;
    let script = [says(
        "200 OK",
        &format!(
            r#"{{"status":"paused","text":"…","structured":{{"status":"waiting_for_interaction","executionId":"{ASKED}","interaction":{{"kind":"form","message":"Again?","instructions":"…","address":"tools.demo.ask","args":{{"x": 1}},"requestedSchema":{{"type":"object","properties":{{}}}}}}}}}}"#
        ),
    )];
    let content = Some(Json::parse(r#"{"a": "\ud800"}"#.into()).unwrap());
    let answer = Answer::Accept { content };
    let (told, requests) =
        tokio::join!(client.resume(id(ASKED), &answer), speak(listener, &script));
    assert!(requests[0].starts_with(&format!("POST /api/executions/{ASKED}/resume HTTP/1.1")));
    assert!(
        requests[0].ends_with("\r\n\r\n{\"action\":\"accept\",\"content\":{\"a\": \"\\ud800\"}}")
    );
    assert_eq!(header(&requests[0], "authorization"), Some("Bearer alk_x"));
    assert_eq!(header(&requests[0], "content-type"), Some("application/json"));
    let told = told.unwrap();
    assert_eq!(told.execution.map(ExecutionRef::from), Some(id(RUN)));
    let ExecutionStanding::Asks(asks) = told.standing else { panic!("{:?}", told.standing) };
    assert_eq!((ExecutionRef::from(asks.question), asks.message.as_str()), (id(ASKED), "Again?"));
    assert_eq!(asks.args.unwrap().as_text(), r#"{"x": 1}"#);
}

#[tokio::test]
async fn every_standing_is_understood_and_passed_on_unchanged() {
    let value = |json: &str| Json::parse(json.to_owned()).unwrap();
    let cases = [
        (
            r#"{"status":"completed","text":"1","structured":{"status":"completed","result":[1, 2],"logs":["[log] a"]},"isError":false}"#,
            ExecutionStanding::Completed { result: value("[1, 2]"), logs: vec!["[log] a".into()] },
        ),
        (
            r#"{"status":"completed","text":"","structured":{"status":"completed","result":null,"emitted":2,"logs":[]},"isError":false}"#,
            ExecutionStanding::Completed { result: value("null"), logs: vec![] },
        ),
        (
            r#"{"status":"completed","text":"","structured":{"status":"error","error":"Error: x","logs":[]},"isError":true}"#,
            ExecutionStanding::Failed { error: "Error: x".into(), logs: vec![] },
        ),
        (r#"{"status":"running","executionId":"run_x"}"#, ExecutionStanding::Running),
        (r#"{"status":"parked","executionId":"run_x"}"#, ExecutionStanding::Parked),
    ];
    for (body, standing) in cases {
        let (listener, client) = listen().await;
        let script = [says("200 OK", body)];
        let (told, _) = tokio::join!(client.execution(id(RUN)), speak(listener, &script));
        let told = told.unwrap();
        assert_eq!((told.json.as_text(), told.standing), (body, standing));
    }
}

#[tokio::test]
async fn a_list_is_asked_for_and_read() {
    let (listener, client) = listen().await;
    let line = format!(
        r#"{{"executionId":"{RUN}","status":"paused","caller":"ann","created":5,"last":9,"more":1}}"#
    );
    let script = [says("200 OK", &format!(r#"{{"executions":[{line}],"next":"{RUN}"}}"#))];
    let after = Some(RUN.parse().unwrap());
    let which = ExecutionFilter {
        status: Some(ExecutionStatus::Paused),
        limit: Some(1),
        after,
        ..ExecutionFilter::default()
    };
    let (page, requests) = tokio::join!(client.list_executions(which), speak(listener, &script));
    let query = format!("GET /api/executions?status=paused&limit=1&after={RUN} HTTP/1.1");
    assert_eq!(requests[0].lines().next(), Some(query.as_str()));
    let page = page.unwrap();
    assert_eq!((page.executions.len(), page.next), (1, after));
    let listed = &page.executions[0];
    assert_eq!((listed.status, listed.caller.as_str()), (ExecutionStatus::Paused, "ann"));
    assert_eq!((listed.created, listed.last), (Timestamp(5), Seq(9)));
    assert_eq!(listed.json.as_text(), line);
}

#[tokio::test]
async fn every_no_is_told_apart() {
    let cases = [
        ("401 Unauthorized", "Unauthorized", "does not know this token"),
        ("403 Forbidden", r#"{"_tag":"ForbiddenError","message":"Not you."}"#, "Not you."),
        ("502 Bad Gateway", "<html>no</html>", "502 Bad Gateway <html>no</html>"),
        ("200 OK", "<html>hello</html>", "not what an Airlock server says"),
        ("200 OK", "{}", "not what an Airlock server says: an envelope without structured"),
    ];
    for (status, body, expected) in cases {
        let (listener, client) = listen().await;
        let script = [says(status, body)];
        let (told, _) = tokio::join!(client.cancel(id(RUN)), speak(listener, &script));
        let shown = told.unwrap_err().to_string();
        assert!(shown.contains(expected), "{shown}");
    }
    let (listener, client) = listen().await;
    let script = ["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_owned()];
    let (told, _) = tokio::join!(client.execution(id(RUN)), speak(listener, &script));
    assert!(matches!(told, Err(Error::BrokeOff { .. })), "{told:?}");
}

#[test]
fn the_token_is_never_shown() {
    let client = AirlockClient::new("127.0.0.1:1", Some(" alk_secret\n")).unwrap();
    assert!(!format!("{client:?}").contains("secret"));
    assert!(matches!(AirlockClient::new("127.0.0.1:1", Some("a\nb")), Err(Error::Unusable(_))));
}

fn told(event: lifecycle::Event) -> EventKind {
    let entry = Entry { seq: Seq(3), at: Timestamp(7), event };
    let line = Json::parse(protocols::executor::outbound::entry(&entry)).unwrap();
    let event = ExecutionEvent::read(line.clone()).unwrap();
    assert_eq!((event.seq, event.at, &event.json), (Seq(3), Timestamp(7), &line));
    event.happened
}

#[test]
fn what_the_server_says_of_calls_is_understood() {
    use lifecycle::Event as E;
    let (call, by) = (CallId(2), CallerName("ann".into()));
    let question = ASKED.parse().unwrap();
    let content = Json::parse("{}".into()).unwrap();
    let (tool, args) = (lifecycle::ToolPath::parse("a.b").unwrap(), content.clone());
    let nature = lifecycle::ToolNature { read_only: true, runs: lifecycle::ToolHost::Here };
    let made = E::CallMade { call, tool, args: args.clone(), nature, line: Some(3), alias: None };
    assert_eq!(told(made), EventKind::Call { call, tool: "a.b".into(), args });
    let (kind, message) = (QuestionKind::Approval, "Sure?".into());
    let asked = Question {
        id: question,
        call,
        kind,
        message,
        revision: None,
        editable: false,
        answer_only: false,
    };
    let id = question;
    assert_eq!(
        told(E::CallAsked(asked)),
        EventKind::Question { id, call, message: "Sure?".into() }
    );
    let answer = Answer::Accept { content: Some(content.clone()) };
    let (action, content) = ("accept".into(), Some(content));
    let role = lifecycle::AnswerRole::Client;
    let expected =
        EventKind::Answer { id, call, action, content, by: "ann".into(), role, arguments: None };
    assert_eq!(
        told(E::CallAnswered {
            question,
            call,
            answer,
            by,
            role,
            remember: false,
            arguments: None
        }),
        expected
    );
    assert_eq!(told(E::CallDeferred { call }), EventKind::Deferred { call });
    let admitted = E::CallAdmitted { call, nature, revision: None };
    assert_eq!(told(admitted), EventKind::Admitted { call });
    let dispatched = E::CallDispatched { call, attempt: 1 };
    assert_eq!(told(dispatched), EventKind::Dispatched { call, attempt: 1 });
    let failure = Failure::new(FailureCode::Declined, "No.");
    let null = Some(Json::null());
    let cases = [
        (CallOutcome::Returned { value: null.clone() }, EventOutcome::Completed { result: null }),
        (CallOutcome::Returned { value: None }, EventOutcome::Completed { result: None }),
        (CallOutcome::Failed(failure.clone()), EventOutcome::Failed(failure)),
        (CallOutcome::Unknown, EventOutcome::Unknown),
    ];
    for (outcome, ended) in cases {
        let expected = EventKind::Settled { call, ended };
        assert_eq!(told(E::CallSettled { call, outcome }), expected);
    }
}

#[test]
fn what_the_server_says_of_an_execution_is_understood() {
    use lifecycle::Event as E;
    let timer = TimerId(1);
    assert_eq!(told(E::TimerCleared { timer }), EventKind::TimerCleared { timer });
    assert_eq!(told(E::TimerFired { timer }), EventKind::TimerFired { timer });
    assert_eq!(told(E::TimerSet { timer, due: Timestamp(1) }), EventKind::TimerSet { timer });
    assert_eq!(told(E::Parked), EventKind::Parked);
    let why = "x".to_owned();
    assert_eq!(told(E::RecoveryFailed { why: why.clone() }), EventKind::RecoveryFailed { why });
    let (call, text) = (CallId(1), "half of it".to_owned());
    assert_eq!(
        told(E::CallProgressed { call, text: text.clone() }),
        EventKind::Progress { call, text }
    );
    let limit = LimitKind::Calls;
    assert_eq!(
        told(E::LimitReached { limit }),
        EventKind::LimitReached { limit: limit.to_string() }
    );
    let by = CallerName("ann".into());
    let outcome = ExecutionOutcome::Cancelled { by, reason: None };
    let ended = EventOutcome::Cancelled { by: "ann".into() };
    assert_eq!(
        told(E::Finished { outcome, active_ms: 5, iterations: 0 }),
        EventKind::Finished { ended, active_ms: 5 }
    );
}

#[test]
fn what_only_a_newer_server_says_is_no_mistake() {
    let read =
        |line: &str| ExecutionEvent::read(Json::parse(line.into()).unwrap()).unwrap().happened;
    let kind = "dreamt".to_owned();
    assert_eq!(read(r#"{"seq":1,"at":0,"type":"dreamt","x":[]}"#), EventKind::Other { kind });
    let line = "a".to_owned();
    let log = read(r#"{"seq":1,"at":0,"type":"log","level":"whisper","line":"a"}"#);
    assert_eq!(log, EventKind::Log { level: LogLevel::Log, line });
    let finished = read(
        r#"{"seq":1,"at":0,"type":"finished","status":"failed","error":{"code":"new","message":"m"},"activeMs":1}"#,
    );
    assert!(
        matches!(finished, EventKind::Finished { ended: EventOutcome::Failed(_), .. }),
        "{finished:?}"
    );
}
