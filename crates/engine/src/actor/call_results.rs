//! Converts results of calls into the form that programs receive, and failures of programs into ours.

use lifecycle::{CallOutcome, CodeDialect, Failure, FailureCode};
use protocols::enclave;
use protocols::execbox::wire::{CallFailure, RawJson};
use std::borrow::Cow;

/// The result of a call in the form that its program receives, with the codes of `codes`.
pub(super) fn call_result(
    outcome: &CallOutcome,
    codes: CodeDialect,
) -> Result<Option<RawJson<'_>>, CallFailure<'_>> {
    match outcome {
        CallOutcome::Returned { value } => Ok(value.as_ref().map(RawJson::from)),
        CallOutcome::Failed(failure) => Err(CallFailure {
            code: tools_own_code(failure).unwrap_or_else(|| match codes {
                CodeDialect::Journal => failure.code.word().into(),
                CodeDialect::Enclave => enclave::call_code(&untitled(failure)).into(),
            }),
            message: match codes {
                CodeDialect::Journal => Cow::Borrowed(&failure.message),
                CodeDialect::Enclave => enclave::call_message(failure),
            },
            name: failure.name.as_deref().map(Cow::Borrowed),
            details: failure.details.as_ref().map(RawJson::from),
        }),
        CallOutcome::Unknown => Err(CallFailure {
            code: FailureCode::InDoubt.word().into(),
            message: "nobody knows whether the tool ran".into(),
            name: None,
            details: None,
        }),
    }
}

/// The failure without the tool's own code, which these programs do not see.
fn untitled(failure: &Failure) -> Failure {
    Failure::new(failure.code, String::new())
}

/// Interprets the failure that a program reports. A failed call that the program did not catch returns with the
/// code that the program received.
pub(super) fn program_failure(mut failure: Failure, codes: CodeDialect) -> Failure {
    let own = match codes {
        CodeDialect::Journal => None,
        CodeDialect::Enclave => given_code(&failure).and_then(|code| enclave::call_failure(&code)),
    };
    if let Some(code) = own {
        (failure.code, failure.details) = (code, None);
    }
    failure
}

/// Longest code of a tool that programs receive.
const OWN_CODE_BYTES_MAX: usize = 100;

/// A failed tool's own code, unless it is one of ours.
fn tools_own_code(failure: &Failure) -> Option<Cow<'static, str>> {
    let code = given_code(failure)?;
    let fits = (1..=OWN_CODE_BYTES_MAX).contains(&code.len());
    (fits && FailureCode::from_word(&code).is_none()).then_some(Cow::Owned(code))
}

/// The code in the details of a tool's failure.
fn given_code(failure: &Failure) -> Option<String> {
    if failure.code != FailureCode::Tool {
        return None;
    }
    let details = failure.details.as_ref()?;
    let details: serde_json::Value = serde_json::from_str(details.as_text()).ok()?;
    Some(details.get("code")?.as_str()?.to_owned())
}
