//! Programs that wait on a clock that does not advance.

use crate::guest::{Guest, Run, done, value};

const CLOCK_STANDS: &str = "the program waits for a clock that does not advance: Date.now(), new Date() and performance.now() show the time of the last input, which is the start, a settled call or a fired timer. To wait, use `await new Promise((done) => setTimeout(done, ms))`";

#[test]
fn a_program_that_reads_a_clock_that_does_not_advance_ends_with_a_sentence_that_says_what_to_do() {
    for code in [
        "const end = Date.now() + 50; while (Date.now() < end) {}",
        "const end = +new Date() + 50; while (+new Date() < end) {}",
        "const end = performance.now() + 50; while (performance.now() < end) {}",
        "const end = Date.now() + 50; while (Date.now() < end) await null",
        "const end = Date.now() + 50; try { while (Date.now() < end) {} } catch {} finally { while (Date.now() < end) {} } 1",
    ] {
        let error = done(&Run { cpu_ms: 60_000, ..Run::new(code) })["error"].clone();
        assert_eq!(error["code"], "timeout", "{code}: {error}");
        assert_eq!(error["message"], CLOCK_STANDS, "{code}");
    }
}

#[test]
fn after_an_input_the_reads_are_counted_anew() {
    let mut guest = Guest::new();
    let code = "const spin = () => { for (let n = 0; n < 99_000; n++) Date.now() }; let i = 0; \
                for (; i < 20; i++) { spin(); await tools.a() } i";
    guest.execute(&Run { cpu_ms: 60_000, ..Run::new(code) });
    for call in 1..=20 {
        guest.until("idle");
        guest.resolve(call, "0", i64::from(call));
    }
    assert_eq!(guest.until("done"), ["done 20"]);
}

#[test]
fn who_reads_the_clock_seldom_may_compute_for_long() {
    let code =
        "let n = 0; for (let i = 0; i < 4e7; i++) { n ^= i; if (i % 1000 === 0) Date.now() } 7";
    assert_eq!(done(&Run { cpu_ms: 60_000, ..Run::new(code) })["result"], 7);
    assert_eq!(value("for (let n = 0; n < 150_000; n++) Date.now(); 7"), "7");
}

#[test]
fn events_have_times_and_are_no_reads() {
    let code = "let event; for (let n = 0; n < 400_000; n++) event = new Event('x'); typeof event.timeStamp";
    assert_eq!(done(&Run { cpu_ms: 60_000, ..Run::new(code) })["result"], "number");
}

#[test]
fn a_replay_may_read_the_clock_until_the_input_that_follows() {
    // A loop that took less than a second on a fast machine may take longer on the machine that replays it.
    let code = "const end = Date.now() + 5; let n = 0; while (Date.now() < end && n < 8e6) n++; await tools.a(); 7";
    let mut guest = Guest::new();
    guest.execute(&Run { replay_inputs: 1, replay_cpu_ms: 600_000, ..Run::new(code) });
    guest.until("idle");
    guest.resolve(1, "0", 9);
    assert_eq!(guest.until("done"), ["done 7"]);
}

#[test]
fn programs_of_the_first_globals_are_stopped_by_their_processor_time() {
    let code = "const end = Date.now() + 50; while (Date.now() < end) {}";
    let error = done(&Run { prelude: 1, cpu_ms: 1_500, ..Run::new(code) })["error"].clone();
    assert_eq!(error["message"], "used more than 1500 ms of processor time");
}
