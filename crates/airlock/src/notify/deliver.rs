//! Delivers a notice to a program or a webhook, and retries after a failure.

use super::question_notice::QuestionNotice;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use lifecycle::{BuiltinCaller, CallId, Json, ToolPath};
use sha2::Sha256;
use sources::config::{NotifyConfig, WebhookConfig};
use std::fmt::Write as _;
use std::time::Duration;
use tools::command::{CommandSource, CommandTool};
use tools::http::{ApiClient, ApiRequest, HttpLimits};
use tools::{
    CancelSignal, ChildProgram, ChildSupervision, Integration as _, PersonHandle, ProgressHandle,
    ToolCredential, ToolRequest,
};

/// Attempts per notice; the pauses between them grow.
const ATTEMPTS_MAX: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest that one attempt may take.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest output of a program or a webhook; it is discarded.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The method of delivery.
#[derive(Debug, Clone, Copy)]
enum DeliveryMethod<'a> {
    Command(&'a [String]),
    Webhook(&'a WebhookConfig),
}

/// Delivers notices. Clones share connections.
#[derive(Debug, Clone)]
pub(super) struct NoticeSender {
    http: ApiClient,
}

impl NoticeSender {
    /// Uses the connections of a client, under its rules about addresses.
    pub(super) fn new(http: &ApiClient) -> Self {
        let limits = HttpLimits {
            connect: ATTEMPT_TIME_MAX,
            total: ATTEMPT_TIME_MAX,
            request_bytes_max: ANSWER_BYTES_MAX,
            response_bytes_max: ANSWER_BYTES_MAX,
        };
        Self { http: http.limited(limits) }
    }

    /// Delivers a notice by every configured method.
    pub(super) async fn deliver(&self, news: &QuestionNotice, notify: &NotifyConfig) {
        let command =
            (!notify.command.is_empty()).then_some(DeliveryMethod::Command(&notify.command));
        let webhook = notify.webhook.as_ref().map(DeliveryMethod::Webhook);
        tokio::join!(self.insist(news, command), self.insist(news, webhook));
    }

    /// Tries until the delivery succeeds or the attempts are exhausted.
    async fn insist(&self, news: &QuestionNotice, way: Option<DeliveryMethod<'_>>) {
        let (Some(way), question) = (way, news.question) else { return };
        let mut pause = FIRST_PAUSE;
        for n_attempt in 1..=ATTEMPTS_MAX {
            let attempt = match way {
                DeliveryMethod::Command(argv) => run(news, argv).await,
                DeliveryMethod::Webhook(webhook) => self.post(news, webhook).await,
            };
            let Err(why) = attempt else { return };
            if n_attempt == ATTEMPTS_MAX {
                tracing::error!(%question, why, "a notification failed and is given up");
                return;
            }
            tracing::warn!(%question, why, n_attempt, "a notification failed and is retried");
            tokio::time::sleep(pause).await;
            pause *= 4;
        }
    }

    async fn post(&self, news: &QuestionNotice, webhook: &WebhookConfig) -> Result<(), String> {
        let url = webhook.url.parse().map_err(|_| "its url is no address".to_owned())?;
        let body = news.body().to_string();
        let seconds = engine::Clock::system().now().0 / 1_000;
        let signature = signature(&webhook.secret()?, seconds, &body);
        let mut request = ApiRequest::new(Method::POST, url);
        let headers = &mut request.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("airlock-timestamp", HeaderValue::from(seconds));
        let signature = HeaderValue::try_from(signature).map_err(|error| error.to_string())?;
        headers.insert("airlock-signature", signature);
        request.body = body.into_bytes().into();
        let sent = self.http.send(request, &ToolCredential::none(), &CancelSignal::never()).await;
        let answer = sent.map_err(|error| error.to_string())?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(format!("it answered {}", answer.status)),
        }
    }
}

/// Runs a program with the notice in its arguments and on its standard input.
async fn run(news: &QuestionNotice, argv: &[String]) -> Result<(), String> {
    let tool = CommandTool {
        description: String::new(),
        argv: argv.to_vec(),
        input: None,
        output: None,
        stdin: true,
        read_only: true,
        asks: false,
        time_max: ATTEMPT_TIME_MAX,
        output_bytes_max: ANSWER_BYTES_MAX,
    };
    let name = "notify".to_owned();
    let path = ToolPath::parse(&name).map_err(|bad| bad.to_string())?;
    let programs = CommandSource::new(
        [(name, tool)].into(),
        ChildProgram::default(),
        ChildSupervision::ThisBinary,
    );
    let request = ToolRequest {
        execution: news.execution,
        call: CallId(0),
        attempt: 1,
        tool: path,
        args: Json::from_value(&news.body()).map_err(|error| error.to_string())?,
        caller: BuiltinCaller::Notifier.into(),
        cancelled: CancelSignal::never(),
        person: PersonHandle::absent(),
        progress: ProgressHandle::unwatched(),
    };
    let told = programs.call("notify", &ToolCredential::none(), request).await;
    let told = told.map_err(|failure| failure.message)?;
    let said: serde_json::Value = told
        .and_then(|told| serde_json::from_str(told.as_text()).ok())
        .ok_or_else(|| "it returned no output".to_owned())?;
    match said["ok"] == false {
        true => Err(said["error"]["message"].as_str().unwrap_or("it failed").to_owned()),
        false => Ok(()),
    }
}

/// `v1=` and the HMAC-SHA256 of `timestamp.body`, in hexadecimal: a receiver that knows the secret can verify the
/// sender and the time.
fn signature(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key may have any length");
    mac.update(format!("{seconds}.{body}").as_bytes());
    let mut text = "v1=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_webhook_is_no_way_around_the_rule_about_addresses() {
        let text = "[notify.webhook]\nurl = 'http://169.254.169.254/'\nsecret = 'webhook-secret'\n";
        let webhook = sources::config::ConfigDocument::parse(text).unwrap().notify.unwrap().webhook;
        let courier = NoticeSender::new(&ApiClient::default());
        let why = courier.post(&QuestionNotice::example(), &webhook.unwrap()).await.unwrap_err();
        assert!(why.contains("link-local or metadata address"));
    }

    #[test]
    fn a_notice_is_signed_with_its_time() {
        // The output of `openssl dgst -sha256 -hmac key` for `7.{}`.
        let expected = "v1=77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        assert_eq!(signature("key", 7, "{}"), expected);
        assert_ne!(signature("key", 8, "{}"), expected);
        assert_ne!(signature("other", 7, "{}"), expected);
    }
}
