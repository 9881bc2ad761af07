//! Configuration of REPL commands: JavaScript that its sessions run, or another name for a tool of the catalogue.

use lifecycle::ToolPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of commands of all files: clients read the whole list repeatedly.
const COMMANDS_MAX: usize = 256;

/// Maximum size of a command's JavaScript: it is sent to every evaluator that needs it.
const CODE_BYTES_MAX: usize = 256 << 10;

/// Longest name of a command that clients may register.
const NAME_BYTES_MAX: usize = 128;

/// Maximum time limit of a command that clients may request.
const TIMEOUT_MS_MAX: u64 = 24 * 3_600_000;

/// Commands that the REPL offers besides the catalogue.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplConfig {
    /// The commands in file order; names are unique.
    pub commands: Vec<WrittenCommand>,
}

/// One command, as written in the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenCommand {
    /// The name that clients call.
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub description: Option<String>,
    /// The body of a function of `args` and `context`.
    #[serde(default)]
    pub code: Option<String>,
    /// A file with such a body, beside the configuration file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// A tool of the catalogue.
    #[serde(default)]
    pub tool: Option<String>,
    /// Fixed arguments of the tool.
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub input: Option<Value>,
    /// JSON Schema of the output.
    #[serde(default)]
    pub output: Option<Value>,
    /// Whether it takes so long that clients should poll.
    #[serde(default)]
    pub job: bool,
    /// Whether it changes any state.
    #[serde(default)]
    pub mutates_state: Option<bool>,
    /// Its time limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The code, as read from the file.
    #[serde(skip)]
    read: String,
}

/// One command, ready to use.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplCommand {
    /// The name that clients call.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its action.
    pub deed: ReplDeed,
    /// Whether it takes so long that clients should poll.
    pub job: bool,
    /// Its time limit.
    pub timeout: Option<Duration>,
}

/// The action of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplDeed {
    /// Runs in the session of the caller.
    Code {
        /// The body of a function of `args` and `context`.
        text: String,
        /// JSON Schema of the arguments.
        input: Option<Value>,
        /// JSON Schema of the output.
        output: Option<Value>,
        /// Whether it changes any state.
        mutates_state: bool,
    },
    /// Calls a tool of the catalogue, under its policies.
    Tool {
        /// The path of the tool.
        tool: ToolPath,
        /// Fixed arguments.
        args: Map<String, Value>,
    },
}

/// The commands of all files, and the additional files that contain their code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplCommands {
    /// The commands by name.
    pub by_name: BTreeMap<String, ReplCommand>,
    pub(crate) files: Vec<PathBuf>,
}

impl ReplConfig {
    /// Checks the commands of a file. Errors name their place.
    pub(super) fn check_values(&self) -> Result<(), String> {
        if self.commands.len() > COMMANDS_MAX {
            return Err(format!("repl.commands: there are {COMMANDS_MAX} at most"));
        }
        let mut names = BTreeSet::new();
        for (at, written) in self.commands.iter().enumerate() {
            let name = &written.name;
            let wrong = |why: String| format!("repl.commands[{at}] \"{name}\": {why}");
            written.deed().map_err(wrong)?;
            if !names.insert(name) {
                return Err(wrong("the name is given twice; a file gives it once".into()));
            }
        }
        Ok(())
    }

    /// Merges the commands of this file over another's: this file wins.
    pub(super) fn merged_over(mut self, other: Self) -> Self {
        let names: BTreeSet<String> = self.commands.iter().map(|it| it.name.clone()).collect();
        let rest = other.commands.into_iter().filter(|it| !names.contains(&it.name));
        self.commands.extend(rest);
        self
    }

    /// The files that contain code, as they are named in the configuration.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.commands.iter().filter_map(|written| written.file.as_deref())
    }

    /// Reads the files that contain code. Paths are relative to the file that names them.
    pub(crate) fn read_files(&mut self, folder: &Path) -> Result<(), String> {
        for written in &mut self.commands {
            let Some(file) = &mut written.file else { continue };
            *file = folder.join(&*file);
            let read = code_of(file);
            let wrong = |why| format!("the command \"{}\" is in {why}", written.name);
            written.read = read.map_err(wrong)?;
        }
        Ok(())
    }

    /// The commands, ready to use.
    pub(crate) fn commands(self) -> Result<ReplCommands, String> {
        if self.commands.len() > COMMANDS_MAX {
            return Err(format!("repl.commands: all files have {COMMANDS_MAX} at most"));
        }
        let files = self.commands.iter().filter_map(|it| it.file.clone()).collect();
        let by_name = self.commands.into_iter().map(|written| {
            let deed = written.deed()?;
            let WrittenCommand { name, description, job, timeout_ms, .. } = written;
            let timeout = timeout_ms.map(Duration::from_millis);
            Ok((name.clone(), ReplCommand { name, description, deed, job, timeout }))
        });
        Ok(ReplCommands { by_name: by_name.collect::<Result<_, String>>()?, files })
    }
}

impl WrittenCommand {
    fn deed(&self) -> Result<ReplDeed, String> {
        if !is_name(&self.name) {
            return Err(format!(
                "a name is words of letters, digits, _ and - with dots between, such as \
                 report.build, and has {NAME_BYTES_MAX} bytes at most"
            ));
        }
        if self.timeout_ms.is_some_and(|ms| !(1..=TIMEOUT_MS_MAX).contains(&ms)) {
            return Err(format!("timeout_ms is 1 to {TIMEOUT_MS_MAX}"));
        }
        match (&self.code, &self.file, &self.tool) {
            (Some(text), None, None) => self.in_code(text),
            (None, Some(_), None) => self.in_code(&self.read),
            (None, None, Some(tool)) => self.of_tool(tool),
            _ => Err("it says one of code, file and tool".into()),
        }
    }

    fn in_code(&self, text: &str) -> Result<ReplDeed, String> {
        if self.args.is_some() {
            let why = "args are fixed arguments of a tool; code gets what the caller says";
            return Err(why.into());
        }
        if text.len() > CODE_BYTES_MAX {
            return Err(format!("its code has more than {CODE_BYTES_MAX} bytes"));
        }
        for (member, schema) in [("input", &self.input), ("output", &self.output)] {
            let Some(schema) = schema else { continue };
            if !schema.is_object() {
                return Err(format!("{member} is a JSON Schema, a table"));
            }
            if let Some(why) = tools::schema_defect(schema) {
                return Err(format!("{member} is no JSON Schema: {why}"));
            }
        }
        Ok(ReplDeed::Code {
            text: text.to_owned(),
            input: self.input.clone(),
            output: self.output.clone(),
            mutates_state: self.mutates_state.unwrap_or(true),
        })
    }

    fn of_tool(&self, tool: &str) -> Result<ReplDeed, String> {
        if self.input.is_some() || self.output.is_some() || self.mutates_state.is_some() {
            let why = "input, output and mutates_state are the tool's own; args fixes arguments";
            return Err(why.into());
        }
        let tool = ToolPath::parse(tool).map_err(|why| format!("tool \"{tool}\": {why}"))?;
        Ok(ReplDeed::Tool { tool, args: self.args.clone().unwrap_or_default() })
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_word)
}

fn code_of(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let mut text = String::new();
    let read = std::fs::File::open(file)
        .and_then(|file| file.take(CODE_BYTES_MAX as u64 + 1).read_to_string(&mut text));
    match read {
        Ok(n_bytes) if n_bytes > CODE_BYTES_MAX => {
            Err(format!("{shown}, which has more than {CODE_BYTES_MAX} bytes"))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(format!("{shown}, which cannot be read: {}", error.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConfigDocument;
    use super::*;

    #[test]
    fn what_is_wrong_with_a_command_is_told_with_its_place_and_what_would_be_right() {
        let command = |rest: &str| format!("[[repl.commands]]\nname = 'a.b'\n{rest}\n");
        for (text, advice) in [
            ("[[repl.commands]]\nname = 'a b'\ncode = ''\n".to_owned(), "such as report.build"),
            (command(""), "it says one of code, file and tool"),
            (command("code = ''\ntool = 'demo.add'"), "it says one of code, file and tool"),
            (command("code = ''\nfile = 'a.js'"), "it says one of code, file and tool"),
            (command("code = ''\nargs = { a = 1 }"), "code gets what the caller says"),
            (command("tool = 'demo.add'\ninput = {}"), "args fixes arguments"),
            (command("tool = 'demo..add'"), "demo..add"),
            (command("code = ''\ntimeout_ms = 0"), "timeout_ms is 1 to"),
            (command("code = ''\ninput = 5"), "input is a JSON Schema, a table"),
            (command("code = ''\noutput = { type = 'nothing' }"), "output is no JSON Schema"),
            (command("code = ''").repeat(2), "repl.commands[1] \"a.b\": the name is given twice"),
            (command("cod = ''"), "line 3"),
        ] {
            let why = ConfigDocument::parse(&text).unwrap_err();
            assert!(why.contains(advice), "{text}: {why}");
        }
    }

    #[test]
    fn a_command_is_as_the_first_file_says_and_code_may_stand_in_a_file_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("c.js"), "return 1").unwrap();
        let first = "[[repl.commands]]\nname = 'a'\nfile = 'c.js'\njob = true\ntimeout_ms = 5\n";
        let other = "[[repl.commands]]\nname = 'a'\ncode = 'return 2'\n\
                     [[repl.commands]]\nname = 'b'\ntool = 'demo.add'\nargs = { a = 1 }\n";
        let mut first = ConfigDocument::parse(first).unwrap();
        first.repl.read_files(folder.path()).unwrap();
        let merged =
            first.merged_over(ConfigDocument::parse(other).unwrap()).repl.commands().unwrap();
        assert_eq!(merged.files, [folder.path().join("c.js")]);
        let a = &merged.by_name["a"];
        assert_eq!((a.job, a.timeout), (true, Some(Duration::from_millis(5))));
        let ReplDeed::Code { text, .. } = &a.deed else { panic!("{a:?}") };
        assert_eq!(text, "return 1");
        let ReplDeed::Tool { args, .. } = &merged.by_name["b"].deed else { panic!() };
        assert_eq!(args["a"], 1);
        let gone = "[[repl.commands]]\nname = 'a'\nfile = 'd.js'\n";
        let why = ConfigDocument::parse(gone).unwrap().repl.read_files(folder.path()).unwrap_err();
        assert!(why.contains("d.js, which cannot be read"), "{why}");
    }
}
