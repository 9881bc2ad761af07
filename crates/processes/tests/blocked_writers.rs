//! Input for a program that does not read it: no kind of stream may block the server's thread meanwhile.

use crate::suite::{Heard, PATIENCE, PIPED, PIPES, TERMINAL, shell, start, told};
use bytes::Bytes;
use processes::{EndMode, ProcessSpawner, ProcessStreams};
use std::sync::mpsc;

/// Larger than the kernel's buffer of a terminal or a pipe.
const INPUT_BYTES: usize = 1 << 20;

/// Runs a test on a runtime with one thread, and fails if that thread is blocked forever.
fn on_one_thread(test: impl Future<Output = ()> + Send + 'static) {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
        let _ = ended.send(());
    });
    end.recv_timeout(2 * PATIENCE).expect("the thread that serves all processes is not occupied");
}

/// Starts a program that leaves its input unread and runs `script` once that input is pending. The server must still
/// serve other programs afterwards, and must be able to end this one.
async fn check(house: &ProcessSpawner, streams: ProcessStreams, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (go, done) = (folder.path().join("go"), folder.path().join("done"));
    let script = format!(
        "[ -t 0 ] && stty raw -echo; echo ready; until [ -e {0} ]; do sleep 0.01; done; trap 'touch {1}' EXIT; {script}",
        go.display(),
        done.display(),
    );
    let process = house.spawn(&shell(streams, &script)).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    let room = process.input_room(INPUT_BYTES).await;
    process.write(Bytes::from(vec![b'y'; INPUT_BYTES]), room).unwrap();
    std::fs::write(&go, "").unwrap();
    while !done.exists() {
        tokio::task::yield_now().await;
        let (text, code) = told(house, &shell(PIPES, "echo served")).await;
        assert_eq!((text.as_str(), code), ("served\n", 0), "{script}");
    }
    process.end_with(EndMode::Kill);
    heard.end().await;
    process.gone().await;
}

/// What a program does while input is pending: it ends; it closes its streams and goes on; it closes them and opens the
/// terminal again; it goes on without reading.
const SCRIPTS: [&str; 4] = [
    "exit 3",
    "exec <&- >&- 2>&-; sleep 0.1",
    "exec <&- >&- 2>&-; sleep 0.01; exec </dev/tty >/dev/tty; sleep 0.1",
    "sleep 0.1",
];

#[test]
fn a_terminal_that_hangs_up_with_input_waiting_occupies_no_thread() {
    on_one_thread(async {
        let house = start();
        for script in SCRIPTS {
            check(&house, TERMINAL, script).await;
        }
        house.shutdown().await;
    });
}

#[test]
fn a_pipe_whose_reader_goes_with_input_waiting_occupies_no_thread() {
    on_one_thread(async {
        let house = start();
        for script in SCRIPTS {
            check(&house, PIPED, script).await;
        }
        house.shutdown().await;
    });
}
