//! Asks the person at the terminal one question at a time, and converts the typed lines to answers.

use super::form::{self, FormField, FormValues};
use super::typed::TerminalRead;
use crate::print::{self, tamed};
use client::OpenQuestion;
use lifecycle::{Answer, AnswerExtras, Json, QuestionId};
use serde_json::Value;
use std::collections::VecDeque;

/// A person's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PersonReply {
    /// An answer with its extras.
    Answer(QuestionId, Answer, AnswerExtras),
    /// The person postponed the question.
    Later(Box<OpenQuestion>),
}

const YES: Answer = Answer::Accept { content: None };

/// The queue of questions, and the one that is being asked.
#[derive(Debug, Default)]
pub(super) struct QuestionDesk {
    waiting: VecDeque<OpenQuestion>,
    asked: Option<PromptedQuestion>,
    typed: TerminalRead,
}

#[derive(Debug)]
struct PromptedQuestion {
    asks: OpenQuestion,
    fields: VecDeque<FormField>,
    step: PromptStep,
}

/// The step within a question.
#[derive(Debug)]
enum PromptStep {
    /// Approve or decline.
    Verdict,
    /// The arguments, typed again.
    Editing,
    /// The remaining fields, the current one first.
    Filling(FormValues),
}

impl QuestionDesk {
    /// Appends a question to the queue.
    pub(super) fn add(&mut self, asks: OpenQuestion) {
        self.waiting.push_back(asks);
    }

    /// Whether this question is queued or being asked.
    pub(super) fn has(&self, id: QuestionId) -> bool {
        let asked = self.asked.iter().map(|asked| &asked.asks);
        asked.chain(&self.waiting).any(|asks| asks.question == id)
    }

    /// Whether a question is being asked.
    pub(super) const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Removes a question that is closed; returns whether it was being asked.
    pub(super) fn withdraw(&mut self, id: QuestionId) -> bool {
        self.waiting.retain(|asks| asks.question != id);
        let is_asked = self.asked.as_ref().is_some_and(|asked| asked.asks.question == id);
        if is_asked {
            self.asked = None;
        }
        is_asked
    }

    /// Asks the next question, if there is one and none is being asked.
    pub(super) fn ask_next(&mut self) {
        if self.asked.is_some() {
            return;
        }
        if let Some(asks) = self.waiting.pop_front() {
            let schema =
                asks.schema.as_ref().and_then(|json| serde_json::from_str(json.as_text()).ok());
            let fields = form::fields(&schema.unwrap_or(Value::Null));
            print::prompt(&format!("\n{}\n", tamed(&asks.message)));
            if let Some(url) = &asks.url {
                print::prompt(&format!("\n{}\n  {}\n", print::bold("Open this page:"), tamed(url)));
            }
            if let Err(why) = &fields {
                print::prompt(&format!("\nTo answer it, open the page: {why}.\n"));
            }
            let fields = fields.unwrap_or_default().into();
            let asked =
                self.asked.insert(PromptedQuestion { asks, fields, step: PromptStep::Verdict });
            self.typed.start_anew();
            print::prompt(&asked.prompt());
        }
    }

    /// Prints the current prompt again, after other output.
    pub(super) fn ask_again(&self) {
        if let Some(asked) = &self.asked {
            print::prompt(&asked.prompt());
        }
    }

    /// Returns the person's reply; never resolves while no question is asked. Cancel-safe.
    pub(super) async fn next(&mut self) -> PersonReply {
        loop {
            let Some(asked) = &mut self.asked else { return std::future::pending().await };
            let line = self.typed.line().await;
            if let Some(said) = asked.handle_line(line.as_deref()) {
                self.asked = None;
                return said;
            }
            print::prompt(&asked.prompt());
        }
    }
}

impl PromptedQuestion {
    fn prompt(&self) -> String {
        match &self.step {
            PromptStep::Verdict => {
                let (what, more) = match (&self.asks.url, self.fields.is_empty()) {
                    (Some(_), _) => ("Done there?", ""),
                    (None, false) => ("Fill it in?", ""),
                    (None, true) => ("Approve?", ", [a]lways in this run"),
                };
                let edit = if self.asks.editable { ", [e]dit the arguments" } else { "" };
                format!("\n{} [y]es, [n]o{more}{edit}, [l]ater: ", print::bold(what))
            }
            PromptStep::Editing => "  The arguments, a JSON object in one line: ".into(),
            PromptStep::Filling(_) => {
                self.fields.front().map(|field| format!("  {}", field.prompt())).unwrap_or_default()
            }
        }
    }

    /// Handles a typed line; returns `None` while more input is needed. The end of input means "later".
    fn handle_line(&mut self, line: Option<&str>) -> Option<PersonReply> {
        let id = self.asks.question;
        let Some(line) = line else { return Some(PersonReply::Later(Box::new(self.asks.clone()))) };
        match &mut self.step {
            PromptStep::Verdict => {
                let can_remember = self.fields.is_empty() && self.asks.url.is_none();
                match line.trim().to_ascii_lowercase().as_str() {
                    "y" | "yes" if !self.fields.is_empty() => {
                        self.step = PromptStep::Filling(FormValues::default());
                        None
                    }
                    "y" | "yes" => Some(PersonReply::Answer(id, YES, AnswerExtras::Nothing)),
                    "a" | "always" if can_remember => {
                        Some(PersonReply::Answer(id, YES, AnswerExtras::Remember))
                    }
                    "e" | "edit" if self.asks.editable => {
                        self.step = PromptStep::Editing;
                        None
                    }
                    "n" | "no" => {
                        Some(PersonReply::Answer(id, Answer::Decline, AnswerExtras::Nothing))
                    }
                    "l" | "later" => Some(PersonReply::Later(Box::new(self.asks.clone()))),
                    _ => None,
                }
            }
            PromptStep::Editing => match edited(line) {
                Ok(edited) => Some(PersonReply::Answer(id, YES, AnswerExtras::Arguments(edited))),
                Err(why) => {
                    print::prompt(&format!("  {why}\n"));
                    None
                }
            },
            PromptStep::Filling(filled) => {
                let field = self.fields.front()?;
                match field.read(line) {
                    Ok(value) => filled.put(field.name(), value),
                    Err(why) => {
                        print::prompt(&format!("  {why}\n"));
                        return None;
                    }
                }
                self.fields.pop_front();
                if !self.fields.is_empty() {
                    return None;
                }
                let content = Json::parse(std::mem::take(filled).content()).ok();
                Some(PersonReply::Answer(id, Answer::Accept { content }, AnswerExtras::Nothing))
            }
        }
    }
}

/// Parses typed arguments.
fn edited(line: &str) -> Result<Json, String> {
    let json = Json::parse(line.trim().to_owned()).map_err(|error| error.to_string())?;
    match json.as_text().starts_with('{') {
        true => Ok(json),
        false => Err("the arguments are a JSON object".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(schema: &str, url: Option<&str>) -> PromptedQuestion {
        let asks = OpenQuestion {
            question: "exec_00000000-0000-0000-0000-000000000002".parse().unwrap(),
            message: "Approve demo.ask?".into(),
            address: "tools.demo.ask".into(),
            args: None,
            schema: Json::parse(schema.to_owned()).ok(),
            url: url.map(str::to_owned),
            approval_url: None,
            editable: false,
        };
        let fields = form::fields(&serde_json::from_str(schema).unwrap()).unwrap().into();
        PromptedQuestion { asks, fields, step: PromptStep::Verdict }
    }

    #[track_caller]
    fn check(
        mut asked: PromptedQuestion,
        lines: &[&str],
        expected: Option<(Answer, AnswerExtras)>,
    ) {
        let said: Vec<_> = lines.iter().filter_map(|line| asked.handle_line(Some(line))).collect();
        let id = asked.asks.question;
        let expected = expected.map(|(answer, rider)| PersonReply::Answer(id, answer, rider));
        assert_eq!(said, expected.into_iter().collect::<Vec<_>>(), "{lines:?}");
    }

    #[test]
    fn only_a_plain_word_is_an_answer() {
        let accept = Answer::Accept { content: None };
        let plain = || asked(r#"{"type":"object","properties":{}}"#, None);
        check(plain(), &["y\n"], Some((accept.clone(), AnswerExtras::Nothing)));
        check(plain(), &["Always\n"], Some((accept.clone(), AnswerExtras::Remember)));
        check(plain(), &["no\n"], Some((Answer::Decline, AnswerExtras::Nothing)));
        check(plain(), &["\n", "yes please\n", "ja\n"], None);
        check(asked("{}", Some("http://x/")), &["a", "y"], Some((accept, AnswerExtras::Nothing)));
        assert!(matches!(plain().handle_line(None), Some(PersonReply::Later(_))));
        assert!(matches!(plain().handle_line(Some("l")), Some(PersonReply::Later(_))));
    }

    #[test]
    fn arguments_are_typed_anew_where_that_is_allowed() {
        let plain = || asked(r#"{"type":"object","properties":{}}"#, None);
        check(plain(), &["e", "{}"], None);
        let editable = || {
            let PromptedQuestion { asks, fields, step } = plain();
            PromptedQuestion { asks: OpenQuestion { editable: true, ..asks }, fields, step }
        };
        let typed = Json::parse(r#"{"to": "bob"}"#.into()).unwrap();
        let expected = Some((YES, AnswerExtras::Arguments(typed)));
        check(editable(), &["e\n", "[1]\n", "{\n", "{\"to\": \"bob\"}\n"], expected);
        check(editable(), &["y"], Some((YES, AnswerExtras::Nothing)));
    }

    #[test]
    fn a_form_is_filled_in_field_by_field() {
        let schema =
            r#"{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}"#;
        let content = Json::parse(r#"{"a":3}"#.into()).ok();
        check(
            asked(schema, None),
            &["y", "x", "3", ""],
            Some((Answer::Accept { content }, AnswerExtras::Nothing)),
        );
        check(asked(schema, None), &["n"], Some((Answer::Decline, AnswerExtras::Nothing)));
    }
}
