//! Limits the number of dependencies, and which crate may link what.

use super::TidyFinding;
use super::tree::SourceFile;
use crate::cargo::CargoCall;
use anyhow::Result;

/// Packages in the lock file, ours included. Raising it is a decision: docs/decisions/0006 says how.
const PACKAGES_MAX: usize = 600;

/// Packages that a crate must never link, not even indirectly.
const UNKNOWN_TO: [(&str, &[&str]); 8] = [
    ("lifecycle", &["tokio", "rusqlite", "rquickjs", "protocols", "store", "engine"]),
    ("protocols", &["tokio", "rusqlite", "rquickjs", "store", "engine"]),
    // The code inside the jail stays small and single-threaded.
    ("runner", &["tokio", "rusqlite", "store", "engine"]),
    // Secrets of connections: executions and protocols are layers above it.
    ("credentials", &["rquickjs", "sandbox", "engine", "sources", "server"]),
    ("store", &["rquickjs", "tools", "sandbox", "engine"]),
    // The transport crate provides their listeners.
    ("exec_server", &["axum", "engine", "server"]),
    ("repl", &["axum", "server"]),
    // Moves bytes in and out: the layers above parse them.
    ("transport", &["rusqlite", "rquickjs", "store", "engine", "server", "client"]),
];

/// Runs all checks of dependencies.
pub(super) fn check_files(files: &[SourceFile]) -> Result<Vec<TidyFinding>> {
    let lock = files.iter().find(|file| file.path == "Cargo.lock");
    let mut findings: Vec<_> = lock.and_then(|lock| budget(&lock.text)).into_iter().collect();
    for (package, unknown) in UNKNOWN_TO {
        let tree = CargoCall::new(&["tree", "--edges", "normal", "--prefix", "none"])
            .arg("--package")
            .arg(package)
            .read()?;
        findings.append(&mut arrows(package, unknown, &tree));
    }
    Ok(findings)
}

fn budget(lock: &str) -> Option<TidyFinding> {
    let n_packages = lock.lines().filter(|line| *line == "[[package]]").count();
    (n_packages > PACKAGES_MAX).then(|| {
        TidyFinding::insist("Cargo.lock", format!("{n_packages} packages, {PACKAGES_MAX} at most"))
    })
}

fn arrows(package: &str, unknown: &[&str], tree: &str) -> Vec<TidyFinding> {
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let linked: std::collections::BTreeSet<_> = tree.lines().skip(1).map(name).collect();
    unknown
        .iter()
        .filter(|name| linked.contains(**name))
        .map(|name| TidyFinding::insist(package, format!("depends on {name} and must not")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_over_the_budget_is_refused() {
        let lock = |n_packages: usize| "[[package]]\nname = \"a\"\n".repeat(n_packages);
        assert_eq!(budget(&lock(PACKAGES_MAX)), None);
        let over = budget(&lock(PACKAGES_MAX + 1)).unwrap().to_string();
        assert_eq!(over, "error  Cargo.lock: 601 packages, 600 at most");
    }

    #[test]
    fn an_arrow_that_points_up_is_refused() {
        let tree = "protocols v0.1.0 (/p)\nserde v1.0.0\ntokio v1.0.0\ntokio-util v0.7.0 (*)\n";
        let shown: Vec<_> = arrows("protocols", &["tokio", "store"], tree)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, ["error  protocols: depends on tokio and must not"]);
    }
}
