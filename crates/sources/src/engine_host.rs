//! The engine as the credentials crate uses it: a clock, a catalogue, and questions that a browser's return answers.

use credentials::CredentialHost;
use engine::Engine;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{
    Answer, BuiltinCaller, CallerName, ExecutionId, ExecutionPhase, QuestionId, QuestionKind,
    Timestamp,
};
use std::sync::Arc;
use tools::CatalogueSnapshot;

/// The engine as the credentials crate uses it.
pub(crate) struct EngineHost(pub(crate) Engine);

impl CredentialHost for EngineHost {
    fn now(&self) -> Timestamp {
        self.0.clock().now()
    }

    fn clock_generation(&self) -> u64 {
        self.0.clock_generation()
    }

    fn catalogue(&self) -> Arc<CatalogueSnapshot> {
        self.0.catalogue().snapshot()
    }

    fn answer_link(
        &self,
        execution: ExecutionId,
        url: String,
        answer: Answer,
    ) -> BoxFuture<'static, ()> {
        let engine = self.0.clone();
        async move { answer_link(&engine, execution, &url, answer).await }.boxed()
    }
}

async fn answer_link(engine: &Engine, execution: ExecutionId, url: &str, answer: Answer) {
    let mut changes = engine.question_changes();
    changes.mark_changed();
    while changes.changed().await.is_ok() {
        let Ok(found) = engine.look_up(execution).await else { return };
        let is_this = |kind: &QuestionKind| matches!(kind, QuestionKind::Link { url: asked, .. } if asked == url);
        let open = found.state.open_questions().filter(|question| is_this(&question.kind));
        let open: Vec<QuestionId> = open.map(|question| question.id).collect();
        for question in &open {
            let by = CallerName::from(BuiltinCaller::Callback);
            if let Err(error) = engine.answer_question(*question, answer.clone(), by).await {
                tracing::warn!(%question, %error, "a question could not be answered");
            }
        }
        if !open.is_empty() || found.state.phase == ExecutionPhase::Finished {
            return;
        }
    }
}
