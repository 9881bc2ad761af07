//! Describes what to start, and its streams.

use crate::cage::ProcessCage;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// What the program sees as its own name instead of `argv[0]`.
    pub arg0: Option<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its complete environment; `TERM` is added for a terminal if it is missing.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard streams.
    pub streams: ProcessStreams,
    /// Its restrictions; `None` if it may do what the server may.
    pub cage: Option<ProcessCage>,
}

/// The standard streams of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessStreams {
    /// Two pipes for its output.
    Pipes(PipeInput),
    /// One terminal of this size for everything.
    Terminal(PtySize),
}

impl ProcessStreams {
    /// The size of its terminal, if it has one.
    pub const fn size(self) -> Option<PtySize> {
        match self {
            Self::Terminal(size) => Some(size),
            Self::Pipes(_) => None,
        }
    }
}

/// The input of a program with pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeInput {
    /// No input.
    Null,
    /// What the client writes.
    Pipe,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl Default for PtySize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// Why a specification is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSpec {
    /// `argv` is empty.
    #[error("argv must not be empty")]
    NoArgv,
    /// `argv[0]` is empty.
    #[error("the program in argv must not be empty")]
    NoProgram,
    /// A string contains a zero byte, which ends strings in the system's interfaces.
    #[error("nul byte found in provided data")]
    Nul,
}

/// The default terminal type, which nearly all programs support.
const TERM: &str = "xterm-256color";

impl ProcessSpec {
    /// Refuses what cannot be passed to the system.
    pub(crate) fn validate(&self) -> Result<(), BadSpec> {
        let program = self.argv.first().ok_or(BadSpec::NoArgv)?;
        if program.is_empty() {
            return Err(BadSpec::NoProgram);
        }
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        let mut texts = self.argv.iter().chain(&self.arg0).chain(variables);
        let has_nul = |text: &OsString| text.as_bytes().contains(&0);
        if texts.any(has_nul) || self.cwd.as_os_str().as_bytes().contains(&0) {
            return Err(BadSpec::Nul);
        }
        Ok(())
    }

    /// The program's environment.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.env.clone();
        let has_term = env.iter().any(|(name, _)| name == "TERM");
        if matches!(self.streams, ProcessStreams::Terminal(_)) && !has_term {
            env.push(("TERM".into(), TERM.into()));
        }
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(argv: &[&str]) -> ProcessSpec {
        ProcessSpec {
            argv: argv.iter().map(OsString::from).collect(),
            arg0: None,
            cwd: "/".into(),
            env: vec![("A".into(), "1".into())],
            streams: ProcessStreams::Pipes(PipeInput::Null),
            cage: None,
        }
    }

    #[test]
    fn what_the_system_cannot_be_told_is_refused() {
        assert_eq!(spec(&["true"]).validate(), Ok(()));
        assert_eq!(spec(&[]).validate(), Err(BadSpec::NoArgv));
        assert_eq!(spec(&[""]).validate(), Err(BadSpec::NoProgram));
        assert_eq!(spec(&["a", "b\0c"]).validate(), Err(BadSpec::Nul));
        assert_eq!(
            ProcessSpec { cwd: "/a\0".into(), ..spec(&["a"]) }.validate(),
            Err(BadSpec::Nul)
        );
        assert_eq!(
            ProcessSpec { arg0: Some("\0".into()), ..spec(&["a"]) }.validate(),
            Err(BadSpec::Nul)
        );
        let env = vec![("A".into(), "\0".into())];
        assert_eq!(ProcessSpec { env, ..spec(&["a"]) }.validate(), Err(BadSpec::Nul));
    }

    #[test]
    fn only_a_terminal_without_a_term_gets_one() {
        let terminal = ProcessStreams::Terminal(PtySize::default());
        assert_eq!(spec(&["a"]).environment(), [("A".into(), "1".into())]);
        let expected = [("A".into(), "1".into()), ("TERM".into(), TERM.into())];
        assert_eq!(ProcessSpec { streams: terminal, ..spec(&["a"]) }.environment(), expected);
        let env: Vec<(OsString, OsString)> = vec![("TERM".into(), "dumb".into())];
        assert_eq!(
            ProcessSpec { streams: terminal, env: env.clone(), ..spec(&["a"]) }.environment(),
            env
        );
    }
}
