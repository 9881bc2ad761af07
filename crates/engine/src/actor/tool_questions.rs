//! Tools that ask a person during their call.

use super::ExecutionActor;
use super::lazy_channel::LazyChannel;
use futures_util::FutureExt;
use lifecycle::{Answer, CallId, Intent, QuestionId, ToolPrompt};
use std::collections::BTreeSet;
use tokio::sync::oneshot;
use tools::PersonHandle;

/// The request of a tool, and where the answer goes.
pub(super) struct ToolWish {
    call: CallId,
    wish: ToolPrompt,
    reply: oneshot::Sender<Answer>,
}

/// The questions of tools in this actor's lifetime. The questions themselves are in the journal.
#[derive(Default)]
pub(super) struct ToolQuestions {
    wishes: LazyChannel<ToolWish>,
    /// Calls in progress here.
    at_work: BTreeSet<CallId>,
    /// Every question that a tool in progress asked or met again, and where its answer goes.
    asked: Vec<(QuestionId, CallId, Option<oneshot::Sender<Answer>>)>,
}

impl ToolQuestions {
    /// The person that the tool of `call` can ask. Questions of an execution that has ended are cancelled.
    pub(super) fn person(&mut self, call: CallId) -> PersonHandle {
        self.at_work.insert(call);
        let sender = self.wishes.sender();
        PersonHandle::hearing(move |wish| {
            let sender = sender.clone();
            async move {
                let (reply, answer) = oneshot::channel();
                let sent = sender.send(ToolWish { call, wish, reply }).await;
                match sent {
                    Ok(()) => answer.await.unwrap_or(Answer::Cancel),
                    Err(_) => Answer::Cancel,
                }
            }
            .boxed()
        })
    }

    /// The next request.
    pub(super) async fn next(&mut self) -> ToolWish {
        self.wishes.next().await
    }

    /// The tool of `call` has returned.
    pub(super) fn end_call(&mut self, call: CallId) {
        self.at_work.remove(&call);
        self.asked.retain(|(_, of, _)| *of != call);
    }

    /// No call is in progress any more.
    pub(super) fn clear_all(&mut self) {
        self.at_work.clear();
        self.asked.clear();
    }

    /// Whether the tool of `call` is in progress here.
    pub(super) fn is_at_work(&self, call: CallId) -> bool {
        self.at_work.contains(&call)
    }

    /// Records that a tool has met a question, and where the answer goes.
    fn meet(&mut self, question: QuestionId, call: CallId, reply: Option<oneshot::Sender<Answer>>) {
        self.asked.push((question, call, reply));
    }

    /// Where the answer to `question` goes, if its tool waits for it here.
    fn take_reply(&mut self, question: QuestionId) -> Option<oneshot::Sender<Answer>> {
        let (_, _, reply) = self.asked.iter_mut().find(|(id, _, _)| *id == question)?;
        reply.take()
    }

    /// The questions that the tool of `call` has met.
    fn met(&self, call: CallId) -> Vec<QuestionId> {
        self.asked.iter().filter(|(_, of, _)| *of == call).map(|(id, _, _)| *id).collect()
    }
}

impl ExecutionActor {
    /// A tool in progress asks: a question from before a restart is met again, any other is new.
    pub(super) fn ask_for_tool(&mut self, wished: ToolWish) {
        let ToolWish { call, wish, reply } = wished;
        let wish = tools::with_form_note(wish);
        if let Some(defect) = wish.defect() {
            tracing::warn!(%call, defect, "a tool's question was waved away");
            let _ = reply.send(Answer::Cancel);
            return;
        }
        let met = self.questions.met(call);
        let known = match self.journal.state().asked_before(call, &wish, &met) {
            Some(known) => known,
            None => {
                if let Err(rejection) = self.submit(Intent::Ask { call, wish: wish.clone() }) {
                    tracing::warn!(%call, %rejection, "a tool's question was refused");
                    return;
                }
                match self.journal.state().asked_before(call, &wish, &met) {
                    Some(known) => known,
                    None => return, // asking exceeded the execution's byte limit
                }
            }
        };
        match known {
            (id, Some(answer)) => {
                self.questions.meet(id, call, None);
                let _ = reply.send(answer);
            }
            (id, None) => {
                self.questions.meet(id, call, Some(reply));
                self.rest();
            }
        }
    }

    /// The answer to a question is durable: delivers it to the tool, if it is here.
    pub(super) fn deliver_answer(&mut self, question: QuestionId) {
        let answer = match self.journal.state().questions.get(&question) {
            Some((_, Some(answer))) => answer.clone(),
            Some((_, None)) | None => return,
        };
        if let Some(reply) = self.questions.take_reply(question) {
            let _ = reply.send(answer); // a tool that dropped its receiver ends its call itself
        }
    }

    /// The guest may have become idle before its tool asked: only now does everything wait for people.
    pub(super) fn rest(&mut self) {
        if self.is_at_rest() {
            let (inputs, active_ms) = (self.journal.state().inputs, self.clock.active_ms());
            let _ = self.submit(Intent::Rest { inputs, active_ms });
        }
    }
}
