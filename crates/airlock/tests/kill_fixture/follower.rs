//! A follower of one execution, which connects to the next server when the present one has ended.

use super::{CurrentServer, PATIENCE};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Follows an execution to its end, or until `is_over`. Returns every entry in the order of arrival.
pub(crate) fn follow(server: &CurrentServer, execution: &str, is_over: &AtomicBool) -> Vec<Value> {
    let mut heard: Vec<Value> = vec![];
    while !is_over.load(Ordering::SeqCst) {
        // The connection breaks with the server.
        let _ = read_stream(server, execution, &mut heard);
        if heard.last().is_some_and(|entry| entry["type"] == "finished") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    heard
}

fn read_stream(
    server: &CurrentServer,
    execution: &str,
    heard: &mut Vec<Value>,
) -> std::io::Result<()> {
    let client = server.client();
    let mut stream = TcpStream::connect(&client.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let last =
        heard.last().map_or(0, |entry| entry["seq"].as_u64().unwrap_or_default()).to_string();
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    let path = format!("/api/executions/{execution}/events");
    stream.write_all(client.head("GET", &path, &headers, 0).as_bytes())?;
    for line in BufReader::new(stream).lines() {
        // An incomplete line is not an entry: the server sends it again.
        if let Some(entry) =
            line?.strip_prefix("data: ").and_then(|json| serde_json::from_str(json).ok())
        {
            heard.push(entry);
        }
    }
    Ok(())
}
