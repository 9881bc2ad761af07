//! Tools that ask somebody in the middle of their call.

use super::Actor;
use super::inlet::Inlet;
use futures_util::FutureExt;
use lifecycle::{Answer, CallId, Intent, Json, QuestionId, QuestionKind, Rejection, Stage, Wish};
use std::collections::BTreeSet;
use tokio::sync::oneshot;
use tools::Person;

/// What a tool at work wants, and where the answer goes.
pub(super) struct Wished {
    call: CallId,
    wish: Wish,
    reply: oneshot::Sender<Answer>,
}

/// Who asks what in this actor's lifetime. The questions themselves are in the journal.
#[derive(Default)]
pub(super) struct Asking {
    wishes: Inlet<Wished>,
    /// Calls whose tools are at work here.
    at_work: BTreeSet<CallId>,
    /// Every question put or met again by a tool that is at work, and where its answer goes.
    asked: Vec<(QuestionId, CallId, Option<oneshot::Sender<Answer>>)>,
}

impl Asking {
    /// Whom the tool of `call` can ask. An execution that is over waves it away.
    pub(super) fn person(&mut self, call: CallId) -> Person {
        self.at_work.insert(call);
        let sender = self.wishes.sender();
        Person::hearing(move |wish| {
            let sender = sender.clone();
            async move {
                let (reply, answer) = oneshot::channel();
                let sent = sender.send(Wished { call, wish, reply }).await;
                match sent {
                    Ok(()) => answer.await.unwrap_or(Answer::Cancel),
                    Err(_) => Answer::Cancel,
                }
            }
            .boxed()
        })
    }

    /// The next wish.
    pub(super) async fn next(&mut self) -> Wished {
        self.wishes.next().await
    }

    /// The tool of `call` is done asking.
    pub(super) fn end(&mut self, call: CallId) {
        self.at_work.remove(&call);
        self.asked.retain(|(_, of, _)| *of != call);
    }

    /// Nobody is at work any more.
    pub(super) fn forget(&mut self) {
        self.at_work.clear();
        self.asked.clear();
    }

    fn heard(&self, call: CallId) -> Vec<QuestionId> {
        self.asked.iter().filter(|(_, of, _)| *of == call).map(|(id, _, _)| *id).collect()
    }
}

impl Actor {
    /// A tool at work asks: what it asked before a restart is met again, everything else is new.
    pub(super) fn ask(&mut self, wished: Wished) {
        let Wished { call, wish, reply } = wished;
        let wish = tools::with_form_note(wish);
        if let Some(defect) = wish.defect() {
            tracing::warn!(%call, defect, "a tool's question was waved away");
            let _ = reply.send(Answer::Cancel);
            return;
        }
        let heard = self.asking.heard(call);
        let known = match self.ledger.state.asked_before(call, &wish, &heard) {
            Some(known) => known,
            None => {
                if let Err(rejection) = self.submit(Intent::Ask { call, wish: wish.clone() }) {
                    tracing::warn!(%call, %rejection, "a tool's question was refused");
                    return;
                }
                match self.ledger.state.asked_before(call, &wish, &heard) {
                    Some(known) => known,
                    None => return, // asking took the execution over its bytes
                }
            }
        };
        match known {
            (id, Some(answer)) => {
                self.asking.asked.push((id, call, None));
                let _ = reply.send(answer);
            }
            (id, None) => {
                self.asking.asked.push((id, call, Some(reply)));
                self.rest();
            }
        }
    }

    /// A question is answered, for good: its tool hears it, if it is here.
    pub(super) fn tell(&mut self, question: QuestionId) {
        let answer = match self.ledger.state.questions.get(&question) {
            Some((_, Some(answer))) => answer.clone(),
            Some((_, None)) | None => return,
        };
        let asked = self.asking.asked.iter_mut().find(|(id, _, _)| *id == question);
        if let Some((_, _, reply)) = asked
            && let Some(reply) = reply.take()
        {
            let _ = reply.send(answer); // a tool that no longer listens ends its call itself
        }
    }

    /// Notices, when `question` is answered, that the tool which asked it is gone: its server died.
    pub(super) fn miss(&mut self, question: QuestionId) {
        let state = &self.ledger.state;
        let Some((asked, None)) = state.questions.get(&question) else { return };
        let call = asked.call;
        let stage = state.calls.get(&call).map(|call| &call.stage);
        let is_here = self.asking.at_work.contains(&call);
        if matches!(stage, Some(Stage::Asking(_))) && !is_here {
            let _ = self.submit(Intent::Lose { call });
            // It is noticed once; a tool that is called again is on its way.
            self.asking.at_work.insert(call);
        }
    }

    /// Whether what was filled in is what the form asked for.
    pub(super) fn fits(&self, intent: &Intent) -> Result<(), Rejection> {
        let Intent::Answer { question, answer: Answer::Accept { content }, .. } = intent else {
            return Ok(());
        };
        let asked = self.ledger.state.questions.get(question).map(|(question, _)| &question.kind);
        let Some(QuestionKind::Form { schema }) = asked else { return Ok(()) };
        let nothing = Json::parse("{}".to_owned()).expect("an empty object is JSON");
        match tools::misfit(schema, content.as_ref().unwrap_or(&nothing)) {
            None => Ok(()),
            Some(misfit) => Err(Rejection::BadAnswer(misfit.into())),
        }
    }

    /// The guest may have come to rest before its tool asked: then all waits for people only now.
    pub(super) fn rest(&mut self) {
        if self.is_at_rest() {
            let (inputs, active_ms) = (self.ledger.state.inputs, self.clockwork.active_ms);
            let _ = self.submit(Intent::Rest { inputs, active_ms });
        }
    }
}
