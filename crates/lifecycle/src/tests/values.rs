//! The small value types: their encoding and their limits.

use super::*;

#[test]
fn ids_and_numbers_are_shown_as_they_are_written() {
    let id = QuestionId::from_uuid(Uuid::from_u128(7));
    let text = "exec_00000000-0000-0000-0000-000000000007";
    assert_eq!((id.to_string(), format!("{id:?}")), (text.into(), text.into()));
    assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<QuestionId>(&format!("\"{text}\"")).unwrap(), id);
    assert_eq!(id.uuid(), Uuid::from_u128(7));
    assert_eq!((CallId(7).next(), CallId(u32::MAX).next()), (CallId(8), CallId(u32::MAX)));
    assert_eq!((CallId(7).to_string(), me().to_string()), ("7".into(), "me".into()));
}

#[test]
fn time_neither_overflows_nor_runs_backwards() {
    assert_eq!(Timestamp(5).after_ms(7), Timestamp(12));
    assert_eq!(Timestamp(5).after_ms(u64::MAX), Timestamp(i64::MAX));
    let cases = [(9, 5, 4), (6, 5, 1), (5, 5, 0), (5, 9, 0), (i64::MAX, i64::MIN, i64::MAX as u64)];
    for (at, earlier, ms) in cases {
        assert_eq!(Timestamp(at).ms_since(Timestamp(earlier)), ms, "{at} {earlier}");
    }
}

#[test]
fn json_is_kept_as_it_is_written() {
    let value = json("{ \"a\": 1 }");
    assert_eq!((value.as_text(), value.raw().get()), ("{ \"a\": 1 }", "{ \"a\": 1 }"));
    assert_eq!(format!("{value:?}"), "{ \"a\": 1 }");
    assert_eq!(serde_json::to_string(&value).unwrap(), "{ \"a\": 1 }");
    assert_eq!(Json::null().as_text(), "null");
    assert_eq!(Json::from_value(&[1, 2]), Ok(json("[1,2]")));
    assert!(json("1") == json("1") && json("1") != json("1.0"));
    assert_eq!(json("1").digest(), ArgumentsDigest::from_text("1"));
    assert_ne!(json("1").digest(), json("2").digest());
    for wrong in ["", "{", "1 2"] {
        assert!(Json::parse(wrong.into()).is_err(), "{wrong}");
    }
}

#[test]
fn a_null_that_is_there_is_a_value() {
    let read = |text| serde_json::from_str::<CallOutcome>(text).unwrap();
    let returned = |value| CallOutcome::Returned { value };
    assert_eq!(read(r#"{"returned":{"value":null}}"#), returned(Some(Json::null())));
    assert_eq!(read(r#"{"returned":{"value":1}}"#), returned(Some(json("1"))));
    assert_eq!(read(r#"{"returned":{}}"#), returned(None));
}

#[test]
fn a_revision_is_32_hexadecimal_digits() {
    let revision = ToolRevision::from_text("airlock");
    let text = revision.to_string();
    assert_eq!(text, "e17ff958e1a3487cf583033fb295d45d");
    let written = serde_json::to_string(&revision).unwrap();
    assert_eq!(written, format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<ToolRevision>(&written).unwrap(), revision);
    for wrong in [&text[1..], &format!("0{text}"), &text.replace('e', "g"), ""] {
        let read = serde_json::from_str::<ToolRevision>(&format!("\"{wrong}\""));
        assert!(read.is_err(), "{wrong}");
    }
}

#[test]
fn tool_paths_have_names_between_dots() {
    let path = tool("demo.math.add");
    assert_eq!(path.segments().collect::<Vec<_>>(), ["demo", "math", "add"]);
    assert_eq!((path.as_str(), path.to_string()), ("demo.math.add", "demo.math.add".into()));
    let longest = "a".repeat(ToolPath::BYTES_MAX);
    assert_eq!(ToolPath::parse(&longest).map(|path| path.as_str().len()), Ok(512));
    let cases = [
        (format!("{longest}a"), BadToolPath::TooLong),
        (String::new(), BadToolPath::EmptySegment),
        ("a..b".into(), BadToolPath::EmptySegment),
        ("a.\n".into(), BadToolPath::ControlCharacter),
    ];
    for (text, expected) in cases {
        assert_eq!(ToolPath::parse(&text), Err(expected), "{text:?}");
    }
    assert_eq!(serde_json::from_str::<ToolPath>("\"demo.add\"").unwrap(), tool("demo.add"));
    assert!(serde_json::from_str::<ToolPath>("\"demo..add\"").is_err());
}

#[test]
fn a_seed_says_what_it_expected() {
    let seed = RandomSeed([0x2f; 32]);
    assert_eq!(format!("{seed:?}"), "2f".repeat(32));
    let wrong = serde_json::from_str::<RandomSeed>("7").unwrap_err().to_string();
    assert!(wrong.contains("a seed: 64 hexadecimal digits"), "{wrong}");
}

#[test]
fn prepared_text_is_the_programs_own_unless_it_differs() {
    let program = Program { source: "1".into(), convention: ValueConvention::LastExpression };
    let prepared = |text: Option<&str>| PreparedProgram {
        text: text.map(str::to_owned),
        prelude: 1,
        fingerprint: "f".into(),
    };
    for (text, runs, short) in
        [(None, "1", None), (Some("1"), "1", None), (Some("2"), "2", Some("2"))]
    {
        assert_eq!(prepared(text).program_text(&program), runs);
        assert_eq!(prepared(text).in_short(&program), prepared(short));
    }
}

#[test]
fn terms_give_tools_other_names_and_say_which_the_caller_runs() {
    let (a, b) = (tool("a"), tool("b"));
    let runs = |caller_runs| CallRules { caller_runs, ..CallRules::default() };
    for (terms, expected) in [
        (runs(CallerRuns::Nothing), [false, false]),
        (runs(CallerRuns::These(vec![a.clone()])), [true, false]),
        (runs(CallerRuns::Anything), [true, true]),
    ] {
        assert_eq!([terms.caller_runs(&a), terms.caller_runs(&b)], expected, "{terms:?}");
        assert_eq!(terms.is_usual(), terms.caller_runs == CallerRuns::Nothing);
    }
    let aliases = [(a.clone(), b.clone())].into();
    let terms = CallRules { aliases, ..CallRules::default() };
    assert_eq!(terms.resolve(a.clone()), (b.clone(), Some(a)));
    assert_eq!(terms.resolve(b.clone()), (b, None));
    let written = serde_json::to_string(&CallRules::default()).unwrap();
    assert_eq!(serde_json::from_str::<CallRules>(&written).unwrap(), CallRules::default());
}

#[test]
fn a_wish_may_be_as_long_as_its_limits() {
    const WRONG: Option<&str> = Some("its link is not an address that a browser can open");
    let link =
        |url: String| ToolPrompt::Link { message: "Go".into(), url, is_prior: false }.defect();
    let of_length = |n: usize| format!("https://{}", "a".repeat(n - 8));
    let cases = [
        (of_length(8_192), None),
        (of_length(8_193), WRONG),
        ("http://a.example".into(), None),
        ("ftp://a.example".into(), WRONG),
        ("https://a.example/ b".into(), WRONG),
        ("https://a.example/\u{7f}".into(), WRONG),
        ("ftp://a b".into(), WRONG),
    ];
    for (url, expected) in cases {
        assert_eq!(link(url.clone()), expected, "{}", url.len());
    }
    let message = |n| form(&"?".repeat(n)).defect();
    assert_eq!((message(0), message(16_384)), (None, None));
    assert_eq!(message(16_385), Some("its message is too long"));
}

#[test]
fn the_secret_of_a_link_is_written_into_its_address() {
    let (id, seed) = (QuestionId::from_uuid(Uuid::from_u128(1)), RandomSeed([1; 32]));
    let url = "https://a.example/?state={state}".to_owned();
    let wish = ToolPrompt::Link { message: "Go".into(), url, is_prior: true };
    let question = wish.question(id, CallId(3), &seed);
    let url = format!("https://a.example/?state={}", callback_state(&seed, id));
    let expected = Question {
        id,
        call: CallId(3),
        kind: QuestionKind::Link { url, is_prior: true },
        message: "Go".into(),
        revision: None,
        editable: false,
        answer_only: false,
    };
    assert_eq!(question, expected);
}

#[test]
fn names_of_roles_and_quotas_are_those_of_settings_and_metrics() {
    assert_eq!(AnswerRole::ALL.map(AnswerRole::name), ["person", "client", "model"]);
    let of_caller = AnswerAuthor::from(me());
    assert_eq!(of_caller, AnswerAuthor { caller: me(), role: AnswerRole::Person });
    let cases = [
        (
            QuotaKind::Running,
            "running_max",
            "20000 running executions; wait until one has ended, or cancel one",
        ),
        (
            QuotaKind::Waiting,
            "waiting_max",
            "1000000 waiting executions; answer the open questions, or cancel executions that wait",
        ),
        (
            QuotaKind::CpuSeconds,
            "cpu_seconds_per_hour_max",
            "3600 CPU seconds within an hour; try again later",
        ),
        (
            QuotaKind::HeldRunners,
            "held_runners_max",
            "128 held runners; close an execbox channel or a REPL session",
        ),
    ];
    assert_eq!(cases.map(|(quota, ..)| quota), QuotaKind::ALL);
    for (quota, name, rest) in cases {
        let max = QuotaLimits::usual(2).value(quota);
        let told = Rejection::QuotaReached { quota, max }.to_string();
        assert_eq!(told, format!("this caller has reached its quota {name} of {rest}"));
        assert_eq!(quota.name(), name);
    }
}

#[test]
fn names_of_built_in_callers_stay_as_journals_have_them() {
    let names = BuiltinCaller::ALL.map(BuiltinCaller::name);
    let expected = [
        "environment",
        "anybody",
        "terminal",
        "embedder",
        "airlock",
        "notify",
        "health",
        "callback",
    ];
    assert_eq!(names, expected);
    let failures = [
        Failure::declined(&tool("a.b")).message,
        Failure::question_cancelled(&tool("a.b")).message,
    ];
    let sentence = |how: &str| {
        format!("Tool \"a.b\" requires approval but the request was {how} by the user.")
    };
    assert_eq!(failures, ["declined", "cancelled"].map(sentence));
}

#[test]
fn usage_is_empty_where_nothing_is_counted_and_has_a_value_for_each_quota() {
    let now = Timestamp(0);
    let mut cpu = CpuWindow::default();
    cpu.charge(now, 2_500_000);
    let none = CallerUsage::default;
    assert!(none().is_empty(now));
    let used = [
        CallerUsage { running: 1, ..none() },
        CallerUsage { waiting: 1, ..none() },
        CallerUsage { held_runners: 1, ..none() },
        CallerUsage { running: 1, waiting: 1, ..none() },
        CallerUsage { cpu: cpu.clone(), ..none() },
    ];
    for usage in used {
        assert!(!usage.is_empty(now), "{usage:?}");
    }
    let usage = CallerUsage { running: 5, waiting: 6, held_runners: 7, cpu };
    assert_eq!(QuotaKind::ALL.map(|quota| usage.value(quota, now)), [5, 6, 2, 7]);
    let hour_later = Timestamp(3_600_000);
    assert_eq!(usage.value(QuotaKind::CpuSeconds, hour_later), 0);
    let only_cpu = CallerUsage { cpu: usage.cpu, ..none() };
    assert!(only_cpu.is_empty(hour_later));
}

#[test]
fn processor_time_of_nothing_moves_no_window() {
    let mut window = CpuWindow::default();
    window.charge(Timestamp(5), 0);
    assert_eq!(window, CpuWindow::default());
}

#[test]
fn a_policy_shows_what_is_a_tools_path_and_not_blocked() {
    let policy = policy(&[("mail.drop", PolicyAction::Block), ("mail.*", PolicyAction::Approve)]);
    let shows = |path| policy.shows(path, ToolTraits::lasting(true));
    assert_eq!([shows("mail.send"), shows("mail.drop"), shows("mail..drop")], [true, false, false]);
    let deciding = |path| policy.deciding_rule(&tool(path), ToolTraits::lasting(true));
    let action = |path| deciding(path).map(|rule| rule.action);
    let expected = [Some(PolicyAction::Block), Some(PolicyAction::Approve), None];
    assert_eq!([action("mail.drop"), action("mail.send"), action("file.read")], expected);
}

#[test]
fn a_pattern_may_be_as_long_as_a_path() {
    assert!(ToolPattern::parse(&"a".repeat(512)).is_ok());
    assert!(ToolPattern::parse("a").unwrap().is_exact());
    assert!(!ToolPattern::parse("a.*").unwrap().is_exact());
    assert!(!ToolPattern::parse("a.*.b").unwrap().is_exact());
}

#[test]
fn dates_turn_with_the_months_and_the_years() {
    let cases = [
        (1_767_225_599_999, "2025-12-31T23:59:59.999Z", "23:59:59.999"),
        (1_767_225_600_000, "2026-01-01T00:00:00.000Z", "00:00:00.000"),
        (1_772_323_199_000, "2026-02-28T23:59:59.000Z", "23:59:59.000"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z", "00:00:00.000"),
        (4_107_456_000_000, "2100-02-28T00:00:00.000Z", "00:00:00.000"),
        (1_785_585_845_678, "2026-08-01T12:04:05.678Z", "12:04:05.678"),
        (1_793_404_800_000, "2026-10-31T00:00:00.000Z", "00:00:00.000"),
        (-62_162_208_001, "1968-01-12T12:43:11.999Z", "12:43:11.999"),
        (13_574_563_200_000, "2400-02-29T00:00:00.000Z", "00:00:00.000"),
    ];
    for (ms, exact, time) in cases {
        let utc = UtcTime::from(Timestamp(ms));
        assert_eq!((utc.exact().as_str(), utc.time().as_str()), (exact, time), "{ms}");
        assert_eq!(utc.to_string(), format!("{}Z", &exact[..19]));
    }
}
