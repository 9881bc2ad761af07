//! `airlock init`: writes an initial configuration.

use crate::executor_cli::import;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Largest executor.jsonc that is read.
const IMPORT_BYTES_MAX: u64 = 4 << 20;

/// The file that is written. Tests check its examples.
const TEMPLATE: &str = include_str!("init/airlock.toml");

/// Writes an airlock.toml with a first tool and commented examples.
///
/// Into this directory, for servers that are started here; with --user into the user's own configuration,
/// which every server of this user reads, also one that was started by another verb.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Writes ~/.config/airlock/airlock.toml instead.
    #[arg(long)]
    user: bool,
    /// Overwrites an existing file.
    #[arg(long)]
    force: bool,
    /// Only prints the configuration.
    #[arg(long, conflicts_with_all = ["user", "force"])]
    print: bool,
    /// Prints the path of the file, as JSON.
    #[arg(long)]
    json: bool,
    /// Imports the sources of an executor.jsonc instead of the examples.
    #[arg(long, value_name = "FILE")]
    from_executor: Option<PathBuf>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "init";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Sources, 1);

    fn run(self) -> VerbExit {
        init(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock init --user
  airlock init --user --from-executor ~/project/executor.jsonc
  airlock call hello.org.main.greet '{\"name\":\"Ann\"}'     asks, and then greets

Exit codes:
  0    it is written
  1    there is one already, or it could not be written";

/// Writes the file, and prints its path.
pub(crate) fn init(args: &Args) -> VerbExit {
    let text = match args.from_executor.as_deref().map(imported) {
        None => TEMPLATE.to_owned(),
        Some(Ok(text)) => text,
        Some(Err(why)) => {
            print::error(&why);
            return VerbExit::Usage;
        }
    };
    if args.print {
        print::report(text.trim_end());
        return VerbExit::Good;
    }
    let path = match args.user {
        false => PathBuf::from("airlock.toml"),
        true => match sources::user_file() {
            Some(path) => path,
            None => {
                print::error(
                    "the user's configuration folder is unknown: set HOME or XDG_CONFIG_HOME",
                );
                return VerbExit::Usage;
            }
        },
    };
    match write(&path, &text, args.force) {
        Ok(()) => {
            let shown = path.display().to_string();
            print::print_result(args.json, &serde_json::json!({ "file": shown }), |_| {
                shown.clone()
            });
            if !args.user {
                print::print_note(
                    "a project's file counts once you have trusted it: airlock trust",
                );
            }
            VerbExit::Good
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            print::error(&format!("{} exists already; --force overwrites it", path.display()));
            VerbExit::Failed
        }
        Err(error) => {
            print::error(&format!("cannot write {}: {error}", path.display()));
            VerbExit::Failed
        }
    }
}

/// The configuration that corresponds to an executor.jsonc; notes list what a person still has to do.
fn imported(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let open = std::fs::File::open(file);
    let open = open.map_err(|error| format!("cannot open {shown}: {error}"))?;
    let text = crate::input::read(&shown.to_string(), open, IMPORT_BYTES_MAX)?;
    let made = import::import(&text).map_err(|why| format!("cannot import {shown}: {why}"))?;
    made.notes.iter().for_each(|note| print::print_note(&print::tamed(note)));
    print::print_note(&format!("{} sources were taken over", made.n_sources));
    Ok(made.text)
}

fn write(path: &Path, text: &str, over: bool) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let options = match over {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    options
        .mode(if text == TEMPLATE { 0o666 } else { 0o600 })
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sources::config::ConfigDocument;

    #[test]
    fn what_is_written_is_valid_and_so_is_every_example_in_it() {
        let written = ConfigDocument::parse(TEMPLATE).unwrap();
        assert!(written.sources["hello"].tools["greet"].tool().unwrap().asks);
        assert_eq!((written.sources.len(), written.connections.len()), (1, 0));
        let all = ConfigDocument::parse(&TEMPLATE.replace("\n#:", "\n")).unwrap();
        let names: Vec<_> = all.sources.keys().map(String::as_str).collect();
        assert_eq!(names, ["files", "hello", "petstore", "remote", "shop"]);
        let notify = all.notify.unwrap();
        assert_eq!((notify.command.len(), notify.webhook.is_some()), (3, true));
        assert_eq!(all.connections["petstore"]["main"].template_name(), "bearer");
    }

    #[test]
    fn a_file_that_is_there_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/airlock.toml");
        write(&path, TEMPLATE, false).unwrap();
        let again = write(&path, TEMPLATE, false).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        std::fs::write(&path, "# mine").unwrap();
        write(&path, TEMPLATE, true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEMPLATE);
    }
}
