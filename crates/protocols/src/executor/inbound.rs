//! Parses the requests of clients, member by member so that an invalid one can be named.

use lifecycle::{
    Answer, AnswerExtras, Json, Program, QuestionId, RequestedLimits, ValueConvention,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Why a body is refused: a sentence for the developer of the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadBody(String);

impl BadBody {
    /// Creates a refusal with this message.
    pub const fn new(why: String) -> Self {
        Self(why)
    }

    /// Adds the index of the answer in a list.
    fn about(self, n: usize) -> Self {
        Self(format!("Answer {}: {}", n + 1, self.0))
    }
}

/// The body of `POST /executions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteBody {
    /// The program to run.
    pub program: Program,
    /// Whether all approvals are granted in advance.
    pub auto_approve: bool,
    /// The requested limits, if they are lower than the defaults.
    pub limits: RequestedLimits,
}

/// The members of a JSON object by name, unparsed.
pub type ObjectMembers<'a> = BTreeMap<String, &'a RawValue>;

/// Parses the body of `POST /executions`.
pub fn execute(body: &[u8]) -> Result<ExecuteBody, BadBody> {
    let members = members(body)?;
    let source = member(&members, "code", "a string")?.ok_or_else(|| {
        BadBody("The member \"code\" is missing; it is the program, a string.".into())
    })?;
    let auto_approve = member(&members, "autoApprove", "true or false")?.unwrap_or(false);
    let program = Program { source, convention: ValueConvention::ExplicitReturn };
    Ok(ExecuteBody { program, auto_approve, limits: limits(&members)? })
}

/// The member `limits`. Unlike elsewhere, unknown members are refused: a limit that is silently ignored
/// would be worse than none.
fn limits(request: &ObjectMembers<'_>) -> Result<RequestedLimits, BadBody> {
    let mut limits = RequestedLimits::default();
    let asked: ObjectMembers<'_> = member(request, "limits", "an object")?.unwrap_or_default();
    for name in asked.keys() {
        let Some(value) = member(&asked, name, "a whole number from 1 up")
            .map_err(|bad| BadBody(bad.0.replacen(name, &format!("limits.{name}"), 1)))?
        else {
            continue;
        };
        limits = limits.with(name, value).ok_or_else(|| {
            let names = RequestedLimits::NAMES.join(", ");
            BadBody(format!("There is no limit {name:?}; there are {names}."))
        })?;
    }
    Ok(limits)
}

const ACTIONS: &str = "\"accept\", \"decline\" or \"cancel\"";

/// One of several answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerBody {
    /// The id of the question.
    pub question: QuestionId,
    /// The answer to it.
    pub answer: Answer,
    /// Additional members of the answer.
    pub rider: AnswerExtras,
}

/// Limit of answers in one body.
const ANSWERS_MAX: usize = 1_000;

/// Parses the body of `POST /executions/:id/resume`.
pub fn resume(body: &[u8]) -> Result<Answer, BadBody> {
    parse_answer(&members(body)?)
}

/// Parses the body of `POST /executions/:id/answers`.
pub fn answers(body: &[u8]) -> Result<Vec<AnswerBody>, BadBody> {
    let members = members(body)?;
    let listed: Vec<&RawValue> = member(&members, "answers", "an array")?.unwrap_or_default();
    if listed.is_empty() || listed.len() > ANSWERS_MAX {
        let message =
            format!("The member \"answers\" must be an array of 1 to {ANSWERS_MAX} answers.");
        return Err(BadBody(message));
    }
    listed.iter().enumerate().map(|(n, raw)| one_of_many(raw).map_err(|bad| bad.about(n))).collect()
}

fn one_of_many(raw: &RawValue) -> Result<AnswerBody, BadBody> {
    let members = members(raw.get().as_bytes())?;
    let id: Option<String> = member(&members, "executionId", "a string")?;
    let question = id.as_deref().and_then(|id| id.parse().ok()).ok_or_else(|| {
        BadBody("The member \"executionId\" must be the id of a question, exec_….".into())
    })?;
    Ok(AnswerBody { question, answer: parse_answer(&members)?, rider: rides(&members)? })
}

fn parse_answer(members: &ObjectMembers<'_>) -> Result<Answer, BadBody> {
    let action: Option<String> = member(members, "action", ACTIONS)?;
    let content = object(members, "content")?;
    match action.as_deref() {
        Some("accept") => Ok(Answer::Accept { content }),
        Some("decline") => Ok(Answer::Decline),
        Some("cancel") => Ok(Answer::Cancel),
        Some(_) => Err(BadBody(format!("The member \"action\" must be {ACTIONS}."))),
        None => Err(BadBody(format!("The member \"action\" is missing; it is {ACTIONS}."))),
    }
}

/// The additional members of an answer: `remember` is `"execution"`, or `arguments` an object.
pub fn rider(body: &[u8]) -> Result<AnswerExtras, BadBody> {
    rides(&members(body)?)
}

fn rides(members: &ObjectMembers<'_>) -> Result<AnswerExtras, BadBody> {
    let remembers = match member::<String>(members, "remember", "\"execution\"")?.as_deref() {
        None => false,
        Some("execution") => true,
        Some(_) => return Err(BadBody("The member \"remember\" must be \"execution\".".into())),
    };
    match (object(members, "arguments")?, remembers) {
        (None, false) => Ok(AnswerExtras::Nothing),
        (None, true) => Ok(AnswerExtras::Remember),
        // They become part of a journal line, and of a tool's input.
        (Some(edited), false) => Ok(AnswerExtras::Arguments(edited.compact())),
        (Some(_), true) => {
            let message = "The members \"arguments\" and \"remember\" exclude each other: \
                           what was changed by hand is good for one call.";
            Err(BadBody(message.into()))
        }
    }
}

/// A member that is an object, unparsed, if it is present and not null.
fn object(members: &ObjectMembers<'_>, name: &str) -> Result<Option<Json>, BadBody> {
    match members.get(name).map(|raw| (raw.get(), *raw)) {
        None | Some(("null", _)) => Ok(None),
        Some((text, raw)) if text.starts_with('{') => Ok(Some(Json::from(raw.to_owned()))),
        Some((text, _)) => Err(wrong(name, "an object", text)),
    }
}

/// Parses a JSON object without parsing its members. Unknown ones are ignored, as upstream does.
pub fn members(body: &[u8]) -> Result<ObjectMembers<'_>, BadBody> {
    let text = std::str::from_utf8(body).map_err(|error| {
        BadBody(format!("The body is not UTF-8 after byte {}.", error.valid_up_to()))
    })?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        BadBody(format!("The body is not JSON: {} (line {line}, column {column}).", what(&error)))
    })?;
    // It is valid JSON: the only remaining error is that it is no object.
    serde_json::from_str(raw.get())
        .map_err(|_| BadBody(format!("The body must be a JSON object, not {}.", kind(raw.get()))))
}

/// One member, if it is present and not null.
pub fn member<'a, T: Deserialize<'a>>(
    members: &ObjectMembers<'a>,
    name: &str,
    expected: &str,
) -> Result<Option<T>, BadBody> {
    match members.get(name).map(|raw| raw.get()) {
        None | Some("null") => Ok(None),
        Some(text) => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| misfit(name, expected, text, &error)),
    }
}

/// The error message for an invalid member. It contains only names of what is inside, never values, which
/// may be secret.
fn misfit(name: &str, expected: &str, text: &str, error: &serde_json::Error) -> BadBody {
    let why = what(error);
    let tells_a_name = ["unknown field", "unknown variant", "missing field", "duplicate field"];
    if text.starts_with('{') && tells_a_name.iter().any(|begin| why.starts_with(begin)) {
        return BadBody(format!("The member \"{name}\" is not as it should be: {why}."));
    }
    if expected == "a string" && text.starts_with('"') {
        return BadBody(format!("The member \"{name}\" is no text: {why}."));
    }
    wrong(name, expected, text)
}

fn wrong(name: &str, expected: &str, text: &str) -> BadBody {
    BadBody(format!("The member \"{name}\" must be {expected}, not {}.", kind(text)))
}

fn kind(json: &str) -> &'static str {
    match json.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string like this",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// serde's message without the position, which we add ourselves.
fn what(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused<T: std::fmt::Debug>(read: fn(&[u8]) -> Result<T, BadBody>, body: &str, why: &str) {
        assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), why, "{body}");
    }

    #[test]
    fn a_good_body_is_read_and_what_is_unknown_is_ignored() {
        let program =
            Program { source: "return 1".into(), convention: ValueConvention::ExplicitReturn };
        let body = br#"{"code":"return 1","autoApprove":null,"more":[1]}"#;
        let limits = RequestedLimits::default();
        assert_eq!(execute(body), Ok(ExecuteBody { program, auto_approve: false, limits }));
        let content = Some(Json::parse(r#"{"a":"\ud800"}"#.into()).unwrap());
        let body = br#"{"action":"accept","content":{"a":"\ud800"}}"#;
        assert_eq!(resume(body), Ok(Answer::Accept { content }));
        assert_eq!(resume(br#"{"action":"cancel","content":null}"#), Ok(Answer::Cancel));
        assert_eq!(rider(body), Ok(AnswerExtras::Nothing));
        assert_eq!(
            rider(br#"{"action":"accept","remember":"execution"}"#),
            Ok(AnswerExtras::Remember)
        );
        let edited = Json::parse(r#"{"to":"bob b"}"#.into()).unwrap();
        assert_eq!(
            rider(b"{\"action\":\"accept\",\"arguments\":{ \"to\":\n\"bob b\" }}"),
            Ok(AnswerExtras::Arguments(edited))
        );
    }

    #[test]
    fn limits_are_read_by_their_names() {
        let limits = |text: &str| {
            execute(format!(r#"{{"code":"","limits":{text}}}"#).as_bytes()).map(|it| it.limits)
        };
        let asked = RequestedLimits::default();
        let asked = asked.with("cpuMsMax", 5).and_then(|it| it.with("memoryBytesMax", 1 << 20));
        assert_eq!(
            limits(r#"{"memoryBytesMax":1048576,"cpuMsMax":5,"callsMax":null}"#).ok(),
            asked
        );
        assert_eq!(limits("{}"), Ok(RequestedLimits::default()));
        assert_eq!(limits("null"), Ok(RequestedLimits::default()));
        let refused = |text: &str| limits(text).unwrap_err().to_string();
        assert_eq!(refused("[1]"), "The member \"limits\" must be an object, not an array.");
        assert_eq!(
            refused(r#"{"cpuMsMax":"5s"}"#),
            "The member \"limits.cpuMsMax\" must be a whole number from 1 up, not a string like this."
        );
        assert_eq!(
            refused(r#"{"memory":5}"#),
            "There is no limit \"memory\"; there are cpuMsMax, activeMsMax, totalMsMax, memoryBytesMax, callsMax, \
             bytesMax, resultBytesMax, callMsMax."
        );
    }

    #[test]
    fn a_bad_body_is_told_where_and_which_member() {
        refused(execute, "", "The body is not JSON: EOF while parsing a value (line 1, column 0).");
        refused(
            execute,
            "{\n\"code\": x}",
            "The body is not JSON: expected value (line 2, column 9).",
        );
        refused(execute, "[1]", "The body must be a JSON object, not an array.");
        refused(execute, "{}", "The member \"code\" is missing; it is the program, a string.");
        refused(execute, r#"{"code":5}"#, "The member \"code\" must be a string, not a number.");
        refused(
            execute,
            r#"{"code":"\ud800"}"#,
            "The member \"code\" is no text: unexpected end of hex escape.",
        );
        refused(
            execute,
            r#"{"code":"","autoApprove":"yes"}"#,
            "The member \"autoApprove\" must be true or false, not a string like this.",
        );
        let actions = "\"accept\", \"decline\" or \"cancel\"";
        refused(resume, "{}", &format!("The member \"action\" is missing; it is {actions}."));
        refused(
            resume,
            r#"{"action":"maybe"}"#,
            &format!("The member \"action\" must be {actions}."),
        );
        refused(
            resume,
            r#"{"action":"accept","content":3}"#,
            "The member \"content\" must be an object, not a number.",
        );
        refused(
            rider,
            r#"{"action":"accept","remember":"for ever"}"#,
            "The member \"remember\" must be \"execution\".",
        );
        refused(
            rider,
            r#"{"action":"accept","arguments":[1]}"#,
            "The member \"arguments\" must be an object, not an array.",
        );
        refused(
            rider,
            r#"{"action":"accept","arguments":{},"remember":"execution"}"#,
            "The members \"arguments\" and \"remember\" exclude each other: what was changed by \
             hand is good for one call.",
        );
        refused(answers, "{}", "The member \"answers\" must be an array of 1 to 1000 answers.");
        refused(
            answers,
            r#"{"answers":[3]}"#,
            "Answer 1: The body must be a JSON object, not a number.",
        );
        refused(
            answers,
            r#"{"answers":[{"executionId":"exec_1","action":"accept"}]}"#,
            "Answer 1: The member \"executionId\" must be the id of a question, exec_….",
        );
        assert!(execute(b"\xff").is_err());
        assert!(execute("[".repeat(100_000).as_bytes()).is_err());
    }
}
