//! Loop iterations are counted, and no program can observe the counter.

use super::guest::{Guest, Run, done, value};
use lifecycle::ValueConvention;

fn rounds(code: &str) -> Option<u64> {
    let mut guest = Guest::running(code);
    let mut counted = None;
    loop {
        let message = guest.next().unwrap();
        match message["type"].as_str().unwrap() {
            "counted" => counted = message["iterations"].as_u64(),
            "done" => return counted,
            _ => {}
        }
    }
}

#[test]
fn every_loop_counts_each_time_it_goes_round() {
    let cases = [
        ("for (let i = 0; i < 10; i++) {}", Some(10)),
        ("for (let i = 0; i < 3; i++) for (const x of [1, 2]) x", Some(9)),
        ("for (const k in { a: 1, b: 2 });", Some(2)),
        ("let i = 0; while (i < 5) i++; do { i-- } while (i > 0); i", Some(10)),
        ("const f = (n) => { while (n > 0) n--; }; f(3); f(4)", Some(7)),
        ("for (let i = 0; ; i++) { if (i === 2) continue; if (i === 6) break }", Some(7)),
        (
            "async function* g() { yield 1; yield 2 } await (async () => { for await (const x of g()) x })()",
            Some(2),
        ),
        ("let i = 0; for (;;) { i++; if (i === 4) throw new Error('x') }", Some(4)),
        ("for (let i = 0; i < 100000; i++) {}", Some(100_000)),
        ("[1, 2].map((x) => x)", None),
        ("1 + 1", None),
    ];
    for (code, expected) in cases {
        assert_eq!(rounds(code), expected, "{code}");
    }
    let busy = Run { cpu_ms: 50, ..Run::new("for (;;) {}") };
    let mut guest = Guest::new();
    guest.execute(&busy);
    let counted = std::iter::from_fn(|| guest.next().filter(|message| message["type"] != "done"));
    let last = counted.filter(|message| message["type"] == "counted").last().unwrap();
    assert!(last["iterations"].as_u64() > Some(1_000), "{last}");
}

#[test]
fn no_program_can_tell_that_its_loops_are_counted() {
    let text =
        "(n) => { for (let i = 0; i < n; i++) n--; while (n > 0) { n-- } do n++; while (n < 2) }";
    let shown = |code: &str| value(&code.replace("TEXT", text));
    assert_eq!(shown("(TEXT).toString() === `TEXT`"), "true");
    assert_eq!(shown("`${TEXT}` + Function.prototype.toString.call(TEXT) === `TEXTTEXT`"), "true");
    assert_eq!(
        shown("const o = { m() { for (;;) break } }; String(o.m)"),
        "\"m() { for (;;) break }\""
    );
    let native =
        "for (;;) break; [String(Function.prototype.toString), Function.prototype.toString.name,
        Function.prototype.toString.length, 'prototype' in Function.prototype.toString,
        Object.keys(Function.prototype).length, Reflect.ownKeys(globalThis).length]";
    let (counted, plain) = (value(native), value(&native.replace("for (;;) break; ", "")));
    assert_eq!(counted, plain);
    let threw = "let name; for (;;) break; try { Function.prototype.toString.call({}) } catch (e) { name = e.name }; name";
    assert_eq!(value(threw), "\"TypeError\"");
}

#[test]
fn places_in_a_marked_program_are_the_users_own() {
    let code = "for (const x of [1]) { for (const y of [2]) null.x }";
    let stack = |run: &Run<'_>| done(run)["error"]["stack"].as_str().unwrap().to_owned();
    let counted = stack(&Run::new(code));
    let plain = stack(&Run { convention: ValueConvention::ExplicitReturn, ..Run::new(code) });
    assert_eq!(counted, plain);
    let later = "const a = 1;\nfor (const ä of [1]) {\n  a; while (true) undefinedThing }";
    let counted = stack(&Run::new(later));
    let plain = stack(&Run { convention: ValueConvention::ExplicitReturn, ..Run::new(later) });
    assert_eq!(counted, plain);
    assert!(counted.contains("program.js:3:19"), "{counted}");
}

/// Returns the outcome of a program whose loops are limited to ten iterations each.
fn within_ten(code: &str) -> String {
    let mut guest = Guest::new();
    guest.execute(&Run { loop_rounds_max: Some(10), ..Run::new(code) });
    let done =
        std::iter::from_fn(|| guest.next()).find(|message| message["type"] == "done").unwrap();
    match done["ok"].as_bool().unwrap() {
        true => done["result"].to_string(),
        false => format!("{} {}", done["error"]["limit"], done["error"]["message"]),
    }
}

#[test]
fn a_loop_that_goes_round_too_often_stops_the_program_whatever_the_program_does() {
    let over = "\"rounds\" \"went round one loop more than 10 times\"";
    let stopped = [
        "for (let i = 0; i < 11; i++) {}",
        "try { while (true) {} } catch {} finally { 7 }",
        "a: do { continue a } while (true)",
        "for (const i of Array.from({ length: 11 })) await null",
        "const f = async () => { for (;;) await null }; f().catch(() => 1); await f(); 2",
        "(() => { for (let i = 0; i < 20; i++) if (i > 12) return 1 })()",
    ];
    for code in stopped {
        assert_eq!(within_ten(code), over, "{code}");
    }
    let good = [
        ("let n = 0; for (let i = 0; i < 10; i++) for (let j = 0; j < 10; j++) n++; n", "100"),
        ("let n = 0; const f = () => { for (let i = 0; i < 10; i++) n++ }; f(); f(); n", "20"),
        ("let n = 0; a: for (;;) { for (;;) { if (++n > 5) break a; continue a } } n", "6"),
        ("[...Array(50)].map((_, i) => i).length", "50"),
        ("String(() => { for (;;) { break } })", "\"() => { for (;;) { break } }\""),
    ];
    for (code, value) in good {
        assert_eq!(within_ten(code), value, "{code}");
    }
}

#[test]
fn a_program_whose_loops_are_limited_makes_no_code_from_text() {
    let ways = [
        "eval('for (;;);')",
        "(0, eval)('1')",
        "new Function('for (;;);')()",
        "(() => {}).constructor('for (;;);')()",
        "(async () => {}).constructor('for (;;);')()",
        "(function* () {}).constructor('for (;;);')()",
        "(async function* () {}).constructor('1')",
    ];
    for way in ways {
        let code = format!(
            "(() => {{ try {{ {way}; return 'made' }} catch (error) {{ return error.name }} }})()"
        );
        assert_eq!(within_ten(&code), "\"EvalError\"", "{way}");
    }
    assert_eq!(within_ten("(() => {}) instanceof Function"), "true");
}
