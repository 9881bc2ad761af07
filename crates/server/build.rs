//! Writes the list of doors: every folder module of `src/doors/mod.rs`. So a new door is its folder and one line, its `mod`.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/doors/mod.rs");
    let modules = fs::read_to_string("src/doors/mod.rs").expect("read src/doors/mod.rs");
    let name = |line: &str| {
        let visibility = ["pub ", "pub(crate) "].iter().find_map(|word| line.strip_prefix(word));
        let line = visibility.unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    let doors = modules.lines().filter_map(name);
    let list: String = doors
        .filter(|name| Path::new("src/doors").join(name).join("mod.rs").exists())
        .map(|name| format!("    {name}::open_door,\n"))
        .collect();
    let folder = env::var_os("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&folder).join("doors.rs"), format!("&[\n{list}]"))
        .expect("write the list of doors");
}
