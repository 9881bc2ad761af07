//! Tool calls: the proxy, the order of answers, and calls that are not awaited.

use crate::guest::{Guest, Run, failure, value};
use lifecycle::UnawaitedCalls;

#[test]
fn calls_are_numbered_as_they_are_made_and_answered_in_any_order() {
    let mut guest = Guest::running(
        "const [a, b] = await Promise.all([tools.x.a({ n: 1 }), tools.x['b c'](2, 'ignored')]);
         [a, b, await tools.deep.er.and.deeper()]",
    );
    assert_eq!(
        guest.until("idle"),
        ["started", "call 1 x.a {\"n\":1}", "call 2 x.b c 2", "idle 0"]
    );
    guest.resolve(2, "\"second\"", 5);
    assert_eq!(guest.until("idle"), ["idle 1"]);
    guest.resolve(1, "{\"__proto__\":{\"x\":1}}", 6);
    assert_eq!(guest.until("idle"), ["call 3 deep.er.and.deeper null", "idle 2"]);
    guest.resolve(3, "null", 7);
    assert_eq!(guest.until("done"), [r#"done [{"__proto__":{"x":1}},"second",null]"#]);
}

/// Returns the line of the next call.
fn line_of_next_call(guest: &mut Guest) -> serde_json::Value {
    loop {
        let message = guest.next().unwrap();
        if message["type"] == "tool_call" {
            return message["line"].clone();
        }
    }
}

#[test]
fn a_call_says_which_line_of_the_users_text_made_it() {
    let mut guest = Guest::running(
        "const both: number[] = await Promise.all([tools.t(),\n  tools.t()]);\n\nconst f = () =>\n  tools.t();\nawait f();\n[1].map((n) => {\n  tools.t(n) })",
    );
    assert_eq!([line_of_next_call(&mut guest), line_of_next_call(&mut guest)], [1, 2]);
    guest.resolve(1, "0", 1);
    guest.resolve(2, "0", 2);
    assert_eq!(line_of_next_call(&mut guest), 5, "after waiting, too");
    guest.resolve(3, "0", 3);
    assert_eq!(line_of_next_call(&mut guest), 8);
    let mut fenced = Guest::running("\n```js\nawait tools.t()\n```\n");
    assert_eq!(line_of_next_call(&mut fenced), 3);
    let mut asserted = Guest::running("const f = () => <T>{ a: 1 }\nawait tools.t(f())");
    assert_eq!(line_of_next_call(&mut asserted), 2);
    let mut hidden = Guest::running(
        "class A extends Object { constructor(private x: T) { if (x) super(); else super(1) } }\nawait tools.t()",
    );
    assert_eq!(line_of_next_call(&mut hidden), 2);
    // A rewritten program that is run again has line numbers that match no source, so none are reported.
    let old = Run { prepared: true, ..Run::new("/* rewritten */let a;\nreturn await tools.t();") };
    let mut rewritten = Guest::new();
    rewritten.execute(&old);
    assert_eq!(line_of_next_call(&mut rewritten), serde_json::Value::Null);
}

#[test]
fn a_program_that_meddles_with_stacks_cannot_call_from_there() {
    let mut guest = Guest::running(
        "let n = 0, refused; Error.prepareStackTrace = () => { n += 1; tools.t('inner').catch((e) => { refused = e.message }); return 'program.js:77:1' };
         const said = await tools.t('outer'); [said, n > 0, refused]",
    );
    assert_eq!(guest.until("idle"), ["started", "call 1 t outer", "idle 0"]);
    guest.resolve(1, "1", 1);
    let done = guest.done();
    let refused = "a tool cannot be called while a stack is made";
    assert_eq!(done["result"], serde_json::json!([1, true, refused]), "{done}");
    let mut thrower =
        Guest::running("Error.prepareStackTrace = () => { throw 1 }; await tools.t()");
    assert_eq!(thrower.until("idle"), ["started", "call 1 t null", "idle 0"]);
}

#[test]
fn answers_that_wait_together_are_taken_one_at_a_time() {
    let mut guest = Guest::running(
        "await Promise.all([1, 2, 3].map(async (n) => { await tools.t(n); console.log(n); await null; console.log(-n) }))",
    );
    guest.until("idle");
    guest.resolve(3, "0", 1);
    guest.resolve(1, "0", 2);
    guest.resolve(2, "0", 3);
    let seen = guest.until("done");
    let logs: Vec<_> = seen.iter().filter(|line| line.starts_with("log")).collect();
    assert_eq!(
        logs,
        [
            "log 3 [1.1]",
            "log -3 [1.2]",
            "log 1 [2.1]",
            "log -1 [2.2]",
            "log 2 [3.1]",
            "log -2 [3.2]"
        ]
    );
}

#[test]
fn a_missing_result_is_undefined() {
    let mut guest = Guest::running("typeof (await tools.t())");
    guest.until("idle");
    guest.send_line(
        b"{\"type\":\"tool_result\",\"callId\":\"1\",\"ok\":true,\"at\":1700000000000}\n",
    );
    assert_eq!(guest.done()["result"], "undefined");
}

#[test]
fn deep_and_odd_results_reach_the_guest_whole() {
    let deep = format!("{}7{}", "[".repeat(2_000), "]".repeat(2_000));
    let mut guest = Guest::running(
        "let v = await tools.deep(), n = 0; while (Array.isArray(v)) { v = v[0]; n += 1 } [v, n, (await tools.odd()).charCodeAt(0)]",
    );
    guest.until("idle");
    guest.resolve(1, &deep, 0);
    guest.until("idle");
    guest.resolve(2, r#""\ud800""#, 0);
    assert_eq!(guest.done()["result"].to_string(), "[7,2000,55296]");
}

#[test]
fn a_result_nested_beyond_all_reason_rejects_its_call() {
    let mut guest = Guest::running("try { await tools.t() } catch (e) { console.log(e.code) }");
    guest.until("idle");
    guest.resolve(1, &format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)), 0);
    assert_eq!(guest.until("done"), ["log serialization [1.1]", "done null"]);
}

#[test]
fn a_rejection_has_code_message_and_details() {
    let mut guest = Guest::running(
        "let r; try { await tools.t() } catch (e) { r = [e instanceof Error, e.name, e.message, e.code, e.details, Object.keys(e)] } r",
    );
    guest.until("idle");
    guest.reject(1, "declined", "no, thanks");
    assert_eq!(
        guest.done()["result"].to_string(),
        r#"[true,"Error","no, thanks","declined",{"why":[1]},[]]"#
    );
}

#[test]
fn the_proxy_is_no_promise_and_cannot_be_changed() {
    assert_eq!(
        value(
            "const t = await tools; tools.x = 1; [typeof tools.x, typeof tools.then, tools[Symbol.iterator], Object.keys(tools), 'any' in tools, JSON.stringify({ tools })]"
        ),
        r#"["function","undefined",null,[],true,"{}"]"#
    );
    assert_eq!(value("`${tools} ${tools.a.b}`"), "\"tools tools.a.b\"");
    assert_eq!(failure("tools()").1, "Tool path missing in invocation");
    assert_eq!(failure("'use strict'; tools.x = 1; 1").0, "runtime");
}

#[test]
fn arguments_without_json_reject_and_send_nothing() {
    let code = "const a = {}; a.a = a; const r = []; for (const v of [a, { toJSON() { throw 1 } }]) await tools.t(v).catch((e) => r.push(e.code)); r";
    assert_eq!(value(code), r#"["serialization","serialization"]"#);
    assert_eq!(failure("const a = {}; a.a = a; await tools.t(a)").0, "serialization");
}

#[test]
fn impossible_paths_reject_and_send_nothing() {
    assert_eq!(failure("await tools['a..b']()").0, "validation");
    assert_eq!(failure("await tools['x'.repeat(600)]()").0, "validation");
    let mut guest = Guest::running("await tools['\\ud800']()");
    assert_eq!(guest.until("idle"), ["started", "call 1 \u{FFFD} null", "idle 0"]);
}

#[test]
fn calls_nobody_awaits_are_waited_for() {
    let mut guest = Guest::running("tools.a().then((v) => console.log('late', v)); 'value'");
    assert_eq!(guest.until("idle"), ["started", "call 1 a null", "idle 0"]);
    guest.resolve(1, "1", 0);
    assert_eq!(guest.until("done"), ["log late 1 [1.1]", "done value"]);
}

#[test]
fn a_call_that_is_made_while_arguments_are_written_is_one_of_its_own() {
    let code = "const n = { toJSON() { tools.inner(); return 'n' } }; await tools.outer({ n })";
    let mut guest = Guest::running(code);
    assert_eq!(
        guest.until("idle"),
        ["started", "call 1 inner null", r#"call 2 outer {"n":"n"}"#, "idle 0"]
    );
    guest.resolve(2, "7", 0);
    assert_eq!(guest.until("idle"), ["idle 1"]);
    guest.resolve(1, "null", 0);
    assert_eq!(guest.until("done"), ["done 7"]);
}

#[test]
fn a_call_that_is_made_while_the_result_is_written_is_waited_for() {
    let code = "let n = 0; ({ toJSON() { n += 1; tools.late(n); return n } })";
    let mut guest = Guest::running(code);
    assert_eq!(guest.until("idle"), ["started", "call 1 late 1", "idle 0"]);
    guest.resolve(1, "null", 0);
    assert_eq!(guest.until("done"), ["done 1"]);
}

#[test]
fn calls_nobody_awaits_are_forgotten_where_that_is_the_rule() {
    let mut guest = Guest::new();
    guest.execute(&Run { unawaited: UnawaitedCalls::Forget, ..Run::new("tools.a(); 'value'") });
    assert_eq!(guest.until("done"), ["started", "call 1 a null", "done value"]);
    // The answer to the call arrives late and is discarded.
    guest.resolve(1, "1", 0);
    guest.execute(&Run::new("2"));
    assert_eq!(guest.until("done"), ["started", "done 2"]);
}

#[test]
fn an_answer_to_a_call_that_was_never_made_ends_the_runner() {
    let mut guest = Guest::running("await tools.a()");
    guest.until("idle");
    guest.resolve(2, "1", 0);
    assert_eq!(guest.until("diverged"), ["diverged: call 2 is not outstanding"]);
    assert_eq!(guest.next(), None);
    assert_eq!(guest.close(), 3);
}

#[test]
fn a_sync_is_answered_after_everything_before_it() {
    let mut guest = Guest::running("await tools.a(); console.log('x'); await tools.b()");
    guest.until("idle");
    guest.resolve(1, "1", 0);
    guest.sync(9);
    let mut seen = guest.until("synced");
    seen.retain(|line| line != "idle 1"); // sent before it, if the runner was fast
    assert_eq!(seen, ["log x [1.1]", "call 2 b null", "synced 9"]);
}

#[test]
fn a_tool_is_called_by_any_name_it_has() {
    let mut guest =
        Guest::running("[await callTool('users:list', { limit: 1 }), await callTool('t')]");
    assert_eq!(guest.until("idle"), ["started", "call 1 users:list {\"limit\":1}", "idle 0"]);
    guest.resolve(1, "[7]", 1);
    assert_eq!(guest.until("idle"), ["call 2 t null", "idle 1"]);
    guest.resolve(2, "8", 2);
    assert_eq!(guest.until("done"), ["done [[7],8]"]);
}

#[test]
fn items_go_in_parallel_as_many_at_once_as_asked_and_come_back_in_order() {
    let mut guest = Guest::running(
        "await parallel([1, 2, 3], (n, at) => callTool('t', { n, at }), { concurrency: 2 })",
    );
    assert_eq!(
        guest.until("idle"),
        ["started", "call 1 t {\"at\":0,\"n\":1}", "call 2 t {\"at\":1,\"n\":2}", "idle 0"]
    );
    guest.resolve(2, "\"b\"", 1);
    assert_eq!(guest.until("idle"), ["call 3 t {\"at\":2,\"n\":3}", "idle 1"]);
    guest.resolve(3, "\"c\"", 2);
    guest.resolve(1, "\"a\"", 3);
    assert_eq!(guest.until("done").last().unwrap(), r#"done ["a","b","c"]"#);
}

#[test]
fn parallel_takes_functions_values_and_nothing_and_fails_with_the_first() {
    let code = "const all = [await parallel([]), await parallel([1, async () => 2, () => 3])];
         try { await parallel([1, 2], (n) => { throw new Error('no ' + n) }) } catch (e) { all.push(e.message) }
         try { parallel('x') } catch (e) { all.push(e.message) }
         all";
    let mut guest = Guest::running(code);
    assert_eq!(
        guest.until("done").last().unwrap(),
        r#"done [[],[1,2,3],"no 1","parallel needs an array of items"]"#
    );
}
