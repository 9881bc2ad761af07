//! Writes the table of verbs: every module of `src/lib.rs` whose file implements `CommandVerb`. So a new verb is one file
//! and one line, its `mod`.

use std::path::Path;
use std::{env, fs};

/// The line by which a file says that it is a verb.
const MARK: &str = "impl CommandVerb for Args {";

fn main() {
    println!("cargo::rerun-if-changed=src");
    let modules = fs::read_to_string("src/lib.rs").expect("read src/lib.rs");
    let modules = modules.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let is_verb = |name: &&str| {
        let file = fs::read_to_string(format!("src/{name}.rs")).unwrap_or_default();
        file.lines().any(|line| line == MARK)
    };
    let entries: String = modules
        .filter(is_verb)
        .map(|name| format!("    VerbEntry::for_verb::<crate::{name}::Args>(),\n"))
        .collect();
    let folder = env::var_os("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("verbs.rs"), format!("&[\n{entries}]"))
        .expect("write the table of verbs");
}
