//! Hostile guests end on time with a truthful word, and nobody else notices.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it looks for and stops when it cannot go on"
)]

mod support;

use lifecycle::{FailureCode, Limits, Outcome};
use support::{House, value};

/// Named programs and what must be said of them.
const ATTACKS: &[(&str, &str, FailureCode)] = &[
    ("busy loop", "for (;;) {}", FailureCode::Timeout),
    ("busy loop after an await", "await null; for (;;) {}", FailureCode::Timeout),
    ("finally loop", "try { for (;;) {} } finally { for (;;) {} }", FailureCode::Timeout),
    (
        "native sort that never yields",
        "[].sort.call({ length: 2 ** 53 - 1 })",
        FailureCode::Timeout,
    ),
    ("native join that never yields", "new Array(2 ** 32 - 1).join('')", FailureCode::Timeout),
    (
        "microtask flood",
        "const again = () => void Promise.resolve().then(again); again(); await new Promise(() => {})",
        FailureCode::Timeout,
    ),
    (
        "catastrophic regular expression",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        FailureCode::Timeout,
    ),
    ("endless toJSON", "return { toJSON() { for (;;) {} } }", FailureCode::Timeout),
    (
        "allocation bomb",
        "const all = []; for (;;) all.push(new Array(1e5).fill(all.length))",
        FailureCode::MemoryLimit,
    ),
    ("string bomb", "let s = 'x'; for (;;) s += s + s.length", FailureCode::MemoryLimit),
    ("one huge buffer", "return new ArrayBuffer(1e9).byteLength", FailureCode::MemoryLimit),
    ("endless recursion", "const deep = () => deep() + 1; deep()", FailureCode::Runtime),
    ("text that closes the wrapper", "}); for (;;) {} (async () => {", FailureCode::Runtime),
];

fn tight() -> Limits {
    Limits { cpu_ms_max: 400, active_ms_max: 3_000, ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_ends_with_a_truthful_word_while_a_neighbour_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    let neighbour = "let sum = 0;
        for (let n = 0; n < 20; n += 1) { sum += await tools.demo.add({ a: n, b: 1 }) }
        return sum";
    for (name, source, expected) in ATTACKS {
        let (attacked, kept_on) =
            tokio::join!(house.run(source, tight()), house.run(neighbour, Limits::default()));
        match attacked {
            Outcome::Failed(failure) => assert_eq!((*name, failure.code), (*name, *expected)),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!((*name, value(&kept_on)), (*name, "210"));
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parser_killed_by_nesting_takes_nobody_along() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), |_| {}).await;
    for text in ["(".repeat(100_000), "[".repeat(100_000), "a=>".repeat(30_000) + "1"] {
        let outcome = house.run(&text, tight()).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    }
    assert_eq!(value(&house.run("return 1 + 1", tight()).await), "2");
    house.close().await;
}
