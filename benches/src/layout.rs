//! Which functions every request passes through: those that are seen again and again while the server is busy. The linker
//! is given the list (`crates/airlock/build.rs`) and puts them side by side.

use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::{Served, binary};
use crate::mcp;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How long one kind of server is looked at.
const SECONDS: &str = "12";

/// Looks per second, not in step with anything.
const LOOKS_PER_SECOND: &str = "9973";

/// Functions that were seen less often are chance.
const SEEN_MIN: u64 = 4;

/// Of a list that is up to date, so many in a hundred are in the binary.
const FOUND_PERCENT_MIN: usize = 90;

const N_CLIENTS: usize = 8;

/// Requests between two looks whether it is over.
const BATCH: usize = 100;

/// What agents write, more or less.
const PROGRAM: &str = "for (let i = 0; i < 3; i++) console.log('row', i, { i });\n\
    const sum: number = await tools.demo.add({ a: 40, b: 2 });\n\
    return { sum, names: [1, 2, 3].map((n) => `n${n}`) };";

/// Whose code a function is. Each has its own caches, or its own time in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Server,
    Runner,
    Store,
}

/// How often each function was seen.
type Seen = BTreeMap<String, BTreeMap<Whose, u64>>;

/// Looks at the server under load, and writes the list.
pub(crate) fn write(list: &Path) -> Result<()> {
    let mut seen = Seen::new();
    for flags in [&["--demo"][..], &["--demo", "--keep-runners"]] {
        let directory = directory()?;
        let served = Served::start_with(directory.path(), flags)?;
        look(&served, &directory.path().join("looks"), &mut seen)?;
        served.stop()?;
    }
    let text = listed(&seen);
    ensure!(text.lines().count() > 100, "hardly anything was seen; is the binary stripped?");
    std::fs::write(list, text).context("write the list")
}

/// Says whether the list is up to date.
pub(crate) fn check(list: &Path) -> Result<String> {
    let text = std::fs::read_to_string(list).context("read the list")?;
    let wanted: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    #[expect(clippy::disallowed_methods, reason = "it is awaited here")]
    let names = Command::new("nm").args(["--format=posix", "--"]).arg(binary()?).output();
    let names = String::from_utf8(names.context("start nm, which comes with compilers")?.stdout)?;
    let there: BTreeSet<_> = names.lines().filter_map(|line| line.split(' ').next()).collect();
    let n_found = wanted.iter().filter(|name| there.contains(*name)).count();
    let said = format!("{n_found} of the {} functions of the list are in the binary", wanted.len());
    if n_found * 100 < wanted.len() * FOUND_PERCENT_MIN {
        bail!("{said}; write it anew: cargo xtask layout");
    }
    Ok(said)
}

fn look(served: &Served, looks: &Path, seen: &mut Seen) -> Result<()> {
    let mut clients = (0..N_CLIENTS).map(|_| served.client()).collect::<Result<Vec<_>>>()?;
    let mut looking = Looking::begin(looks)?;
    while !looking.is_over()? {
        share_out(&mut clients, BATCH, mcp::execute)?;
        share_out(&mut clients, BATCH, |client: &mut Client| client.execute("return 1"))?;
        share_out(&mut clients, BATCH, |client: &mut Client| client.execute(PROGRAM))?;
    }
    #[expect(clippy::disallowed_methods, reason = "it is awaited here")]
    let mut told = Command::new("perf");
    told.args(["script", "--no-inline", "--no-demangle", "-F", "comm,ip,sym,dso", "-i"]).arg(looks);
    let told = told.stderr(Stdio::null()).output().context("start perf")?;
    let binary = format!(" ({})", binary()?.display());
    for line in String::from_utf8_lossy(&told.stdout).lines() {
        if let Some((whose, function)) = understood(line, &binary) {
            *seen.entry(function.to_owned()).or_default().entry(whose).or_default() += 1;
        }
    }
    Ok(())
}

/// Somebody who looks what all processors do. Dropping it ends it.
struct Looking(Child);

impl Looking {
    fn begin(looks: &Path) -> Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "it is awaited when it is dropped")]
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-a", "-e", "cpu-clock", "-F", LOOKS_PER_SECOND, "-o"]);
        perf.arg(looks).args(["--", "sleep", SECONDS]).stdout(Stdio::null());
        Ok(Self(perf.spawn().context("start perf, of the package linux-perf")?))
    }

    fn is_over(&mut self) -> Result<bool> {
        match self.0.try_wait()? {
            Some(status) if !status.success() => bail!("perf could not look ({status})"),
            ended => Ok(ended.is_some()),
        }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        // It is gone already where it has looked long enough.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A line such as `lane-1 55947d85f146 name (/path)`: whose function of our binary was at work.
fn understood<'a>(line: &'a str, binary: &str) -> Option<(Whose, &'a str)> {
    let rest = line.trim().strip_suffix(binary)?;
    let mut words = rest.split_whitespace();
    let (thread, function) = (words.next()?, words.nth(1)?);
    let whose = if thread.bytes().all(|byte| byte.is_ascii_digit()) {
        Whose::Runner
    } else if thread.starts_with("store-") {
        Whose::Store
    } else {
        Whose::Server
    };
    (words.next().is_none() && !function.starts_with('[')).then_some((whose, function))
}

/// One after the other: first the server's, then the runners', then the store's, in each the most frequent first.
fn listed(seen: &Seen) -> String {
    let mut ranked: Vec<_> = seen
        .iter()
        .filter_map(|(function, by)| {
            let n: u64 = by.values().sum();
            let (whose, _) = by.iter().max_by_key(|(_, n)| **n)?;
            (n >= SEEN_MIN).then_some((*whose, std::cmp::Reverse(n), function))
        })
        .collect();
    ranked.sort_unstable();
    let mut text = String::from(
        "# Functions that every request passes through, for the linker. Written by `cargo xtask layout`.\n",
    );
    for (_, _, function) in ranked {
        let _ = writeln!(text, "{function}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whose_function_was_at_work() {
        let cases = [
            (" lane-1  55947d85f146 _ZN4core3x (/a/airlock)", Some((Whose::Server, "_ZN4core3x"))),
            ("22 55 JS_Call (/a/airlock)", Some((Whose::Runner, "JS_Call"))),
            ("store-write 55 sqlite3_step (/a/airlock)", Some((Whose::Store, "sqlite3_step"))),
            ("airlock 55 [unknown] (/a/airlock)", None),
            ("airlock 55 tcp_ack ([kernel.kallsyms])", None),
            ("airlock 55 malloc (/usr/lib/libc.so.6)", None),
        ];
        for (line, expected) in cases {
            assert_eq!((line, understood(line, " (/a/airlock)")), (line, expected));
        }
    }

    #[test]
    fn the_most_frequent_come_first_among_their_own_and_chance_does_not_count() {
        let mut seen = Seen::new();
        for (function, whose, n) in [
            ("rare", Whose::Server, SEEN_MIN - 1),
            ("often", Whose::Server, 10),
            ("more", Whose::Server, 20),
            ("both", Whose::Server, 5),
            ("both", Whose::Runner, 6),
            ("write", Whose::Store, 99),
        ] {
            *seen.entry(function.into()).or_default().entry(whose).or_default() += n;
        }
        let lines: Vec<_> = listed(&seen).lines().skip(1).map(str::to_owned).collect();
        assert_eq!(lines, ["more", "often", "both", "write"]);
    }
}
