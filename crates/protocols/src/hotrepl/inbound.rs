//! Parses frames of clients. For any input the result is a request or an error envelope for its sender.
//!
//! Unknown members are ignored: later revisions have more of them.

use super::MESSAGE_BYTES_MAX;
use super::outbound::envelope;
use super::wire::{ErrorEnvelope, ErrorKind, JournalKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// How much of an oversized frame is searched for its id.
const SEARCHED_BYTES_MAX: usize = 1 << 10;

/// Longest id: it is stored with the request and sent back.
const ID_BYTES_MAX: usize = 1 << 10;

/// The error for a request without a valid id.
const ID_NEEDED: &str = "id must be a text of at most 1024 bytes.";

/// A client's request. All but a cancel are answered under `id`, exactly once.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplRequest {
    /// The client's name for it.
    pub id: String,
    /// The requested operation.
    pub wish: ReplOperation,
}

/// The operations.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum ReplOperation {
    Eval {
        code: String,
        timeout_ms: Option<u64>,
    },
    Complete {
        code: String,
        cursor: Option<f64>,
    },
    Reset,
    Subscribe(SubscribeRequest),
    Cancel {
        target: String,
    },
    CommandsList,
    CommandDescribe {
        name: String,
    },
    /// The arguments are an object, unparsed.
    CommandCall {
        name: String,
        args: String,
        timeout_ms: Option<u64>,
    },
    JobStatus {
        job: String,
    },
    JobCancel {
        job: String,
    },
    JournalQuery {
        kind: Option<JournalKind>,
        limit: Option<f64>,
    },
}

/// A watch.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct SubscribeRequest {
    pub code: String,
    /// At least 1.
    pub interval_frames: u64,
    /// 0 for no limit.
    pub limit: u64,
    /// Whether only values that differ from the previous one are sent.
    pub on_change: bool,
    pub timeout_ms: Option<u64>,
}

/// A frame that is no valid request.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedFrame {
    /// Its id, if one could be read.
    pub id: Option<String>,
    /// The error for its sender.
    pub error: ErrorEnvelope,
}

/// Message types of the first protocol version, which is no longer supported.
const LEGACY: [&str; 4] = ["control_auth", "lease_acquire", "ping", "job_result"];

/// Parses one frame.
pub fn decode(frame: &str) -> Result<ReplRequest, RefusedFrame> {
    if frame.len() > MESSAGE_BYTES_MAX {
        let message = format!("A frame has at most {MESSAGE_BYTES_MAX} bytes.");
        return Err(refused_frame(searched_id(frame), "messageTooLarge", message));
    }
    let Ok(members) = serde_json::from_str::<FrameMembers<'_>>(frame) else {
        return Err(match serde_json::from_str::<IgnoredAny>(frame) {
            Ok(_) => refused_frame(None, "invalidRequest", "A frame is a JSON object with a type."),
            Err(_) => refused_frame(None, "malformedJson", "The frame is not JSON."),
        });
    };
    let id = members.text_member("id").ok().flatten().filter(|id| id.len() <= ID_BYTES_MAX);
    let invalid = |message: String| refused_frame(id.clone(), "invalidRequest", message);
    let kind = members.needed("type").map_err(invalid)?;
    if LEGACY.contains(&kind.as_str()) {
        let message = format!("{kind} is of protocol version 1, which is not spoken here.");
        return Err(refused_frame(id, "legacyMessageType", message));
    }
    let wish = members.wish(&kind).map_err(invalid)?;
    let Some(wish) = wish else {
        return Err(refused_frame(id, "unknownMessageType", "There is no message of this type."));
    };
    match id {
        Some(id) => Ok(ReplRequest { id, wish }),
        None => Err(refused_frame(None, "invalidRequest", ID_NEEDED)),
    }
}

fn refused_frame(id: Option<String>, code: &str, message: impl Into<String>) -> RefusedFrame {
    RefusedFrame { id, error: envelope(ErrorKind::InvalidRequest, code, message) }
}

/// The id of a frame that is not parsed: clients put it near the beginning.
fn searched_id(frame: &str) -> Option<String> {
    let head = &frame[..frame.floor_char_boundary(SEARCHED_BYTES_MAX)];
    let rest = head.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.strip_prefix('"')?.find('"')? + 2;
    serde_json::from_str(&rest[..end]).ok()
}

/// A frame's members, unparsed.
#[derive(Deserialize)]
#[serde(transparent)]
struct FrameMembers<'a>(#[serde(borrow)] HashMap<Cow<'a, str>, &'a RawValue>);

/// A member, or the error message about it.
type MemberResult<T> = Result<T, String>;

impl FrameMembers<'_> {
    fn wish(&self, kind: &str) -> MemberResult<Option<ReplOperation>> {
        Ok(Some(match kind {
            "eval" => {
                ReplOperation::Eval { code: self.needed("code")?, timeout_ms: self.timeout()? }
            }
            "complete" => ReplOperation::Complete {
                code: self.needed("code")?,
                cursor: self.number("cursor")?,
            },
            "reset" => ReplOperation::Reset,
            "subscribe" => ReplOperation::Subscribe(self.subscribe()?),
            "cancel" => ReplOperation::Cancel { target: self.needed("targetId")? },
            "commands_list" => {
                self.text_member("since")?;
                ReplOperation::CommandsList
            }
            "command_describe" => ReplOperation::CommandDescribe { name: self.needed("name")? },
            "command_call" => self.command_call()?,
            "job_status" => ReplOperation::JobStatus { job: self.needed("jobId")? },
            "job_cancel" => ReplOperation::JobCancel { job: self.needed("jobId")? },
            "journal_query" => {
                let kind = match self.text_member("kind")?.as_deref() {
                    None => None,
                    Some("eval") => Some(JournalKind::Eval),
                    Some("command") => Some(JournalKind::Command),
                    Some(_) => return Err("kind must be \"eval\" or \"command\".".to_owned()),
                };
                ReplOperation::JournalQuery { kind, limit: self.number("limit")? }
            }
            _ => return Ok(None),
        }))
    }

    fn subscribe(&self) -> MemberResult<SubscribeRequest> {
        let whole = |number: Option<f64>| number.map_or(0, |number| number as u64);
        Ok(SubscribeRequest {
            code: self.needed("code")?,
            interval_frames: whole(self.number("intervalFrames")?).max(1),
            limit: whole(self.number("limit")?),
            on_change: self.get("onChange").is_some_and(|raw| raw.get() == "true"),
            timeout_ms: self.timeout()?,
        })
    }

    fn command_call(&self) -> MemberResult<ReplOperation> {
        let args = self.get("args").ok_or("args must be an object.")?.get();
        if !args.starts_with('{') {
            return Err("args must be an object.".to_owned());
        }
        let timeout_ms = self.timeout()?;
        Ok(ReplOperation::CommandCall {
            name: self.needed("name")?,
            args: args.to_owned(),
            timeout_ms,
        })
    }

    /// `None` if it is absent or not positive: the default then applies.
    fn timeout(&self) -> MemberResult<Option<u64>> {
        Ok(self.number("timeoutMs")?.map(|ms| ms as u64).filter(|ms| *ms > 0))
    }

    fn needed(&self, name: &str) -> MemberResult<String> {
        self.text_member(name)?.ok_or_else(|| format!("{name} must be a text."))
    }

    fn text_member(&self, name: &str) -> MemberResult<Option<String>> {
        let Some(raw) = self.get(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| format!("{name} must be a text."))
    }

    fn number(&self, name: &str) -> MemberResult<Option<f64>> {
        let Some(raw) = self.get(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| format!("{name} must be a number."))
    }

    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).copied().filter(|raw| raw.get() != "null")
    }
}
