//! Combines the sandbox that a client requests with the one that the operator imposes into the cage of one process,
//! and extracts what the process reported about denied operations.

use processes::{
    CageLimits, LimitExcess, NetworkAccess, PathAccess, PathRule, ProcessCage, ProcessOutput,
};
use protocols::exec_server::{
    FileSystemPlace, NetworkReach, PlaceAccess, RequestedSandbox, SandboxConfines, path_of,
};
use std::path::{Path, PathBuf};

/// Paths that programs need in order to run.
const MINIMAL: [&str; 9] =
    ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/etc", "/opt", "/proc"];

/// Maximum number of output lines that are reported as denials.
const DENIED_LINES_MAX: usize = 8;

/// Maximum length of such a line.
const DENIED_LINE_BYTES_MAX: usize = 400;

/// How much of a process's latest output is searched for denials.
const DENIED_LOOK_BYTES_MAX: usize = 64 << 10;

/// What programs print when the system denies an operation.
const DENIED: [&str; 5] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Network is unreachable",
    "Cannot allocate memory",
];

/// The working directory of a process that has none of its own.
const NOWHERE: &str = "/";

/// Builds the cage that a sandbox describes for a process that starts in `cwd` with this `TMPDIR`.
fn cage(
    confines: &SandboxConfines,
    workspaces: &[String],
    cwd: &Path,
    temporary: Option<&str>,
) -> Result<ProcessCage, String> {
    let path = |text: &str| path_of(text).map_err(|bad| format!("the sandbox: {bad}"));
    let mut roots: Vec<PathBuf> =
        workspaces.iter().map(|root| path(root)).collect::<Result<_, _>>()?;
    if roots.is_empty() {
        roots.push(cwd.to_owned());
    }
    let mut rules = vec![];
    for (place, access) in &confines.rules {
        let paths = match place {
            FileSystemPlace::Root => vec![PathBuf::from("/")],
            FileSystemPlace::Minimal => MINIMAL.map(PathBuf::from).into(),
            FileSystemPlace::Workspace(None) => roots.clone(),
            FileSystemPlace::Workspace(Some(below)) => {
                roots.iter().map(|root| root.join(below)).collect()
            }
            FileSystemPlace::TemporaryFolder => temporary.map(PathBuf::from).into_iter().collect(),
            FileSystemPlace::At(text) => vec![path(text)?],
        };
        let access = match access {
            PlaceAccess::Read => PathAccess::Read,
            PlaceAccess::Write => PathAccess::Write,
            PlaceAccess::Deny => PathAccess::Deny,
        };
        // A link would be mounted over, and its target would stay unprotected.
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        rules.extend(paths.into_iter().map(|path| PathRule { path: real(path), access }));
    }
    let network = match confines.network {
        NetworkReach::All => NetworkAccess::All,
        NetworkReach::Loopback => NetworkAccess::Loopback,
        NetworkReach::None => NetworkAccess::None,
    };
    let SandboxConfines { memory_bytes, cpu_ms, processes, .. } = *confines;
    Ok(ProcessCage { rules, network, limits: CageLimits { memory_bytes, cpu_ms, processes } })
}

/// Returns the cage for a file request; none if no sandbox is imposed or requested.
pub(super) fn of_files(
    imposed: Option<&SandboxConfines>,
    asked: Option<&RequestedSandbox>,
) -> Result<Option<ProcessCage>, String> {
    // A file request has no working directory, so only places that the request names are workspaces.
    let is_workspace = |(place, _): &(FileSystemPlace, PlaceAccess)| {
        matches!(place, FileSystemPlace::Workspace(_))
    };
    if asked.is_some_and(|asked| {
        asked.workspaces.is_empty() && asked.confines.rules.iter().any(is_workspace)
    }) {
        return Err("the sandbox does not say what its workspace is".into());
    }
    kept_to(imposed, asked, Path::new(NOWHERE), std::env::var("TMPDIR").ok().as_deref())
}

/// Returns the confinement of a process that starts in `cwd` with this `TMPDIR`: the imposed sandbox combined with
/// the requested one.
pub(super) fn kept_to(
    imposed: Option<&SandboxConfines>,
    asked: Option<&RequestedSandbox>,
    cwd: &Path,
    temporary: Option<&str>,
) -> Result<Option<ProcessCage>, String> {
    let imposed = imposed.map(|confines| cage(confines, &[], cwd, None)).transpose()?;
    let asked =
        asked.map(|asked| cage(&asked.confines, &asked.workspaces, cwd, temporary)).transpose()?;
    Ok(match (imposed, asked) {
        (Some(imposed), Some(asked)) => Some(both(&imposed, &asked)),
        (imposed, asked) => imposed.or(asked),
    })
}

/// Returns the cage for processes that no client starts.
pub fn imposed_cage(confines: &SandboxConfines) -> Result<ProcessCage, String> {
    cage(confines, &[], Path::new(NOWHERE), None)
}

/// Returns the intersection of two cages: what both allow.
fn both(one: &ProcessCage, other: &ProcessCage) -> ProcessCage {
    let rules = one.rules.iter().chain(&other.rules).map(|rule| {
        let least = |one, other| match (one, other) {
            (PathAccess::Deny, _) | (_, PathAccess::Deny) => PathAccess::Deny,
            (PathAccess::Read, _) | (_, PathAccess::Read) => PathAccess::Read,
            (PathAccess::Write, PathAccess::Write) => PathAccess::Write,
        };
        let access = least(one.access_at(&rule.path), other.access_at(&rule.path));
        PathRule { path: rule.path.clone(), access }
    });
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    ProcessCage {
        rules: rules.collect(),
        network: one.network.max(other.network),
        limits: CageLimits {
            memory_bytes: least(one.limits.memory_bytes, other.limits.memory_bytes),
            cpu_ms: least(one.limits.cpu_ms, other.limits.cpu_ms),
            processes: least(one.limits.processes, other.limits.processes),
        },
    }
}

/// Returns the denials that a caged process reported in its output; empty if it exited successfully.
pub(super) fn denied(output: &ProcessOutput) -> Vec<String> {
    if let Some(excess) = output.excess() {
        let what = match excess {
            LimitExcess::Memory => "memory",
            LimitExcess::Cpu => "time on processors",
            LimitExcess::Processes => "processes",
        };
        return vec![format!("it used more {what} than its sandbox allows")];
    }
    if output.exit_code().is_none_or(|code| code == 0) {
        return vec![];
    }
    let page = output.page(0, None);
    let mut n_bytes = 0;
    let last = page.chunks.iter().rposition(|chunk| {
        n_bytes += chunk.bytes.len();
        n_bytes > DENIED_LOOK_BYTES_MAX
    });
    let said: Vec<u8> = page.chunks[last.unwrap_or(0)..]
        .iter()
        .flat_map(|chunk| chunk.bytes.iter().copied())
        .collect();
    let said = String::from_utf8_lossy(&said);
    let is_denial = |line: &&str| DENIED.iter().any(|words| line.contains(words));
    let short = |line: &str| line.chars().take(DENIED_LINE_BYTES_MAX).collect();
    said.lines().map(str::trim_end).filter(is_denial).take(DENIED_LINES_MAX).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str, access: PathAccess) -> PathRule {
        PathRule { path: path.into(), access }
    }

    #[test]
    fn two_cages_allow_what_both_do() {
        let imposed = ProcessCage {
            rules: vec![rule("/", PathAccess::Read), rule("/work", PathAccess::Write)],
            network: NetworkAccess::Loopback,
            limits: CageLimits { cpu_ms: Some(9), ..CageLimits::default() },
        };
        let asked = ProcessCage {
            rules: vec![rule("/", PathAccess::Write), rule("/work/.git", PathAccess::Read)],
            network: NetworkAccess::All,
            limits: CageLimits { cpu_ms: Some(7), processes: Some(3), ..CageLimits::default() },
        };
        let merged = both(&imposed, &asked);
        for (path, access) in [
            ("/etc", PathAccess::Read),
            ("/work/x", PathAccess::Write),
            ("/work/.git/x", PathAccess::Read),
        ] {
            assert_eq!((path, merged.access_at(Path::new(path))), (path, access));
        }
        assert_eq!(merged.network, NetworkAccess::Loopback);
        let limits = CageLimits { memory_bytes: None, cpu_ms: Some(7), processes: Some(3) };
        assert_eq!(merged.limits, limits);
    }
}
