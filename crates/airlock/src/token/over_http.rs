//! The few requests that an administrator sends. One connection per request, plain HTTP: the server is
//! on this machine.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use server::auth::{Scopes, TokenName};
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Longest wait for the server.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A server, and what opens it.
pub(super) struct Admin {
    pub(super) url: String,
    pub(super) secret: String,
}

impl Admin {
    pub(super) fn add(&self, name: &TokenName, scopes: Scopes) -> anyhow::Result<Vec<String>> {
        let scopes: Vec<_> = scopes.given().map(|scope| scope.name()).collect();
        let body = json!({ "name": name.as_str(), "scopes": scopes });
        let answer = self.request("POST", "/api/tokens", &body.to_string())?;
        let secret = answer["secret"].as_str().context("the server sent no secret")?;
        Ok(vec![secret.to_owned()])
    }

    pub(super) fn list(&self) -> anyhow::Result<Vec<String>> {
        let answer = self.request("GET", "/api/tokens", "")?;
        let tokens = answer["tokens"].as_array().context("the server sent no list")?;
        Ok(tokens.iter().map(line).collect())
    }

    pub(super) fn remove(&self, name: &TokenName) -> anyhow::Result<Vec<String>> {
        self.request("DELETE", &format!("/api/tokens/{name}"), "")?;
        Ok(vec![])
    }

    fn request(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let host = self.url.strip_prefix("http://").context("not an http:// URL")?;
        let address = host.to_socket_addrs()?.next().context("the URL names no address")?;
        let mut stream = TcpStream::connect_timeout(&address, WAIT_MAX)
            .with_context(|| format!("could not reach {}", self.url))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        let (secret, length) = (&self.secret, body.len());
        ensure!(!secret.chars().any(char::is_control), "the admin token is not one line of text");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {secret}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes())?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        read(&answer)
    }
}

/// The body of an answer that says yes; what it says otherwise.
fn read(answer: &str) -> anyhow::Result<Value> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the server broke off")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(serde_json::from_str(body)?),
        Some(401) => {
            bail!("the server does not know this admin token; set AIRLOCK_TOKEN to one it knows")
        }
        Some(_) | None => {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            bail!("{}", body["message"].as_str().unwrap_or("the server refused without a word"))
        }
    }
}

fn line(token: &Value) -> String {
    let scopes = token["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scopes: Vec<_> = scopes.iter().filter_map(Value::as_str).collect();
    format!("{} {}", token["name"].as_str().unwrap_or_default(), scopes.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_passed_on() {
        let told = |answer: &str| read(answer).map_err(|error| error.to_string());
        assert_eq!(told("HTTP/1.1 200 OK\r\n\r\n{\"a\":1}"), Ok(json!({"a": 1})));
        assert_eq!(told("HTTP/1.1 409 Conflict\r\n\r\n{\"message\":\"No.\"}"), Err("No.".into()));
        let no = "the server refused without a word".to_owned();
        assert_eq!(told("HTTP/1.1 500 Oops\r\n\r\n<html>"), Err(no));
        assert_eq!(told("HTTP/1.1 200"), Err("the server broke off".into()));
    }
}
