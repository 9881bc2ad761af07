//! The options in a connection's URL.

use crate::error::RequestError;
use crate::query::QueryMembers;
use lifecycle::AnswerRole;
use std::time::Duration;

/// Default wait time of a call: clients give up after 60 s.
const WAIT_MS_USUALLY: u64 = 50_000;

/// Maximum wait time that a URL can request.
const WAIT_MS_MAX: u64 = 600_000;

/// How a question reaches a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElicitationMode {
    /// The model receives the question and asks the person.
    Model,
    /// The person opens a page.
    Browser,
    /// The client shows its own form.
    Native,
}

impl ElicitationMode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Browser => "browser",
            Self::Native => "native",
        }
    }
}

/// The options of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionTerms {
    pub(super) mode: ElicitationMode,
    /// Whether the URL requests a mode in which the model answers although only a person or the client may.
    pub(super) is_downgraded: bool,
    /// How long a call waits before it returns a handle.
    pub(super) wait: Duration,
    /// Whether the URL sets the wait time.
    pub(super) names_wait: bool,
    /// Whether the catalogue's tools are listed beside `execute`.
    pub(super) direct: bool,
}

/// How long `resume` waits for the page where a person decides, if the client receives progress: its timer restarts
/// with each report. Other clients give up after a minute.
const PAGE_WAIT: Duration = Duration::from_mins(10);

impl ConnectionTerms {
    /// How long `resume` waits for a decision on the page; `hears` is whether the client requests progress.
    pub(super) fn page_wait(&self, hears: bool) -> Duration {
        if hears && !self.names_wait { PAGE_WAIT } else { self.wait }
    }

    /// The options in the URL, as far as `answers` permits them.
    pub(super) fn read(query: &QueryMembers, answers: AnswerRole) -> Result<Self, RequestError> {
        let wanted = match (
            query.text_member("elicitation_mode"),
            query.text_member("allow_model_resume"),
        ) {
            (None, None) => None,
            (None, Some("true" | "1")) | (Some("model"), _) => Some(ElicitationMode::Model),
            // Older clients of Executor use this parameter.
            (None, Some(_)) | (Some("browser"), _) => Some(ElicitationMode::Browser),
            (Some("native"), _) => Some(ElicitationMode::Native),
            (Some(_), _) => {
                let message = "The query's elicitation_mode must be model, browser or native.";
                return Err(RequestError::bad_request(message));
            }
        };
        let mode = match (wanted, answers) {
            (None | Some(ElicitationMode::Model), AnswerRole::Model) => ElicitationMode::Model,
            (None, AnswerRole::Client) => ElicitationMode::Native,
            (None | Some(ElicitationMode::Model), AnswerRole::Person | AnswerRole::Client) => {
                ElicitationMode::Browser
            }
            (Some(wanted), _) => wanted,
        };
        let is_downgraded =
            wanted == Some(ElicitationMode::Model) && mode != ElicitationMode::Model;
        let named = query.get("wait", "a number of milliseconds")?;
        let (wait, names_wait) = (named.unwrap_or(WAIT_MS_USUALLY), named.is_some());
        let direct = match query.text_member("tools") {
            None | Some("execute") => false,
            Some("direct") => true,
            Some(_) => {
                return Err(RequestError::bad_request(
                    "The query's tools must be execute or direct.",
                ));
            }
        };
        let wait = Duration::from_millis(wait.min(WAIT_MS_MAX));
        Ok(Self { mode, is_downgraded, wait, names_wait, direct })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::FromRequestParts as _;
    use axum::http::Request;

    async fn read(query: &str) -> Option<(ElicitationMode, u64, bool)> {
        let request = Request::builder().uri(format!("/mcp?{query}")).body(()).unwrap();
        let query =
            QueryMembers::from_request_parts(&mut request.into_parts().0, &()).await.unwrap();
        let terms = ConnectionTerms::read(&query, AnswerRole::Model).ok()?;
        Some((terms.mode, u64::try_from(terms.wait.as_millis()).unwrap(), terms.direct))
    }

    #[tokio::test]
    async fn a_decision_on_the_page_is_awaited_for_ten_minutes_where_the_client_hears_of_progress()
    {
        for (text, hears, expected_ms) in
            [("", true, 600_000), ("", false, 50_000), ("wait=5", true, 5), ("wait=5", false, 5)]
        {
            let request = Request::builder().uri(format!("/mcp?{text}")).body(()).unwrap();
            let query =
                QueryMembers::from_request_parts(&mut request.into_parts().0, &()).await.unwrap();
            let terms = ConnectionTerms::read(&query, AnswerRole::Person).unwrap();
            assert_eq!(terms.page_wait(hears).as_millis(), expected_ms, "{text} {hears}");
        }
    }

    #[tokio::test]
    async fn a_mode_is_served_as_far_as_the_value_permits_it() {
        use AnswerRole::{Client, Model, Person};
        let cases = [
            (
                "",
                [
                    (ElicitationMode::Browser, false),
                    (ElicitationMode::Native, false),
                    (ElicitationMode::Model, false),
                ],
            ),
            (
                "elicitation_mode=model",
                [
                    (ElicitationMode::Browser, true),
                    (ElicitationMode::Browser, true),
                    (ElicitationMode::Model, false),
                ],
            ),
            (
                "allow_model_resume=true",
                [
                    (ElicitationMode::Browser, true),
                    (ElicitationMode::Browser, true),
                    (ElicitationMode::Model, false),
                ],
            ),
            ("elicitation_mode=browser", [(ElicitationMode::Browser, false); 3]),
            ("elicitation_mode=native", [(ElicitationMode::Native, false); 3]),
        ];
        for (text, expected) in cases {
            let request = Request::builder().uri(format!("/mcp?{text}")).body(()).unwrap();
            let query =
                QueryMembers::from_request_parts(&mut request.into_parts().0, &()).await.unwrap();
            let served = [Person, Client, Model].map(|answers| {
                let terms = ConnectionTerms::read(&query, answers).unwrap();
                (terms.mode, terms.is_downgraded)
            });
            assert_eq!((text, served), (text, expected));
        }
    }

    #[tokio::test]
    async fn a_url_says_how_questions_reach_a_person_and_how_long_to_wait() {
        let cases = [
            ("", Some((ElicitationMode::Model, 50_000, false))),
            ("elicitation_mode=browser", Some((ElicitationMode::Browser, 50_000, false))),
            ("elicitation_mode=native&wait=5", Some((ElicitationMode::Native, 5, false))),
            (
                "allow_model_resume=false&tools=direct",
                Some((ElicitationMode::Browser, 50_000, true)),
            ),
            (
                "elicitation_mode=model&wait=999999999",
                Some((ElicitationMode::Model, 600_000, false)),
            ),
            ("elicitation_mode=telepathy", None),
            ("wait=long", None),
            ("tools=all", None),
        ];
        for (query, expected) in cases {
            assert_eq!((query, read(query).await), (query, expected));
        }
    }
}
