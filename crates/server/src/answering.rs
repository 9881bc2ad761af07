//! Decides who may answer a question. Every door calls this module before it passes an answer to the engine, so the
//! rule exists once.

use crate::app::AppState;
use crate::auth::{AccessDenied, Caller, Scope, permissions};
use crate::error::RequestError;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderValue;
use axum::http::header::HOST;
use axum::http::request::Parts;
use lifecycle::{
    Answer, AnswerAuthor, AnswerRole, CallerName, ExecutionId, Question, QuestionId, QuestionKind,
    Rejection, ToolPath,
};
use protocols::executor::QuestionReader;
use std::convert::Infallible;
use std::sync::Arc;

/// How an answer reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerPath {
    /// A request to the HTTP API: `resume`, `answers`.
    Request,
    /// `autoApprove`: approval of questions that the program will ask later.
    InAdvance,
    /// The MCP tool `resume`.
    McpTool,
    /// A dialog of an MCP client: an elicitation, a retried call, a task's input.
    McpDialog,
}

/// What an answer refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerSubject<'a> {
    /// The owner of the execution that asks.
    pub(crate) owner: &'a CallerName,
    /// The question and the tool whose call it holds; none before a program has asked.
    pub(crate) asked: Option<(&'a Question, &'a ToolPath)>,
}

/// Whether `caller` may give an answer on this path, and the name under which the journal records it.
pub(crate) fn permit(
    caller: &Caller,
    path: AnswerPath,
    subject: AnswerSubject<'_>,
) -> Result<AnswerAuthor, AccessDenied> {
    let holds_answer = caller.scopes.has(Scope::Answer);
    if !holds_answer {
        caller.owns(subject.owner)?;
        caller.may_run().map_err(|_| AccessDenied::Needs(Scope::Answer))?;
    }
    let is_approval =
        subject.asked.is_none_or(|(question, _)| question.kind == QuestionKind::Approval);
    // For any other kind of question, an approval in advance would not contain the decision, the form's fields or the
    // person.
    if path == AnswerPath::InAdvance && !is_approval {
        return Err(AccessDenied::NotInAdvance);
    }
    // A call that manages this server requires an answer to its own question.
    let manages = |(question, tool)| needed_scope(question, tool).is_some();
    if path == AnswerPath::InAdvance && subject.asked.is_some_and(manages) {
        return Err(AccessDenied::NotInAdvance);
    }
    let role = match path {
        AnswerPath::Request | AnswerPath::InAdvance if holds_answer => AnswerRole::Person,
        AnswerPath::Request | AnswerPath::InAdvance | AnswerPath::McpTool => AnswerRole::Model,
        AnswerPath::McpDialog => AnswerRole::Client,
    };
    match role <= caller.answers {
        true => Ok(AnswerAuthor { caller: caller.name.clone(), role }),
        false if path == AnswerPath::InAdvance => Err(AccessDenied::NotInAdvance),
        false => Err(AccessDenied::PersonAnswers),
    }
}

/// The scope that an accepting answer needs besides the right to answer; none where that right is enough.
pub(crate) fn needed_scope(question: &Question, tool: &ToolPath) -> Option<Scope> {
    // A tool that requires an answer but has no row in the table is not weaker than one that has a row.
    permissions::accept_scope(tool).or_else(|| question.answer_only.then_some(Scope::Admin))
}

/// Whether the caller holds the scope that an accepting answer needs. Other answers need none.
fn may_accept(
    caller: &Caller,
    answer: &Answer,
    question: &Question,
    tool: &ToolPath,
) -> Result<(), AccessDenied> {
    match (answer, needed_scope(question, tool)) {
        (Answer::Accept { .. }, Some(scope)) if !caller.scopes.has(scope) => {
            Err(AccessDenied::AcceptNeeds(scope))
        }
        (Answer::Accept { .. } | Answer::Decline | Answer::Cancel, _) => Ok(()),
    }
}

/// Like `permit`, for answers to questions of an execution, which are read from its state. A question that the
/// execution does not have is not found.
/// not found.
pub(crate) async fn authorize(
    app: &AppState,
    caller: &Caller,
    path: AnswerPath,
    execution: ExecutionId,
    answers: &[(QuestionId, &Answer)],
) -> Result<AnswerAuthor, RequestError> {
    // The server's setting may have changed since the request began.
    let caller = &Caller { answers: caller.answers.min(app.answers.get()), ..caller.clone() };
    let account = app.execution_views.read(&app.engine, execution).await?;
    let owner = account.owner().ok_or_else(|| RequestError::no_execution(execution))?;
    let public = app.admission.public_origin();
    let denied = |denied: AccessDenied, id: &dyn std::fmt::Display| match (denied, public) {
        (AccessDenied::PersonAnswers, Some(origin)) => {
            RequestError::person_answers(&format!("{origin}/resume/{id}"))
        }
        (other, _) => RequestError::denied(other, id),
    };
    // Checked before the questions: a caller that may not see the execution must not learn which ones it has.
    let mut author =
        permit(caller, path, AnswerSubject { owner, asked: None }).map_err(
            |why| match answers {
                [(question, _), ..] => denied(why, question),
                [] => denied(why, &execution),
            },
        )?;
    for (id, answer) in answers {
        let asked = account.question(*id).ok_or_else(|| RequestError::no_execution(id))?;
        let (question, tool) = (&asked.question, &asked.tool);
        let subject = AnswerSubject { owner, asked: Some((question, tool)) };
        author = permit(caller, path, subject).map_err(|why| denied(why, id))?;
        may_accept(caller, answer, question, tool).map_err(|why| denied(why, id))?;
    }
    Ok(author)
}

/// Whether an answer was the first. The first one takes effect; later answers receive its outcome.
pub(crate) fn is_first_answer<T>(answered: Result<T, engine::Error>) -> Result<bool, RequestError> {
    match answered {
        Ok(_) => Ok(true),
        Err(engine::Error::Rejected(
            Rejection::AlreadyAnswered(_) | Rejection::AlreadyFinished,
        )) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Scheme, host and port of the URL under which a person finds the pages of this server.
#[derive(Debug, Clone)]
pub(crate) struct PageOrigin(pub(crate) String);

impl PageOrigin {
    /// The public origin if one is configured, otherwise the one by which the client reached the server. Loopback
    /// names are replaced by the canonical one, for which sign-ins are valid.
    pub(crate) fn for_request(app: &AppState, host: Option<&HeaderValue>) -> Self {
        let host = host.and_then(|host| host.to_str().ok());
        Self(app.admission.page_origin(host))
    }

    /// Who reads a question of `owner` in a response to `caller`.
    pub(crate) fn reader(
        self,
        caller: &Caller,
        owner: &CallerName,
        path: AnswerPath,
    ) -> QuestionReader {
        match permit(caller, path, AnswerSubject { owner, asked: None }) {
            Ok(_) if caller.scopes.has(Scope::Admin) => QuestionReader::MayAnswer,
            Ok(_) => QuestionReader::MayAnswerUnmanaged { origin: self.0 },
            Err(_) => QuestionReader::MayNot { origin: self.0 },
        }
    }
}

impl<S: Sync> FromRequestParts<S> for PageOrigin
where
    Arc<AppState>: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self::for_request(&Arc::<AppState>::from_ref(state), parts.headers.get(HOST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::TokenScopes;

    fn caller(name: &str, scopes: &str, answers: AnswerRole) -> Caller {
        let scopes = TokenScopes::parse(scopes.split(',')).unwrap();
        let credential = crate::auth::CallerCredential::NotAsked;
        Caller { name: CallerName(name.into()), scopes, answers, credential }
    }

    #[test]
    fn a_value_and_the_way_an_answer_arrives_decide_whether_it_counts_and_as_whom() {
        use AccessDenied::{NotInAdvance, PersonAnswers};
        use AnswerPath::{InAdvance, McpDialog, McpTool, Request};
        use AnswerRole::{Client, Model, Person};
        let paths = [Request, InAdvance, McpTool, McpDialog];
        let over_mcp = [
            (Person, [Err(PersonAnswers), Err(PersonAnswers)]),
            (Client, [Err(PersonAnswers), Ok(Client)]),
            (Model, [Ok(Model), Ok(Client)]),
        ];
        for (answers, [tool, dialog]) in over_mcp {
            // Over MCP, a token's scopes make no difference; for a direct request, `answer` is sufficient.
            let run = match answers {
                Model => [Ok(Model), Ok(Model), tool, dialog],
                Person | Client => [Err(PersonAnswers), Err(NotInAdvance), tool, dialog],
            };
            let person = [Ok(Person), Ok(Person), tool, dialog];
            for (scopes, expected) in
                [("run", run), ("run,answer", person), ("answer", person), ("admin", person)]
            {
                let ann = caller("ann", scopes, answers);
                let subject = AnswerSubject { owner: &ann.name, asked: None };
                let seen = paths.map(|path| permit(&ann, path, subject).map(|author| author.role));
                assert_eq!((answers, scopes, seen), (answers, scopes, expected));
            }
        }
    }

    #[test]
    fn other_callers_questions_need_the_scope_answer() {
        let ann = CallerName("ann".into());
        let subject = AnswerSubject { owner: &ann, asked: None };
        for (scopes, expected) in [
            ("run", Err(AccessDenied::Hidden)),
            ("process", Err(AccessDenied::Hidden)),
            ("answer", Ok(AnswerRole::Person)),
            ("admin", Ok(AnswerRole::Person)),
        ] {
            let bob = caller("bob", scopes, AnswerRole::Model);
            let permitted = permit(&bob, AnswerPath::Request, subject).map(|author| author.role);
            assert_eq!((scopes, permitted), (scopes, expected));
        }
        let ann = caller("ann", "process", AnswerRole::Model);
        let subject = AnswerSubject { owner: &ann.name, asked: None };
        let permitted = permit(&ann, AnswerPath::Request, subject);
        assert_eq!(permitted, Err(AccessDenied::Needs(Scope::Answer)));
    }

    #[test]
    fn an_accepted_management_call_needs_its_routes_scope_and_is_never_accepted_in_advance() {
        let question = |answer_only| Question {
            id: QuestionId::from_uuid(uuid::Uuid::nil()),
            call: lifecycle::CallId(1),
            kind: QuestionKind::Approval,
            message: String::new(),
            revision: None,
            editable: false,
            answer_only,
        };
        let cases = [
            ("executor.coreTools.policies.create", false, true),
            ("executor.coreTools.policies.create", true, true),
            ("executor.coreTools.integrations.list", false, false),
            ("not.in.the.table", true, true),
            ("mail.send", false, false),
        ];
        for (tool, answer_only, needs_admin) in cases {
            let (question, path) = (question(answer_only), ToolPath::parse(tool).unwrap());
            let expected =
                if needs_admin { Err(AccessDenied::AcceptNeeds(Scope::Admin)) } else { Ok(()) };
            let yes = Answer::Accept { content: None };
            for scopes in ["run", "answer", "run,answer", "process"] {
                let ann = caller("ann", scopes, AnswerRole::Model);
                assert_eq!(may_accept(&ann, &yes, &question, &path), expected, "{tool} {scopes}");
                for no in [Answer::Decline, Answer::Cancel] {
                    assert_eq!(may_accept(&ann, &no, &question, &path), Ok(()), "{tool} {scopes}");
                }
            }
            let admin = caller("root", "admin", AnswerRole::Model);
            assert_eq!(may_accept(&admin, &yes, &question, &path), Ok(()));
            let subject = AnswerSubject { owner: &admin.name, asked: Some((&question, &path)) };
            let in_advance = permit(&admin, AnswerPath::InAdvance, subject).map(drop);
            let expected = if needs_admin { Err(AccessDenied::NotInAdvance) } else { Ok(()) };
            assert_eq!(in_advance, expected, "{tool}");
        }
    }
}
