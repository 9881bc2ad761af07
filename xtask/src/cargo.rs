//! Runs cargo in the root of the repository. The only module of this tool that starts a process.

use crate::print::print_line;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One invocation of cargo.
#[derive(Debug, Clone, Default)]
pub(crate) struct CargoCall {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl CargoCall {
    /// Cargo with these arguments.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        Self { arguments, variables: vec![] }
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The equivalent command line.
    pub(crate) fn shown_command(&self) -> String {
        let quoted = |text: &str| {
            if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() }
        };
        let variables =
            self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once("cargo".to_owned());
        let arguments = self.arguments.iter().map(|text| quoted(text));
        variables.chain(words).chain(arguments).collect::<Vec<_>>().join(" ")
    }

    /// Runs it with its output on the terminal.
    pub(crate) fn run(&self) -> Result<()> {
        print_line(&format!("$ {}", self.shown_command()));
        let status = self.command().status().context("start cargo")?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.shown_command());
        }
        Ok(())
    }

    /// Runs it and passes each line of its standard error to `watch` as it comes.
    pub(crate) fn run_watched(&self, watch: &mut dyn FnMut(&str)) -> Result<()> {
        print_line(&format!("$ {}", self.shown_command()));
        let mut child = self.command().stderr(Stdio::piped()).spawn().context("start cargo")?;
        let errors = child.stderr.take().expect("it is piped");
        // The output of a fuzz target may not be valid UTF-8.
        for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
            watch(&String::from_utf8_lossy(&line));
        }
        let status = child.wait().context("wait for cargo")?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.shown_command());
        }
        Ok(())
    }

    /// Runs it quietly and returns what it printed.
    pub(crate) fn read(&self) -> Result<String> {
        let output = self.command().stderr(Stdio::inherit()).output().context("start cargo")?;
        if !output.status.success() {
            bail!("`{}` failed ({})", self.shown_command(), output.status);
        }
        String::from_utf8(output.stdout).context("read what cargo printed")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a build tool starts cargo; every caller waits for it"
    )]
    fn command(&self) -> Command {
        // The cargo that runs this tool, so that a chosen toolchain stays chosen.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command
            .current_dir(root())
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).expect("xtask is a folder in the root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_typed() {
        let cargo =
            CargoCall::new(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").arg("-q");
        assert_eq!(cargo.shown_command(), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps -q");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
