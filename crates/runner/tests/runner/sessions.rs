//! REPL sessions: unhandled rejections, clocks that do not advance, and exhausted memory.

use crate::guest::{Guest, START_MS};
use lifecycle::{RandomSeed, Timestamp};
use protocols::execbox::ToRunner;
use protocols::execbox::session::{
    CompleteOrder, EvalOrder, FireTimer, GuestTime, OpenSession, ToSession, encode,
};
use serde_json::Value;

const MEMORY_BYTES: u64 = 8 << 20;

struct Session {
    guest: Guest,
    n_tasks: u64,
}

impl Session {
    fn open() -> Self {
        let mut guest = Guest::new();
        guest.send(&ToRunner::Session(OpenSession {
            memory_bytes: MEMORY_BYTES,
            seed: RandomSeed([7; 32]),
            start_ms: Timestamp(START_MS),
            elements_max: 100,
            value_chars_max: 10_000,
            printed_bytes_max: 10_000,
        }));
        Self { guest, n_tasks: 0 }
    }

    fn send(&mut self, message: &ToSession<'_>) {
        let mut line = Vec::new();
        encode(message, &mut line);
        self.guest.send_line(&line);
    }

    fn now() -> GuestTime {
        GuestTime { at: Timestamp(START_MS), frame: 0 }
    }

    /// Evaluates a text and returns the lines that it printed and its outcome.
    fn eval(&mut self, code: &str) -> (Vec<String>, Value) {
        self.n_tasks += 1;
        let (task, code) = (self.n_tasks, code.into());
        self.send(&ToSession::Eval(EvalOrder { task, code, now: Self::now() }));
        let mut printed = vec![];
        loop {
            let message = self.guest.next().unwrap();
            if let Some(line) = message["printed"]["line"].as_str() {
                printed.push(line.to_owned());
            }
            if message["ended"]["task"] == self.n_tasks {
                return (printed, message["ended"].clone());
            }
        }
    }

    /// Evaluates a text and returns its value.
    fn value(&mut self, code: &str) -> String {
        let (_, ended) = self.eval(code);
        let json = ended["outcome"]["value"]["json"].as_str();
        json.unwrap_or_else(|| panic!("{code}: {ended}")).to_owned()
    }

    /// Returns the message with which a text fails, and whether the session is lost.
    fn failure(&mut self, code: &str) -> (String, bool) {
        let (_, ended) = self.eval(code);
        let message = ended["outcome"]["failed"]["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{code}: {ended}")).to_owned();
        (message, ended["fouled"] == true)
    }

    fn names(&mut self, code: &str) -> Vec<String> {
        self.n_tasks += 1;
        let task = self.n_tasks;
        self.send(&ToSession::Complete(CompleteOrder { task, code: code.into() }));
        loop {
            let message = self.guest.next().unwrap();
            if let Some(names) = message["completed"]["names"].as_array() {
                return names.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            }
        }
    }
}

#[test]
fn an_unhandled_rejection_is_printed_as_a_warning_and_the_session_goes_on() {
    let mut session = Session::open();
    let (printed, ended) =
        session.eval("function lose() { return Promise.reject(new TypeError('lost')) }\nlose(); 7");
    assert_eq!(ended["outcome"]["value"]["json"], "7");
    assert_eq!(printed.len(), 1, "{printed:?}");
    let begins =
        "Warning: unhandled promise rejection: TypeError: lost\n    at lose (program.js:1:";
    assert!(printed[0].starts_with(begins), "{printed:?}");
    // A failing eval reports its own error, and a rejection that is handled in the same turn causes no warning.
    for code in ["throw new Error('x')", "await Promise.reject(new Error('x'))"] {
        let (printed, ended) = session.eval(code);
        assert_eq!(printed, [""; 0], "{code}");
        assert_eq!(ended["outcome"]["failed"]["message"], "Error: x", "{code}");
    }
    let (printed, _) = session.eval("try { await Promise.reject(1) } catch {} 1");
    assert_eq!(printed, [""; 0]);
    assert_eq!(session.value("typeof lose"), "\"function\"");
}

#[test]
fn a_warning_that_nobody_hears_is_printed_by_the_next_eval() {
    let mut session = Session::open();
    session.eval("setTimeout(async () => { throw new Error('lost') }, 5); 1");
    session.send(&ToSession::Fire(FireTimer { timer: 1, now: Session::now() }));
    let (printed, ended) = session.eval("console.log('next'); 2");
    assert_eq!(ended["outcome"]["value"]["json"], "2");
    assert!(
        printed[0].starts_with("Warning: unhandled promise rejection: Error: lost"),
        "{printed:?}"
    );
    assert_eq!(printed[1..], ["next"]);
}

#[test]
fn an_eval_that_waits_for_a_clock_that_does_not_advance_is_told_what_to_do() {
    let mut session = Session::open();
    for _ in 0..2 {
        let waits = "const end = Date.now() + 50; while (Date.now() < end) {}";
        let (message, is_fouled) = session.failure(&format!("{{ {waits} }}"));
        assert!(message.contains("await new Promise((done) => setTimeout(done, ms))"), "{message}");
        assert!(!is_fouled);
    }
    assert_eq!(session.value("1 + 1"), "2");
}

/// Ways to exhaust the memory that leave it full or nearly full.
const HOARDS: &[&str] = &[
    "globalThis.hoard = []; for (;;) hoard.push({ n: hoard.length })",
    "globalThis.hoard = []; for (;;) hoard.push('x'.repeat(100) + hoard.length)",
    "globalThis.hoard = []; for (;;) hoard.push(new Uint8Array(1000))",
    "globalThis.hoard = null; for (;;) hoard = { hoard }",
    "globalThis.hoard = null; (() => { try { for (;;) hoard = { hoard } } catch {} try { for (;;) hoard = [hoard] } catch {} })()",
    "globalThis.hoard = new Map(); for (let n = 0; ; n++) hoard.set(n, [n])",
    "globalThis.hoard = []; const grow = () => { hoard.push(() => grow); Promise.resolve().then(grow) }; grow(); await new Promise(() => {})",
    "globalThis.hoard = []; setTimeout(() => { for (;;) hoard.push([]) }, 1); 1",
];

#[test]
fn after_memory_ran_out_every_eval_works_or_says_that_memory_ran_out() {
    for hoard in HOARDS {
        let mut session = Session::open();
        let mut is_fouled = session.eval(hoard).1["fouled"] == true;
        session.send(&ToSession::Fire(FireTimer { timer: 1, now: Session::now() }));
        for code in
            ["1 + 1", "const it = { a: [1, 2, 3] }; it.a.length", "JSON.stringify({ b: 1 })"]
        {
            if is_fouled {
                break;
            }
            let (_, ended) = session.eval(code);
            if let Some(message) = ended["outcome"]["failed"]["message"].as_str() {
                assert!(message.contains("bytes of memory"), "{hoard}: {code}: {message}");
                is_fouled = ended["fouled"] == true;
                assert!(is_fouled, "{hoard}: {code} failed, and the session goes on");
            }
        }
        if !is_fouled {
            assert!(session.names("JSON.").contains(&"parse".to_owned()), "{hoard}");
        }
    }
}
