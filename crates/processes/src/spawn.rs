//! Starts fork servers. The only place in this crate where the server executes a program.

use crate::helper_process::FORK_SERVER;
use crate::processes::SelfProgram;
use crate::protected::ProtectedPaths;
use crate::subreaper_link;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Stdio;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// A fork server that accepts requests.
#[derive(Debug)]
pub(crate) struct ForkServerLink {
    pub(crate) control: AsyncFd<OwnedFd>,
    /// Reaped by the runtime when it has ended.
    pub(crate) child: Child,
}

/// Opens the program once: later executions use the same file, even if its path changes.
pub(crate) fn open(program: &SelfProgram) -> io::Result<File> {
    match program {
        SelfProgram::ThisBinary => File::open("/proc/self/exe"),
        SelfProgram::At(path) => File::open(path),
    }
}

/// Starts a fork server.
#[expect(clippy::disallowed_methods, reason = "this is the place that the rule names")]
pub(crate) fn fork_server(
    program: &File,
    protected: &ProtectedPaths,
) -> io::Result<ForkServerLink> {
    let (ours, theirs) = subreaper_link::pair()?;
    // The socket is passed as standard input: no code of ours has to run between fork and exec.
    let child = tokio::process::Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .arg0(FORK_SERVER.title)
        .arg(FORK_SERVER.verb)
        .args(protected.to_args())
        .env_clear()
        .current_dir("/")
        // A Ctrl-C in the terminal is for the server, which then ends its processes in order.
        .process_group(0)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(ForkServerLink { control: subreaper_link::watched(ours)?, child })
}
