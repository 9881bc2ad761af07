//! `airlock doctor`: checks layer by layer whether this machine can isolate guests.

pub(crate) mod hiding;
mod quotas;

use crate::config_files::config_files;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, management_review, print};
use sandbox::{JailLayer, JailTier, Sandbox};
use serde_json::json;
use server::settings::{SettingName, look_up_settings, server_account, shared_account};
use sources::ConfigFiles;
use std::path::{Path, PathBuf};

/// Checks what this machine offers: the jail layer by layer, the data directory, versions.
///
/// Exits with 0 when guests can run here and 1 when something required is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "doctor";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 5);

    fn run(self) -> VerbExit {
        doctor(&self)
    }
}

/// One line of the report.
#[derive(Debug, PartialEq, Eq)]
struct DoctorFinding {
    mark: FindingMark,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FindingMark {
    Good,
    Missing,
    /// A person should check this; guests run nevertheless.
    Check,
    Wrong,
}

/// Prints the report.
pub(crate) fn doctor(args: &Args) -> VerbExit {
    print::start_tracing();
    let mut findings = jail();
    findings.push(memory());
    let data_dir = args.data_dir.clone().or_else(data_directory::usual);
    findings.push(keeping(data_dir.as_deref()));
    findings.extend(hiding::check_hiding());
    findings.extend(configuration(data_dir.as_deref().unwrap_or(Path::new("."))));
    findings.extend(quotas::check_quotas(data_dir.as_deref().unwrap_or(Path::new("."))));
    findings.push(account(data_dir.as_deref()));
    findings.extend(data_dir.as_deref().into_iter().flat_map(unconfirmed));
    if args.json {
        let shown =
            |finding: &DoctorFinding| json!({ "mark": finding.mark.word(), "text": finding.text });
        let shown: Vec<_> = findings.iter().map(shown).collect();
        print::json(
            &json!({ "version": env!("CARGO_PKG_VERSION"), "kernel": kernel(), "findings": shown }),
        );
        return exit(&findings);
    }
    print::report(&format!("airlock {}", env!("CARGO_PKG_VERSION")));
    print::report(&format!("kernel {}", kernel()));
    for DoctorFinding { mark, text } in &findings {
        print::report(&format!("{:<8}{text}", mark.word()));
    }
    verdict(&findings)
}

impl FindingMark {
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Missing => "missing",
            Self::Check => "check",
            Self::Wrong => "WRONG",
        }
    }
}

fn verdict(findings: &[DoctorFinding]) -> VerbExit {
    let exit = exit(findings);
    print::report(match exit == VerbExit::Good {
        true => "Guests can run here.",
        false => "Guests cannot run here until what is WRONG is put right.",
    });
    exit
}

fn exit(findings: &[DoctorFinding]) -> VerbExit {
    match findings.iter().any(|finding| finding.mark == FindingMark::Wrong) {
        true => VerbExit::Failed,
        false => VerbExit::Good,
    }
}

fn jail() -> Vec<DoctorFinding> {
    let wrong = |text: String| vec![DoctorFinding { mark: FindingMark::Wrong, text }];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return wrong(format!("runtime: {error}")),
    };
    runtime.block_on(async {
        match Sandbox::start(sandbox::Config::default()).await {
            Ok(sandbox) => {
                let findings = layers(sandbox.tier());
                sandbox.shutdown().await;
                findings
            }
            Err(error) => wrong(format!("sandbox: could not {:#}", anyhow::Error::from(error))),
        }
    })
}

fn layers(tier: JailTier) -> Vec<DoctorFinding> {
    let finding = |layer: JailLayer| match (tier.has(layer), layer.is_required()) {
        (true, _) => match (layer, tier.landlock_abi()) {
            (JailLayer::Landlock, Some(abi)) => {
                DoctorFinding { mark: FindingMark::Good, text: format!("{layer} (ABI {abi})") }
            }
            _ => DoctorFinding { mark: FindingMark::Good, text: layer.to_string() },
        },
        (false, true) => DoctorFinding {
            mark: FindingMark::Wrong,
            text: format!("{layer}, which is required: {}", layer.advice()),
        },
        (false, false) => DoctorFinding {
            mark: FindingMark::Missing,
            text: format!("{layer}, which would be one wall more: {}", layer.advice()),
        },
    };
    JailLayer::ALL.into_iter().map(finding).collect()
}

fn memory() -> DoctorFinding {
    let mib = sandbox::Config::default().memory_budget_bytes >> 20;
    let text = format!(
        "memory: {mib} MiB for all guests together, unless serve --memory-budget sets another limit"
    );
    DoctorFinding { mark: FindingMark::Good, text }
}

fn keeping(directory: Option<&Path>) -> DoctorFinding {
    let Some(directory) = directory else {
        let text = "data directory: neither HOME nor --data-dir says where".to_owned();
        return DoctorFinding { mark: FindingMark::Wrong, text };
    };
    let shown = directory.display();
    match data_directory::probe(directory) {
        Ok(()) => {
            DoctorFinding { mark: FindingMark::Good, text: format!("data directory {shown}") }
        }
        Err(error) => DoctorFinding {
            mark: FindingMark::Wrong,
            text: format!("data directory {shown} cannot be written to: {}", error.kind()),
        },
    }
}

/// The configuration files that a server would read.
fn configured_files(data_dir: &Path) -> Result<ConfigFiles, String> {
    let named = std::env::var_os("AIRLOCK_CONFIG").map(PathBuf::from);
    config_files(named.as_deref(), data_dir).map_err(|error| error.to_string())
}

/// The configuration files that a server would read, and the parts of the project's file that do not count.
fn configuration(data_dir: &Path) -> Vec<DoctorFinding> {
    let missing = |text: String| DoctorFinding { mark: FindingMark::Missing, text };
    let read = configured_files(data_dir);
    let read =
        read.and_then(|files| Ok((sources::check_files(&files)?, sources::notices(&files)?)));
    let (files, notices) = match read {
        Ok(read) => read,
        // Guests run nevertheless: a server retains its previous configuration.
        Err(why) => return vec![missing(format!("configuration: {why}"))],
    };
    let names: Vec<_> = files.files.iter().map(|file| file.path.display().to_string()).collect();
    let names = if names.is_empty() {
        ": no airlock.toml".into()
    } else {
        format!(" {}", names.join(", "))
    };
    let found = DoctorFinding { mark: FindingMark::Good, text: format!("configuration{names}") };
    [found].into_iter().chain(notices.into_iter().map(missing)).collect()
}

/// Whether agents may run under the server's account.
fn account(data_dir: Option<&Path>) -> DoctorFinding {
    let settings = data_dir.map(look_up_settings).and_then(Result::ok).unwrap_or_default();
    let mode = settings.get(&SettingName::OperatorMode);
    let is_operator_mode = mode.is_some_and(|setting| setting.value.as_text() == "on");
    match shared_account(&server_account()) {
        None if is_operator_mode => DoctorFinding {
            mark: FindingMark::Good,
            text: "account: the server's own, in operator mode".into(),
        },
        None => DoctorFinding {
            mark: FindingMark::Good,
            text: "account: no one can log in with it".into(),
        },
        Some(why) => DoctorFinding {
            mark: FindingMark::Missing,
            text: format!(
                "account: a server here may share its account with agents ({why}), which can then answer for a person; \
                 docs/security.md says how to separate them"
            ),
        },
    }
}

/// The policies and connections that programs created through management tools without a valid answer.
fn unconfirmed(data_dir: &Path) -> Vec<DoctorFinding> {
    let remaining = management_review::remaining(data_dir);
    remaining.into_iter().map(|text| DoctorFinding { mark: FindingMark::Check, text }).collect()
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_layer_that_is_missing_is_wrong_and_another_is_not() {
        let findings = layers(JailTier::default());
        let wrong: Vec<_> = findings.iter().filter(|f| f.mark == FindingMark::Wrong).collect();
        assert_eq!(wrong.len(), JailLayer::ALL.iter().filter(|layer| layer.is_required()).count());
        assert!(findings.iter().any(|finding| finding.mark == FindingMark::Missing));
        assert_eq!(verdict(&findings), VerbExit::Failed);
    }

    #[test]
    fn a_data_directory_that_cannot_be_written_to_is_wrong() {
        let expected = DoctorFinding {
            mark: FindingMark::Wrong,
            text: "data directory: neither HOME nor --data-dir says where".into(),
        };
        assert_eq!(keeping(None), expected);
        assert_eq!(keeping(Some(Path::new("/proc/airlock"))).mark, FindingMark::Wrong);
        assert_eq!(keeping(Some(&std::env::temp_dir())).mark, FindingMark::Good);
    }
}
