//! Asks the person at the terminal, one question at a time.

use crate::print;
use lifecycle::{Answer, Question, QuestionId, QuestionKind};
use std::collections::VecDeque;
use std::future;
use std::io::{self, BufRead as _, Read as _};
use tokio::task::{self, JoinHandle};

/// Longest line that is read as an answer.
const ANSWER_BYTES_MAX: u64 = 1_000;

/// Who says yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// `--yes`.
    Approve,
    /// `--no`.
    Decline,
    /// The person at the terminal.
    Terminal,
    /// Nobody: stdin is no terminal, or the program came from it.
    NobodyThere,
}

/// The questions that wait, and the one that is being asked.
#[derive(Debug)]
pub(super) struct Desk {
    asking: Asking,
    waiting: VecDeque<Question>,
    asked: Option<(QuestionId, JoinHandle<bool>)>,
    n_declined: u32,
}

impl Desk {
    pub(super) const fn new(asking: Asking) -> Self {
        Self { asking, waiting: VecDeque::new(), asked: None, n_declined: 0 }
    }

    /// How many questions were answered with no.
    pub(super) const fn n_declined(&self) -> u32 {
        self.n_declined
    }

    /// Puts a question behind those that wait.
    pub(super) fn add(&mut self, question: Question) {
        self.waiting.push_back(question);
    }

    /// The next answer; never resolves while there is no question. Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self) -> (QuestionId, Answer) {
        let (id, is_yes) = self.verdict().await;
        if is_yes {
            return (id, Answer::Accept { content: None });
        }
        self.n_declined += 1;
        (id, Answer::Decline)
    }

    async fn verdict(&mut self) -> (QuestionId, bool) {
        if let Some((id, typing)) = &mut self.asked {
            let verdict = (*id, typing.await.unwrap_or(false));
            self.asked = None;
            return verdict;
        }
        let Some(question) = self.waiting.pop_front() else { return future::pending().await };
        let id = question.id;
        let is_yes = match (&question.kind, self.asking) {
            // A yes would not say what to do, and a new journal holds no call of an old server.
            (QuestionKind::InDoubt, _) | (QuestionKind::Approval, Asking::Decline) => false,
            // There is nowhere here to fill in a form or to come back to from a page.
            (QuestionKind::Form { .. } | QuestionKind::Link { .. }, _) => {
                print::note(&unfillable(&question));
                false
            }
            (QuestionKind::Approval, Asking::Approve) => true,
            (QuestionKind::Approval, Asking::NobodyThere) => {
                print::note(&unheard(&question));
                false
            }
            (QuestionKind::Approval, Asking::Terminal) => {
                print::question(&question.message);
                let (_, typing) = self.asked.insert((id, task::spawn_blocking(typed_yes)));
                let is_yes = typing.await.unwrap_or(false);
                self.asked = None;
                is_yes
            }
        };
        (id, is_yes)
    }
}

fn unfillable(question: &Question) -> String {
    let first = question.message.lines().next().unwrap_or_default();
    format!(
        "declined, because only a server can ask it: {first}\n\
         airlock: to fill in forms and follow links, run the program on a server"
    )
}

/// Why nobody was asked, and what to do about it.
fn unheard(question: &Question) -> String {
    let first = question.message.lines().next().unwrap_or_default();
    format!(
        "declined, because nobody is at the terminal: {first}\n\
         airlock: to approve, run it with --yes, or from a terminal with the program in a file"
    )
}

/// Reads a line; anything but a yes is a no, the end of input too.
fn typed_yes() -> bool {
    let mut line = String::new();
    let read = io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut line);
    read.is_ok() && is_yes(&line)
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
            (Asking::Approve, accept, 0),
            (Asking::Decline, Answer::Decline, 2),
            (Asking::NobodyThere, Answer::Decline, 2),
        ];
        for (asking, answer, n_declined) in cases {
            let mut desk = Desk::new(asking);
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
        let mut desk = Desk::new(Asking::Approve);
        let doubt = question(1, QuestionKind::InDoubt);
        desk.add(doubt.clone());
        assert_eq!(desk.next().now_or_never(), Some((doubt.id, Answer::Decline)));
    }

    #[test]
    fn who_was_not_asked_learns_how_to_approve() {
        let expected = "declined, because nobody is at the terminal: Approve demo.ask?\n\
             airlock: to approve, run it with --yes, or from a terminal with the program in a file";
        assert_eq!(unheard(&question(1, QuestionKind::Approval)), expected);
    }
}
