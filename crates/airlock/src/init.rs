//! `airlock init`: writes a configuration to begin with.

use crate::{Exit, print};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What is written. Its examples are checked with it.
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
    /// Writes over a file that is there.
    #[arg(long)]
    force: bool,
    /// Only prints it.
    #[arg(long, conflicts_with_all = ["user", "force"])]
    print: bool,
    /// Where it is written, as JSON.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  airlock init --user
  airlock call hello.org.main.greet '{\"name\":\"Ann\"}'     asks, and then greets

Exit codes:
  0    it is written
  1    there is one already, or it could not be written";

/// Writes it, and tells where.
pub(crate) fn init(args: &Args) -> Exit {
    if args.print {
        print::report(TEMPLATE.trim_end());
        return Exit::Good;
    }
    let path = match args.user {
        false => PathBuf::from("airlock.toml"),
        true => match sources::user_file() {
            Some(path) => path,
            None => {
                print::error("neither HOME nor XDG_CONFIG_HOME says where the user's own is");
                return Exit::Usage;
            }
        },
    };
    match write(&path, args.force) {
        Ok(()) => {
            let shown = path.display().to_string();
            print::told(args.json, &serde_json::json!({ "file": shown }), |_| shown.clone());
            if !args.user {
                print::note("a project's file counts once you have trusted it: airlock trust");
            }
            Exit::Good
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            print::error(&format!("{} is there already; --force writes over it", path.display()));
            Exit::Failed
        }
        Err(error) => {
            print::error(&format!("cannot write {}: {error}", path.display()));
            Exit::Failed
        }
    }
}

fn write(path: &Path, over: bool) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let options = match over {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    options.open(path)?.write_all(TEMPLATE.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sources::config::File;

    #[test]
    fn what_is_written_is_valid_and_so_is_every_example_in_it() {
        let written = File::parse(TEMPLATE).unwrap();
        assert!(written.sources["hello"].tools["greet"].tool().unwrap().asks);
        assert_eq!((written.sources.len(), written.connections.len()), (1, 0));
        let all = File::parse(&TEMPLATE.replace("\n#:", "\n")).unwrap();
        let names: Vec<_> = all.sources.keys().map(String::as_str).collect();
        assert_eq!(names, ["files", "hello", "petstore", "remote", "shop"]);
        let notify = all.notify.unwrap();
        assert_eq!((notify.command.len(), notify.webhook.is_some()), (3, true));
        assert_eq!(all.connections["petstore"]["main"].kind(), "bearer");
    }

    #[test]
    fn a_file_that_is_there_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/airlock.toml");
        write(&path, false).unwrap();
        let again = write(&path, false).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        std::fs::write(&path, "# mine").unwrap();
        write(&path, true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEMPLATE);
    }
}
