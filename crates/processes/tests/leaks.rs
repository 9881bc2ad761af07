//! Many processes, sequentially and concurrently: none of their resources is left, and none occupies a thread.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "the other tests use the rest")]
mod suite;

use std::time::Duration;
use suite::{Heard, PIPES, TERMINAL, fill, gone, shell, spec, start};

/// A single test with its own binary: it would also count the descriptors and threads of other tests.
#[tokio::test]
async fn many_processes_leave_nothing_behind() {
    many_terminals_at_once_all_answer_and_all_go().await;
    no_process_and_no_descriptor_is_left_after_many().await;
}

async fn no_process_and_no_descriptor_is_left_after_many() {
    let house = start();
    fill(&house).await;
    let before = descriptors();
    let (n_rounds, n_at_once) =
        if std::env::var_os("AIRLOCK_SOAK").is_some() { (1_250, 8) } else { (25, 8) };
    for round in 0..n_rounds {
        let streams = if round % 2 == 0 { PIPES } else { TERMINAL };
        let mut all = vec![];
        for _ in 0..n_at_once {
            all.push(house.spawn(&shell(streams, "echo hello")).await.unwrap());
        }
        for process in &all {
            let mut heard = Heard::new(process);
            assert_eq!(heard.end().await.0, 0);
            assert_eq!(heard.text.trim(), "hello");
            process.gone().await;
        }
    }
    assert_eq!(settled(before, descriptors).await, before);
    house.shutdown().await;
}

async fn many_terminals_at_once_all_answer_and_all_go() {
    let house = start();
    let n = if std::env::var_os("AIRLOCK_SOAK").is_some() { 200 } else { 40 };
    let threads_before = threads();
    let mut all = vec![];
    for _ in 0..n {
        all.push(house.spawn(&spec(TERMINAL, &["cat"])).await.unwrap());
    }
    assert_eq!(threads(), threads_before, "no thread per child");
    for (n, process) in all.iter().enumerate() {
        let line = bytes::Bytes::from(format!("hello {n}\n"));
        let room = process.input_room(line.len()).await;
        process.write(line, room).unwrap();
    }
    for (n, process) in all.iter().enumerate() {
        Heard::new(process).until(&format!("hello {n}\r\nhello {n}\r\n")).await;
    }
    let pids: Vec<i32> = all.iter().map(processes::Process::pid).collect();
    house.shutdown().await;
    for pid in pids {
        gone(pid).await;
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Returns the count once it has fallen to `wanted`, or its last value if it does not.
async fn settled(wanted: usize, count: fn() -> usize) -> usize {
    for _ in 0..200 {
        if count() <= wanted {
            return wanted;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    count()
}
