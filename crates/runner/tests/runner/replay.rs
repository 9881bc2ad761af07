//! The guest is a function of its inputs: the same inputs in the same order give the same messages.

use crate::guest::{Guest, Run, value};
use lifecycle::ValueConvention;
use proptest::prelude::*;

#[test]
fn everything_random_follows_from_the_seed() {
    let code = "const b = new Uint8Array(20); crypto.getRandomValues(b);
        const r = [Math.random(), Math.random(), crypto.randomUUID(), [...b]]; r";
    let with = |seed| {
        let mut guest = Guest::new();
        guest.execute(&Run { seed, ..Run::new(code) });
        guest.done()["result"].to_string()
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn randomness_looks_random() {
    assert_eq!(
        value(
            "const n = 1e4; let s = 0; for (let i = 0; i < n; i++) { const r = Math.random(); if (r < 0 || r >= 1) throw r; s += r } Math.abs(s / n - 0.5) < 0.02"
        ),
        "true"
    );
    assert_eq!(
        value(
            "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())"
        ),
        "true"
    );
    assert_eq!(
        value("new Set(Array.from({ length: 1000 }, () => crypto.randomUUID())).size"),
        "1000"
    );
    assert_eq!(
        value(
            "let e; try { crypto.getRandomValues(new Float64Array(1)) } catch (x) { e = x.name } e"
        ),
        "\"TypeError\""
    );
}

#[test]
fn nothing_the_guest_can_see_differs_between_two_runs() {
    let code = "const seen = [];
        const look = (path, object, depth) => {
          for (const key of Reflect.ownKeys(object)) {
            const d = Reflect.getOwnPropertyDescriptor(object, key);
            seen.push(path + String(key) + ':' + typeof d.value);
            if (depth && d.value && (typeof d.value === 'object' || typeof d.value === 'function') && d.value !== globalThis) look(path + String(key) + '.', d.value, depth - 1);
            else if (typeof d.value !== 'function' && typeof d.value !== 'object') seen.push(String(d.value));
          }
        };
        look('', globalThis, 2);
        const f = (n) => { try { return f(n + 1) } catch { return n } };
        seen.push(f(0), new Error('x').stack, [5, 3, 9, 1].sort(() => Math.random() - 0.5).join(), String(new Date()), Date.now(), performance.now(), new Date().toLocaleString(), Math.sin(1e6), Math.pow(1.1, 77), Math.exp(3.3));
        seen.join('\\n')";
    assert_eq!(value(code), value(code));
}

/// A way in which a program waits.
#[derive(Debug, Clone)]
enum Step {
    Call,
    Timer(u8),
    All(Vec<Self>),
    Race(Vec<Self>),
    Unawaited(Box<Self>),
    Caught,
}

fn step() -> impl Strategy<Value = Step> {
    let leaf = prop_oneof![Just(Step::Call), (1_u8..50).prop_map(Step::Timer), Just(Step::Caught)];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Step::All),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Step::Race),
            inner.prop_map(|step| Step::Unawaited(Box::new(step))),
        ]
    })
}

/// Writes a step as an expression that returns a promise. Every path prints, so a different order gives a different trace.
fn expression(step: &Step) -> String {
    let list = |steps: &[Step]| steps.iter().map(expression).collect::<Vec<_>>().join(", ");
    match step {
        Step::Call => "tools.t({ r: Math.random() }).then(say)".to_owned(),
        Step::Caught => "tools.fails(Date.now()).then(say, (e) => say(e.code))".to_owned(),
        Step::Timer(ms) => format!("new Promise((r) => setTimeout(r, {ms}, {ms})).then(say)"),
        Step::All(steps) => format!("Promise.all([{}]).then(say)", list(steps)),
        Step::Race(steps) => format!("Promise.race([{}]).then(say)", list(steps)),
        Step::Unawaited(step) => format!("(({}).then(say), Promise.resolve(0))", expression(step)),
    }
}

fn program(steps: &[Step]) -> String {
    let mut text = "const say = (v) => { console.log(JSON.stringify(v), Date.now(), Math.random()); return v };\n".to_owned();
    for step in steps {
        text.push_str(&format!("await {};\n", expression(step)));
    }
    text + "return say(performance.now())"
}

/// A recorded action of the engine, for the replay.
#[derive(Debug, Clone)]
enum Delivery {
    Resolve(u32, u32),
    Reject(u32),
    Fire(u32, i64),
}

fn deliver(guest: &mut Guest, delivery: &Delivery, at: i64) {
    match delivery {
        Delivery::Resolve(call, value) => guest.resolve(*call, &value.to_string(), at),
        Delivery::Reject(call) => guest.reject(*call, "tool", "failed"),
        Delivery::Fire(timer, at) => guest.fire(*timer, *at),
    }
}

/// Runs a program and answers its calls in the order that `dice` determines. Returns the deliveries and the messages.
fn record(run: &Run<'_>, dice: &[u32]) -> (Vec<Delivery>, Vec<String>) {
    let mut guest = Guest::new();
    guest.execute(run);
    let (mut open, mut deliveries, mut trace) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let message = guest.next().unwrap();
        let number = |name: &str| u32::try_from(message[name].as_u64().unwrap()).unwrap();
        match message["type"].as_str().unwrap() {
            "tool_call" => {
                let call = message["callId"].as_str().unwrap().parse().unwrap();
                let fails = message["safeToolName"] == "fails";
                open.push(if fails {
                    Delivery::Reject(call)
                } else {
                    Delivery::Resolve(call, call * 10)
                });
            }
            "timer_set" => open.push(Delivery::Fire(number("timer"), 0)),
            "idle" => {
                let n = deliveries.len();
                let die = dice[n % dice.len()] as usize;
                let mut delivery = open.remove(die % open.len());
                if let Delivery::Fire(_, at) = &mut delivery {
                    *at = i64::try_from(n).unwrap() * 7;
                }
                deliver(&mut guest, &delivery, i64::try_from(n).unwrap() * 7);
                deliveries.push(delivery);
            }
            _ => {}
        }
        trace.push(essence(&message));
        if message["type"] == "done" {
            return (deliveries, trace.into_iter().flatten().collect());
        }
    }
}

/// Sends a recording to a new runner in one batch, as a replay does.
fn replay(run: &Run<'_>, deliveries: &[Delivery]) -> Vec<String> {
    let mut guest = Guest::new();
    guest.execute(run);
    for (n, delivery) in deliveries.iter().enumerate() {
        deliver(&mut guest, delivery, i64::try_from(n).unwrap() * 7);
    }
    let mut trace = Vec::new();
    loop {
        let message = guest.next().unwrap();
        trace.extend(essence(&message));
        if message["type"] == "done" {
            return trace;
        }
    }
}

/// Removes the parts of a message that vary: durations, and the times at which the runner reported that it was idle.
fn essence(message: &serde_json::Value) -> Option<String> {
    let mut message = message.clone();
    if message["type"] == "idle" {
        return None;
    }
    message.as_object_mut().unwrap().remove("durationMs");
    Some(message.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_says_exactly_what_the_recording_said(
        steps in prop::collection::vec(step(), 1..4),
        dice in prop::collection::vec(any::<u32>(), 1..20),
        seed in any::<u8>(),
    ) {
        let text = program(&steps);
        let run = Run { seed, convention: ValueConvention::ExplicitReturn, ..Run::new(&text) };
        let (deliveries, recorded) = record(&run, &dice);
        prop_assert_eq!(replay(&run, &deliveries), recorded);
    }
}
