//! Filters events for a reader. The first and the last event always pass; the numbers of events do not
//! change.

use super::{EnclaveEvent, EnclaveEventKind, EnclaveSessionId};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;

/// Limit of patterns in one filter: each is matched with each event.
const PATTERNS_MAX: usize = 64;

/// Longest pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1_024;

/// Memory limit of one compiled pattern.
const COMPILED_BYTES_MAX: usize = 256 << 10;

/// A reader's filter.
#[derive(Debug, Clone)]
pub struct EventFilter {
    mode: FilterMode,
    rules: Vec<FilterRule>,
    always: Vec<String>,
}

/// Why a filter is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFilter(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterMode {
    Include,
    Exclude,
}

/// Both parts must match; an absent part matches everything.
#[derive(Debug, Clone, Default)]
struct FilterRule {
    types: Option<Vec<String>>,
    patterns: Vec<FilterPattern>,
    all: bool,
}

#[derive(Debug, Clone)]
struct FilterPattern {
    regex: Regex,
    field: Option<Vec<String>>,
}

impl EventFilter {
    /// Reads a filter in either dialect: `{types}` / `{blockedTypes}`, or `{mode, rules, alwaysAllow}`.
    pub fn parse(text: &str) -> Result<Self, BadFilter> {
        let said: FilterSubject = serde_json::from_str(text)
            .map_err(|error| BadFilter(format!("The filter cannot be read: {error}.")))?;
        let mut filter = match (&said.mode, said.types, said.blocked_types) {
            (None, Some(types), None) => Self::of_types(FilterMode::Include, types),
            (None, None, Some(types)) => Self::of_types(FilterMode::Exclude, types),
            (None, Some(types), Some(blocked)) => {
                let wanted = types.into_iter().filter(|it| !blocked.contains(it)).collect();
                Self::of_types(FilterMode::Include, wanted)
            }
            (Some(mode), None, None) => {
                let mode = match mode.as_str() {
                    "include" => FilterMode::Include,
                    "exclude" => FilterMode::Exclude,
                    other => {
                        let what =
                            format!("The filter's mode is include or exclude, not {other:?}.");
                        return Err(BadFilter(what));
                    }
                };
                let rules = said.rules.unwrap_or_default().into_iter().map(FilterRule::read);
                Self { mode, rules: rules.collect::<Result<_, _>>()?, always: vec![] }
            }
            (None, None, None) => Self::of_types(FilterMode::Exclude, vec![]),
            (Some(_), _, _) => {
                let what = "A filter has types and blockedTypes, or mode and rules, not both.";
                return Err(BadFilter(what.into()));
            }
        };
        filter.always = said.always_allow.unwrap_or_default();
        let n_patterns: usize = filter.rules.iter().map(|rule| rule.patterns.len().max(1)).sum();
        if n_patterns > PATTERNS_MAX {
            return Err(BadFilter(format!("A filter has at most {PATTERNS_MAX} patterns.")));
        }
        Ok(filter)
    }

    fn of_types(mode: FilterMode, types: Vec<String>) -> Self {
        let rule = FilterRule { types: Some(types), ..FilterRule::default() };
        Self { mode, rules: vec![rule], always: vec![] }
    }

    /// Whether the event passes the filter.
    pub fn passes(&self, told: &EnclaveEvent, session: &EnclaveSessionId) -> bool {
        let kind = told.kind.name();
        if matches!(told.kind, EnclaveEventKind::SessionInit | EnclaveEventKind::Final)
            || self.always.iter().any(|always| always == kind)
        {
            return true;
        }
        let mut event = None;
        let hit = self.rules.iter().any(|rule| rule.matches(kind, told, session, &mut event));
        match self.mode {
            FilterMode::Include => hit,
            FilterMode::Exclude => !hit,
        }
    }
}

impl FilterRule {
    fn read(said: SaidRule) -> Result<Self, BadFilter> {
        let types = said.types.map(|types| match types {
            SaidTypes::Plain(types) | SaidTypes::Nested { types } => types,
        });
        let content = said.content.unwrap_or_default();
        let all = match content.match_.as_deref() {
            None | Some("any") => false,
            Some("all") => true,
            Some(other) => {
                return Err(BadFilter(format!("A rule's match is any or all, not {other:?}.")));
            }
        };
        let patterns =
            content.patterns.into_iter().map(FilterPattern::read).collect::<Result<_, _>>()?;
        Ok(Self { types, patterns, all })
    }

    /// The event is only parsed if a pattern must match its content.
    fn matches(
        &self,
        kind: &str,
        told: &EnclaveEvent,
        session: &EnclaveSessionId,
        event: &mut Option<Value>,
    ) -> bool {
        if self.types.as_ref().is_some_and(|types| !types.iter().any(|it| it == kind)) {
            return false;
        }
        if self.patterns.is_empty() {
            return true;
        }
        let event = event.get_or_insert_with(|| {
            let mut line = Vec::new();
            told.write(session, &mut line);
            serde_json::from_slice(&line).unwrap_or(Value::Null)
        });
        let mut hits = self.patterns.iter().map(|pattern| pattern.matches(event));
        if self.all { hits.all(|hit| hit) } else { hits.any(|hit| hit) }
    }
}

impl FilterPattern {
    fn read(said: SaidPattern) -> Result<Self, BadFilter> {
        if said.pattern.len() > PATTERN_BYTES_MAX {
            return Err(BadFilter(format!("A pattern has at most {PATTERN_BYTES_MAX} bytes.")));
        }
        let text = match said.kind.as_str() {
            "exact" => format!("^(?:{})$", regex::escape(&said.pattern)),
            "prefix" => format!("^(?:{})", regex::escape(&said.pattern)),
            "glob" => format!("^(?:{})$", glob(&said.pattern)),
            "regex" => said.pattern.clone(),
            other => {
                let what =
                    format!("A pattern's type is exact, prefix, glob or regex, not {other:?}.");
                return Err(BadFilter(what));
            }
        };
        let mut builder = RegexBuilder::new(&text);
        builder.case_insensitive(said.case_insensitive.unwrap_or(false));
        builder.dot_matches_new_line(said.kind != "regex").size_limit(COMPILED_BYTES_MAX);
        let regex = builder.build().map_err(|_| {
            let pattern = &said.pattern;
            BadFilter(format!("The pattern {pattern:?} cannot be used as a {}.", said.kind))
        })?;
        let field = said.field.map(|field| field.split('.').map(str::to_owned).collect());
        Ok(Self { regex, field })
    }

    fn matches(&self, event: &Value) -> bool {
        let at = match &self.field {
            None => event.get("payload"),
            Some(path) => path.iter().try_fold(event, |at, name| match at {
                Value::Array(items) => items.get(name.parse::<usize>().ok()?),
                Value::Object(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_) => at.get(name),
            }),
        };
        match at {
            None => false,
            Some(Value::String(text)) => self.regex.is_match(text),
            Some(other) => self.regex.is_match(&other.to_string()),
        }
    }
}

/// Converts a glob to a regular expression: `*` and `?` stop at slashes, `**` does not, `[…]` and `{a,b}`
/// are alternatives.
fn glob(pattern: &str) -> String {
    let mut regex = String::new();
    let (mut chars, mut n_open) = (pattern.chars().peekable(), 0);
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.next_if_eq(&'*').is_some() => regex.push_str(".*"),
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '{' => {
                n_open += 1;
                regex.push_str("(?:");
            }
            '}' if n_open > 0 => {
                n_open -= 1;
                regex.push(')');
            }
            ',' if n_open > 0 => regex.push('|'),
            '[' => regex.push_str(&class(&mut chars)),
            '\\' => regex.push_str(&regex::escape(&chars.next().unwrap_or('\\').to_string())),
            other => regex.push_str(&regex::escape(&other.to_string())),
        }
    }
    regex.push_str(&")".repeat(n_open));
    regex
}

/// A character class; an unterminated one is literal text.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let rest: String = chars.clone().collect();
    let Some(end) = rest.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(at, _)| at) else {
        return "\\[".to_owned();
    };
    let inside = &rest[..end];
    for _ in inside.chars().chain([']']) {
        chars.next();
    }
    let (not, inside) = match inside.strip_prefix(['!', '^']) {
        Some(inside) => ("^", inside),
        None => ("", inside),
    };
    let escaped =
        inside.replace('\\', "\\\\").replace('[', "\\[").replace('&', "\\&").replace('~', "\\~");
    format!("[{not}{escaped}]")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterSubject {
    mode: Option<String>,
    rules: Option<Vec<SaidRule>>,
    always_allow: Option<Vec<String>>,
    types: Option<Vec<String>>,
    blocked_types: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct SaidRule {
    types: Option<SaidTypes>,
    content: Option<SaidContent>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidTypes {
    Plain(Vec<String>),
    Nested { types: Vec<String> },
}

#[derive(Deserialize, Default)]
struct SaidContent {
    #[serde(default)]
    patterns: Vec<SaidPattern>,
    #[serde(rename = "match")]
    match_: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SaidPattern {
    #[serde(rename = "type")]
    kind: String,
    pattern: String,
    field: Option<String>,
    case_insensitive: Option<bool>,
}
