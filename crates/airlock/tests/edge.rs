//! The network edge of the real binary: which connections are accepted, and where outgoing requests may go.

use crate::server_fixture::{self, Answer, Client, Served, airlock};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server with the given configuration.
fn configured(dir: &Path, text: &str, more: &[&str], variables: &[(&str, &str)]) -> Served {
    let file = dir.join("named.toml");
    std::fs::write(&file, text).unwrap();
    let more: Vec<_> = ["--config", file.to_str().unwrap()].iter().chain(more).copied().collect();
    Served::start_with_variables(&dir.join("data"), &more, Stdio::null(), variables)
}

/// Opens a stream of events, or is refused. Returns the head of the answer and the connection.
fn stream(client: &Client, more: &str) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(&client.address).unwrap();
    let (host, secret) = (&client.address, &client.secret);
    let head = format!(
        "GET /api/questions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {secret}\r\n\
         Accept: text/event-stream\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    (String::from_utf8(head).unwrap(), stream)
}

fn is_open((head, _): &(String, TcpStream)) -> bool {
    head.starts_with("HTTP/1.1 200")
}

#[test]
fn one_callers_streams_leave_places_for_others_and_metrics_count_them() {
    let dir = tempfile::tempdir().unwrap();
    let limits = "[listener]\nconnections_max = 8\nstreams_per_caller_max = 3\n";
    let served = configured(dir.path(), limits, &[], &[]);
    let (run, admin) = (served.client("run"), served.client("admin"));
    let mut open: Vec<_> = (0..3).map(|_| stream(&run, "")).collect();
    assert!(open.iter().all(is_open));
    let (refused, mut rest) = stream(&run, "Connection: close\r\n");
    let mut body = String::new();
    rest.read_to_string(&mut body).unwrap();
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(body.contains("has 3 WebSockets and event streams open, the most"), "{body}");
    // Another request of the same caller is not a stream, and streams are counted per caller.
    assert_eq!(run.get("/api/questions").status, 200);
    let other = stream(&admin, "");
    assert!(is_open(&other));
    let metrics = admin.get("/metrics").body;
    for line in [
        "airlock_caller_streams 4",
        "airlock_connections{state=\"stream\"} 4",
        "airlock_connections_refused_total{reason=\"caller\"} 1",
        "airlock_connections_refused_total{reason=\"places\"} 0",
    ] {
        assert!(metrics.lines().any(|seen| seen == line), "{line}\n{metrics}");
    }
    open.pop();
    loop {
        let again = stream(&run, "");
        if is_open(&again) {
            break;
        }
    }
    served.stop();
}

#[test]
fn health_is_answered_where_there_are_fewer_descriptors_than_half_sent_heads() {
    let dir = tempfile::tempdir().unwrap();
    let plain = airlock(&[]);
    let script = "ulimit -n 300 && exec \"$0\" serve \"$@\"";
    #[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(plain.get_program()).stdin(Stdio::null());
    plain.get_envs().for_each(|(name, _)| {
        command.env_remove(name);
    });
    let served = Served::start_command(command, &dir.path().join("data"), Stdio::null());
    let nobody = served.client_with("nobody");
    let mut halves = vec![];
    for _ in 0..400 {
        let mut half = TcpStream::connect(&nobody.address).unwrap();
        half.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
        halves.push(half);
    }
    for path in ["/readyz", "/healthz"] {
        assert_eq!(nobody.get(path).status, 200, "{path}");
    }
    assert_eq!(served.stop(), Some(0));
}

/// A listener that counts its connections and answers each with 404.
fn counting() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            // The request's content makes no difference.
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    (port, count)
}

/// Adds a source by its address alone.
fn add(admin: &Client, url: &str) -> Answer {
    let body = json!({ "slug": "api", "source": { "url": url } });
    admin.post("/api/sources", &body.to_string())
}

/// The reason why an address is refused as a source.
fn refusal(admin: &Client, url: &str) -> String {
    let answer = add(admin, url);
    assert_ne!(answer.status, 200, "{answer:?}");
    answer.body
}

#[test]
fn no_proxy_of_the_environment_is_asked_and_no_metadata_service_and_not_the_server_itself() {
    let dir = tempfile::tempdir().unwrap();
    let ((proxy, n_proxied), (api, n_asked)) = (counting(), counting());
    let proxy = format!("http://127.0.0.1:{proxy}");
    let names =
        ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"];
    let variables = names.map(|name| (name, proxy.as_str()));
    let served = configured(dir.path(), "", &[], &variables);
    let admin = served.client("admin");
    refusal(&admin, &format!("http://127.0.0.1:{api}/openapi.json"));
    let n_direct = n_asked.load(Ordering::SeqCst);
    assert!(n_direct >= 3, "OpenAPI, GraphQL and MCP were tried: {n_direct}");
    let own = served.url.rsplit(':').next().unwrap();
    for (url, expected) in [
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "link-local or metadata address"),
        ("http://[::ffff:a9fe:a9fe]/".to_owned(), "link-local or metadata address"),
        (format!("http://127.0.0.1:{own}/api/openapi.json"), "where Airlock itself listens"),
        (format!("http://localhost:{own}/mcp"), "where Airlock itself listens"),
    ] {
        let why = refusal(&admin, &url);
        // Once for OpenAPI and once for MCP.
        assert_eq!(why.matches(expected).count(), 2, "{url}: {why}");
    }
    assert_eq!(n_proxied.load(Ordering::SeqCst), 0);
    served.stop();
}

#[test]
fn an_exception_in_the_operators_configuration_counts_while_the_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    let served = configured(dir.path(), "", &[], &[]);
    let admin = served.client("admin");
    let own = served.url.rsplit('/').next().unwrap();
    let url = format!("http://{own}/api/openapi.json");
    assert!(refusal(&admin, &url).contains("where Airlock itself listens"));
    std::fs::write(dir.path().join("named.toml"), format!("[network]\nallow = ['{own}']\n"))
        .unwrap();
    server_fixture::wait_for(|| (add(&admin, &url).status == 200).then_some(()));
    served.stop();
}
