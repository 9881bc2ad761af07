//! A zygote whose runners execute short commands in native code: echo, spin, crash, try to break out.
//!
//! Without the hidden verb the program is a small server, for tests that kill or demote a whole server.
#![expect(unsafe_code, reason = "what is tried here is what no safe interface offers")]

mod escapes;
mod server;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

fn main() {
    sandbox::zygote::enter_with(sandbox::zygote::RunnerProgram {
        warm: || (),
        rehearsal: "echo\n",
        limber_up: |()| (),
        serve: |(), link| obey(&link),
    });
    let verb = std::env::args().nth(1).unwrap_or_default();
    server::run(&verb);
}

/// Executes one command per line until the link is closed.
fn obey(link: &UnixStream) -> i32 {
    for line in BufReader::new(link).lines() {
        let Ok(line) = line else { return 1 };
        let (order, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match order {
            "echo" => rest.to_owned(),
            "try" => escapes::outcome(rest),
            "call" => escapes::raw(rest.parse().expect("the test names a system call by number")),
            "allocate" => allocate(rest.parse().expect("the test says how many bytes")),
            "burn" => burn(),
            "spin" => spin(),
            "leave" => return 0,
            "abort" => std::process::abort(),
            "panic" => panic!("as ordered"),
            "overflow" => deep(&[0; 4096]).to_string(),
            "hang-up" => {
                link.shutdown(std::net::Shutdown::Both).expect("an open link can be shut");
                spin()
            }
            "long-line" => "x".repeat(rest.parse().expect("the test says how long")),
            "chatter" => chatter(link, rest.parse().expect("the test says how often")),
            _ => "what?".to_owned(),
        };
        let mut link = link;
        if writeln!(link, "{answer}").is_err() {
            return 1;
        }
    }
    0
}

fn allocate(bytes: usize) -> String {
    let mut memory: Vec<u8> = Vec::new();
    if memory.try_reserve_exact(bytes).is_err() {
        return "refused".to_owned();
    }
    memory.resize(bytes, 1);
    format!("got {}", std::hint::black_box(&memory).len())
}

/// Uses at least 30 ms of processor time, by the process's CPU-time clock.
fn burn() -> String {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    while used.tv_sec == 0 && used.tv_nsec < 30_000_000 {
        // SAFETY: the kernel writes one timespec, which is the type of the target.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
    }
    "burnt".to_owned()
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

fn deep(above: &[u8; 4096]) -> usize {
    let below = [above[0] | 1; 4096];
    // It is never zero, but the compiler cannot prove that.
    if std::hint::black_box(&below)[0] == 0 { 0 } else { deep(&below) + usize::from(below[17]) }
}

/// Writes many lines before it reads anything, even if the peer does not read.
fn chatter(mut link: &UnixStream, lines: usize) -> String {
    let line = format!("{}\n", "y".repeat(1023));
    for _ in 0..lines {
        if link.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    "said".to_owned()
}
