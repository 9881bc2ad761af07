//! Whether client processes can be prevented from reading the files of a server on this machine. Tested by experiment.

use super::{DoctorFinding, FindingMark};
use processes::{
    Config, PathAccess, PathRule, PipeInput, ProcessCage, ProcessEvent, ProcessSpawner,
    ProcessSpec, ProcessStreams, ProtectedPaths, ProtectionScope,
};
use std::path::PathBuf;

/// The results of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HidingReport {
    /// Whether a program without a sandbox cannot see a hidden directory.
    is_hidden: bool,
    /// Whether a program in a sandbox cannot see the processes outside.
    has_own_processes: bool,
}

/// Runs the checks on a temporary directory.
pub(super) fn check_hiding() -> Vec<DoctorFinding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let attempt =
        runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(attempt()));
    match attempt {
        Ok(hiding) => findings(hiding),
        Err(error) => {
            let text =
                format!("processes: whether files can be hidden from them is unknown: {error:#}");
            vec![DoctorFinding { mark: FindingMark::Missing, text }]
        }
    }
}

async fn attempt() -> anyhow::Result<HidingReport> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().canonicalize()?;
    std::fs::write(path.join("file"), "")?;
    let protected = ProtectedPaths {
        hidden: vec![path.clone()],
        read_only: vec![],
        scope: ProtectionScope::EveryProgram,
    };
    let processes = ProcessSpawner::start(&Config { protected, ..Config::default() })?;
    let file = path.join("file");
    let is_hidden = !finds(&processes, file, None).await?;
    let everything = PathRule { path: "/".into(), access: PathAccess::Read };
    let cage = ProcessCage { rules: vec![everything], ..ProcessCage::default() };
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    // Without sandboxes, none of them shows outside processes.
    let has_own_processes = !finds(&processes, own, Some(cage)).await.unwrap_or(false);
    processes.shutdown().await;
    Ok(HidingReport { is_hidden, has_own_processes })
}

/// The message of a server whose processes can read its files.
pub(crate) const VISIBLE_FILES: &str =
    "processes can read the data directory: the scope `process` equals `admin` here";

/// Whether a program finds a file at a path.
pub(crate) async fn finds(
    processes: &ProcessSpawner,
    path: PathBuf,
    cage: Option<ProcessCage>,
) -> anyhow::Result<bool> {
    let spec = ProcessSpec {
        argv: vec!["/bin/sh".into(), "-c".into(), "test -e \"$0\"".into(), path.into()],
        arg0: None,
        cwd: "/".into(),
        env: vec![],
        streams: ProcessStreams::Pipes(PipeInput::Null),
        cage,
    };
    let process = processes.spawn(&spec).await?;
    let mut follower = process.output().follow();
    loop {
        if let ProcessEvent::Exited { code, .. } = follower.next().await {
            return Ok(code == 0);
        }
    }
}

fn findings(HidingReport { is_hidden, has_own_processes }: HidingReport) -> Vec<DoctorFinding> {
    let files = match is_hidden {
        true => DoctorFinding {
            mark: FindingMark::Good,
            text: "processes cannot read the data directory or the vault key".into(),
        },
        false => DoctorFinding {
            mark: FindingMark::Missing,
            text: format!(
                "{VISIBLE_FILES}. Let the server mount (CAP_SYS_ADMIN) or allow unprivileged user namespaces"
            ),
        },
    };
    let others = (!has_own_processes).then(|| DoctorFinding {
        mark: FindingMark::Missing,
        text: "sandboxed processes see the command lines of others: parts of /proc are covered here, as in most containers"
            .into(),
    });
    [files].into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_can_be_hidden_process_equals_admin() {
        let hiding = HidingReport { is_hidden: false, has_own_processes: false };
        let found = findings(hiding);
        assert!(found[0].text.contains("the scope `process` equals `admin`"), "{found:?}");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|finding| finding.mark == FindingMark::Missing));
        let all = findings(HidingReport { is_hidden: true, has_own_processes: true });
        assert_eq!((all.len(), all[0].mark), (1, FindingMark::Good));
    }
}
