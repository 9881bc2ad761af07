//! The processes of clients and of programs, as the configuration allows.

use crate::doctor::hiding::finds;
use crate::exit::UsageError;
use crate::protected::protected_paths;
use ::exec_server::{
    Config, DialectChoice, ExecServer, NetworkReach, PlainSandbox, ProcessRetention,
    SandboxConfines, imposed_cage,
};
use anyhow::Context as _;
use processes::{ProcessSpawner, ProtectionScope};
use sources::config::{ProcessNetwork, ProcessSandbox};
use sources::{ConfigFiles, ProcessTool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tools::Catalogue;
use tools::http::AddressRules;

/// The service that runs processes; absent where nothing may start one.
#[derive(Debug)]
pub(crate) struct ProcessHost {
    said: sources::config::ProcessesConfig,
    processes: Option<ProcessSpawner>,
}

impl ProcessHost {
    /// Reads the files, and creates the service where clients or programs may start processes. None of these may use
    /// the files of the server.
    pub(crate) fn open(
        files: &ConfigFiles,
        vault_key: &Path,
        is_for_clients: bool,
    ) -> anyhow::Result<Self> {
        let wrong = |why| UsageError(format!("the configuration is wrong: {why}"));
        let said = sources::processes(files).map_err(wrong)?;
        let scope = match said.hide_server_files {
            Some(false) => ProtectionScope::CagedPrograms,
            Some(true) | None => ProtectionScope::EveryProgram,
        };
        let start = || {
            let paths: Vec<PathBuf> = files.files.iter().map(|file| file.path.clone()).collect();
            let data_dir = Some(files.data_dir.as_path());
            let protected = protected_paths(data_dir, Some(vault_key), &paths, scope);
            ProcessSpawner::start(&processes::Config { protected, ..Default::default() })
                .context("could not start what processes are started from")
        };
        let is_wanted = is_for_clients || said.run.is_some();
        let processes = is_wanted.then(start).transpose()?;
        Ok(Self { said, processes })
    }

    /// Offers commands to programs, where the configuration allows it.
    pub(crate) fn offer(&self, catalogue: &Catalogue) -> anyhow::Result<()> {
        let Some(processes) = &self.processes else { return Ok(()) };
        let Some(run) = self.said.run.clone() else { return Ok(()) };
        let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let cage = self.confines().as_ref().map(imposed_cage).transpose();
        let cage = cage.map_err(anyhow::Error::msg)?;
        catalogue.add(Arc::new(ProcessTool::new(run, processes, &here, cage)))?;
        Ok(())
    }

    /// Why processes could read the files of the server; `None` where they cannot, or where nothing may start one.
    pub(crate) async fn visible_files(&self, data_dir: &Path) -> Option<String> {
        let processes = self.processes.as_ref()?;
        if self.said.hide_server_files == Some(false) {
            return Some("[processes] hide_server_files = false".to_owned());
        }
        // The owner of the directory has created this file.
        match finds(processes, data_dir.join("owner.lock"), None).await {
            Ok(false) => None,
            Ok(true) => Some("this machine does not let the server hide files".to_owned()),
            Err(error) => Some(format!("whether they are hidden is unknown: {error:#}")),
        }
    }

    /// The exec-server for clients, where processes are allowed. Its requests follow these rules about addresses.
    pub(crate) fn exec_server(&self, rules: &AddressRules) -> Option<ExecServer> {
        let processes = self.processes.clone()?;
        let retention = retention(self.said.detached_seconds, self.said.ended_seconds);
        let config = Config {
            dialect: DialectChoice::Auto,
            imposed: self.confines(),
            retention,
            address_rules: rules.clone(),
        };
        Some(ExecServer::new(processes, config))
    }

    /// The confines of every process, for all starters.
    fn confines(&self) -> Option<SandboxConfines> {
        self.said.sandbox.clone().map(confines)
    }

    /// Ends the remaining processes.
    pub(crate) async fn shutdown(&self) {
        if let Some(processes) = &self.processes {
            processes.shutdown().await;
        }
    }
}

/// How long a server retains data that clients may request, where that is set.
pub(crate) fn retention(detached: Option<u64>, ended: Option<u64>) -> ProcessRetention {
    let usual = ProcessRetention::default();
    let seconds = |set: Option<u64>, usual| set.map_or(usual, Duration::from_secs);
    ProcessRetention {
        detached: seconds(detached, usual.detached),
        ended: seconds(ended, usual.ended),
    }
}

/// Converts the configured confines to those of the exec-server.
fn confines(said: ProcessSandbox) -> SandboxConfines {
    let network = match said.network {
        ProcessNetwork::All => NetworkReach::All,
        ProcessNetwork::Loopback => NetworkReach::Loopback,
        ProcessNetwork::None => NetworkReach::None,
    };
    let (writable, hidden) = (said.writable, said.hidden);
    let (memory_bytes, cpu_ms, processes) = (said.memory_bytes, said.cpu_ms, said.processes);
    PlainSandbox { writable, hidden, network, memory_bytes, cpu_ms, processes }.into()
}
