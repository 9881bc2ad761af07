//! One runner, many programs: each program starts in the same pristine world.

use crate::guest::{Guest, Run};
use lifecycle::UnawaitedCalls;
use serde_json::Value;

/// Programs that leave their world in a bad state, or are interrupted in the middle of changing it.
const VANDALS: &[&str] = &[
    "globalThis.left = 1; Array.prototype.map = null; JSON.stringify = () => 'forged'; 1",
    "for (const name of Object.getOwnPropertyNames(globalThis)) { try { delete globalThis[name] } catch {} } 1",
    "Object.prototype.then = (resolve) => resolve(1); Object.freeze(Object.prototype); 1",
    "const all = []; for (;;) all.push('x'.repeat(1 << 16) + all.length)",
    "const grow = () => grow() + 1; grow()",
    "tools.echo(1); tools.echo(2); new Promise(() => {}); setTimeout(() => {}, 1e6); 1",
    "throw Object.assign(new Error('left behind'), { big: new Uint8Array(1 << 20) })",
    "new URL('https://a.example/b?c=d').searchParams.append('e', 'f'); crypto.randomUUID(); structuredClone({ a: [1n] }); 1",
    "/(a+)+b/.test('a'.repeat(20)); Symbol.for('left'); new Map([[{}, 1]]); class A { #x = 1 }; 1",
    "let text = ''; for (let n = 0; n < 1e5; n++) text += n; text.length",
    "for (;;) {}",
];

/// Lists the state of its world that a program can observe.
const LOOK: &str = "JSON.stringify([
    Object.getOwnPropertyNames(globalThis).sort(), Object.getOwnPropertyNames(Object.prototype),
    Object.isFrozen(Object.prototype), typeof Array.prototype.map, typeof left, [3, 1, 2].map((n) => n + 1),
    Symbol.keyFor(Symbol.for('left')), new URL('https://a.example/').href, new Error('e').stack.length,
])";

fn done(guest: &mut Guest, run: &Run<'_>) -> Value {
    guest.execute(run);
    guest.done()
}

#[test]
fn no_program_finds_what_another_one_left() {
    let mut guest = Guest::new();
    let first = done(&mut guest, &Run::new(LOOK))["result"].clone();
    assert!(first.is_string(), "{first}");
    for round in 0..3 {
        for vandal in VANDALS {
            let usual = Run::new(vandal);
            let run = Run {
                cpu_ms: 100,
                memory_bytes: 4 << 20,
                unawaited: UnawaitedCalls::Forget,
                ..usual
            };
            done(&mut guest, &run);
            let found = done(&mut guest, &Run::new(LOOK));
            assert_eq!(found["result"], first, "round {round}, after {vandal}");
        }
    }
    assert_eq!(guest.close(), 0);
}

#[test]
fn a_thousand_programs_each_have_a_world_of_their_own() {
    let mut guest = Guest::new();
    for n in 0..1_000 {
        let code = format!(
            "globalThis.seen = (globalThis.seen ?? 0) + 1; [seen, Math.random(), await tools.demo.echo({n})]"
        );
        guest.execute(&Run::new(&code));
        guest.until("tool_call");
        guest.resolve(1, &n.to_string(), 1);
        let done = guest.done();
        assert_eq!(done["result"][0], 1, "{done}");
        assert_eq!(done["result"][2], n, "{done}");
    }
    assert_eq!(guest.close(), 0);
}
