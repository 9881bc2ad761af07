//! Executions that an ordinary execbox host starts.

use crate::guest::Guest;
use serde_json::{Value, json};

/// Sends a program to a runner as an ordinary execbox host does.
pub(crate) fn execute(guest: &mut Guest, id: &str, code: &str, options: &Value) {
    let mut all = json!({
        "timeoutMs": 10_000, "memoryLimitBytes": 64 << 20, "maxLogLines": 100, "maxLogChars": 64_000,
    });
    for (name, value) in options.as_object().unwrap() {
        all[name] = value.clone();
    }
    let tool = json!({"safeName": "s", "originalName": "o"});
    let tools = json!({"echo": tool, "b": tool, "__proto__": tool});
    let providers = json!([
        {"name": "tools", "types": "", "tools": tools},
        {"name": "undefined", "types": "", "tools": {}},
    ]);
    send(
        guest,
        &json!({"type": "execute", "id": id, "code": code, "options": all, "providers": providers}),
    );
}

fn send(guest: &mut Guest, message: &Value) {
    guest.send_line(format!("{message}\n").as_bytes());
}

fn answer(guest: &mut Guest, call: &Value, result: &Value) {
    let call_id = &call["callId"];
    send(guest, &json!({"type": "tool_result", "callId": call_id, "ok": true, "result": result}));
}

fn running(code: &str) -> Guest {
    let mut guest = Guest::new();
    execute(&mut guest, "e", code, &json!({}));
    assert_eq!(guest.next().unwrap(), json!({"type": "started", "id": "e"}));
    guest
}

/// Returns the next message that is not a log, and the log lines that preceded it.
pub(crate) fn next(guest: &mut Guest) -> (Value, Vec<String>) {
    let mut lines = vec![];
    loop {
        let message = guest.next().unwrap();
        if message["type"] != "log" {
            return (message, lines);
        }
        lines.push(message["line"].as_str().unwrap().to_owned());
    }
}

fn done_and_logs(code: &str, options: &Value) -> (Value, Vec<String>) {
    let mut guest = Guest::new();
    execute(&mut guest, "e", code, options);
    assert_eq!(guest.next().unwrap()["type"], "started");
    next(&mut guest)
}

pub(crate) fn done_with(code: &str, options: &Value) -> Value {
    done_and_logs(code, options).0
}

pub(crate) fn logs(code: &str, options: &Value) -> Value {
    json!(done_and_logs(code, options).1)
}

fn value(code: &str) -> Value {
    let done = done_with(code, &json!({}));
    assert_eq!(done["ok"], true, "{done}");
    done["result"].clone()
}

fn failure(code: &str, options: &Value) -> (String, String) {
    let done = done_with(code, options);
    let text = |name: &str| done["error"][name].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

fn code_of(code: &str) -> String {
    failure(code, &json!({})).0
}

#[test]
fn a_program_is_started_and_done_in_plain_words() {
    let (mut done, lines) = done_and_logs("console.log('a', 1); 1 + 1", &json!({}));
    done["durationMs"].take();
    let expected = json!({
        "type": "done", "id": "e", "ok": true, "durationMs": null, "logs": [], "result": 2,
    });
    assert_eq!((done, lines), (expected, vec!["a 1".to_owned()]));
}

#[test]
fn a_syntax_error_comes_after_the_start() {
    assert_eq!(code_of("const = 5"), "runtime_error");
}

#[test]
fn a_namespace_is_a_plain_object_of_plain_functions() {
    let code = "const f = tools.echo;
        [Object.keys(tools), Object.getPrototypeOf(tools) === Object.prototype, f.name, f.length,
         f({}) instanceof Promise, (tools.x = 1, tools.x), (tools = 2, tools), typeof undefined]";
    let mut guest = running(code);
    assert_eq!(guest.next().unwrap()["type"], "tool_call");
    let expected = json!([["__proto__", "b", "echo"], true, "echo", 0, true, 1, 2, "undefined"]);
    assert_eq!(guest.next().unwrap()["result"], expected);
}

#[test]
fn only_the_first_argument_counts_and_input_is_always_there() {
    let mut guest = running("[await tools.echo(), await tools.b({ a: 1 }, 2)]");
    let first = guest.next().unwrap();
    let said = |call: &Value| {
        (call["providerName"].clone(), call["safeToolName"].clone(), call["input"].clone())
    };
    assert_eq!(said(&first), (json!("tools"), json!("echo"), json!(null)));
    assert!(first.get("input").is_some());
    answer(&mut guest, &first, &json!(1));
    let second = guest.next().unwrap();
    assert_eq!(said(&second), (json!("tools"), json!("b"), json!({"a": 1})));
    assert_ne!(first["callId"], second["callId"]);
    answer(&mut guest, &second, &json!(2));
    assert_eq!(guest.next().unwrap()["result"], json!([1, 2]));
}

#[test]
fn unknown_late_and_repeated_results_and_noise_are_ignored() {
    let mut guest = running("[await tools.echo(1), await tools.echo(2)]");
    let first = guest.next().unwrap();
    for call_id in ["nobody", "e", "e.", "e.99", ".1"] {
        answer(&mut guest, &json!({"callId": call_id}), &json!("wrong"));
    }
    guest.send_line(
        b"not json\n\n[1]\nnull\n{\"type\":\"sync\",\"n\":1}\n{\"type\":\"tool_result\"}\n",
    );
    send(&mut guest, &json!({"type": "cancel", "id": "other"}));
    answer(&mut guest, &first, &json!("a"));
    answer(&mut guest, &first, &json!("again"));
    let second = guest.next().unwrap();
    send(&mut guest, &json!({"type": "tool_result", "callId": second["callId"], "ok": true}));
    assert_eq!(guest.next().unwrap()["result"], json!(["a", null]));
}

#[test]
fn a_second_order_is_refused_and_the_first_goes_on() {
    let mut guest = running("await tools.echo(1)");
    let call = guest.next().unwrap();
    execute(&mut guest, "second", "2", &json!({}));
    answer(&mut guest, &call, &json!("fine"));
    let refused = guest.next().unwrap();
    let said = (&refused["id"], &refused["error"]["code"], &refused["durationMs"]);
    assert_eq!(said, (&json!("second"), &json!("internal_error"), &json!(0)));
    assert_eq!(guest.next().unwrap()["result"], "fine");
}

#[test]
fn a_hosts_error_keeps_its_code_only_unchanged() {
    let cases = [
        ("await tools.echo(1)", "no_such_code", "no"),
        ("try { await tools.echo(1) } catch (e) { throw e }", "no_such_code", "no"),
        (
            "try { await tools.echo(1) } catch (e) { e.code = 'timeout'; throw e }",
            "runtime_error",
            "no",
        ),
        (
            "try { await tools.echo(1) } catch (e) { e.message = 'x'; throw e }",
            "runtime_error",
            "x",
        ),
        (
            "try { await tools.echo(1) } catch (e) { throw Object.assign(new Error('no'), { ...e }) }",
            "runtime_error",
            "no",
        ),
    ];
    for (code, expected, message) in cases {
        let mut guest = running(code);
        let call = guest.next().unwrap();
        let error = json!({"code": "no_such_code", "message": "no"});
        send(
            &mut guest,
            &json!({"type": "tool_result", "callId": call["callId"], "ok": false, "error": error}),
        );
        let done = guest.next().unwrap();
        assert_eq!(done["error"], json!({"code": expected, "message": message}), "{code}");
    }
}

#[test]
fn no_text_name_or_property_forges_a_code() {
    for code in [
        "throw new Error('out of memory')",
        "throw Object.assign(new Error('x'), { name: 'InternalError', code: 'memory_limit' })",
        "throw null",
        "globalThis.s = 'x'.repeat(30e6); throw null",
        "let p; try { (function f() { f() })() } catch (e) { p = Object.getPrototypeOf(e) }
         throw Object.setPrototypeOf(new Error('out of memory'), p)",
        "throw { code: 'timeout', message: 'Execution timed out' }",
        "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })",
    ] {
        assert_eq!(code_of(code), "runtime_error", "{code}");
    }
}

#[test]
fn whatever_a_guest_does_to_its_world_its_value_is_told() {
    let code = "JSON.stringify = () => '\"forged\"'; globalThis.JSON = globalThis.Promise = globalThis.Reflect = undefined;
        Object.prototype.toJSON = undefined; Array.prototype[Symbol.iterator] = undefined;
        String.prototype.toWellFormed = String.prototype.slice = () => 'forged';
        console.log('told'); await tools.echo({ a: [1] })";
    let mut guest = running(code);
    let (call, lines) = next(&mut guest);
    assert_eq!((&call["input"], lines), (&json!({"a": [1]}), vec!["told".to_owned()]));
    answer(&mut guest, &call, &json!({"b": 2}));
    assert_eq!(guest.next().unwrap()["result"], json!({"b": 2}));
}

#[test]
fn time_runs_out_wherever_the_guest_is() {
    for code in [
        "for (;;) {}",
        "await null; for (;;) {}",
        "const again = () => Promise.resolve().then(again); await again()",
        "({ toJSON() { for (;;) {} } })",
        "await tools.echo({ toJSON() { for (;;) {} } })",
        "console.log({ toJSON() { for (;;) {} } })",
        "throw Object.defineProperty(new Error(), 'message', { get() { for (;;) {} } })",
        "try { for (;;) {} } finally { for (;;) {} }",
    ] {
        let timed_out = ("timeout".to_owned(), "Execution timed out".to_owned());
        assert_eq!(failure(code, &json!({"timeoutMs": 40})), timed_out, "{code}");
    }
    assert_eq!(failure("1", &json!({"timeoutMs": 0})).0, "timeout");
}

#[test]
fn a_cancelled_program_timed_out() {
    let mut guest = running("try { await tools.echo(1) } catch { } 1");
    assert_eq!(guest.next().unwrap()["type"], "tool_call");
    send(&mut guest, &json!({"type": "cancel", "id": "e"}));
    assert_eq!(guest.next().unwrap()["error"]["code"], "timeout");
}

#[test]
fn memory_runs_out_in_those_words() {
    // Exhaustion that leaves no memory for an error object is detected by the kernel's count for this process, which
    // these tests share with others: the wire check covers such programs.
    for code in ["let s = 'x'; for (;;) s += s", "new ArrayBuffer(1 << 28).byteLength"] {
        let code_of = failure(code, &json!({"memoryLimitBytes": 16 << 20})).0;
        assert_eq!(code_of, "memory_limit", "{code}");
    }
}

#[test]
fn what_has_no_json_is_said_in_execboxs_words() {
    let no_json = "Guest code returned a non-serializable value";
    for code in ["(() => 1)", "1n", "Symbol()", "const a = {}; a.a = a; a", "await tools.echo(1n)"]
    {
        let said = failure(code, &json!({}));
        assert_eq!(said, ("serialization_error".to_owned(), no_json.to_owned()), "{code}");
    }
    // Larger than a message may be.
    let roomy = json!({"memoryLimitBytes": 1_u64 << 30});
    assert_eq!(failure("'x'.repeat(65 << 20)", &roomy).0, "serialization_error");
}

#[test]
fn a_promise_that_nothing_can_settle_ends_at_once() {
    assert_eq!(code_of("await new Promise(() => {})"), "runtime_error");
}

#[test]
fn the_console_writes_lines_as_execbox_does() {
    let code = "console.log('%s', 1, undefined, null, NaN, -0, 10n, Symbol('s'), [1, [2]], { a: undefined });
        console.info(); console.warn(true); console.error('a\\nb');
        const cycle = {}; cycle.self = cycle; console.log(cycle, function f() {})";
    let lines = json!([
        "%s 1 undefined null null 0 10  [1,[2]] {}",
        "",
        "true",
        "a\nb",
        "[object Object] function f() {}",
    ]);
    assert_eq!(logs(code, &json!({})), lines);
}

#[test]
fn logs_are_cut_by_lines_then_by_utf16_units() {
    // Columns: lines, limit of lines, limit of characters, expected lines.
    let cases = [
        (json!(["12345", "67890", "abc"]), 2, 10, json!(["12345", "67890"])),
        (json!(["12345", "67890"]), 5, 7, json!(["12345", "67"])),
        (json!(["a", "", "b"]), 9, 1, json!(["a"])),
        (json!(["", "a"]), 9, 1, json!(["", "a"])),
        (json!(["a"]), 0, 9, json!([])),
        (json!(["ab"]), 9, 0, json!([])),
        (json!(["ab"]), 9, -1, json!([])),
        (json!(["😀😀"]), 9, 2, json!(["😀"])),
    ];
    for (lines, max_lines, max_chars, left) in cases {
        let code = format!("for (const line of {lines}) console.log(line)");
        let options = json!({"maxLogLines": max_lines, "maxLogChars": max_chars});
        assert_eq!(logs(&code, &options), left, "{lines}");
    }
}

#[test]
fn a_flood_of_logs_is_bounded_while_it_runs() {
    let code = "const x = 'x'.repeat(100000); for (let i = 0; i < 20000; i++) console.log(x, { x }); 'end'";
    let (done, lines) = done_and_logs(code, &json!({"memoryLimitBytes": 8 << 20}));
    assert_eq!((&done["result"], lines.len()), (&json!("end"), 1));
    assert_eq!(lines[0].len(), 64_000);
}

#[test]
fn the_world_is_that_of_every_door() {
    let there = "[new URL('a', 'http://b/').href, new TextEncoder().encode('é').length, structuredClone({ a: [1] }).a[0],
        crypto.randomUUID().length, (await crypto.subtle.digest('SHA-256', new Uint8Array())).byteLength,
        performance.now(), new AbortController().signal.aborted, atob(btoa('x')), typeof queueMicrotask, typeof emit]";
    let expected = json!(["http://b/a", 2, 1, 36, 32, 0, false, "x", "function", "function"]);
    assert_eq!(value(there), expected);
    let absent = "['process', 'require', 'Buffer', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry',
        'InternalError', 'navigator', 'std', 'os'].filter((name) => name in globalThis)";
    assert_eq!(value(absent), json!([]));
}

#[test]
fn tools_are_only_those_of_the_host() {
    let mut guest = Guest::new();
    let tool = json!({"safeName": "b", "originalName": "b"});
    send(
        &mut guest,
        &json!({
            "type": "execute", "id": "e", "code": "[typeof tools, await codemode.b()]",
            "options": {"timeoutMs": 10_000, "memoryLimitBytes": 64 << 20, "maxLogLines": 1, "maxLogChars": 1},
            "providers": [{"name": "codemode", "types": "", "tools": {"b": tool}}],
        }),
    );
    assert_eq!(guest.next().unwrap()["type"], "started");
    let call = guest.next().unwrap();
    assert_eq!(call["providerName"], "codemode");
    answer(&mut guest, &call, &json!(1));
    assert_eq!(guest.next().unwrap()["result"], json!(["undefined", 1]));
}

#[test]
fn fetch_is_not_there_and_says_so_when_it_is_called() {
    let code = "let said; try { await fetch('http://x/') } catch (error) { said = error.message } [typeof fetch, said]";
    let words = "fetch is disabled: everything outside is reached through tools.*, undefined.*";
    assert_eq!(value(code), json!(["undefined", words]));
}

#[test]
fn the_rest_of_the_console_prints_within_the_same_limits() {
    let code =
        "console.debug('a', { b: 1 }); console.group('g'); console.log('in'); console.groupEnd();
        console.table([{ x: 1 }]); console.assert(false, 'no'); console.log('beyond')";
    let (done, lines) = done_and_logs(code, &json!({"maxLogLines": 5}));
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(lines[..3], ["a {\"b\":1}", "g", "  in"]);
    assert!(lines[3].contains("x") && lines[3].contains('1'), "{}", lines[3]);
    assert_eq!(lines.len(), 5);
}

#[test]
fn timers_are_the_doors_and_fire_as_told() {
    let mut guest = running("await new Promise((done) => setTimeout(done, 50)); 'rung'");
    let set = guest.next().unwrap();
    assert_eq!((&set["type"], &set["delayMs"]), (&json!("timer_set"), &json!(50)));
    send(&mut guest, &json!({"type": "timer_fired", "timer": 99, "at": 1}));
    send(&mut guest, &json!({"type": "timer_fired", "timer": set["timer"], "at": 1}));
    assert_eq!(guest.next().unwrap()["result"], "rung");
}

#[test]
fn items_are_emitted_as_they_come_and_not_without_end() {
    let mut guest = running(
        "emit({ n: 1 }); let n = 0; try { for (;;) { emit('x'.repeat(1e5)); n++ } } catch { } n",
    );
    assert_eq!(guest.next().unwrap()["item"], json!({"n": 1}));
    let mut n_items = 0;
    loop {
        let message = guest.next().unwrap();
        if message["type"] == "done" {
            assert_eq!(message["result"], n_items);
            break;
        }
        n_items += 1;
    }
    assert_eq!(n_items, 10);
}

#[test]
fn time_stands_still_between_inputs_and_chance_differs() {
    let code =
        "const t = Date.now(); for (let i = 0; i < 1e6; i++); const still = Date.now() === t;
        [still, t > 1700000000000, new Date().getTimezoneOffset()]";
    assert_eq!(value(code), json!([true, true, 0]));
    let dice = "[Math.random(), crypto.randomUUID()]";
    assert_ne!(value(dice), value(dice));
}
