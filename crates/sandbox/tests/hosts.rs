//! Whole servers: killed ones, unprivileged ones, and ones on hosts that forbid namespaces.
#![expect(clippy::disallowed_methods, reason = "each server is waited for by its test")]

use crate::suite::{ATTEMPTS, Watched, descendants, is_root};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::test]
async fn a_killed_server_leaves_no_process_behind() {
    let mut command = Command::new(ATTEMPTS);
    command.arg("hold");
    kill_while_it_holds(command).await;
    // The same without a namespace whose end kills the runners.
    let script = format!("{NO_USER_NAMESPACES} && exec setpriv --bounding-set=-all \"$0\" hold");
    kill_while_it_holds(in_namespace(&script)).await;
}

async fn kill_while_it_holds(command: Command) {
    let mut server = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("holding"));
    let watched: Vec<Watched> =
        descendants(server.id().unwrap()).into_iter().filter_map(Watched::new).collect();
    assert!(watched.len() >= 5, "a zygote and four runners at least");
    server.kill().await.unwrap();
    for process in watched {
        process.gone().await;
    }
}

#[test]
fn an_ordinary_user_gets_the_full_jail() {
    let mut command = Command::new(ATTEMPTS);
    // If an ordinary user runs the tests, the child is unprivileged already.
    if is_root() {
        command.uid(65534).gid(65534);
    }
    let said = said(command.arg("check"));
    assert!(said[0].starts_with("tier: seccomp, no_new_privs, resource limits"), "{said:?}");
    assert!(said[0].contains("unprivileged user"), "{said:?}");
    for layer in ["empty root directory", "empty capability bounding set"] {
        assert!(!missing(&said[0]).contains(layer), "{said:?}");
    }
    assert_eq!(said[1..], OUTCOMES);
}

#[test]
fn without_user_namespaces_the_jail_is_lower_and_still_holds() {
    let said = said(&mut in_namespace(&format!("{NO_USER_NAMESPACES} && exec \"$0\" check")));
    assert!(missing(&said[0]).contains("user namespace"), "{said:?}");
    assert_eq!(said[1..], OUTCOMES);
}

#[test]
fn without_any_namespace_the_required_layers_hold_alone() {
    let script = format!("{NO_USER_NAMESPACES} && exec setpriv --bounding-set=-all \"$0\" check");
    let said = said(&mut in_namespace(&script));
    let missing = missing(&said[0]);
    for namespace in ["user", "pid", "network", "mount", "ipc", "uts"] {
        assert!(missing.contains(&format!("{namespace} namespace")), "{said:?}");
    }
    assert!(missing.contains("empty root directory"), "{said:?}");
    // The bounding set was empty before; an empty set needs no namespace.
    assert!(!missing.contains("empty capability bounding set"), "{said:?}");
    assert_eq!(said[1..], OUTCOMES);
}

/// The lines that `check` prints after the tier, on every host.
const OUTCOMES: [&str; 4] = [
    "echo hello: hello",
    "try open a file: Violation",
    "try connect by TCP: Violation",
    "try kill the parent: Violation",
];

/// Runs inside a user namespace, and forbids further ones in that namespace only.
const NO_USER_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces";

fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, ATTEMPTS]);
    command
}

fn said(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn missing(tier: &str) -> &str {
    tier.split_once("not reached: ").map_or("", |(_, missing)| missing)
}
