//! `airlock logs`: the log of a server that was started in the background.

use crate::autostart::LOG_FILE;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, print};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::sqlite::directory_owner;

/// How much of the end of the log is searched for the last lines: more lines than a person reads.
const TAIL_BYTES_MAX: u64 = 4 << 20;

/// Longest part of a line that is printed in one piece.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Poll interval while a log is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints the log of the server that was started in the background.
///
/// That is serve.log in the data directory. A server that a person or a supervisor started writes elsewhere: to its
/// terminal, or to journalctl.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Continues with new lines, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    /// The number of lines from the end.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    lines: usize,
    /// Each line as JSON.
    #[arg(long)]
    json: bool,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "logs";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 4);

    fn run(self) -> VerbExit {
        logs(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock logs
  airlock logs -n 20 --follow

Exit codes:
  0    done
  1    no server was ever started in the background there
  2    the command line made no sense";

/// Prints the last lines, and new ones with `--follow`.
pub(crate) fn logs(args: &Args) -> VerbExit {
    let Some(dir) = data_directory::absolute(args.data_dir.as_deref()) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    let path = dir.join(LOG_FILE);
    if let Some(owner) = directory_owner(&dir).filter(|owner| !owner.is_client_started) {
        print::print_note(&format!(
            "the server of {} (process {}) was not started in the background: it writes to its own terminal, or to its \
             supervisor (journalctl -u airlock)",
            dir.display(),
            owner.pid
        ));
    }
    match print_log(&path, args) {
        Ok(()) => VerbExit::Good,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => VerbExit::Good,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            print::error(&format!(
                "no server was started in the background on {}: there is no {LOG_FILE}",
                dir.display()
            ));
            VerbExit::Failed
        }
        Err(error) => {
            print::error(&format!("cannot read {}: {error}", path.display()));
            VerbExit::Failed
        }
    }
}

fn print_log(path: &Path, args: &Args) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut at = begin_of_lines(&mut file, args.lines)?;
    loop {
        at = print_from(&mut file, at, args)?;
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
        // A log that is too long is truncated.
        let length = file.metadata()?.len();
        at = if length < at { 0 } else { at };
    }
}

/// Where the last lines begin.
fn begin_of_lines(file: &mut File, n_lines: usize) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(TAIL_BYTES_MAX);
    let mut bytes = vec![];
    file.seek(SeekFrom::Start(from))?;
    file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let breaks = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let begin = match n_lines.checked_sub(1) {
        None => bytes.len(),
        Some(skipped) => breaks.map(|(at, _)| at + 1).nth(skipped).unwrap_or(0),
    };
    Ok(from + begin as u64)
}

/// Prints the whole lines from `at`, and returns where the next one begins. Without `--follow` also the last partial line.
fn print_from(file: &mut File, mut at: u64, args: &Args) -> io::Result<u64> {
    file.seek(SeekFrom::Start(at))?;
    let mut reader = BufReader::new(file);
    loop {
        let mut line = vec![];
        let n = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let is_whole = line.ends_with(b"\n") || n as u64 == LINE_BYTES_MAX || !args.follow;
        if n == 0 || !is_whole {
            return Ok(at);
        }
        at += n as u64;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        match args.json {
            true => print::write_line(&json!({ "line": text }).to_string())?,
            false => print::write_line(&print::tamed(text))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_last_lines_begin_behind_a_line_break() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        let begins: Vec<_> = (0..5).map(|n| begin_of_lines(&mut file, n).unwrap()).collect();
        assert_eq!(begins, [14, 8, 4, 0, 0]);
        file.write_all(b"half").unwrap();
        assert_eq!(begin_of_lines(&mut file, 1).unwrap(), 14);
    }
}
