//! A JSON value is unchanged by a round trip: as a tool's result, as an argument and as the program's value.

use crate::guest::Guest;
use crate::hosted::{execute, next};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Minimum depth of nesting that must pass unchanged.
const DEEP: usize = 2_000;

/// Passes `text` as a tool's result to a program that sends it back as an argument and then returns it.
fn round_trip(text: &str) -> (String, String) {
    let mut guest = Guest::new();
    let code = "const it = await tools.echo(); await tools.b(it); it";
    execute(&mut guest, "e", code, &json!({}));
    assert!(line(&mut guest).contains("started"));
    assert!(line(&mut guest).contains("tool_call"));
    settle(&mut guest, 1, text);
    let call = line(&mut guest);
    let argument = after(&call, r#""input":"#).to_owned();
    settle(&mut guest, 2, "null");
    let done = line(&mut guest);
    (argument, after(&done, r#""result":"#).to_owned())
}

/// Returns the next message as raw text: our decoder might not accept all of it.
fn line(guest: &mut Guest) -> String {
    let mut line = String::new();
    guest.read_line(&mut line);
    line
}

fn settle(guest: &mut Guest, call: u32, json: &str) {
    let line = format!(
        "{{\"type\":\"tool_result\",\"callId\":\"e.{call}\",\"ok\":true,\"result\":{json}}}\n"
    );
    guest.send_line(line.as_bytes());
}

/// Returns the last member of a message as raw text.
fn after<'a>(line: &'a str, key: &str) -> &'a str {
    let (_, rest) = line.split_once(key).unwrap_or_else(|| panic!("no {key} in {line}"));
    rest.trim_end().strip_suffix('}').unwrap()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|truth| json!(truth)),
        any::<i32>().prop_map(|number| json!(number)),
        any::<f64>()
            .prop_filter("JSON has only finite numbers", |n| n.is_finite())
            .prop_map(|n| json!(n)),
        any::<String>().prop_map(|text| json!(text)),
    ];
    let key =
        prop_oneof![Just("__proto__".to_owned()), Just("constructor".to_owned()), any::<String>()];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Compares as JavaScript does: it has one type of number, and no negative zero in JSON.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_value_comes_back_as_it_was(value in any_json()) {
        let text = value.to_string();
        let (argument, result) = round_trip(&text);
        // All three are decoded by the same decoder, because it rounds some numbers differently.
        let [value, argument, result]: [Value; 3] =
            [&text, &argument, &result].map(|text| serde_json::from_str(text).unwrap());
        prop_assert!(same(&argument, &value), "{value} became {argument}");
        prop_assert!(same(&result, &value), "{value} became {result}");
    }
}

#[test]
fn what_only_javascript_can_hold_comes_back_byte_for_byte() {
    let deep_list = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let deep_object = format!("{}null{}", r#"{"o":"#.repeat(DEEP), "}".repeat(DEEP));
    for text in [
        r#""a\ud800b""#,
        r#"{"\udc00":["\ud83d\ude00x","\ud83d"]}"#,
        r#"{"__proto__":{"polluted":1},"safe":1}"#,
        &deep_list,
        &deep_object,
    ] {
        let (argument, result) = round_trip(text);
        assert_eq!(argument, result);
        // A complete surrogate pair is written as its character.
        assert_eq!(argument, text.replace("\\ud83d\\ude00", "😀"));
    }
}

#[test]
fn a_proto_in_data_pollutes_nobody() {
    let mut guest = Guest::new();
    let code = "const it = await tools.echo(); [Object.keys(it), ({}).polluted, it.polluted]";
    execute(&mut guest, "e", code, &json!({}));
    guest.next();
    guest.next();
    settle(&mut guest, 1, r#"{"__proto__":{"polluted":1}}"#);
    assert_eq!(next(&mut guest).0["result"], json!([["__proto__"], null, null]));
}
