//! A minimal blocking client, for any exec-server over either transport.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes, WebSocket, client};

/// The largest message: the retained output of a process, in base64, and a reserve.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Longer messages are output; only their beginning is parsed.
const SHORT_BYTES_MAX: usize = 400;

/// The transport between a client and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    WebSocket,
}

impl Transport {
    /// The name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::WebSocket => "WebSocket",
        }
    }
}

/// A server and a client after the handshake. Dropping it kills the server.
pub(crate) struct Peer {
    pub(super) child: Child,
    link: Link,
    n_asked: u64,
    _home: TempDir,
}

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// The number of bytes.
    Output(usize),
    Exited,
    Closed,
    Answer(Value),
}

impl Peer {
    /// Starts a server and performs the handshake in the current dialect.
    pub(crate) fn start(program: &Path, transport: Transport) -> Result<Self> {
        let home = crate::directory::directory()?;
        let is_ours = program.file_name().is_some_and(|name| name == "airlock");
        let mut command = command(program, home.path());
        let listen = match transport {
            Transport::Stdio => "stdio://",
            Transport::WebSocket => "ws://127.0.0.1:0",
        };
        command.args(["exec-server", "--listen", listen]);
        if is_ours {
            command.arg("--no-auth");
        }
        let mut child = command.spawn().context("start the server")?;
        let stdin = child.stdin.take().context("its input is a pipe")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let mut from = BufReader::with_capacity(256 << 10, stdout);
        let link = match transport {
            Transport::Stdio => Link::Lines { to: stdin, from, line: vec![] },
            Transport::WebSocket => {
                let mut url = String::new();
                from.read_line(&mut url)?;
                Link::Frames {
                    socket: Box::new(connect(url.trim())?),
                    last: Utf8Bytes::default(),
                    _server: (stdin, from),
                }
            }
        };
        let mut peer = Self { child, link, n_asked: 0, _home: home };
        peer.ask("initialize", &json!({"clientName": "bench", "resumeSessionId": null}))?;
        peer.answer()?;
        peer.link.send(r#"{"method":"initialized"}"#)?;
        Ok(peer)
    }

    /// Returns a process id that this server has not used.
    pub(crate) fn name(&mut self) -> String {
        self.n_asked += 1;
        format!("p{}", self.n_asked)
    }

    /// Starts a program without waiting for anything.
    pub(crate) fn spawn(&mut self, argv: &[&str], more: &Value) -> Result<String> {
        let name = self.name();
        let mut params = json!({
            "processId": name, "argv": argv, "cwd": "file:///", "env": {"PATH": "/usr/bin:/bin"},
            "tty": false, "arg0": null,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.ask("process/start", &params)?;
        Ok(name)
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<()> {
        self.n_asked += 1;
        let message = json!({"id": self.n_asked, "method": method, "params": params});
        self.link.send(&message.to_string())
    }

    /// Returns the next relevant message of the server.
    pub(super) fn next(&mut self) -> Result<Said> {
        loop {
            let text = self.link.next()?;
            if let Some(said) = heard(text)? {
                return Ok(said);
            }
        }
    }

    /// Waits for an answer; other messages in between are skipped.
    pub(crate) fn answer(&mut self) -> Result<Value> {
        loop {
            if let Said::Answer(answer) = self.next()? {
                return Ok(answer);
            }
        }
    }

    /// Waits until the only process has ended and all its output was read; returns the number of bytes.
    pub(super) fn closed(&mut self) -> Result<usize> {
        let mut n_bytes = 0;
        loop {
            match self.next()? {
                Said::Output(n) => n_bytes += n,
                Said::Closed => return Ok(n_bytes),
                Said::Exited | Said::Answer(_) => {}
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A benchmark needs no graceful shutdown.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn heard(text: &str) -> Result<Option<Said>> {
    if text.len() > SHORT_BYTES_MAX && text.starts_with(r#"{"method":"process/output""#) {
        return Ok(Some(Said::Output(chunk_bytes(text).context("output without a chunk")?)));
    }
    let mut message: Value = serde_json::from_str(text)?;
    Ok(match message["method"].as_str() {
        None => {
            ensure!(message["error"].is_null(), "the server refused: {text}");
            Some(Said::Answer(message["result"].take()))
        }
        Some("process/output") => {
            Some(Said::Output(chunk_bytes(text).context("output without a chunk")?))
        }
        Some("process/exited") => Some(Said::Exited),
        Some("process/closed") => Some(Said::Closed),
        Some(_) => None,
    })
}

/// The decoded length of the first chunk of a message.
fn chunk_bytes(text: &str) -> Option<usize> {
    const KEY: &str = r#""chunk":""#;
    let start = text.find(KEY)? + KEY.len();
    // The chunk comes last, or the text is short.
    let chunk = &text[start..];
    let chunk =
        &chunk[..chunk.rfind('"').filter(|_| chunk.len() > SHORT_BYTES_MAX).or(chunk.find('"'))?];
    let padding = chunk.bytes().rev().take_while(|byte| *byte == b'=').count();
    Some(chunk.len() / 4 * 3 - padding)
}

#[expect(clippy::disallowed_methods, reason = "the peer owns and awaits this child")]
fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("AIRLOCK_LOG").env_remove("AIRLOCK_TOKEN").env("CODEX_HOME", home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Opens a WebSocket to `url`.
pub(super) fn connect(url: &str) -> Result<WebSocket<TcpStream>> {
    let address = url.strip_prefix("ws://").context("it listens at a WebSocket")?;
    let stream = TcpStream::connect(address.trim_end_matches('/'))?;
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(256 << 10)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let connected = client::client_with_config(url, stream, Some(config));
    Ok(connected.map_err(|error| anyhow::anyhow!("{error}"))?.0)
}

enum Link {
    Lines {
        to: ChildStdin,
        from: BufReader<ChildStdout>,
        line: Vec<u8>,
    },
    Frames {
        socket: Box<WebSocket<TcpStream>>,
        last: Utf8Bytes,
        /// Remains open: some servers end when their input does.
        _server: (ChildStdin, BufReader<ChildStdout>),
    },
}

impl Link {
    fn send(&mut self, text: &str) -> Result<()> {
        match self {
            Self::Lines { to, .. } => to.write_all(format!("{text}\n").as_bytes())?,
            Self::Frames { socket, .. } => socket.send(Message::text(text))?,
        }
        Ok(())
    }

    fn next(&mut self) -> Result<&str> {
        match self {
            Self::Lines { from, line, .. } => {
                line.clear();
                ensure!(from.read_until(b'\n', line)? > 0, "the server is gone");
                Ok(std::str::from_utf8(line)?)
            }
            Self::Frames { socket, last, .. } => loop {
                // Pings are answered by the library.
                match socket.read()? {
                    Message::Text(text) => {
                        *last = text;
                        return Ok(last.as_str());
                    }
                    Message::Close(_) => bail!("the server is gone"),
                    Message::Binary(_)
                    | Message::Ping(_)
                    | Message::Pong(_)
                    | Message::Frame(_) => {}
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_known_by_its_beginning() {
        let output = |chunk: &str| {
            format!(
                r#"{{"method":"process/output","params":{{"processId":"p","seq":1,"stream":"pty","chunk":"{chunk}"}}}}"#
            )
        };
        assert_eq!(heard(&output("aGk=")).unwrap(), Some(Said::Output(2)));
        assert_eq!(heard(&output(&"YWFh".repeat(1_000))).unwrap(), Some(Said::Output(3_000)));
        let exited = r#"{"method":"process/exited","params":{}}"#;
        assert_eq!(heard(exited).unwrap(), Some(Said::Exited));
        let answer = r#"{"id":1,"result":{"a":2}}"#;
        assert_eq!(heard(answer).unwrap(), Some(Said::Answer(json!({"a": 2}))));
        assert!(heard(r#"{"id":1,"error":{"code":-1,"message":"no"}}"#).is_err());
    }
}
