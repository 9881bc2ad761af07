//! Measures the latency of leases and programs: `cargo run --release -p sandbox --example latency [ROUNDS]`.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use sandbox::{Config, Lease, LeaseDemand, LeaseError, LeaseMessage, Sandbox};
use std::time::{Duration, Instant};

fn main() {
    sandbox::enter_if_asked();
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be built");
    runtime.block_on(measure(rounds));
}

async fn measure(rounds: usize) {
    let started = Instant::now();
    let sandbox = Sandbox::start(Config::default()).await.expect("a sandbox starts here");
    println!("start of a sandbox               {:>7.1?}", started.elapsed());
    println!("tier: {}", sandbox.tier());
    waiting(&sandbox, rounds).await.expect("runners can be leased");
    forked(&sandbox, rounds).await.expect("runners can be leased");
    busy(&sandbox, rounds).await.expect("runners can be leased");
    sandbox.shutdown().await;
}

/// Measures a pre-forked runner: from the message to its result, and the same including the lease.
async fn waiting(sandbox: &Sandbox, rounds: usize) -> Result<(), LeaseError> {
    let (mut answers, mut leases, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        while sandbox.load().idle_runners < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Lets new runners settle: the measurement is of a runner that has been idle.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let asked = Instant::now();
        let mut lease = sandbox.lease(LeaseDemand::default()).await?;
        let faults_before = page_faults(&lease);
        let told = Instant::now();
        one_and_one(&mut lease).await;
        answers.push(told.elapsed());
        leases.push(asked.elapsed());
        faults.push(page_faults(&lease) - faults_before);
        lease.finish();
    }
    print("message to result, waiting runner", answers);
    print("lease, message, result", leases);
    faults.sort_unstable();
    println!("page faults of a waiting runner, median: {}", faults[faults.len() / 2]);
    Ok(())
}

/// Measures a runner of a size that the pool does not have: it is forked on demand, and waited for until it is reaped.
async fn forked(sandbox: &Sandbox, rounds: usize) -> Result<(), LeaseError> {
    let (mut results, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let asked = Instant::now();
        let demand = LeaseDemand { memory_bytes: 65 << 20, ..LeaseDemand::default() };
        let mut lease = sandbox.lease(demand).await?;
        one_and_one(&mut lease).await;
        results.push(asked.elapsed());
        lease.kill();
        while !matches!(lease.receive().await, LeaseMessage::Gone(_)) {}
        ends.push(asked.elapsed());
    }
    print("fork, message, result", results);
    print("fork, message, result, reaped", ends);
    Ok(())
}

/// Measures the throughput of eight concurrent callers.
async fn busy(sandbox: &Sandbox, rounds: usize) -> Result<(), LeaseError> {
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let sandbox = sandbox.clone();
        callers.spawn(async move {
            for _ in 0..rounds {
                let mut lease = sandbox.lease(LeaseDemand::default()).await?;
                one_and_one(&mut lease).await;
                lease.finish();
            }
            Ok::<(), LeaseError>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.expect("a caller does not panic")?;
    }
    println!(
        "eight callers: {:.0} executions/s",
        (8 * rounds) as f64 / began.elapsed().as_secs_f64()
    );
    Ok(())
}

async fn one_and_one(lease: &mut Lease) {
    let seed = "0".repeat(64);
    let order = format!(
        concat!(
            r#"{{"type":"execute","id":"e","code":"return 1+1","options":{{"timeoutMs":5000,"#,
            r#""memoryLimitBytes":67108864,"maxLogLines":9,"maxLogChars":999}},"providers":[],"#,
            r#""airlock":{{"seed":"{}","startMs":0,"convention":"explicit_return","prepared":false,"#,
            r#""prelude":1,"cpuMs":5000,"unawaited":"wait","replayInputs":0,"replayCpuMs":0}}}}"#,
            "\n"
        ),
        seed
    );
    lease.push(order.as_bytes()).expect("a new runner reads");
    loop {
        match lease.receive().await {
            LeaseMessage::Line(line) if line.starts_with(br#"{"type":"done""#) => return,
            LeaseMessage::Line(_) => {}
            LeaseMessage::Gone(exit) => panic!("{exit:?}"),
        }
    }
}

/// Returns the page faults of a runner so far: the cost of an execution in addition to its own work.
fn page_faults(lease: &Lease) -> u64 {
    let stat =
        lease.pid().and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    let stat = stat.expect("a leased runner is alive");
    let (_, after_name) = stat.rsplit_once(')').expect("a name in parentheses");
    after_name
        .split_ascii_whitespace()
        .nth(7)
        .and_then(|n| n.parse().ok())
        .expect("a number of faults")
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what:<34} min {:>7.1?}  median {:>7.1?}  p99 {:>7.1?}", at(0), at(50), at(99));
}
