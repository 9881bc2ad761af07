//! Hostile guests of an execbox host, by name: each ends truthfully, and a neighbour on the same channel is not
//! disturbed.

use crate::execbox_fixture::Host;
use serde_json::{Value, json};

/// Runs an attack while a neighbour on the same channel waits for a tool. Returns the attack's `done`.
fn attacked(host: &Host, code: &str, options: &Value) -> Value {
    let mut all = json!({"multiplex": true, "timeoutMs": 1_000});
    for (name, value) in options.as_object().unwrap() {
        all[name] = value.clone();
    }
    let patient = json!({"multiplex": true, "timeoutMs": 60_000});
    host.execute(
        "neighbour",
        "const said = await tools.hang(); [said, ({}).x, [1].map(String)]",
        &patient,
    );
    let call = host.until("tool_call");
    host.execute("attack", code, &all);
    let done = host.attend("attack");
    let call_id = &call["callId"];
    host.send(&json!({"type": "tool_result", "callId": call_id, "ok": true, "result": "unharmed"}));
    assert_eq!(host.attend("neighbour")["result"], json!(["unharmed", null, ["1"]]), "{code}");
    done
}

#[track_caller]
fn ends_with(code: &str, expected: &str) {
    let done = attacked(&Host::start(), code, &json!({}));
    assert_eq!(done["error"]["code"], expected, "{done}");
}

#[test]
fn a_regex_bomb_runs_out_of_time() {
    ends_with("/^(a+)+$/.test('a'.repeat(40) + 'b')", "timeout");
}

#[test]
fn a_microtask_flood_runs_out_of_time() {
    ends_with(
        "const again = () => void Promise.resolve().then(again); again(); await new Promise(() => {})",
        "timeout",
    );
}

#[test]
fn an_allocation_bomb_runs_out_of_memory() {
    let code = "const all = []; for (;;) all.push(new Array(1e5).fill(all.length))";
    let done = attacked(&Host::start(), code, &json!({"timeoutMs": 20_000}));
    assert_eq!(done["error"]["code"], "memory_limit", "{done}");
}

#[test]
fn deep_recursion_is_an_error_like_any_other() {
    ends_with("const deep = () => deep() + 1; deep()", "runtime_error");
    let caught = "const deep = () => deep() + 1; let said; try { deep() } catch (error) { said = error.constructor.name } said";
    assert_eq!(attacked(&Host::start(), caught, &json!({}))["result"], "RangeError");
}

#[test]
fn a_result_ten_thousand_deep_is_told_or_refused_in_words() {
    let code = "let deep = null; for (let n = 0; n < 10000; n++) deep = [deep]; deep";
    let host = Host::start();
    let options = json!({"timeoutMs": 20_000});
    host.execute("deep", code, &options);
    let line = loop {
        let line = host.next_line();
        if line.contains(r#""type":"done""#) {
            break line;
        }
    };
    let is_whole = line.contains(&format!("{}null{}", "[".repeat(10_000), "]".repeat(10_000)));
    assert!(is_whole || line.contains("serialization_error"), "{}", &line[..200]);
    assert_eq!(attacked(&host, "1", &json!({}))["result"], 1);
}

#[test]
fn prototype_tampering_stays_in_its_own_world() {
    let code = "Object.prototype.x = 1; Array.prototype.map = () => 'forged'; Promise.prototype.then = undefined;
        JSON.stringify = () => '\"forged\"'; Object.prototype.toJSON = () => 'forged'; delete Object.prototype.toJSON; [1]";
    let host = Host::start();
    for _ in 0..2 {
        assert_eq!(attacked(&host, code, &json!({}))["result"], json!([1]));
    }
    assert_eq!(
        attacked(&host, "[typeof ({}).x, [1].map(String)]", &json!({}))["result"],
        json!(["undefined", ["1"]])
    );
}

#[test]
fn intrinsics_tampering_forges_nothing() {
    let code = "globalThis.console = globalThis.Promise = globalThis.Reflect = globalThis.Error = globalThis.JSON = undefined;
        Symbol.prototype.toString = Function.prototype.call = Function.prototype.apply = () => 'forged'; throw { code: 'timeout' }";
    ends_with(code, "runtime_error");
}

#[test]
fn text_that_closes_the_wrapper_is_no_program() {
    for code in [
        "}); for (;;) {} (async () => {",
        "}; throw new Error('out of memory'); (async () => {",
        "})(); evil(); (() => {",
    ] {
        ends_with(code, "runtime_error");
    }
}

/// The peak memory of every process below this one.
fn peaks_below(root: u32) -> Vec<u64> {
    let (mut below, mut peaks) = (vec![root], vec![]);
    while let Some(pid) = below.pop() {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes =
            peak.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peaks.extend(kibibytes.map(|n| n << 10));
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        below.extend(children.split_whitespace().flat_map(str::parse::<u32>));
    }
    peaks
}

#[test]
fn two_hundred_megabytes_of_log_text_take_hardly_any_memory() {
    const LIMIT: u64 = 64 << 20;
    let host = Host::start();
    let options = json!({"multiplex": true, "timeoutMs": 60_000, "memoryLimitBytes": LIMIT});
    let neighbour =
        "console.log('mine'); const said = await tools.hang(); console.log('still mine'); said";
    host.execute("neighbour", neighbour, &options);
    let call = host.until("tool_call");
    let code = "const line = 'x'.repeat(100000); for (let n = 0; n < 2000; n++) console.log(line, n); await tools.hang()";
    host.execute("flood", code, &options);
    host.until("tool_call");
    // The program has printed everything and still runs.
    let peaks = peaks_below(host.pid());
    assert!(peaks.len() >= 4 && peaks.iter().all(|peak| *peak < LIMIT), "{peaks:?}");
    let call_id = &call["callId"];
    host.send(&json!({"type": "tool_result", "callId": call_id, "ok": true, "result": "unharmed"}));
    let done = host.attend("neighbour");
    let heard = (&done["result"], &done["logs"]);
    assert_eq!(heard, (&json!("unharmed"), &json!(["mine", "still mine"])));
    host.send(&json!({"type": "cancel", "id": "flood"}));
    let done = host.until("done");
    let n_chars: usize =
        done["logs"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().len()).sum();
    assert_eq!((&done["error"]["code"], n_chars), (&json!("timeout"), 64_000));
}
