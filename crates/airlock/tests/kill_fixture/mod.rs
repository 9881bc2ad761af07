//! The environment of a server that is stopped repeatedly: an upstream that logs every request, a person who answers,
//! and followers that reconnect.

mod follower;
mod person;
mod upstream;

pub(crate) use follower::follow;
pub(crate) use person::Person;
pub(crate) use upstream::Upstream;

use crate::server_fixture::Client;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

/// The longest wait for anything. It is reached only if something is lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The present server, for the threads that outlive it.
#[derive(Default)]
pub(crate) struct CurrentServer(Mutex<Option<Client>>);

impl CurrentServer {
    pub(crate) fn set(&self, client: Client) {
        *self.0.lock().unwrap() = Some(client);
    }

    pub(crate) fn client(&self) -> Client {
        self.0.lock().unwrap().clone().expect("a server was started")
    }
}

/// Sends a request to a server that may be killed meanwhile. Returns the execution that it concerns, and the body.
pub(crate) fn attempt(
    client: &Client,
    method: &str,
    path: &str,
    body: &str,
) -> Option<(Option<String>, Value)> {
    let mut stream = TcpStream::connect(&client.address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = client.head(method, path, &[("Content-Type", "application/json")], body.len());
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let id = head.lines().find_map(|line| line.strip_prefix("airlock-execution: "));
    Some((id.map(str::to_owned), serde_json::from_str(body).ok()?))
}

/// Randomness that is repeatable: `AIRLOCK_SEED` sets the seed.
pub(crate) struct Dice(u64);

impl Dice {
    #[expect(clippy::print_stderr, reason = "shown when the test fails")]
    pub(crate) fn new(usual: u64) -> Self {
        let chosen = std::env::var("AIRLOCK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = chosen.unwrap_or(usual);
        eprintln!("AIRLOCK_SEED={seed}");
        Self(seed.wrapping_mul(2_654_435_761).wrapping_add(88_172_645_463_325_252))
    }

    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
