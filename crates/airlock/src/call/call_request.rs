//! A call and its input: parsed from words, written as a program.

use crate::input;
use lifecycle::Json;
use std::fs::File;
use std::io;

/// Longest input: the server's own limit.
const INPUT_BYTES_MAX: u64 = 2 << 20;

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallRequest {
    /// The tool's path.
    pub(super) segments: Vec<String>,
    input: Json,
}

impl CallRequest {
    /// Parses words: a path, in one word or several, optionally followed by the input.
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        let is_input = |word: &&String| word.starts_with(['{', '@']);
        let (path, given) = match words.split_last() {
            Some((last, path)) if is_input(&last) => (path, Some(last.as_str())),
            _ => (words, None),
        };
        let segments = segments(path)?;
        let empty = || Json::parse("{}".into()).map_err(|error| error.to_string());
        Ok(Self { segments, input: given.map_or_else(empty, read_input)? })
    }

    /// The call as a program, readable for the person who approves it.
    pub(super) fn code(&self) -> String {
        let path: String = self.segments.iter().map(|segment| member(segment)).collect();
        let input = self.input.as_text();
        // In an object literal this name would set the prototype.
        let input = match input.contains("__proto__") {
            true => format!("JSON.parse({})", serde_json::Value::from(input)),
            false => input.to_owned(),
        };
        format!("return await tools{path}({input});")
    }
}

fn segments(words: &[String]) -> Result<Vec<String>, String> {
    let path = words.join(".");
    let path = path.strip_prefix("tools.").unwrap_or(&path);
    if path.is_empty() {
        return Ok(vec![]);
    }
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    path.split('.')
        .map(|segment| match !segment.is_empty() && segment.chars().all(is_good) {
            true => Ok(segment.to_owned()),
            false => Err(format!(
                "{} is no path: it has letters, digits, _ and - between dots or spaces, \
                 and an input begins with {{ or @",
                crate::print::tamed(path)
            )),
        })
        .collect()
}

fn member(segment: &str) -> String {
    let is_name = !segment.contains('-') && !segment.starts_with(|c: char| c.is_ascii_digit());
    if is_name { format!(".{segment}") } else { format!("[\"{segment}\"]") }
}

fn read_input(given: &str) -> Result<Json, String> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some("") => return Err("@ must be followed by the name of a file".into()),
        Some("-") => input::read("stdin", io::stdin().lock(), INPUT_BYTES_MAX)?,
        Some(path) => {
            let file = File::open(path).map_err(|error| format!("cannot open {path}: {error}"))?;
            input::read(path, file, INPUT_BYTES_MAX)?
        }
    };
    let json = Json::parse(text.trim().to_owned());
    let json = json.map_err(|error| format!("the input is {error}"))?;
    match json.as_text().starts_with('{') {
        true => Ok(json),
        false => Err("the input must be a JSON object, such as {\"id\":7}".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[&str]) -> Result<String, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        CallRequest::read(&words).map(|order| order.code())
    }

    #[test]
    fn a_path_is_one_word_or_several() {
        let expected = Ok("return await tools.demo.add({\"a\":1});".to_owned());
        assert_eq!(code(&["demo", "add", "{\"a\":1}"]), expected);
        assert_eq!(code(&["demo.add", "{\"a\":1}"]), expected);
        assert_eq!(code(&["tools.demo.add", "{\"a\":1}"]), expected);
        assert_eq!(
            code(&["a-b", "2.c"]),
            Ok("return await tools[\"a-b\"][\"2\"].c({});".to_owned())
        );
    }

    #[test]
    fn an_input_is_an_object_given_here_or_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in.json");
        std::fs::write(&path, "\n{\"a\": [1]}\n").unwrap();
        let named = format!("@{}", path.display());
        assert_eq!(code(&["x", &named]), Ok("return await tools.x({\"a\": [1]});".to_owned()));
        let inherits = code(&["x", r#"{"__proto__":1}"#]);
        let expected = r#"return await tools.x(JSON.parse("{\"__proto__\":1}"));"#;
        assert_eq!(inherits, Ok(expected.to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let path = |shown: &str| {
            format!(
                "{shown} is no path: it has letters, digits, _ and - between dots or spaces, \
                 and an input begins with {{ or @"
            )
        };
        let cases = [
            (&["a..b"][..], path("a..b")),
            (&["a", "[1]"], path("a.[1]")),
            (&["a", "{}", "b"], path("a.{}.b")),
            (&["a();//"], path("a();//")),
            (&["a", "@"], "@ must be followed by the name of a file".into()),
            (
                &["a", "@/nowhere"],
                "cannot open /nowhere: No such file or directory (os error 2)".into(),
            ),
        ];
        for (words, why) in cases {
            assert_eq!(code(words), Err(why), "{words:?}");
        }
        assert!(code(&["a", "{"]).unwrap_err().starts_with("the input is not a JSON value"));
    }
}
