//! Limits of processor time, memory and stack.

use crate::guest::{Guest, Run, done, failure_of, value};

fn quick(code: &str) -> Run<'_> {
    Run { cpu_ms: 30, ..Run::new(code) }
}

#[test]
fn busy_programs_time_out_wherever_they_are_busy() {
    for code in [
        "while (true) {}",
        "await null; while (true) {}",
        "while (true) await null",
        "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})",
        "const g = () => queueMicrotask(g); g(); await tools.a()",
        "try { while (true) {} } catch {} finally { while (true) {} }",
        "({ toJSON() { while (true) {} } })",
        "({ get a() { while (true) {} } })",
        "throw Object.defineProperty(new Error(), 'message', { get() { while (true) {} } })",
        "/(a+)+b/.test('a'.repeat(40))",
        "async () => { for (;;) { try { await 1; for (;;); } catch {} } }",
    ] {
        let error = done(&quick(code))["error"].clone();
        assert_eq!(error["code"], "timeout", "{code}: {error}");
        assert_eq!(error["limit"], "cpu", "{code}");
        assert_eq!(error["message"], "used more than 30 ms of processor time");
    }
}

#[test]
fn output_of_a_busy_program_is_heard_while_it_is_busy() {
    let mut guest = Guest::new();
    guest.execute(&Run { cpu_ms: 1_000, ..Run::new("console.log('here'); while (true) {}") });
    assert_eq!(guest.next().unwrap()["type"], "started");
    assert_eq!(guest.next().unwrap()["line"], "here");
    // If the line had been buffered until the end, `done` would have arrived with it.
    assert!(!guest.arrived().contains("done"), "{}", guest.arrived());
    assert_eq!(guest.done()["error"]["code"], "timeout");
}

#[test]
fn a_replay_has_an_allowance_of_its_own() {
    let busy = "const spin = (n) => { for (let i = 0; i < n; i++); }; spin(3e6); await tools.a(); spin(3e6); await tools.b(); 1";
    let mut guest = Guest::new();
    guest.execute(&Run { cpu_ms: 1, replay_inputs: 1, replay_cpu_ms: 60_000, ..Run::new(busy) });
    guest.until("idle");
    guest.resolve(1, "0", 0);
    guest.until("idle");
    guest.resolve(2, "0", 0);
    assert_eq!(guest.until("done"), ["done 1"]);

    let mut guest = Guest::new();
    guest.execute(&Run { cpu_ms: 60_000, replay_inputs: 1, replay_cpu_ms: 1, ..Run::new(busy) });
    let error = guest.done()["error"].clone();
    assert_eq!(error["message"], "used more than 1 ms of processor time");
}

#[test]
fn memory_that_runs_out_is_said_to_have_run_out() {
    for code in [
        "const a = []; for (;;) a.push({ x: 1 })",
        "const a = []; for (;;) a.push(new Array(1000).fill(1))",
        "globalThis.a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
        "new ArrayBuffer(1e9)",
        "let s = 'x'; for (;;) s += s",
        "'x'.repeat(5e8)",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
        "globalThis.a = []; await null; for (;;) a.push([a.length])",
    ] {
        let run = Run { memory_bytes: 16 << 20, cpu_ms: 60_000, ..Run::new(code) };
        let (kind, message) = failure_of(&run);
        assert_eq!(kind, "memory_limit", "{code}: {message}");
    }
}

#[test]
fn a_guest_that_throws_nothing_has_not_run_out_of_memory() {
    for (code, memory_bytes) in [
        ("throw null", 2 << 20),
        ("throw null", 64 << 30),
        ("globalThis.s = 'x'.repeat(40e6); throw null", 64 << 20),
    ] {
        let run = Run { memory_bytes, ..Run::new(code) };
        assert_eq!(failure_of(&run), ("runtime".to_owned(), "null".to_owned()), "{code}");
    }
}

#[test]
fn a_guest_may_catch_its_own_exhaustion_and_go_on() {
    assert_eq!(
        value("let n = 0; const f = () => { n++; f() }; try { f() } catch (e) { n = e.name } n"),
        "\"RangeError\""
    );
    let caught = "let r; try { new ArrayBuffer(1e12) } catch (e) { r = e.message } typeof r";
    assert_eq!(value(caught), "\"string\"");
}

#[test]
fn endless_recursion_is_an_ordinary_error() {
    let (kind, message) = failure_of(&Run::new("const f = () => f() + 1; f()"));
    assert_eq!(kind, "runtime");
    assert!(message.contains("call stack"), "{message}");
}

#[test]
fn a_deep_value_is_written_or_refused_but_never_kills() {
    let deep = |n: u32| format!("let v = 1; for (let i = 0; i < {n}; i++) v = [v]; v");
    assert_eq!(done(&Run::new(&deep(100)))["ok"], true);
    let (kind, message) = failure_of(&Run::new(&deep(100_000)));
    assert_eq!(kind, "serialization", "{message}");
}
