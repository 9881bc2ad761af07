//! A compiled JSON Schema, and its issues with a value as text.

use ::schema::{FormatMode, SchemaMisfit};
use lifecycle::{Json, ToolPrompt};
use serde::Serialize;
use serde_json::Value;

/// How many issues one failure names: enough to repair a call, few enough to read.
const ISSUES_MAX: usize = 5;

/// Longest single issue: an enumeration of thousands must not fill the journal.
const ISSUE_CHARS_MAX: usize = 300;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct ToolSchema {
    validator: ::schema::CompiledSchema,
    wants_object: bool,
}

/// One issue with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SchemaIssue {
    /// JSON pointer into the value; empty for the whole value.
    pub(crate) path: String,
    /// What is wrong there.
    pub(crate) message: String,
}

impl ToolSchema {
    /// Compiles a schema. References outside it are errors: a schema must never cause a network request.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        Self::with(schema, FormatMode::Ignored)
    }

    /// The same, with `format` checked too: people mistype addresses and dates.
    fn of_form(schema: &Value) -> Result<Self, String> {
        Self::with(schema, FormatMode::Checked)
    }

    fn with(schema: &Value, formats: FormatMode) -> Result<Self, String> {
        let validator = ::schema::CompiledSchema::compile(schema, formats)
            .map_err(|defect| shortened(defect.to_string()))?;
        Ok(Self { validator, wants_object: wants_object(schema) })
    }

    /// The arguments as the tool takes them: an omitted argument is an empty object where one is wanted.
    pub(crate) fn completed(&self, args: &Json) -> Json {
        if self.wants_object && args.as_text().trim() == "null" {
            return Json::parse("{}".to_owned()).expect("an empty object is JSON");
        }
        args.clone()
    }

    /// What is wrong with `json`; empty when it fits.
    pub(crate) fn issues(&self, json: &Json) -> Vec<SchemaIssue> {
        match self.validator.misfits_in(json.as_text(), ISSUES_MAX) {
            Some(misfits) => misfits.iter().map(issue).collect(),
            None => {
                vec![SchemaIssue { path: String::new(), message: "value cannot be read".into() }]
            }
        }
    }
}

/// What is wrong with a form that a person filled in, if anything. An invalid schema accepts everything.
pub fn misfit(schema: &Json, content: &Json) -> Option<String> {
    let schema = serde_json::from_str(schema.as_text()).ok()?;
    let issues = ToolSchema::of_form(&schema).ok()?.issues(content);
    (!issues.is_empty()).then(|| sentence(&issues))
}

/// A prompt to which a note is added if its form cannot be checked: an invalid schema would otherwise silently accept
/// every answer.
pub fn with_form_note(wish: ToolPrompt) -> ToolPrompt {
    let ToolPrompt::Form { message, schema } = wish else { return wish };
    let defect = match serde_json::from_str(schema.as_text()) {
        Ok(value) => ToolSchema::of_form(&value).err(),
        Err(_) => Some("it is nested too deep".to_owned()),
    };
    let message = match defect {
        None => message,
        Some(why) => format!(
            "{message}\n\nThe form of this question cannot be checked, and any answer is accepted: its schema cannot be \
             used ({why})."
        ),
    };
    ToolPrompt::Form { message, schema }
}

/// What is wrong with a JSON Schema, if anything is.
pub fn schema_defect(schema: &Value) -> Option<String> {
    ToolSchema::compile(schema).err()
}

/// "at /a: value is not of type "number"; "b" is a required property".
pub(crate) fn sentence(issues: &[SchemaIssue]) -> String {
    let said = issues.iter().map(|issue| match issue.path.as_str() {
        "" => issue.message.clone(),
        path => format!("at {path}: {}", issue.message),
    });
    said.collect::<Vec<_>>().join("; ")
}

fn issue(misfit: &SchemaMisfit) -> SchemaIssue {
    SchemaIssue {
        path: shortened(misfit.path.clone()),
        message: shortened(misfit.kind.to_string()),
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(ISSUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Whether the schema describes an object and does not allow `null`.
fn wants_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|kind| kind == "object") && kinds.iter().all(|kind| kind != "null")
        }
        Some(_) => false,
        None => schema.get("properties").is_some() || schema.get("required").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[track_caller]
    fn check(schema: &Value, value: &str, expected: &str) {
        let issues = ToolSchema::compile(schema).unwrap().issues(&json(value));
        assert_eq!(sentence(&issues), expected);
    }

    #[test]
    fn issues_say_where_and_what() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["b"]});
        check(&schema, r#"{"a": 1, "b": 2}"#, "");
        check(&schema, r#"{"a": "secret", "b": 2}"#, r#"at /a: value is not of type "number""#);
        check(&schema, "{}", r#""b" is a required property"#);
    }

    #[test]
    fn what_people_fill_in_has_the_format_that_was_asked_for() {
        let fits = |format: &str, text: &str| {
            let schema = json!({"properties": {"a": {"type": "string", "format": format}}});
            misfit(&json(&schema.to_string()), &json(&json!({ "a": text }).to_string())).is_none()
        };
        let cases = [
            ("date", "2026-11-16", "16.11.2026"),
            ("date-time", "2026-11-16T09:00:00.000Z", "2026-11-16"),
            ("email", "ann@example.org", "not an address"),
            ("uri", "https://example.org/", "example"),
            ("url", "https://example.org/", "not an address"),
        ];
        for (format, good, bad) in cases {
            assert!(fits(format, good), "{format} {good}");
            assert!(!fits(format, bad), "{format} {bad}");
        }
        // Formats in arguments of programs are checked by the tools themselves.
        check(&json!({"format": "email"}), "\"x\"", "");
    }

    #[test]
    fn a_form_that_cannot_be_checked_says_so_in_its_question() {
        let asked = |schema: &str| {
            let wish = ToolPrompt::Form { message: "Who?".into(), schema: json(schema) };
            let ToolPrompt::Form { message, .. } = with_form_note(wish) else { panic!("a form") };
            message
        };
        assert_eq!(asked(r#"{"type":"object"}"#), "Who?");
        for unusable in [r#"{"type":"strnig"}"#, r##"{"$ref":"https://elsewhere.example/schema"}"##]
        {
            let message = asked(unusable);
            assert!(
                message.starts_with("Who?\n\nThe form of this question cannot be checked"),
                "{message}"
            );
        }
    }

    #[test]
    fn issues_are_few_and_short() {
        let names: Vec<_> = (0..1_000).map(|n| format!("name-{n}")).collect();
        let compiled = ToolSchema::compile(&json!({"items": {"enum": names}})).unwrap();
        let issues = compiled.issues(&json(&format!("[{}1]", "1,".repeat(99))));
        assert_eq!(issues.len(), ISSUES_MAX);
        assert!(issues.iter().all(|issue| issue.message.chars().count() <= ISSUE_CHARS_MAX + 1));
    }

    #[test]
    fn no_schema_makes_us_fetch() {
        for url in ["https://example.com/s.json", "http://127.0.0.1/s", "file:///etc/passwd"] {
            assert!(ToolSchema::compile(&json!({"$ref": url})).is_err(), "{url}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_checked_to_any_depth() {
        let schema = json!({
            "type": "object", "required": ["v"], "properties": {"next": {"$ref": "#"}}
        });
        let chain =
            |n: usize| format!(r#"{}{{"v":1}}{}"#, r#"{"v":1,"next":"#.repeat(n), "}".repeat(n));
        check(&schema, &chain(50), "");
        check(&schema, &chain(5_000), "");
        let broken = chain(3).replace(r#"{"v":1}"#, "{}");
        check(&schema, &broken, r#"at /next/next/next: "v" is a required property"#);
    }

    #[test]
    fn a_schema_that_only_refers_to_itself_does_no_harm() {
        let circles = [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
            json!({"not": {"$ref": "#"}}),
            json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}}),
            json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {
                "a": {"oneOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}
            }}),
            json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
        ];
        for circle in circles {
            if let Ok(compiled) = ToolSchema::compile(&circle) {
                compiled.issues(&json(r#"{"a": 1}"#));
            }
        }
    }

    #[test]
    fn a_pattern_that_explodes_is_given_up() {
        let schema = json!({"type": "string", "pattern": "^(?=(a+)+$)(a|aa)+\\1$"});
        let compiled = ToolSchema::compile(&schema).unwrap();
        assert_eq!(compiled.issues(&json(&format!("\"{}b\"", "a".repeat(5_000)))).len(), 1);
    }

    #[test]
    fn an_omitted_argument_is_an_empty_object_where_one_is_wanted() {
        let cases = [
            (json!({"type": "object"}), "{}"),
            (json!({"properties": {}}), "{}"),
            (json!({"type": ["object", "string"]}), "{}"),
            (json!({"type": ["object", "null"]}), "null"),
            (json!({"type": "string"}), "null"),
            (json!({}), "null"),
        ];
        for (schema, expected) in cases {
            let completed = ToolSchema::compile(&schema).unwrap().completed(&Json::null());
            assert_eq!((&schema, completed.as_text()), (&schema, expected));
        }
    }
}
