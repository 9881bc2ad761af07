//! Asks the person at the terminal, one question at a time.

use crate::print;
use lifecycle::{Answer, Json, Question, QuestionId, QuestionKind};
use std::collections::VecDeque;
use std::future;
use std::io::{self, BufRead as _, Read as _};
use tokio::task::{self, JoinHandle};

/// Longest line that is read as an answer; a form may need some kilobytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Who approves or declines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalMode {
    /// `--yes`.
    Approve,
    /// `--no`.
    Decline,
    /// The person at the terminal.
    Terminal,
    /// No one can answer: stdin is not a terminal, or the program came from it.
    NobodyThere,
}

/// The queue of questions, and the one that is being asked.
#[derive(Debug)]
pub(super) struct RunPrompter {
    asking: ApprovalMode,
    waiting: VecDeque<Question>,
    asked: Option<(QuestionId, JoinHandle<Answer>)>,
    n_declined: u32,
}

impl RunPrompter {
    pub(super) const fn new(asking: ApprovalMode) -> Self {
        Self { asking, waiting: VecDeque::new(), asked: None, n_declined: 0 }
    }

    /// How many questions were declined.
    pub(super) const fn n_declined(&self) -> u32 {
        self.n_declined
    }

    /// Whether a question is being asked, or will be.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some() || !self.waiting.is_empty()
    }

    /// Appends a question to the queue.
    pub(super) fn add(&mut self, question: Question) {
        self.waiting.push_back(question);
    }

    /// Returns the next answer; never resolves while there is no question. Cancel-safe.
    pub(super) async fn next(&mut self) -> (QuestionId, Answer) {
        let (id, answer) = self.verdict().await;
        if answer == Answer::Decline {
            self.n_declined += 1;
        }
        (id, answer)
    }

    async fn verdict(&mut self) -> (QuestionId, Answer) {
        if let Some((id, typing)) = &mut self.asked {
            let verdict = (*id, typing.await.unwrap_or(Answer::Decline));
            self.asked = None;
            return verdict;
        }
        let Some(question) = self.waiting.pop_front() else { return future::pending().await };
        let id = question.id;
        let answer = match (&question.kind, self.asking) {
            // An approval would not choose an action, and a new journal contains no call of an old server.
            (QuestionKind::InDoubt, _) | (_, ApprovalMode::Decline) => Answer::Decline,
            (QuestionKind::Approval, ApprovalMode::Approve) => YES,
            (QuestionKind::Approval, ApprovalMode::NobodyThere) => {
                print::print_note(&unheard(&question));
                Answer::Decline
            }
            (QuestionKind::Form { schema }, ApprovalMode::Approve)
                if is_content_with_nothing(schema) =>
            {
                Answer::Accept { content: Some(nothing()) }
            }
            // An approval without a person cannot fill in a form or visit a page.
            (QuestionKind::Form { .. } | QuestionKind::Link { .. }, ApprovalMode::Approve)
            | (QuestionKind::Form { .. } | QuestionKind::Link { .. }, ApprovalMode::NobodyThere) => {
                print::print_note(&unfillable(&question));
                Answer::Decline
            }
            (_, ApprovalMode::Terminal) => {
                let typing = task::spawn_blocking(move || typed(&question));
                let (_, typing) = self.asked.insert((id, typing));
                let answer = typing.await.unwrap_or(Answer::Decline);
                self.asked = None;
                answer
            }
        };
        (id, answer)
    }
}

const YES: Answer = Answer::Accept { content: None };

fn nothing() -> Json {
    Json::parse("{}".to_owned()).expect("an empty object is JSON")
}

fn is_content_with_nothing(schema: &Json) -> bool {
    tools::misfit(schema, &nothing()).is_none()
}

/// Asks the person at the terminal and reads the answer.
fn typed(question: &Question) -> Answer {
    match &question.kind {
        QuestionKind::Approval | QuestionKind::InDoubt => {
            print::question(&question.message, "Approve? [y/N]");
            if line().is_some_and(|line| is_yes(&line)) { YES } else { Answer::Decline }
        }
        QuestionKind::Link { url, .. } => {
            let message = format!("{}\n\n{url}", question.message);
            print::question(&message, "Done? [y/N]");
            if line().is_some_and(|line| is_yes(&line)) { YES } else { Answer::Decline }
        }
        QuestionKind::Form { schema } => filled_in(&question.message, schema),
    }
}

/// Reads a line of JSON that fits the form; an empty line declines.
fn filled_in(message: &str, schema: &Json) -> Answer {
    let mut shown = format!("{message}\n\nIt must fit: {}", schema.as_text());
    loop {
        print::question(&shown, "A line of JSON, or nothing to decline:");
        let content = match line() {
            Some(line) if !line.trim().is_empty() => Json::parse(line.trim().to_owned()),
            Some(_) | None => return Answer::Decline,
        };
        shown = match content {
            Err(_) => "That is no JSON.".to_owned(),
            Ok(content) => match tools::misfit(schema, &content) {
                None => return Answer::Accept { content: Some(content) },
                Some(why) => format!("It does not fit: {why}"),
            },
        };
    }
}

fn unfillable(question: &Question) -> String {
    let first = question.message.lines().next().unwrap_or_default();
    format!(
        "declined, because nobody is at the terminal: {first}\n\
         hint: to fill in forms and follow links, run it from a terminal or on a server"
    )
}

/// Explains why a question was not asked, with advice.
fn unheard(question: &Question) -> String {
    let first = question.message.lines().next().unwrap_or_default();
    format!(
        "declined, because nobody is at the terminal: {first}\n\
         hint: to approve, run it with --yes, or from a terminal with the program in a file"
    )
}

/// Reads a line; `None` at the end of input.
fn line() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut line).ok()?;
    (read > 0).then_some(line)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use lifecycle::CallId;

    fn question(n: u128, kind: QuestionKind) -> Question {
        let id = format!("exec_00000000-0000-0000-0000-{n:012}").parse().unwrap();
        Question {
            id,
            call: CallId(1),
            kind,
            message: "Approve demo.ask?\n\nArguments:\n{}".into(),
            revision: None,
            editable: false,
            answer_only: false,
        }
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(["y\n", "Y", " yes \r\n", "YES"].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "yes please", "yy", "ja"].into_iter().any(is_yes));
    }

    #[test]
    fn questions_are_answered_in_their_order_and_noes_are_counted() {
        let accept = Answer::Accept { content: None };
        let cases = [
            (ApprovalMode::Approve, accept, 0),
            (ApprovalMode::Decline, Answer::Decline, 2),
            (ApprovalMode::NobodyThere, Answer::Decline, 2),
        ];
        for (asking, answer, n_declined) in cases {
            let mut desk = RunPrompter::new(asking);
            assert_eq!(desk.next().now_or_never(), None);
            let questions = [1, 2].map(|n| question(n, QuestionKind::Approval));
            questions.iter().for_each(|question| desk.add(question.clone()));
            for question in questions {
                assert_eq!(desk.next().now_or_never(), Some((question.id, answer.clone())));
            }
            assert_eq!((desk.next().now_or_never(), desk.n_declined()), (None, n_declined));
        }
    }

    #[test]
    fn yes_to_everything_is_no_answer_to_a_doubt() {
        let mut desk = RunPrompter::new(ApprovalMode::Approve);
        let doubt = question(1, QuestionKind::InDoubt);
        desk.add(doubt.clone());
        assert_eq!(desk.next().now_or_never(), Some((doubt.id, Answer::Decline)));
    }

    #[test]
    fn a_form_that_wants_nothing_is_filled_in_beforehand_and_others_are_not() {
        let form =
            |schema: &str| QuestionKind::Form { schema: Json::parse(schema.into()).unwrap() };
        let mut desk = RunPrompter::new(ApprovalMode::Approve);
        let easy = question(1, form(r#"{"type":"object"}"#));
        let hard = question(2, form(r#"{"type":"object","required":["n"]}"#));
        let link =
            question(3, QuestionKind::Link { url: "http://127.0.0.1/".into(), is_prior: false });
        for question in [&easy, &hard, &link] {
            desk.add(question.clone());
        }
        let accepted = Answer::Accept { content: Some(nothing()) };
        assert_eq!(desk.next().now_or_never(), Some((easy.id, accepted)));
        assert_eq!(desk.next().now_or_never(), Some((hard.id, Answer::Decline)));
        assert_eq!(desk.next().now_or_never(), Some((link.id, Answer::Decline)));
        assert_eq!(desk.n_declined(), 2);
    }

    #[test]
    fn who_was_not_asked_learns_how_to_approve() {
        let expected = "declined, because nobody is at the terminal: Approve demo.ask?\n\
             hint: to approve, run it with --yes, or from a terminal with the program in a file";
        assert_eq!(unheard(&question(1, QuestionKind::Approval)), expected);
    }
}
