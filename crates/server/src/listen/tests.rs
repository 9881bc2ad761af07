use super::*;
use axum::Router;
use axum::routing::{any, get};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A listener with small limits.
struct Listening {
    address: SocketAddr,
    accepting: AcceptControl,
}

impl Listening {
    async fn start(limits: ConnectionLimits) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = async |upgrade: WebSocketUpgrade| {
            upgrade.on_upgrade(async |mut socket| while let Some(Ok(_)) = socket.recv().await {})
        };
        let router = Router::new()
            .route("/ws", any(open))
            .route("/", get(async || "hello"))
            .route("/readyz", get(async || "ok"));
        let accepting =
            AcceptControl { table: ConnectionTable::new(limits), ..AcceptControl::alone() };
        accepting.tasks.spawn(accept(listener, router, accepting.clone()));
        Self { address, accepting }
    }

    async fn open(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends the head of a request.
    async fn ask(&self, path: &str, more: &str) -> TcpStream {
        let mut stream = self.open().await;
        send(&mut stream, self.address, path, more).await;
        stream
    }

    /// The status of an answer, on a separate connection that is closed afterwards.
    async fn status(&self, path: &str) -> String {
        status(&mut self.ask(path, "Connection: close\r\n").await).await
    }

    /// Tries to upgrade to a WebSocket.
    async fn upgrade(&self, more: &str) -> (String, TcpStream) {
        let mut stream = self.ask("/ws", &format!("{UPGRADE}{more}")).await;
        (status(&mut stream).await, stream)
    }

    /// A connection with half a head, after the server has accepted it.
    async fn half(&self) -> TcpStream {
        let mut stream = self.open().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
        let n_accepted = self.accepting.table.n_accepted();
        while self.accepting.table.n_accepted() == n_accepted {
            tokio::task::yield_now().await;
        }
        stream
    }

    async fn stop(self) {
        self.accepting.stopping.cancel();
        self.accepting.tasks.close();
        self.accepting.tasks.wait().await;
    }
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

async fn send(stream: &mut TcpStream, host: SocketAddr, path: &str, more: &str) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
}

async fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn limits(connections_max: usize) -> ConnectionLimits {
    ConnectionLimits { connections_max, ..ConnectionLimits::default() }
}

const OK: &str = "HTTP/1.1 200";
const UPGRADED: &str = "HTTP/1.1 101";
const UNAVAILABLE: &str = "HTTP/1.1 503";

#[tokio::test]
async fn a_web_socket_keeps_its_place_and_others_are_told_which_limit_it_is() {
    let server = Listening::start(limits(1)).await;
    let (upgraded, first) = server.upgrade("").await;
    assert_eq!(upgraded, UPGRADED);
    let answer = rest(&mut server.ask("/", "").await).await;
    assert!(answer.starts_with(UNAVAILABLE), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert!(answer.contains("The server has 1 connections, the most that it takes"), "{answer}");
    drop(first);
    while server.status("/").await != OK {}
    server.stop().await;
}

#[tokio::test]
async fn health_is_answered_beside_any_number_of_half_sent_heads() {
    let server = Listening::start(limits(8)).await;
    let mut halves = vec![];
    for _ in 0..30 {
        halves.push(server.half().await);
    }
    assert_eq!(server.status("/readyz").await, OK);
    assert_eq!(server.status("/").await, OK, "half a head is no reason to refuse a whole one");
    // The oldest was displaced, with an answer; the newest are still open.
    let first = rest(&mut halves[0]).await;
    assert!(first.starts_with(UNAVAILABLE) && first.contains("it gave way to another"), "{first}");
    let newest = halves.last_mut().unwrap();
    newest.write_all(b"st: 127.0.0.1\r\n\r\n").await.unwrap();
    assert_eq!(status(newest).await, OK);
    server.stop().await;
}

#[tokio::test]
async fn health_is_answered_when_web_sockets_have_every_place_and_half_sent_heads_the_reserve() {
    let server = Listening::start(limits(4)).await;
    let mut sockets = vec![];
    for _ in 0..4 {
        let (upgraded, socket) = server.upgrade("").await;
        assert_eq!(upgraded, UPGRADED);
        sockets.push(socket);
    }
    let mut halves = vec![];
    for _ in 0..100 {
        halves.push(server.half().await);
    }
    for _ in 0..100 {
        assert_eq!(server.status("/readyz").await, OK);
    }
    assert_eq!(server.status("/").await, UNAVAILABLE);
    assert_eq!(server.accepting.table.counts().map(|(_, n)| n)[3], 4, "no WebSocket gave way");
    drop((sockets, halves));
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_give_way_when_others_wait() {
    let server = Listening::start(limits(2)).await;
    let hello = "HTTP/1.1 200";
    let (mut first, mut second) = (server.ask("/", "").await, server.ask("/", "").await);
    for stream in [&mut first, &mut second] {
        assert_eq!(status(stream).await, hello);
    }
    assert_eq!(server.status("/").await, OK);
    let last = rest(&mut first).await;
    assert!(last.ends_with("hello"), "its answer was whole, and nothing followed: {last}");
    send(&mut second, server.address, "/", "Connection: close\r\n").await;
    assert!(rest(&mut second).await.contains(hello), "one was enough");
    server.stop().await;
}

#[tokio::test]
async fn the_first_head_on_a_connection_has_its_time_and_idle_ones_have_more() {
    let head_time_max = Duration::from_millis(50);
    let server = Listening::start(ConnectionLimits { head_time_max, ..limits(8) }).await;
    let mut idle = server.ask("/", "").await;
    assert_eq!(status(&mut idle).await, OK);
    for half in ["", "GET / HTTP/1.1\r\nHo"] {
        let mut stream = server.open().await;
        stream.write_all(half.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("did not arrive within 0.05 s (listener.head_ms_max)"), "{answer}");
    }
    send(&mut idle, server.address, "/", "Connection: close\r\n").await;
    assert!(rest(&mut idle).await.contains(OK));
    assert_eq!(server.accepting.table.count_refusal().counts()[4], ("head", 2));
    server.stop().await;
}

#[tokio::test]
async fn what_a_trusted_proxy_brings_is_counted_by_the_peer_that_it_names() {
    let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let limits = ConnectionLimits { trusted_proxies, per_address_max: 2, ..limits(100) };
    let server = Listening::start(limits).await;
    let from = |peer: &str| format!("X-Forwarded-For: {peer}\r\n");
    let (one, same_net) = (from("2001:db8::1"), from("6.6.6.6, 2001:db8::2"));
    let (first, kept) = server.upgrade(&one).await;
    let (second, _kept) = server.upgrade(&same_net).await;
    assert_eq!([first, second], [UPGRADED; 2]);
    let refused = rest(&mut server.ask("/", &format!("{one}Connection: close\r\n")).await).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert!(refused.contains("2 connections from 2001:db8::/64, the most"), "{refused}");
    // Health, other peers and the proxy itself are not affected.
    let health = status(&mut server.ask("/readyz", &one).await).await;
    let other = status(&mut server.ask("/", &from("2001:db8:0:1::1")).await).await;
    assert_eq!([health, other, server.status("/").await], [OK; 3]);
    drop(kept);
    while status(&mut server.ask("/", &one).await).await != OK {}
    server.stop().await;
}

#[tokio::test]
async fn headers_of_others_name_nobody() {
    let server = Listening::start(ConnectionLimits { per_address_max: 1, ..limits(100) }).await;
    let mut kept = vec![];
    for _ in 0..3 {
        let (upgraded, socket) = server.upgrade("X-Forwarded-For: 192.0.2.1\r\n").await;
        assert_eq!(upgraded, UPGRADED);
        kept.push(socket);
    }
    drop(kept);
    server.stop().await;
}
