//! `airlock vault`: the store of secrets, in the data directory itself or through the server that owns it.

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, input, print};
use anyhow::Context as _;
use client::{AirlockClient, Error};
use credentials::{BACKUP_BYTES_MAX, KeyPlace, Vault};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::sqlite::SqliteStore;

/// Longest passphrase, and largest export that is read.
const PASSPHRASE_BYTES_MAX: u64 = 4_096;
const EXPORT_BYTES_MAX: u64 = BACKUP_BYTES_MAX as u64;

/// Shows, rotates, exports and imports the vault, which stores the secrets of connections.
///
/// Secrets are sealed with a key in vault.key of the data directory, which only its owner can read. Without that file
/// the secrets are lost: store an export elsewhere.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: VaultVerb,
    /// One line of JSON.
    #[arg(long, global = true)]
    json: bool,
    /// The file with the key, where no server runs; default: vault.key in the data directory.
    #[arg(long, global = true, value_name = "FILE", env = "AIRLOCK_VAULT_KEY_FILE")]
    vault_key: Option<PathBuf>,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "vault";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Sources, 5);

    fn run(self) -> VerbExit {
        vault(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum VaultVerb {
    /// Shows whether the vault is open, and what to do if it is not.
    Status,
    /// Generates new keys, and seals every secret again.
    Rotate,
    /// Writes every secret and connection to a new file, sealed with a passphrase.
    Export {
        /// The file; it must not exist yet.
        file: PathBuf,
        /// A file with the passphrase; - is stdin.
        #[arg(long, value_name = "FILE", default_value = "-")]
        passphrase: String,
    },
    /// Imports what an export has and this vault has not; existing entries do not change.
    Import {
        /// The file.
        file: PathBuf,
        /// A file with the passphrase; - is stdin.
        #[arg(long, value_name = "FILE", default_value = "-")]
        passphrase: String,
    },
}

const HELP: &str = "\
Examples:
  airlock vault status
  airlock vault rotate
  airlock vault export backup.json < passphrase.txt
  airlock vault import backup.json --passphrase passphrase.txt --data-dir /elsewhere";

/// Runs the verb, and prints the result.
pub(crate) fn vault(args: &Args) -> VerbExit {
    let order = match VaultRequest::read(&args.verb) {
        Ok(order) => order,
        Err(complaint) => {
            print::error(&complaint);
            return VerbExit::Usage;
        }
    };
    let Some(data_dir) = args.reach.unowned() else {
        return args.reach.visit(async |client| {
            let told = over_http(&client, &order).await?;
            Ok(print_report(args, &told))
        });
    };
    print::start_tracing();
    match perform_on_directory(&order, &data_dir, args.vault_key.as_deref()) {
        Ok(told) => print_report(args, &told),
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

/// A request to the vault, with all files and passphrases already read.
enum VaultRequest {
    Status,
    Rotate,
    Export { passphrase: String },
    Import { passphrase: String, export: String },
}

impl VaultRequest {
    fn read(verb: &VaultVerb) -> Result<Self, String> {
        Ok(match verb {
            VaultVerb::Status => Self::Status,
            VaultVerb::Rotate => Self::Rotate,
            VaultVerb::Export { passphrase, .. } => {
                Self::Export { passphrase: secret(passphrase)? }
            }
            VaultVerb::Import { file, passphrase } => {
                let shown = file.display().to_string();
                let opened =
                    File::open(file).map_err(|error| format!("cannot open {shown}: {error}"))?;
                let export = input::read(&shown, opened, EXPORT_BYTES_MAX)?;
                Self::Import { passphrase: secret(passphrase)?, export }
            }
        })
    }
}

fn secret(file: &str) -> Result<String, String> {
    let text = match file {
        "-" => input::read("stdin", io::stdin().lock(), PASSPHRASE_BYTES_MAX)?,
        path => {
            let opened =
                File::open(path).map_err(|error| format!("cannot open {path}: {error}"))?;
            input::read(path, opened, PASSPHRASE_BYTES_MAX)?
        }
    };
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

async fn over_http(client: &AirlockClient, order: &VaultRequest) -> Result<Value, Error> {
    match order {
        VaultRequest::Status => client.vault().await,
        VaultRequest::Rotate => client.about_vault("rotate", &json!({})).await,
        VaultRequest::Export { passphrase } => {
            client.about_vault("export", &json!({ "passphrase": passphrase })).await
        }
        VaultRequest::Import { passphrase, export } => {
            let members = json!({ "passphrase": passphrase, "export": export });
            client.about_vault("import", &members).await
        }
    }
}

/// Works on the data directory itself, while no server owns it.
fn perform_on_directory(
    order: &VaultRequest,
    data_dir: &Path,
    key: Option<&Path>,
) -> anyhow::Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(data_dir)
            .with_context(|| format!("could not open {}", data_dir.display()))?;
        let key = KeyPlace::File(config_files::vault_key(key, data_dir));
        let vault = Vault::open(Arc::new(store.clone()), key).await?;
        let done = on_vault(&vault, order).await;
        store.close().await;
        done
    })
}

async fn on_vault(vault: &Vault, order: &VaultRequest) -> anyhow::Result<Value> {
    Ok(match order {
        VaultRequest::Status => {
            let status = vault.status().await?;
            let place = match &status.place {
                KeyPlace::File(path) => path.display().to_string(),
                KeyPlace::Memory => "memory".into(),
            };
            let word = if status.trouble.is_some() { "locked" } else { "open" };
            json!({ "status": word, "trouble": status.trouble, "keyFile": place,
                    "key": status.key, "secrets": status.n_secrets })
        }
        VaultRequest::Rotate => json!({ "resealed": vault.rotate().await? }),
        VaultRequest::Export { passphrase } => json!({ "export": vault.export(passphrase).await? }),
        VaultRequest::Import { passphrase, export } => {
            let done = vault.import(passphrase, export).await?;
            json!({ "added": done.n_added, "kept": done.n_kept })
        }
    })
}

fn print_report(args: &Args, told: &Value) -> VerbExit {
    if let VaultVerb::Export { file, .. } = &args.verb {
        return write(file, told["export"].as_str().unwrap_or_default());
    }
    let is_locked = told["status"] == "locked";
    if args.json {
        print::json(told);
    } else {
        lines(&args.verb, told).iter().for_each(|line| print::report(&print::tamed(line)));
    }
    if is_locked { VerbExit::Failed } else { VerbExit::Good }
}

fn lines(verb: &VaultVerb, told: &Value) -> Vec<String> {
    let text = |name: &str| told[name].as_str().unwrap_or("-").to_owned();
    match verb {
        VaultVerb::Status => {
            let mut lines = vec![
                format!("{}, {} secrets", text("status"), told["secrets"]),
                format!("key {} in {}", text("key"), text("keyFile")),
            ];
            lines.extend(told["trouble"].as_str().map(str::to_owned));
            lines
        }
        VaultVerb::Rotate => vec![format!("{} secrets sealed again", told["resealed"])],
        VaultVerb::Import { .. } => vec![format!("{} added, {} kept", told["added"], told["kept"])],
        VaultVerb::Export { .. } => vec![],
    }
}

/// Only its owner may read it, sealed or not; an existing file is not overwritten.
fn write(file: &Path, export: &str) -> VerbExit {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| {
        opened.write_all(export.as_bytes())?;
        opened.sync_all()
    });
    match written {
        Ok(()) => VerbExit::Good,
        Err(error) => {
            print::error(&format!("cannot write {}: {error}", file.display()));
            VerbExit::Failed
        }
    }
}
