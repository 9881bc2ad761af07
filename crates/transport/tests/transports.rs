//! The common behaviour of all transports, in memory and over real sockets: bounds, back-pressure, pings, closing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::{WebSocketStream, accept_async};
use transport::memory::{frame_pair, line_pair};
use transport::{
    CLOSE_TIME_MAX, CloseReason, IncomingMessage, LineListener, LineReader, MessageReader,
    MessageTooLong, MessageWriter, ReceiveError, UnsentAmount, close, connect_web_socket, frames,
    lines,
};

const BUFFER_BYTES: usize = 1 << 10;
const BYTES_MAX: usize = 8 << 10;

async fn text(reader: &mut impl MessageReader) -> String {
    let IncomingMessage::Whole(bytes) = reader.receive().await.unwrap() else {
        panic!("a message is expected")
    };
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn ended(reader: &mut impl MessageReader) -> ReceiveError {
    reader.receive().await.expect_err("nothing more comes")
}

/// Sends texts of all kinds, and reads them on the other side.
async fn check_texts(reader: &mut impl MessageReader, writer: &mut impl MessageWriter) {
    let texts =
        ["{}".to_owned(), "a\u{2028}b".to_owned(), "x".repeat(BYTES_MAX), "last".to_owned()];
    for text in &texts {
        writer.enqueue(text.clone());
    }
    let reading = async {
        let mut heard = vec![];
        while heard.len() < texts.len() {
            heard.push(text(reader).await);
        }
        heard
    };
    let (sent, heard) = tokio::join!(writer.flush(), reading);
    sent.unwrap();
    assert_eq!(heard, texts);
    assert_eq!(writer.unsent(), UnsentAmount::default());
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order_over_memory() {
    let ((mut reader, mut writer), (mut other_reader, mut other_writer)) =
        line_pair(BUFFER_BYTES, BYTES_MAX);
    check_texts(&mut reader, &mut other_writer).await;
    check_texts(&mut other_reader, &mut writer).await;
    let ((mut reader, mut writer), (mut other_reader, mut other_writer)) =
        frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    check_texts(&mut reader, &mut other_writer).await;
    check_texts(&mut other_reader, &mut writer).await;
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order_over_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = LineListener::bind_private(&path).unwrap();
    let ((source, sink), stream) = tokio::join!(listener.accept(), UnixStream::connect(&path));
    let (mut reader, mut writer) = lines(source, sink, BYTES_MAX);
    let (source, sink) = stream.unwrap().into_split();
    let (mut other_reader, mut other_writer) = lines(source, sink, BYTES_MAX);
    check_texts(&mut reader, &mut other_writer).await;
    check_texts(&mut other_reader, &mut writer).await;
    assert!(LineListener::bind_private(&path).is_err(), "the address is in use");
    drop(listener);
    LineListener::bind_private(&path).expect("a socket that was left behind is replaced");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepting = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let connecting = async {
        let stream = TcpStream::connect(address).await.unwrap();
        connect_web_socket(format!("ws://{address}/"), stream, BYTES_MAX).await.unwrap()
    };
    let (socket, (mut other_reader, mut other_writer)) = tokio::join!(accepting, connecting);
    let (mut reader, mut writer) = frames(socket, BYTES_MAX);
    check_texts(&mut reader, &mut other_writer).await;
    check_texts(&mut other_reader, &mut writer).await;
}

// ---- Bounds ----

#[tokio::test]
async fn blank_lines_and_carriage_returns_are_no_part_of_messages() {
    let stream: &[u8] = b"one\r\n\r\n  \n\ntwo\n123456\r\nunfin";
    let mut reader = LineReader::new(stream, 6);
    assert_eq!(text(&mut reader).await, "one");
    assert_eq!(text(&mut reader).await, "two");
    assert_eq!(text(&mut reader).await, "123456");
    assert!(matches!(ended(&mut reader).await, ReceiveError::Closed(None)));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_an_error_that_names_the_limit() {
    for (stream, size, said) in [
        (&b"1234567\n"[..], Some(7), "a message has 7 bytes, 6 at most are read"),
        (&b"12345678901"[..], None, "a line is longer than 6 bytes"),
    ] {
        let mut reader = LineReader::new(stream, 6);
        for _ in 0..2 {
            let error = ended(&mut reader).await;
            assert_eq!(error.to_string(), said);
            let ReceiveError::TooLong(too_long) = error else { panic!("{error:?}") };
            assert_eq!(too_long, MessageTooLong { bytes: size, bytes_max: 6 });
        }
    }
}

#[tokio::test]
async fn an_oversized_line_can_be_skipped_however_it_arrives() {
    let whole = format!("id:1{}\nnext\n12\r\n", "x".repeat(200_000));
    for step in [7, 70_000, 1_000_000] {
        let (mut sink, stream) = tokio::io::duplex(1 << 20);
        let mut reader = LineReader::new(stream, 4).skipping_oversized();
        let writing = async {
            for piece in whole.as_bytes().chunks(step) {
                sink.write_all(piece).await.unwrap();
            }
        };
        let reading = async {
            let IncomingMessage::Oversized { head, size } = reader.receive().await.unwrap() else {
                panic!("it is too long")
            };
            assert!(head.starts_with(b"id:1x") && head.len() <= 4 << 10, "{step}");
            assert_eq!(size, MessageTooLong { bytes: Some(200_004), bytes_max: 4 });
            assert_eq!(text(&mut reader).await, "next");
            assert_eq!(text(&mut reader).await, "12");
        };
        tokio::join!(writing, reading);
    }
}

#[tokio::test]
async fn an_oversized_frame_is_answerable_and_one_beyond_the_sockets_limit_ends_the_connection() {
    let (server, client) = tokio::io::duplex(1 << 20);
    let limits = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(Some(20))
        .max_frame_size(Some(20));
    let socket = WebSocketStream::from_raw_socket(server, Role::Server, Some(limits)).await;
    let (mut reader, _writer) = frames(socket, 10);
    let socket = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    let (_, mut writer) = frames(socket, 10);
    for n_bytes in [11, 10, 21] {
        writer.send("x".repeat(n_bytes)).await.unwrap();
    }
    let size = MessageTooLong { bytes: Some(11), bytes_max: 10 };
    let head = &[b'x'; 11][..];
    assert_eq!(reader.receive().await.unwrap(), IncomingMessage::Oversized { head, size });
    assert_eq!(text(&mut reader).await, "x".repeat(10));
    for _ in 0..2 {
        let error = ended(&mut reader).await;
        assert_eq!(error.to_string(), "a message has 21 bytes, 20 at most are read");
    }
}

// ---- Back-pressure ----

/// A peer that does not read blocks the writer. Unsent data is counted, can be dropped, and is sent once the peer reads.
async fn check_stalled(reader: &mut impl MessageReader, writer: &mut impl MessageWriter) {
    let n_messages = 1_000;
    for n in 0..n_messages {
        writer.enqueue(format!("{n:0>1000}"));
    }
    let waiting = Duration::from_millis(20);
    assert!(tokio::time::timeout(waiting, writer.flush()).await.is_err(), "nobody reads");
    let unsent = writer.unsent();
    assert!(unsent.bytes > 500_000 && unsent.messages > 500, "{unsent:?}");
    let (sent, heard) = tokio::join!(writer.flush(), async {
        let mut heard = vec![];
        for _ in 0..n_messages {
            heard.push(text(reader).await.parse::<usize>().unwrap());
        }
        heard
    });
    sent.unwrap();
    assert_eq!(heard, Vec::from_iter(0..n_messages), "a flush that was given up lost nothing");

    for _ in 0..n_messages {
        writer.enqueue("x".repeat(1_000));
    }
    assert!(tokio::time::timeout(waiting, writer.flush()).await.is_err(), "nobody reads");
    writer.discard_unsent();
    assert!(writer.unsent().bytes < 200_000, "{:?}", writer.unsent());
    let (sent, ()) =
        tokio::join!(writer.send("last".into()), async { while text(reader).await != "last" {} });
    sent.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_holds_the_writer_up() {
    let ((mut reader, _writer), (_reader, mut writer)) = line_pair(BUFFER_BYTES, BYTES_MAX);
    check_stalled(&mut reader, &mut writer).await;
    let ((mut reader, _writer), (_reader, mut writer)) = frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    check_stalled(&mut reader, &mut writer).await;
}

#[tokio::test]
async fn a_stalled_reader_holds_the_writer_up_over_a_socket() {
    let (one, other) = UnixStream::pair().unwrap();
    let ((source, sink), (other_source, other_sink)) = (one.into_split(), other.into_split());
    let (mut reader, _writer) = lines(source, sink, BYTES_MAX);
    let (_reader, mut writer) = lines(other_source, other_sink, BYTES_MAX);
    check_stalled(&mut reader, &mut writer).await;
}

#[tokio::test]
async fn short_lines_that_wait_are_written_together() {
    let (stream, mut other) = tokio::io::duplex(1 << 20);
    let (source, sink) = tokio::io::split(stream);
    let (_, mut writer) = lines(source, sink, BYTES_MAX);
    for n in 0..100 {
        writer.enqueue(n.to_string());
    }
    assert_eq!(writer.unsent().messages, 100);
    writer.flush().await.unwrap();
    let mut first = vec![0; 1_000];
    let n_bytes = other.read(&mut first).await.unwrap();
    assert!(first[..n_bytes].ends_with(b"99\n"));
}

// ---- Pings ----

#[tokio::test]
async fn a_ping_is_answered_after_what_was_sent_before_it() {
    let ((mut reader, mut writer), (mut other_reader, _other_writer)) =
        frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    assert!(writer.has_control_frames());
    writer.enqueue("before".into());
    writer.enqueue_ping(7);
    writer.flush().await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(20), reader.receive()).await;
    assert!(silent.is_err(), "the peer has read nothing");
    let peer = async {
        assert_eq!(text(&mut other_reader).await, "before");
        // The library answers pings while its reader is polled.
        other_reader.receive().await.map(drop)
    };
    tokio::select! {
        received = reader.receive() => assert_eq!(received.unwrap(), IncomingMessage::Pong(7)),
        ended = peer => panic!("{ended:?}"),
    }
}

#[tokio::test]
async fn lines_have_no_pings() {
    let ((_, mut writer), (mut reader, _other)) = line_pair(BUFFER_BYTES, BYTES_MAX);
    assert!(!writer.has_control_frames());
    writer.enqueue_ping(1);
    writer.send("only".into()).await.unwrap();
    assert_eq!(text(&mut reader).await, "only");
}

// ---- Closing ----

fn reason(code: u16, text: &str) -> CloseReason {
    CloseReason { code, text: text.into() }
}

#[tokio::test]
async fn a_close_frame_is_answered_in_both_directions() {
    for server_closes in [true, false] {
        let (server, client) = frame_pair(BUFFER_BYTES, BYTES_MAX).await;
        let ((mut reader, mut writer), (mut other_reader, other_writer)) =
            if server_closes { (server, client) } else { (client, server) };
        writer.enqueue("last".into());
        let why = reason(4_001, "enough");
        let peer = async {
            assert_eq!(text(&mut other_reader).await, "last");
            let ReceiveError::Closed(heard) = ended(&mut other_reader).await else { panic!() };
            assert_eq!(heard, Some(why.clone()));
            assert!(matches!(ended(&mut other_reader).await, ReceiveError::Closed(None)));
            drop((other_reader, other_writer));
        };
        let closing = close(&mut reader, &mut writer, Some(why.clone()), CLOSE_TIME_MAX);
        tokio::join!(closing, peer);
        assert!(matches!(ended(&mut reader).await, ReceiveError::Closed(None)));
        writer.enqueue("too late".into());
        assert_eq!(writer.unsent().messages, 0);
    }
}

#[tokio::test]
async fn the_answer_to_a_close_frame_comes_after_what_was_being_sent() {
    let ((mut reader, mut writer), (mut other_reader, mut other_writer)) =
        frame_pair(1 << 20, 1 << 20).await;
    writer.send("x".repeat(500_000)).await.unwrap();
    other_writer.enqueue_close(Some(CloseReason::NORMAL));
    other_writer.flush().await.unwrap();
    let ReceiveError::Closed(heard) = ended(&mut reader).await else { panic!() };
    assert_eq!(heard, Some(CloseReason::NORMAL));
    drop((reader, writer));
    assert_eq!(text(&mut other_reader).await.len(), 500_000);
    let ReceiveError::Closed(answer) = ended(&mut other_reader).await else { panic!() };
    assert_eq!(answer.unwrap().code, 1000);
}

#[tokio::test]
async fn lines_are_closed_by_the_end_of_the_stream() {
    let ((mut reader, mut writer), (mut other_reader, other_writer)) =
        line_pair(BUFFER_BYTES, BYTES_MAX);
    writer.enqueue("x".repeat(5_000));
    let peer = async {
        assert_eq!(text(&mut other_reader).await.len(), 5_000);
        assert!(matches!(ended(&mut other_reader).await, ReceiveError::Closed(None)));
    };
    let closing = close(&mut reader, &mut writer, Some(CloseReason::AWAY), CLOSE_TIME_MAX);
    tokio::join!(closing, peer);
    drop(other_writer);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_no_part_in_closing_is_not_waited_for() {
    let start = tokio::time::Instant::now();
    let ((mut reader, mut writer), stalled) = frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    writer.enqueue("x".repeat(100_000));
    close(&mut reader, &mut writer, Some(CloseReason::AWAY), CLOSE_TIME_MAX).await;
    assert_eq!(start.elapsed(), CLOSE_TIME_MAX);
    drop(stalled);

    // The reverse: the peer closes, and does not read the answer.
    let start = tokio::time::Instant::now();
    let ((mut reader, mut writer), (_reader, mut other_writer)) =
        frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    writer.enqueue("x".repeat(100_000));
    assert!(tokio::time::timeout(Duration::ZERO, writer.flush()).await.is_err());
    other_writer.enqueue_close(None);
    other_writer.flush().await.unwrap();
    assert!(matches!(ended(&mut reader).await, ReceiveError::Closed(None)));
    assert_eq!(start.elapsed(), CLOSE_TIME_MAX);
}

#[tokio::test]
async fn a_connection_that_is_cut_off_is_closed_without_a_reason() {
    let ((mut reader, mut writer), other) = frame_pair(BUFFER_BYTES, BYTES_MAX).await;
    drop(other);
    assert!(matches!(ended(&mut reader).await, ReceiveError::Closed(None)));
    assert!(writer.send("x".into()).await.is_err());
}
