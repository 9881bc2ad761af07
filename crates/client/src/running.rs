//! Starts programs without waiting for their end, and answers their questions.

use crate::{AirlockClient, Error, ExecutionRef, ExecutionReply, OpenQuestion, reply, wire};
use hyper::Method;
use lifecycle::{Answer, AnswerExtras, ExecutionId, Json, RequestedLimits};
use serde_json::json;

impl AirlockClient {
    /// Starts a program without waiting for its end.
    pub async fn start(&self, code: &str) -> Result<ExecutionId, Error> {
        self.start_within(code, RequestedLimits::default()).await
    }

    /// Starts a program with lower limits than the server's, without waiting for its end.
    pub async fn start_within(
        &self,
        code: &str,
        limits: RequestedLimits,
    ) -> Result<ExecutionId, Error> {
        let body = body(code, limits)?;
        let reply = self.reply(Method::POST, "/api/executions?wait=0", Some(&body)).await?;
        reply.execution.ok_or_else(|| Error::Protocol("a start that names no execution".into()))
    }

    /// Runs a program and waits for its end or its first question.
    pub async fn execute(&self, code: &str) -> Result<ExecutionReply, Error> {
        self.reply(Method::POST, "/api/executions", Some(&body(code, RequestedLimits::default())?))
            .await
    }

    /// Answers a question without waiting for the consequences. The first answer counts.
    pub async fn answer_question(
        &self,
        id: ExecutionRef,
        answer: &Answer,
        rider: &AnswerExtras,
    ) -> Result<(), Error> {
        let body = wire::ResumeBody::body(answer, rider)?;
        let path = format!("/api/executions/{id}/resume?wait=0");
        self.send_request(Method::POST, &path, Some(&body)).await.map(drop)
    }

    /// Returns the open questions of an execution, oldest first.
    pub async fn questions(&self, id: ExecutionRef) -> Result<Vec<OpenQuestion>, Error> {
        let (_, body) = self
            .send_request(Method::GET, &format!("/api/executions/{id}/questions"), None)
            .await?;
        let wire::QuestionsBody { questions } = reply::read(&body)?;
        questions.into_iter().map(OpenQuestion::read).collect()
    }
}

fn body(code: &str, limits: RequestedLimits) -> Result<Json, Error> {
    let asked: serde_json::Map<_, _> =
        limits.asked().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut body = json!({ "code": code });
    if !asked.is_empty() {
        body["limits"] = asked.into();
    }
    Json::from_value(&body).map_err(|error| Error::Unusable(error.to_string()))
}
