//! Reading a process's output, and waiting for more of it.

use super::cage;
use super::outbox::{ClientOutbox, RequestReply};
use processes::{OutputSeq, OutputStream, ProcessOutput};
use protocols::exec_server::{
    ByteChunk, ExecOutputStream, OutputMode, ProcessOutputChunk, ReadParams, ReadResponse,
    WaitResponse,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that a read waits; longer requested times are reduced to it.
const WAIT_TIME_MAX: Duration = Duration::from_secs(3_600);

/// The parameters of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadManner {
    pub(super) mode: OutputMode,
    pub(super) is_caged: bool,
}

/// Answers a read immediately if it does not wait or need not wait, and returns the sequence number after the page.
/// Returns the reply handle if the read has to wait.
pub(super) fn read_now(
    output: &Arc<ProcessOutput>,
    params: &ReadParams,
    manner: ReadManner,
    reply: RequestReply,
) -> Result<OutputSeq, RequestReply> {
    let has_to_wait = params.wait_ms.unwrap_or(0) > 0 && !has_news(output, after(params));
    if has_to_wait { Err(reply) } else { Ok(read_response(output, params, manner, reply)) }
}

/// Answers a read when there is new output, or when its wait time has passed.
pub(super) async fn read_later(
    output: Arc<ProcessOutput>,
    params: ReadParams,
    manner: ReadManner,
    reply: RequestReply,
) {
    let after = after(&params);
    if is_awaited(&output, params.wait_ms, reply.outbox(), |output| has_news(output, after)).await {
        read_response(&output, &params, manner, reply);
    }
}

/// Answers when a process has ended, or when the wait time has passed.
pub(super) async fn wait(output: Arc<ProcessOutput>, wait_ms: Option<u64>, reply: RequestReply) {
    let has_ended = |output: &ProcessOutput| output.exit_code().is_some();
    if is_awaited(&output, wait_ms, reply.outbox(), has_ended).await {
        let exit_code = output.exit_code();
        let exited = exit_code.is_some();
        reply.send(&WaitResponse { exited, exit_code, closed: output.is_closed() });
    }
}

/// Waits until the condition holds, up to a timeout. Returns whether the client still waits for the answer.
async fn is_awaited(
    output: &ProcessOutput,
    wait_ms: Option<u64>,
    outbox: &ClientOutbox,
    is_so: impl Fn(&ProcessOutput) -> bool,
) -> bool {
    let wait = wait_ms.map_or(WAIT_TIME_MAX, Duration::from_millis).min(WAIT_TIME_MAX);
    let mut changes = output.changes();
    let so = async {
        while !is_so(output) {
            changes.next().await;
        }
    };
    tokio::select! {
        () = so => true,
        () = tokio::time::sleep(wait) => true,
        () = outbox.closed() => false,
    }
}

fn after(params: &ReadParams) -> OutputSeq {
    params.after_seq.unwrap_or(0)
}

/// Whether a read need not wait: there is output, the end, or an exit that the reader has not seen.
fn has_news(output: &ProcessOutput, after: OutputSeq) -> bool {
    let page = output.page(after, Some(0));
    let has_new_exit = page.exited.is_some_and(|(seq, _)| seq > after);
    !page.chunks.is_empty() || page.closed.is_some() || has_new_exit
}

/// Answers with a page and returns the sequence number after it.
fn read_response(
    output: &Arc<ProcessOutput>,
    params: &ReadParams,
    ReadManner { mode, is_caged }: ReadManner,
    reply: RequestReply,
) -> OutputSeq {
    let page = output.page(after(params), params.max_bytes);
    let denied = denied(output, is_caged);
    let last = page.chunks.last().map(|chunk| chunk.seq);
    let next = page.next_seq;
    let chunk = |chunk: processes::OutputChunk| ProcessOutputChunk {
        seq: chunk.seq,
        stream: stream(chunk.stream),
        chunk: ByteChunk(chunk.bytes.to_vec()),
    };
    let response = ReadResponse {
        next_seq: page.next_seq,
        exited: page.exited.is_some(),
        exit_code: page.exited.map(|(_, code)| code),
        closed: page.closed.is_some(),
        failure: None,
        sandbox_denied: !denied.is_empty(),
        denied,
        dropped_bytes: page.dropped_bytes,
        first_seq: page.first_seq,
        chunks: page.chunks.into_iter().map(chunk).collect(),
    };
    match last {
        // A client that polls acknowledges this page with its next read.
        Some(last) if mode == OutputMode::Push => reply.send_output(&response, output, last),
        Some(_) | None => reply.send(&response),
    }
    next
}

/// The denials of a process; none without a cage, which alone denies operations.
pub(super) fn denied(output: &ProcessOutput, is_caged: bool) -> Vec<String> {
    if is_caged { cage::denied(output) } else { vec![] }
}

pub(super) const fn stream(stream: OutputStream) -> ExecOutputStream {
    match stream {
        OutputStream::Stdout => ExecOutputStream::Stdout,
        OutputStream::Stderr => ExecOutputStream::Stderr,
        OutputStream::Terminal => ExecOutputStream::Pty,
    }
}
