//! Capacity limits: stack frames, JSON nesting, memory.

use crate::guest::{Guest, Run, done, failure_of, value};
use rquickjs::{Context, Runtime};

#[test]
fn ten_thousand_plain_frames_fit() {
    for code in [
        "const f = (n) => (n === 0 ? 0 : 1 + f(n - 1)); f(10_000)",
        "function f(n, a, b) { const x = n + 1, y = x + 1; if (n === 0) return 0; const inner = f(n - 1, a, b); return inner + y - x } f(10_000, 1, 2)",
        "class A { f(n) { return n === 0 ? 0 : 1 + this.f(n - 1) } } new A().f(10_000)",
        "function f(n) { try { return n === 0 ? 0 : 1 + f(n - 1) } finally {} } f(10_000)",
    ] {
        assert_eq!(value(code), "10000", "{code}");
    }
}

#[test]
fn deeper_recursion_is_an_error_that_can_be_caught_everywhere() {
    for code in [
        "const f = () => f() + 1; f()",
        "const o = { get a() { return this.a } }; o.a",
        "const f = () => [1].map(f); f()",
        "const f = () => JSON.stringify({ toJSON: f }); f()",
        "const f = () => console.log({ toString: f }, new Error(f())); f()",
        "const f = () => structuredClone({ get a() { return f() } }); f()",
        "const f = () => tools.a({ toJSON: f }); f(); await null",
        "const f = () => new Intl.DateTimeFormat('de', { get timeZone() { return f() } }); f()",
        "const f = () => { try { f() } finally { new Date(0).toLocaleString('de-AT', { dateStyle: 'full', timeStyle: 'full' }); '1'.normalize('NFKD') } }; f()",
    ] {
        let code = format!("let name; try {{ {code} }} catch (error) {{ name = error.name }} name");
        // The last one formats a date in each of its frames, which takes an unoptimised build long.
        let outcome = done(&Run { cpu_ms: 60_000, ..Run::new(&code) });
        let is_caught = outcome["ok"] == true || outcome["error"]["name"] == "RangeError";
        assert!(is_caught, "{code}: {outcome}");
    }
}

/// Returns a program for a value with this many levels of nesting, and the value's JSON.
fn nested(levels: usize) -> (String, String) {
    let build = format!("let deep = 1; for (let n = 0; n < {levels}; n++) deep = {{ a: [deep] }};");
    let json = format!("{}1{}", "{\"a\":[".repeat(levels), "]}".repeat(levels));
    (build, json)
}

#[test]
fn five_thousand_levels_of_json_fit_everywhere() {
    let (build, json) = nested(2_500);
    let mut guest = Guest::running(&format!(
        "{build} if (JSON.stringify(JSON.parse(JSON.stringify(deep))) !== JSON.stringify(deep)) throw 'no'; \
         emit(deep); const got = await tools.a(deep); emit(JSON.stringify(got) === JSON.stringify(deep)); got"
    ));
    let mut next = |part: &str| loop {
        let mut line = String::new();
        guest.read_line(&mut line);
        if line.contains(part) {
            return line;
        }
    };
    assert!(next("\"type\":\"emit\"").contains(&json));
    assert!(next("\"type\":\"tool_call\"").contains(&json));
    guest.resolve(1, &json, 1);
    let mut next = |part: &str| loop {
        let mut line = String::new();
        guest.read_line(&mut line);
        if line.contains(part) {
            return line;
        }
    };
    assert!(next("\"type\":\"emit\"").contains("\"item\":true"));
    let done = next("\"type\":\"done\"");
    assert!(done.contains("\"ok\":true") && done.contains(&json));
}

/// Programs that allocate `n` objects; how many fit a plain QuickJS in 64 MiB, and how many must fit our runner.
const HOLDERS: &[(&str, &str, u64, u64)] = &[
    (
        "short strings",
        "const all = []; for (let i = 0; i < n; i++) all.push('s' + i)",
        880_000,
        1_000_000,
    ),
    (
        "a set of short strings",
        "const all = new Set(); for (let i = 0; i < n; i++) all.add('s' + i)",
        430_000,
        500_000,
    ),
    (
        "small objects",
        "const all = []; for (let i = 0; i < n; i++) all.push({ id: i, name: 'n' + i })",
        330_000,
        500_000,
    ),
    (
        "objects with one member",
        "const all = []; for (let i = 0; i < n; i++) all.push({ i })",
        460_000,
        700_000,
    ),
    (
        "a map of numbers",
        "const all = new Map(); for (let i = 0; i < n; i++) all.set(i, i)",
        660_000,
        700_000,
    ),
    ("short lists", "const all = []; for (let i = 0; i < n; i++) all.push([i])", 460_000, 700_000),
    ("numbers", "const all = []; for (let i = 0; i < n; i++) all.push(i)", 3_500_000, 5_000_000),
    ("bytes", "const all = new Uint8Array(n)", 66_800_000, 66_800_000),
    ("floats", "const all = new Float64Array(n)", 8_350_000, 8_350_000),
    ("one string", "const all = 'x'.repeat(n)", 66_800_000, 66_800_000),
];

/// Whether `n` objects fit in 64 MiB in a plain QuickJS with the system's allocator.
fn fits_reference(program: &str, n: u64) -> bool {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    runtime.set_memory_limit(64 << 20);
    let code = format!("((n) => {{ {program} }})({n})");
    context.with(|ctx| ctx.eval::<(), _>(code).inspect_err(|_| drop(ctx.catch())).is_ok())
}

#[test]
fn sixty_four_mebibytes_hold_as_much_as_in_other_hosts_of_quickjs() {
    let mut guest = Guest::new();
    for (what, program, n_reference, n) in HOLDERS {
        assert!(fits_reference(program, *n_reference), "{what}");
        assert!(!fits_reference(program, n_reference + n_reference / 8), "{what}");
        assert!(n >= n_reference);
        let code = format!("((n) => {{ {program} }})({n}); 7");
        guest.execute(&Run { memory_bytes: 64 << 20, cpu_ms: 60_000, ..Run::new(&code) });
        let done = guest.done();
        assert_eq!(done["result"], 7, "{n} {what}: {done}");
    }
}

#[test]
fn no_program_gets_more_than_seven_quarters_of_its_limit() {
    for (what, program, ..) in HOLDERS {
        // Each object takes at least one byte; an element of a list takes sixteen.
        let n: u64 = 7 * (16 << 20) / 4 + (1 << 20);
        let code = format!("((n) => {{ {program} }})({n}); 7");
        let run = Run { memory_bytes: 16 << 20, cpu_ms: 60_000, ..Run::new(&code) };
        let (kind, message) = failure_of(&run);
        assert_eq!(kind, "memory_limit", "{what}: {message}");
        assert_eq!(message, "needed more than 16777216 bytes of memory");
    }
    // A single allocation is never larger than the limit.
    let run = Run { memory_bytes: 16 << 20, ..Run::new("new Uint8Array(17 << 20).length") };
    assert_eq!(failure_of(&run).0, "memory_limit");
}

#[test]
fn programs_of_the_first_globals_have_the_memory_and_the_stack_that_they_had() {
    let first = |code: &str| done(&Run { prelude: 1, cpu_ms: 60_000, ..Run::new(code) });
    let fill =
        |n: u64| format!("const all = []; for (let i = 0; i < {n}; i++) all.push({{ i }}); 7");
    assert_eq!(first(&fill(440_000))["result"], 7);
    assert_eq!(first(&fill(480_000))["error"]["code"], "memory_limit");
    let recurse = |n: u64| format!("const f = (n) => (n === 0 ? 7 : f(n - 1)); f({n})");
    assert_eq!(first(&recurse(1_000))["result"], 7);
    assert_eq!(first(&recurse(1_300))["error"]["name"], "RangeError");
    assert_eq!(first("2n ** 1048577n")["error"]["message"], "BigInt is too large");
}

#[test]
fn a_bigint_that_is_too_large_names_the_limit() {
    let message = "BigInt is too large: it may have 1,048,576 bits";
    for code in
        ["2n ** 1048577n", "3n ** 1000000n", "1n << 1048577n", "(1n << 1048000n) * (1n << 1000n)"]
    {
        let done = done(&Run { cpu_ms: 60_000, ..Run::new(code) });
        assert_eq!(done["error"]["message"], message, "{code}");
        assert_eq!(done["error"]["name"], "RangeError", "{code}");
    }
    assert_eq!(value("(2n ** 1048574n).toString(16).length"), "262144");
}
