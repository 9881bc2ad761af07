//! The questions of tools to a person during a call.

use crate::{CallId, Json, Question, QuestionId, QuestionKind, RandomSeed};

/// The place in a link for the secret with which the visited page completes the question.
const STATE_PLACE: &str = "{state}";

/// Longest URL that is shown: browsers and proxies accept about as much.
const LINK_BYTES_MAX: usize = 8_192;

/// Longest message to a person.
const MESSAGE_BYTES_MAX: usize = 16_384;

/// A tool's question to a person during its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPrompt {
    /// A form to fill in.
    Form {
        /// The message to the person.
        message: String,
        /// JSON Schema of the content of an accepting answer.
        schema: Json,
    },
    /// A page to open.
    Link {
        /// The message to the person.
        message: String,
        /// The URL. `{state}` in it becomes the secret that completes the question by callback.
        url: String,
        /// Whether the tool has done nothing yet: a call that is lost while it asks this is made again.
        is_prior: bool,
    },
}

impl ToolPrompt {
    /// Why it cannot be shown to a person, if it cannot.
    pub fn defect(&self) -> Option<&'static str> {
        let (Self::Form { message, .. } | Self::Link { message, .. }) = self;
        if message.len() > MESSAGE_BYTES_MAX {
            return Some("its message is too long");
        }
        let Self::Link { url, .. } = self else { return None };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
        match is_web && is_plain && url.len() <= LINK_BYTES_MAX {
            true => None,
            false => Some("its link is not an address that a browser can open"),
        }
    }

    /// The question that `call` asks, with the secrets of this execution filled in.
    pub(crate) fn question(self, id: QuestionId, call: CallId, seed: &RandomSeed) -> Question {
        let (message, kind) = match self {
            Self::Form { message, schema } => (message, QuestionKind::Form { schema }),
            Self::Link { message, url, is_prior } => {
                let url = url.replace(STATE_PLACE, &callback_state(seed, id));
                (message, QuestionKind::Link { url, is_prior })
            }
        };
        Question { id, call, kind, message, revision: None, editable: false, answer_only: false }
    }
}

/// What a callback must contain to complete a link's question: its id and a secret of its execution.
pub fn callback_state(seed: &RandomSeed, question: QuestionId) -> String {
    use sha2::Digest as _;
    let whole = sha2::Sha256::digest(format!("callback {seed} {question}").as_bytes());
    let secret: String = whole.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{question}.{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_an_address_that_a_browser_opens() {
        let link = |url: &str| {
            ToolPrompt::Link { message: "Go".into(), url: url.into(), is_prior: false }.defect()
        };
        assert_eq!(link("https://example.com/?state={state}"), None);
        assert!(link("javascript:alert(1)").is_some());
        assert!(link("https://a\nb").is_some());
        assert!(link(&format!("https://{}", "a".repeat(LINK_BYTES_MAX))).is_some());
        let form = |message: String| ToolPrompt::Form { message, schema: Json::null() }.defect();
        assert_eq!(form("Who?".into()), None);
        assert!(form("?".repeat(MESSAGE_BYTES_MAX + 1)).is_some());
    }

    #[test]
    fn the_secret_of_a_link_differs_by_question_and_execution() {
        let id = |n| QuestionId::from_uuid(uuid::Uuid::from_u128(n));
        let state = callback_state(&RandomSeed([1; 32]), id(1));
        assert!(state.starts_with("exec_00000000-0000-0000-0000-000000000001."));
        assert_eq!(state.len(), "exec_".len() + 36 + 1 + 32);
        assert_ne!(state, callback_state(&RandomSeed([2; 32]), id(1)));
        assert_ne!(state[42..], callback_state(&RandomSeed([1; 32]), id(2))[42..]);
    }
}
