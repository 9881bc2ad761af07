//! A minimal client that reads a stream to its end.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for any answer: reached only by a server that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The size of one read.
const READ_BYTES: usize = 256 << 10;

/// One connection that reads one stream after the other.
pub(crate) struct Streams {
    stream: BufReader<TcpStream>,
    head: String,
    line: String,
}

impl Streams {
    pub(crate) fn connect(address: &str, secret: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!("HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\n");
        let stream = BufReader::with_capacity(READ_BYTES, stream);
        Ok(Self { stream, head, line: String::new() })
    }

    /// Begins a stream.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<()> {
        let request = format!(
            "POST {path} {}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.begin(&request)
    }

    /// Begins a stream.
    pub(super) fn get(&mut self, path: &str) -> Result<()> {
        let request = format!("GET {path} {}\r\n", self.head);
        self.begin(&request)
    }

    fn begin(&mut self, request: &str) -> Result<()> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.next_line()?;
        ensure!(self.line.starts_with("HTTP/1.1 200"), "{}", self.line.trim());
        while self.line != "\r\n" {
            self.next_line()?;
        }
        Ok(())
    }

    /// Returns the next event: a line that is neither a chunk's size nor its end. Servers send whole lines.
    pub(super) fn event(&mut self) -> Result<&str> {
        loop {
            self.next_line()?;
            if self.line.starts_with('{') {
                return Ok(&self.line);
            }
        }
    }

    /// The last event that was read.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Reads events up to one with this mark.
    pub(super) fn until(&mut self, mark: &str) -> Result<()> {
        while !self.event()?.contains(mark) {}
        Ok(())
    }

    /// Reads the last chunk, after which another stream may begin.
    pub(super) fn end(&mut self) -> Result<()> {
        while self.line != "0\r\n" {
            self.next_line()?;
        }
        self.next_line()
    }

    /// Reads without parsing, until the last event has arrived; returns the number of bytes.
    pub(super) fn drain(&mut self, last: &[u8]) -> Result<usize> {
        let mut buffer = vec![0; READ_BYTES];
        let (mut n_bytes, mut kept) = (0, vec![]);
        loop {
            let n = self.stream.read(&mut buffer)?;
            ensure!(n > 0, "the stream ended before its last event");
            n_bytes += n;
            // The mark is near the end of the received data, perhaps across two reads.
            kept.extend_from_slice(&buffer[n.saturating_sub(1 << 10)..n]);
            if kept.windows(last.len()).any(|window| window == last) {
                return Ok(n_bytes);
            }
            kept.drain(..kept.len().saturating_sub(last.len()));
        }
    }

    fn next_line(&mut self) -> Result<()> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            bail!("the stream broke off");
        }
        Ok(())
    }
}
