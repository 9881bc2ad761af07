//! `airlock trust`: a project's configuration file counts in the version that a person trusted.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, data_directory, print};
use engine::Clock;
use serde_json::json;
use sources::{ConfigFiles, TrustedFile};
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

/// Trusts a project's airlock.toml in its present version.
///
/// Until then, and after each change, only policies of that file that block or require approval count. A running server
/// notices the change by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The file; without it, airlock.toml here or above.
    file: Option<PathBuf>,
    /// Revokes the trust in every version of the file.
    #[arg(long)]
    forget: bool,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "trust";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Sources, 2);

    fn run(self) -> VerbExit {
        trust(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock trust
  airlock trust ~/work/shop/airlock.toml

Exit codes:
  0    done
  1    the file cannot be read, or is wrong
  2    the command line made no sense";

/// Records the trust, and prints its scope.
pub(crate) fn trust(args: &Args) -> VerbExit {
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    let data_dir = config_files::absolute(&data_dir);
    let named = args.file.as_deref().map(config_files::absolute);
    let Some(path) = named.or_else(config_files::project) else {
        print::error("there is no airlock.toml here or above; name the file");
        return VerbExit::Usage;
    };
    let done = match args.forget {
        true => remove_trust(&data_dir, &path),
        false => record(&data_dir, &path),
    };
    match done {
        Ok(done) => {
            let told = json!({ "file": path, "trusted": !args.forget });
            print::print_result(args.json, &told, |_| done);
            VerbExit::Good
        }
        Err(why) => {
            print::error(&why);
            VerbExit::Failed
        }
    }
}

fn record(data_dir: &Path, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let (by, now) = (config_files::author("trust"), Clock::system().now().0);
    let trusted =
        TrustedFile::new(path, &text, &by, now).map_err(|why| format!("{shown}: {why}"))?;
    trusted.save(data_dir).map_err(|error| format!("cannot record it: {error}"))?;
    let files: String =
        trusted.files.keys().map(|path| format!("\n  with {}", path.display())).collect();
    Ok(format!("{shown} is trusted as it is now (SHA-256 {}){files}", trusted.sha256))
}

fn remove_trust(data_dir: &Path, path: &Path) -> Result<String, String> {
    let shown = path.display();
    match TrustedFile::remove_trust(data_dir, path) {
        Ok(true) => Ok(format!("{shown} is not trusted any more")),
        Ok(false) => Err(format!("{shown} was not trusted")),
        Err(error) => Err(format!("cannot forget {shown}: {error}")),
    }
}

/// Asks the person at the terminal about each project file that is not trusted; without a terminal, prints what does
/// not count.
pub(crate) fn ask_about(files: &ConfigFiles) -> anyhow::Result<()> {
    if print::is_somebody_there() {
        for path in files.projects() {
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            let trusted = TrustedFile::load(&files.data_dir, path).map_err(anyhow::Error::msg)?;
            let counts = |trusted: TrustedFile| {
                trusted.is_of(&text) && matches!(trusted.changed_file(), Ok(None))
            };
            if trusted.is_some_and(counts) || !says_yes(path, &text) {
                continue;
            }
            print::print_note(&record(&files.data_dir, path).map_err(anyhow::Error::msg)?);
        }
    }
    // Errors in the files are reported by the code that reads them.
    for notice in sources::notices(files).unwrap_or_default() {
        print::print_note(&print::tamed(&notice));
    }
    Ok(())
}

fn says_yes(path: &Path, text: &str) -> bool {
    let shown = path.display();
    print::question(
        &format!("{shown} is not trusted in this version:\n\n{text}"),
        "Trust it as it is now? [y/N]",
    );
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
