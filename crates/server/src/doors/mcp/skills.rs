//! Guides: for a model by the tool `skills`, for a person as prompts of their client. They are long, because they are
//! read once.

use super::visit::QuestionChannel;
use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptMessage, Role};

/// One guide.
struct SkillGuide {
    name: &'static str,
    title: &'static str,
    /// Its purpose, in one line.
    summary: &'static str,
    text: &'static str,
}

const SKILLS: [SkillGuide; 1] = [SkillGuide {
    name: "execute",
    title: "Write programs for execute",
    summary: "find tools, read their shape, call them, show results, go on after a pause",
    text: EXECUTE_SKILL,
}];

impl SkillGuide {
    fn find_skill(name: &str) -> Option<&'static Self> {
        SKILLS.iter().find(|skill| skill.name == name)
    }

    /// The text for clients whose questions reach a person in this way.
    fn read(&self, manner: QuestionChannel) -> String {
        self.text.replace(PAUSES_PLACE, pauses(manner))
    }
}

/// The text of a skill; without a name, or with an unknown one, the list. The flag is whether it was found.
pub(super) fn skill(name: Option<&str>, manner: QuestionChannel) -> (String, bool) {
    let lines: Vec<_> =
        SKILLS.iter().map(|skill| format!("- `{}`: {}.", skill.name, skill.summary)).collect();
    let list = format!("Skills; read one with `skills({{ name }})`:\n\n{}", lines.join("\n"));
    match name.map(str::trim) {
        None | Some("") => (list, true),
        Some(name) => match SkillGuide::find_skill(name) {
            Some(skill) => (skill.read(manner), true),
            None => (format!("No skill named \"{name}\".\n\n{list}"), false),
        },
    }
}

/// The skills as prompts, which a person selects in their client.
pub(super) fn prompts() -> Vec<Prompt> {
    let prompt = |skill: &SkillGuide| {
        Prompt::new(skill.name, Some(skill.summary), None).with_title(skill.title)
    };
    SKILLS.iter().map(prompt).collect()
}

/// The messages of a prompt.
pub(super) fn prompt(name: &str, manner: QuestionChannel) -> Result<GetPromptResult, ErrorData> {
    let skill = SkillGuide::find_skill(name).ok_or_else(|| {
        let message =
            format!("there is no prompt {name:?}; prompts/list names those that there are");
        ErrorData::invalid_params(message, None)
    })?;
    let message = PromptMessage::new_text(Role::User, skill.read(manner));
    Ok(GetPromptResult::new(vec![message]).with_description(skill.summary))
}

const EXECUTE_SKILL: &str = include_str!("execute.skill.md");

/// The place in a skill for the instructions about questions, which depend on who may answer.
const PAUSES_PLACE: &str = "{when it pauses}";

/// Instructions to a model about a question. A model whose answer does not count reads nothing about giving one.
const fn pauses(manner: QuestionChannel) -> &'static str {
    match manner {
        QuestionChannel::Model => {
            "\
- With `status: \"waiting_for_interaction\"`: show the user the message, wait for their words, then call `resume` with
  `action` `accept`, `decline` or `cancel`, and `content` if a schema is given. Never decide for the user.
- With `status: \"user_approval_required\"`: give the user the `approvalUrl`, then call `resume`; it waits for them."
        }
        QuestionChannel::Browser => {
            "\
- With `status: \"user_approval_required\"`: give the user the `approvalUrl`, then call `resume`; it waits for them."
        }
        QuestionChannel::Form(_) | QuestionChannel::Retry(_) => {
            "\
- The client shows the question to the user. With `status: \"user_approval_required\"`: give the user the `approvalUrl`,
  then call `wait`; it waits for them."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::visit::FormSupport;
    use super::*;

    #[test]
    fn a_model_whose_answer_does_not_count_reads_nothing_about_giving_one() {
        let forms = FormSupport { form: true, url: true, counts: false };
        for manner in
            [QuestionChannel::Browser, QuestionChannel::Form(forms), QuestionChannel::Retry(forms)]
        {
            let (text, _) = skill(Some("execute"), manner);
            assert!(!text.contains("`accept`") && text.contains("approvalUrl"), "{text}");
            assert!(!text.contains(PAUSES_PLACE));
        }
        assert!(skill(Some("execute"), QuestionChannel::Model).0.contains("`accept`"));
    }

    #[test]
    fn a_skill_that_does_not_exist_is_answered_with_those_that_do() {
        assert!(skill(None, QuestionChannel::Model).0.contains("`execute`"));
        assert!(skill(Some("execute"), QuestionChannel::Model).0.contains("tools.search"));
        let (text, found) = skill(Some("nope"), QuestionChannel::Model);
        assert!(
            !found && text.starts_with("No skill named \"nope\".") && text.contains("`execute`")
        );
    }

    #[test]
    fn every_skill_is_a_prompt() {
        let names: Vec<_> = prompts().into_iter().map(|prompt| prompt.name).collect();
        assert_eq!(names, SKILLS.map(|skill| skill.name.to_owned()));
        for name in names {
            let text =
                serde_json::to_value(prompt(&name, QuestionChannel::Browser).unwrap()).unwrap();
            let text = &text["messages"][0]["content"]["text"];
            assert_eq!(text, &skill(Some(&name), QuestionChannel::Browser).0);
        }
        assert!(
            prompt("nope", QuestionChannel::Browser).unwrap_err().message.contains("prompts/list")
        );
    }
}
