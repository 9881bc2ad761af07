//! A small server around a sandbox, in a separate process.
#![expect(clippy::print_stdout, reason = "the test reads what this prints")]

use sandbox::{Config, Lease, LeaseDemand, LeaseMessage, Sandbox};
use std::io::Read;

/// `check` reports what a runner can do on this host; `hold` leases busy runners and waits to be killed.
pub(crate) fn run(verb: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    match verb {
        "check" => runtime.block_on(check()),
        "hold" => runtime.block_on(hold()),
        other => println!("unknown verb {other:?}"),
    }
}

async fn check() {
    match Sandbox::start(Config { warm_runners: 1, ..Config::default() }).await {
        Ok(sandbox) => {
            println!("tier: {}", sandbox.tier());
            for order in
                ["echo hello", "try open a file", "try connect by TCP", "try kill the parent"]
            {
                let mut lease =
                    sandbox.lease(LeaseDemand::default()).await.expect("one runner fits");
                println!("{order}: {}", told(&mut lease, order).await);
            }
            sandbox.shutdown().await;
        }
        Err(error) => println!("not started: {error}"),
    }
}

async fn hold() {
    let sandbox = Sandbox::start(Config::default()).await.expect("a sandbox starts here");
    let mut leases = Vec::new();
    for order in ["echo idle", "spin", "hang-up", "echo idle"] {
        let mut lease = sandbox.lease(LeaseDemand::default()).await.expect("four runners fit");
        lease.push(format!("echo ready\n{order}\n").as_bytes()).expect("a new runner reads");
        assert!(matches!(lease.receive().await, LeaseMessage::Line(b"ready")));
        leases.push(lease);
    }
    println!("holding");
    // Blocks the only thread, so that none of our code runs when the process is killed.
    std::io::stdin().read_exact(&mut [0]).expect("killed before this returns");
}

async fn told(lease: &mut Lease, order: &str) -> String {
    if lease.push(format!("{order}\n").as_bytes()).is_err() {
        return "gone".to_owned();
    }
    match lease.receive().await {
        LeaseMessage::Line(line) => String::from_utf8_lossy(line).into_owned(),
        LeaseMessage::Gone(exit) => format!("{exit:?}"),
    }
}
