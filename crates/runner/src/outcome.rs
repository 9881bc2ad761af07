//! Reports the start and the end of an execution, and refusals, in the message format of the host that ordered it.

use crate::convert;
use crate::failure;
use crate::link::LinkWriter;
use crate::run_order::{HostKind, RunOrder};
use protocols::execbox::FromRunner;
use protocols::execbox::wire::{Done, Failed, Started, StartedAirlock};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

impl RunOrder {
    /// Reports that the program begins, and the text that runs, which only a journal needs.
    pub(crate) fn say_started(&self, text: &str, outbox: &LinkWriter) {
        let airlock = match &self.manner {
            HostKind::Journalled(_) => Some(StartedAirlock {
                prepared: text.into(),
                prelude: self.prelude(),
                fingerprint: crate::fingerprint().into(),
            }),
            HostKind::Hosted(_) => None,
        };
        outbox.send(&FromRunner::Started(Started { id: self.id.as_str().into(), airlock }));
    }

    /// Reports how it ended.
    pub(crate) fn say_done(&self, outcome: Result<Option<&str>, Failed<'_>>, outbox: &LinkWriter) {
        let duration_ms = u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX);
        outbox.send(&FromRunner::Done(Done {
            id: self.id.as_str().into(),
            outcome: outcome.map(|json| json.map(convert::raw)).map_err(|why| self.worded(why)),
            duration_ms,
            logs: Vec::new(),
            emitted: Vec::new(),
        }));
        outbox.flush();
    }

    /// Refuses an order for guest globals that this build does not have.
    pub(crate) fn refuse_prelude(&self, stream: &Rc<UnixStream>) {
        let outbox = LinkWriter::unconnected();
        outbox.connect(Rc::clone(stream));
        let message = format!("no version {} of the guest's globals", self.prelude());
        self.say_done(Err(failure::plain("internal", message)), &outbox);
    }

    /// Refuses a second order while this one is not done.
    pub(crate) fn refuse_second(&self, id: &str, outbox: &LinkWriter) {
        let failed = failure::plain("internal", "the runner already has an active execution");
        outbox.send(&FromRunner::Done(Done {
            id: id.into(),
            outcome: Err(self.worded(failed)),
            duration_ms: 0,
            logs: Vec::new(),
            emitted: Vec::new(),
        }));
    }

    fn worded<'a>(&self, failed: Failed<'a>) -> Failed<'a> {
        match &self.manner {
            HostKind::Journalled(_) => failed,
            HostKind::Hosted(_) => in_execboxs_words(failed),
        }
    }
}

/// A host expects a code and a sentence; codes that it gave itself are passed through unchanged.
fn in_execboxs_words(failed: Failed<'_>) -> Failed<'_> {
    let code = match failed.code.as_ref() {
        "runtime" | "stuck" => "runtime_error".into(),
        "serialization" => "serialization_error".into(),
        "validation" => "validation_error".into(),
        "internal" => "internal_error".into(),
        _ => failed.code,
    };
    Failed { code, message: failed.message, name: None, stack: None, limit: None }
}
