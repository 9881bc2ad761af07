//! Timers, microtasks and the guest's clock.

use crate::guest::{Guest, START_MS, failure, value};

#[test]
fn a_timer_runs_when_the_engine_says_so() {
    let mut guest = Guest::running(
        "const t = Date.now(); const x = await new Promise((r) => setTimeout(r, 20.9, 'x')); [x, Date.now() - t, performance.now()]",
    );
    assert_eq!(guest.until("idle"), ["started", "timer 1 in 20", "idle 0"]);
    guest.fire(1, 25);
    assert_eq!(guest.until("done"), ["done [\"x\",25,25]"]);
}

#[test]
fn timers_can_be_cleared_and_intervals_go_on_until_they_are() {
    let mut guest = Guest::running(
        "const gone = setTimeout(() => {}, -5); clearTimeout(gone); clearTimeout(gone); clearTimeout(undefined);
         let n = 0; await new Promise((r) => { const i = setInterval(() => { console.log(++n); if (n === 2) { clearInterval(i); r() } }, 10) });
         const j = setInterval(() => {}, 5); clearInterval(j); n",
    );
    assert_eq!(
        guest.until("idle"),
        ["started", "timer 1 in 1", "timer 1 cleared", "timer 2 in 10", "idle 0"]
    );
    guest.fire(2, 10);
    assert_eq!(guest.until("idle"), ["log 1 [1.1]", "timer 3 in 10", "idle 1"]);
    guest.fire(3, 20);
    assert_eq!(guest.until("done"), ["log 2 [2.1]", "timer 4 in 5", "timer 4 cleared", "done 2"]);
}

#[test]
fn a_timer_does_not_hold_a_settled_program_open() {
    assert_eq!(value("setTimeout(() => {}, 1e9); setInterval(() => {}, 1); 1"), "1");
}

#[test]
fn firing_a_cleared_timer_diverges() {
    let mut guest = Guest::running("clearTimeout(setTimeout(() => {})); await tools.a()");
    guest.until("idle");
    guest.fire(1, 1);
    assert_eq!(guest.until("diverged"), ["diverged: timer 1 is not outstanding"]);
}

#[test]
fn a_program_that_waits_for_nothing_is_stuck() {
    assert_eq!(failure("await new Promise(() => {})").0, "stuck");
    let mut guest = Guest::running("setTimeout(() => {}, 1); await new Promise(() => {})");
    guest.until("idle");
    guest.fire(1, 1);
    assert_eq!(guest.until("done"), ["failed stuck"]);
}

#[test]
fn an_error_in_a_timer_or_microtask_fails_the_program() {
    let mut guest =
        Guest::running("setTimeout(() => { throw new RangeError('tick') }, 1); await tools.a()");
    guest.until("idle");
    guest.fire(1, 1);
    let error = guest.done()["error"].clone();
    assert_eq!(
        (error["code"].as_str(), error["name"].as_str(), error["message"].as_str()),
        (Some("runtime"), Some("RangeError"), Some("tick"))
    );
    assert_eq!(
        failure("queueMicrotask(() => { throw new Error('micro') }); await null; 1").1,
        "micro"
    );
}

#[test]
fn microtasks_keep_their_order() {
    assert_eq!(
        value(
            "const s = []; queueMicrotask(() => s.push(1)); Promise.resolve().then(() => s.push(2)); queueMicrotask(() => s.push(3)); s.push(0); await null; await null; s"
        ),
        "[0,1,2,3]"
    );
}

#[test]
fn every_clock_shows_the_time_of_the_last_input() {
    let mut guest = Guest::running(
        "const all = () => [Date.now(), +new Date(), Date.parse(Date()), new (Date.prototype.constructor)().getTime(), new (class extends Date {})().getTime(), Reflect.construct(Date, []).getTime(), performance.timeOrigin + performance.now()];
         const a = all(); for (let i = 0; i < 1e5; i++); const b = all(); await tools.a(); [a, b, all(), new Date(5).getTime(), Date.length, Date.name, new Date().getTimezoneOffset(), typeof Date.UTC]",
    );
    guest.until("idle");
    guest.resolve(1, "1", 2_000);
    let at = |ms: i64| vec![(START_MS + ms).to_string(); 7].join(",");
    let expected = format!("[[{}],[{}],[{}],5,7,\"Date\",0,\"function\"]", at(0), at(0), at(2_000));
    assert_eq!(guest.done()["result"].to_string(), expected);
}
