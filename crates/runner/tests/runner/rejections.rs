//! Unhandled promise rejections.

use crate::guest::{Guest, Run, done, failure, value};
use lifecycle::UnawaitedCalls;

#[test]
fn a_rejection_that_is_unhandled_at_the_end_of_the_turn_fails_the_program_with_its_stack() {
    let done = done(&Run::new(
        "function later() {\n  return Promise.reject(new RangeError('lost'))\n}\nlater()\n'value'",
    ));
    assert_eq!(done["ok"], false, "{done}");
    let error = &done["error"];
    assert_eq!(error["code"], "runtime");
    assert_eq!(error["name"], "RangeError");
    assert_eq!(error["message"], "lost");
    let stack = error["stack"].as_str().unwrap();
    assert!(stack.starts_with("    at later (program.js:2:"), "{stack}");
}

#[test]
fn every_way_to_lose_a_rejection_fails_the_program() {
    for code in [
        "(async () => { throw new Error('lost') })(); 1",
        "new Promise((_, reject) => reject(new Error('lost'))); 1",
        "Promise.reject(new Error('lost')).then((it) => it); 1",
        "Promise.reject(new Error('lost')).finally(() => {}); 1",
        "Promise.resolve().then(() => { throw new Error('lost') }); await null; await null; 1",
        "const lost = Promise.reject(new Error('lost')); await new Promise((go) => setTimeout(go, 1)); await lost",
        "Promise.all([Promise.reject(new Error('lost'))]); 1",
    ] {
        assert_eq!(failure(code), ("runtime".to_owned(), "lost".to_owned()), "{code}");
    }
}

#[test]
fn a_rejection_that_is_handled_later_in_the_same_turn_is_none() {
    for code in [
        "const late = Promise.reject(new Error('x')); await null; await null; let seen; try { await late } catch { seen = 7 } seen",
        "const late = (async () => { throw 1 })(); late.catch(() => {}); 7",
        "await Promise.allSettled([Promise.reject(1), Promise.reject(2)]); 7",
        "try { await (async () => { throw 1 })() } catch {} 7",
        "await Promise.any([Promise.reject(1), 7])",
        "await parallel([1, 2, 3], async (n) => { throw n }).catch(() => 7)",
    ] {
        assert_eq!(value(code), "7", "{code}");
    }
}

#[test]
fn the_first_unhandled_rejection_wins() {
    let lost = |code: &str| failure(code).1;
    assert_eq!(lost("Promise.reject('first'); Promise.reject('second'); 1"), "first");
    assert_eq!(lost("Promise.reject('first'); throw 'second'"), "first");
    assert_eq!(lost("const main = Promise.reject('first'); await main"), "first");
    // An error that the program throws takes precedence if it is thrown first.
    assert_eq!(
        lost("Promise.resolve().then(() => Promise.reject('second')); throw 'first'"),
        "first"
    );
}

#[test]
fn a_rejection_in_a_timer_is_the_turns_of_that_timer() {
    let mut guest = Guest::running(
        "setTimeout(async () => { throw new Error('lost') }, 5); await tools.a(); 'value'",
    );
    assert_eq!(guest.until("idle"), ["started", "timer 1 in 5", "call 1 a null", "idle 0"]);
    guest.fire(1, 5);
    let done = guest.done();
    assert_eq!(done["error"]["message"], "lost", "{done}");
}

#[test]
fn a_failed_call_that_nobody_awaits_fails_the_program_with_its_code() {
    // This also holds if the program already has its value and only the call is pending.
    for code in ["tools.a(); 'value'", "tools.a(); await tools.b(); 'value'"] {
        let mut guest = Guest::running(code);
        guest.until("idle");
        guest.reject(1, "declined", "no");
        let done = guest.done();
        assert_eq!(done["error"]["code"], "declined", "{code}: {done}");
        assert_eq!(done["error"]["message"], "no");
    }
    let mut guest = Guest::running("tools.a().catch(() => {}); 'value'");
    guest.until("idle");
    guest.reject(1, "declined", "no");
    assert_eq!(guest.done()["result"], "value");
}

#[test]
fn a_call_that_is_forgotten_cannot_fail_the_program() {
    let mut guest = Guest::new();
    guest.execute(&Run { unawaited: UnawaitedCalls::Forget, ..Run::new("tools.a(); 'value'") });
    assert_eq!(guest.done()["result"], "value");
}

#[test]
fn programs_of_the_first_globals_lose_rejections_as_before() {
    for code in
        ["Promise.reject(new Error('lost')); 7", "(async () => { throw 1 })(); await null; 7"]
    {
        assert_eq!(done(&Run { prelude: 1, ..Run::new(code) })["result"], 7, "{code}");
    }
}

#[test]
fn rejections_leave_nothing_behind() {
    let code = "for (let n = 0; n < 1e5; n++) Promise.reject(n).catch(() => {}); 7";
    assert_eq!(value(code), "7");
    // The runner is reused: a rejection of one program is not reported for the next.
    let mut guest = Guest::new();
    for _ in 0..3 {
        guest.execute(&Run::new("Promise.reject('lost'); Promise.reject('lost'); 1"));
        assert_eq!(guest.done()["error"]["message"], "lost");
        guest.execute(&Run::new("7"));
        assert_eq!(guest.done()["result"], 7);
    }
    assert_eq!(guest.close(), 0);
}
