//! The content of a notice: that a question is open, its title and where it is decided. Never its arguments: they may be
//! secret, and a notice passes through other systems.

use engine::Engine;
use lifecycle::{CallerName, ExecutionId, ExecutionPhase, QuestionId, QuestionKind};
use serde_json::{Value, json};
use store::ListFilter;

/// Executions that are searched for questions.
const EXECUTIONS_MAX: usize = 200;

/// Longest title.
const TITLE_CHARS_MAX: usize = 200;

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionNotice {
    pub(super) question: QuestionId,
    pub(super) execution: ExecutionId,
    caller: CallerName,
    tool: String,
    kind: &'static str,
    title: String,
    url: String,
}

impl QuestionNotice {
    /// A notice for tests.
    #[cfg(test)]
    pub(super) fn example() -> Self {
        let id = uuid::Uuid::nil();
        Self {
            question: QuestionId::from_uuid(id),
            execution: ExecutionId::from_uuid(id),
            caller: CallerName("run".into()),
            tool: "demo.append".into(),
            kind: "approval",
            title: "Approve demo.append?".into(),
            url: "http://127.0.0.1:4788/resume/1".into(),
        }
    }

    /// The JSON that is sent.
    pub(super) fn body(&self) -> Value {
        json!({
            "type": "question",
            "executionId": self.question,
            "execution": self.execution,
            "caller": self.caller,
            "tool": self.tool,
            "kind": self.kind,
            "title": self.title,
            "url": self.url,
        })
    }
}

/// The questions that are open now.
pub(super) async fn open(engine: &Engine, url: &str) -> Result<Vec<QuestionNotice>, engine::Error> {
    let phases = vec![ExecutionPhase::Running, ExecutionPhase::Paused];
    let filter = ListFilter { phases, caller: None, after: None, n_max: EXECUTIONS_MAX };
    let mut open = vec![];
    for listed in engine.list_executions(filter).await? {
        let has_asked = engine.overview(listed.execution).await.map(|overview| overview.has_asked);
        let state = match has_asked {
            Ok(true) => engine.look_up(listed.execution).await.map(|snapshot| snapshot.state),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        let state = match state {
            Ok(state) => state,
            // It was deleted since it was listed.
            Err(engine::Error::Rejected(_)) => continue,
            Err(error) => return Err(error),
        };
        for question in state.open_questions() {
            let tool = state.calls.get(&question.call).map(|call| call.tool.to_string());
            open.push(QuestionNotice {
                question: question.id,
                execution: listed.execution,
                caller: listed.standing.caller.clone(),
                tool: tool.unwrap_or_default(),
                kind: match &question.kind {
                    QuestionKind::Approval => "approval",
                    QuestionKind::InDoubt => "inDoubt",
                    QuestionKind::Form { .. } => "form",
                    QuestionKind::Link { .. } => "link",
                },
                title: title(&question.message),
                url: format!("{url}/resume/{}", question.id),
            });
        }
    }
    Ok(open)
}

/// The first line: the following ones are arguments.
fn title(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(TITLE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_without_arguments() {
        assert_eq!(
            title("Approve mail.send?\n\nArguments:\n{\"password\":1}"),
            "Approve mail.send?"
        );
        assert_eq!(title("\u{1b}[2Ja"), "[2Ja");
        assert_eq!(title(&"x".repeat(1_000)).len(), TITLE_CHARS_MAX);
    }
}
