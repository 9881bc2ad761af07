use super::*;

fn filter(text: &Value) -> EventFilter {
    EventFilter::parse(&text.to_string()).unwrap()
}

fn a_bit_of_everything() -> Vec<EnclaveEvent> {
    told(vec![
        started(),
        logged(LogLevel::Log, "alpha/beta"),
        logged(LogLevel::Error, "Oh no"),
        made(1, ToolHost::Here),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
        returned(1),
        finished(failed(FailureCode::Runtime, "x")),
    ])
}

#[track_caller]
fn passed(text: &Value, expected: &[u64]) {
    let filter = filter(text);
    let seen: Vec<_> = a_bit_of_everything()
        .iter()
        .filter(|told| filter.passes(told, &session()))
        .map(|told| told.seq)
        .collect();
    assert_eq!(seen, expected, "{text}");
}

#[test]
fn filters_say_what_they_say_in_both_dialects() {
    let rule = |kind: &str, pattern: &str, field: &str| json!({"mode":"include","rules":[{"content":{"patterns":[{"type":kind,"pattern":pattern,"field":field}]}}]});
    passed(&json!({}), &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    passed(&json!({"types":["stdout","error"]}), &[1, 2, 8, 9]);
    passed(&json!({"blockedTypes":["heartbeat","log"]}), &[1, 2, 4, 5, 6, 7, 8, 9]);
    passed(&json!({"mode":"include","rules":[]}), &[1, 9]);
    passed(&json!({"mode":"exclude","rules":[{}]}), &[1, 9]);
    passed(&json!({"mode":"include","rules":[],"alwaysAllow":[]}), &[1, 9]);
    passed(&json!({"mode":"include","rules":[],"alwaysAllow":["log"]}), &[1, 3, 9]);
    passed(
        &json!({"mode":"include","rules":[{"types":{"types":["log"]}},{"types":["stdout"]}]}),
        &[1, 2, 3, 9],
    );
    passed(&rule("exact", "Oh no", "payload.message"), &[1, 3, 9]);
    passed(&rule("exact", "Oh", "payload.message"), &[1, 9]);
    passed(&rule("prefix", "Oh", "payload.message"), &[1, 3, 9]);
    passed(&rule("glob", "alpha/*", "payload.chunk"), &[1, 2, 9]);
    passed(&rule("glob", "*", "payload.chunk"), &[1, 9]);
    passed(&rule("glob", "{a,b}lpha/[a-c]**", "payload.chunk"), &[1, 2, 9]);
    passed(&rule("regex", "^[a-z]+/be", "payload.data"), &[1, 2, 9]);
    passed(&rule("regex", ".", "payload.nothing"), &[1, 9]);
    let all = json!({"mode":"exclude","rules":[{"types":["log","stdout"],"content":{"match":"all","patterns":[
        {"type":"regex","pattern":"oh","caseInsensitive":true},{"type":"exact","pattern":"error","field":"payload.level"}]}}]});
    passed(&all, &[1, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_filter_that_cannot_be_meant_is_refused() {
    for bad in [
        json!({"mode":"maybe"}),
        json!({"types":5}),
        json!({"mode":"include","types":[]}),
        json!([]),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"regex","pattern":"("}]}}]}),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"like","pattern":"x"}]}}]}),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"regex","pattern":"(a{1000}){1000}"}]}}]}),
        json!({"mode":"exclude","rules":vec![json!({}); 65]}),
    ] {
        assert!(EventFilter::parse(&bad.to_string()).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_a_filter_says_the_first_and_the_last_pass_and_opposites_divide_the_rest(
        pattern in "[a-z*?{},\\[\\]!/.\\\\-]{0,12}",
        kind in prop::sample::select(vec!["exact", "prefix", "glob", "regex"]),
        field in prop::option::of("payload(\\.[a-z]{2,7})?"),
        insensitive in any::<bool>(),
    ) {
        let rules = json!([{"content":{"patterns":[
            {"type":kind,"pattern":pattern,"field":field,"caseInsensitive":insensitive}]}}]);
        let read = |mode: &str| EventFilter::parse(&json!({"mode":mode,"rules":rules}).to_string());
        let (Ok(include), Ok(exclude)) = (read("include"), read("exclude")) else {
            prop_assert!(["regex", "glob"].contains(&kind), "a {} cannot be wrong: {}", kind, pattern);
            return Ok(());
        };
        for told in a_bit_of_everything() {
            let both = (include.passes(&told, &session()), exclude.passes(&told, &session()));
            if matches!(told.kind, EnclaveEventKind::SessionInit | EnclaveEventKind::Final) {
                prop_assert_eq!(both, (true, true));
            } else {
                prop_assert!(both.0 != both.1);
            }
        }
    }
}
