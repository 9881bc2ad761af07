//! The groups of verbs that `airlock --help` shows.

use crate::verb::{self, VERBS, VerbEntry};
use clap::Command;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    not done: the program failed, there is no such thing, or no server
  2    the command line made no sense, or a file could not be read
  3    a limit was reached: time, memory, calls or bytes
  4    the program failed after a call was declined
  5    the data directory is damaged, or holds less than was acknowledged
  6    paused: it waits for an answer
  70   Airlock itself broke
  130  interrupted, or cancelled

airlock VERB --help says more about a verb.";

/// The command line with its verbs in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let verbs = verbs_text(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}\n\n{EXIT_CODES}"
    );
    command.help_template(template)
}

fn verbs_text(command: &Command) -> String {
    let width = VERBS.iter().map(|verb| verb.name.len()).max().unwrap_or_default();
    let verbs = verb::in_help_order();
    let mut text = String::new();
    for verbs in verbs.chunk_by(|one, other| one.help_place.0 == other.help_place.0) {
        text.push_str(&format!("{}:\n", verbs[0].help_place.0.title()));
        for VerbEntry { name, .. } in verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<width$}  {about}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    /// Verbs whose options the page describes in prose, in another place.
    const ELSEWHERE: [&str; 8] =
        ["mcp", "exec", "exec-server", "repl", "repl-server", "runner", "journal", "vault"];

    #[test]
    fn the_page_names_every_verb_and_option() {
        let page = include_str!("../../../docs/cli.md");
        let mut missing = BTreeSet::new();
        let mut queue = vec![(String::new(), crate::CommandLine::command())];
        while let Some((path, command)) = queue.pop() {
            for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
                let name = verb.get_name().to_owned();
                if !page.contains(&format!("`{name}")) && !page.contains(&format!("{path}{name}")) {
                    missing.insert(format!("{path}{name}"));
                }
                if !ELSEWHERE.contains(&name.as_str()) {
                    queue.push((format!("{path}{name} "), verb.clone()));
                }
            }
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                if !page.contains(&format!("--{long}")) {
                    missing.insert(format!("{path}--{long}"));
                }
            }
        }
        assert_eq!(missing, BTreeSet::new(), "docs/cli.md does not name these");
    }
}
