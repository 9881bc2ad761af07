//! `airlock status`: the state of the server.

use crate::server_locator::ServerArgs;
use crate::size::shown_bytes;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, duration, print};
use client::{AirlockClient, Error};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use store::sqlite::{DirectoryOwner, directory_owner};

/// Shows the state of the server: address, uptime, open questions, and problems.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// One line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "status";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 2);

    fn run(self) -> VerbExit {
        status(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock status
  airlock status --json | jq .questions.open

Exit codes:
  0    it runs, and its store is sound
  1    no server runs, or its store is not sound
  2    the command line made no sense";

/// Requests the status, and prints it.
pub(crate) fn status(args: &Args) -> VerbExit {
    let dir = args.reach.own_directory();
    let owner = dir.as_deref().and_then(directory_owner);
    if let (Some(dir), None) = (&dir, &owner) {
        let shown = dir.display().to_string();
        print::print_result(args.json, &json!({ "running": false, "dataDir": shown }), |_| {
            format!("Server      not running\nData        {shown}")
        });
        return VerbExit::Failed;
    }
    args.reach
        .visit(async |client| show_status(&client, args, dir.as_deref().zip(owner.as_ref())).await)
}

async fn show_status(
    client: &AirlockClient,
    args: &Args,
    place: Option<(&Path, &DirectoryOwner)>,
) -> Result<VerbExit, Error> {
    let mut shown = json!({ "running": true, "address": client.base_url() });
    if let Some((dir, owner)) = place {
        shown["dataDir"] = dir.display().to_string().into();
        shown["pid"] = owner.pid.into();
        shown["startedByClient"] = owner.is_client_started.into();
    }
    match client.status().await {
        Ok(Value::Object(status)) => {
            status.into_iter().for_each(|(name, value)| shown[name.as_str()] = value);
        }
        Ok(_) => return Err(Error::Protocol("no status".into())),
        // It runs, but may not report more: without an administrator's token, or in an earlier version.
        Err(error @ (Error::Unauthorised { .. } | Error::Refused { status: 403 | 404, .. })) => {
            print::print_note(&format!(
                "the server says no more: {}",
                print::tamed(&error.to_string())
            ));
        }
        Err(error) => return Err(error),
    }
    print::print_result(args.json, &shown, status_text);
    Ok(if shown["store"]["ok"] == false { VerbExit::Failed } else { VerbExit::Good })
}

/// The status for a person, a line each.
fn status_text(shown: &Value) -> String {
    let mut text = String::from("Server      running");
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("\n{name:<12}{}", print::tamed(&value)));
        }
    };
    let word = |value: &Value| value.as_str().map(str::to_owned);
    line("Address", word(&shown["address"]));
    line("Process", shown["pid"].as_u64().map(|pid| pid.to_string()));
    line("Version", word(&shown["version"]));
    line("Data", word(&shown["dataDir"]));
    let uptime = shown["uptimeMs"].as_u64().map(Duration::from_millis);
    line("Uptime", uptime.map(duration::format_duration));
    line("Questions", shown["questions"]["open"].as_u64().map(|n| questions(n, shown)));
    let of = |phase: &str| shown["executions"][phase].as_u64();
    let phases = ["running", "paused", "parked"];
    let counts: Option<Vec<_>> =
        phases.iter().map(|phase| of(phase).map(|n| format!("{n} {phase}"))).collect();
    line("Executions", counts.map(|counts| counts.join(", ")));
    line("Sources", shown["sources"].is_object().then(|| sources(&shown["sources"])));
    line("Config", word(&shown["configuration"]));
    line("Store", shown["store"].is_object().then(|| store(&shown["store"])));
    text
}

fn questions(n: u64, shown: &Value) -> String {
    let or_more = if shown["questions"]["complete"] == false { " or more" } else { "" };
    let advice = if n > 0 { "; airlock open shows them" } else { "" };
    format!("{n}{or_more} open{advice}")
}

fn sources(sources: &Value) -> String {
    let list = |name: &str| sources[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let loading = list("loading").into_iter().map(|name| format!("{} is being read", text(&name)));
    let unavailable = list("unavailable")
        .into_iter()
        .map(|one| format!("{}: {}", text(&one["name"]), text(&one["trouble"])));
    let lines: Vec<_> = loading.chain(unavailable).collect();
    match lines.is_empty() {
        true => "all ready".to_owned(),
        false => format!("not ready:\n              {}", lines.join("\n              ")),
    }
}

fn store(store: &Value) -> String {
    let size = store["bytes"].as_u64().map(shown_bytes);
    match (store["ok"].as_bool(), store["problem"].as_str()) {
        (Some(true), _) => format!("sound{}", size.map(|it| format!(", {it}")).unwrap_or_default()),
        (_, Some(problem)) => format!("NOT SOUND: {problem}"),
        (_, None) => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let shown = json!({
            "address": "http://127.0.0.1:1", "pid": 7, "version": "1.2.3", "uptimeMs": 7_380_000,
            "questions": { "open": 2, "complete": true },
            "executions": { "running": 1, "paused": 2, "parked": 0 },
            "sources": { "loading": ["a"], "unavailable": [{ "name": "b", "trouble": "gone" }] },
            "configuration": null,
            "store": { "ok": false, "bytes": 9, "problem": "the store is a restored copy" },
        });
        let expected = "Server      running\nAddress     http://127.0.0.1:1\nProcess     7\n\
                        Version     1.2.3\nUptime      2h03m\n\
                        Questions   2 open; airlock open shows them\n\
                        Executions  1 running, 2 paused, 0 parked\n\
                        Sources     not ready:\n              a is being read\n              b: gone\n\
                        Store       NOT SOUND: the store is a restored copy";
        assert_eq!(status_text(&shown), expected);
    }
}
