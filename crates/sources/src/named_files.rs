//! Local files that a project's configuration names: descriptions, programs and scripts. An agent that can change one of
//! them can change what a trusted configuration does, so trust covers their contents too.

use crate::config::ConfigDocument;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tools::SourceConfig;

/// Maximum number of files of one configuration that trust covers. A longer list makes it untrusted.
const NAMED_FILES_MAX: usize = 1_000;

/// Maximum size of a covered file: a larger one is a build product or data, and reading it after each change would
/// block the server.
const NAMED_FILE_BYTES_MAX: u64 = 64 << 20;

/// File extensions of scripts. Other arguments of a program are covered if they are executable.
const SCRIPT_EXTENSIONS: [&str; 12] =
    ["js", "mjs", "cjs", "ts", "mts", "py", "rb", "sh", "pl", "php", "lua", "wasm"];

/// Digests of covered files, in hexadecimal, by path.
pub(crate) type FileDigests = BTreeMap<PathBuf, String>;

/// The files within `folder` that this configuration names, with the digests of their present contents.
///
/// Programs of the system outside the folder are upgraded, and files there belong to the operator. Data that a program
/// reads or writes is not covered either.
pub(crate) fn named_files(file: &ConfigDocument, folder: &Path) -> Result<FileDigests, String> {
    let Ok(root) = folder.canonicalize() else { return Ok(FileDigests::new()) };
    let mut digests = FileDigests::new();
    let sources = file.sources.values().flat_map(|source| candidates(source, &root));
    let scripts = file.repl.files().map(|path| root.join(path));
    for path in sources.chain(scripts) {
        let Ok(path) = path.canonicalize() else { continue };
        if !path.starts_with(&root) || !path.is_file() || digests.contains_key(&path) {
            continue;
        }
        if digests.len() >= NAMED_FILES_MAX {
            return Err(format!("it names more than {NAMED_FILES_MAX} files"));
        }
        let digest = digest_of(&path)?;
        digests.insert(path, digest);
    }
    Ok(digests)
}

/// Paths that a source may refer to: relative to the project's folder, to the server's working directory, or to
/// the working directory of its programs.
fn candidates(source: &SourceConfig, root: &Path) -> Vec<PathBuf> {
    let started = std::env::current_dir().ok();
    let mut bases: Vec<PathBuf> = [root.to_owned()].into_iter().chain(started).collect();
    if let Some(directory) = &source.directory {
        bases.extend(bases.clone().iter().map(|base| base.join(directory)));
    }
    let commands = source.tools.values().map(|tool| tool.argv.as_slice());
    let mut paths: Vec<PathBuf> = source.file.iter().cloned().collect();
    for argv in commands.chain([source.command.as_slice()]) {
        let Some((program, arguments)) = argv.split_first() else { continue };
        paths.push(PathBuf::from(program));
        paths.extend(arguments.iter().map(PathBuf::from));
    }
    let is_first = |path: &Path| {
        let is_program =
            |argv: &[String]| argv.first().is_some_and(|first| Path::new(first) == path);
        source.file.as_deref() == Some(path)
            || is_program(&source.command)
            || source.tools.values().any(|tool| is_program(&tool.argv))
    };
    let joined =
        paths.iter().flat_map(|path| bases.iter().map(move |base| (path, base.join(path))));
    joined
        .filter(|(named, path)| is_first(named) || is_script(path))
        .map(|(_, path)| path)
        .collect()
}

fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    let is_named_so = extension.is_some_and(|extension| SCRIPT_EXTENSIONS.contains(&extension));
    let is_executable = || {
        let data = std::fs::metadata(path);
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    is_named_so || is_executable()
}

fn digest_of(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown} cannot be read: {}", error.kind());
    if std::fs::metadata(path).map_err(failed)?.len() > NAMED_FILE_BYTES_MAX {
        return Err(format!("{shown}, which it names, has more than {NAMED_FILE_BYTES_MAX} bytes"));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_programs_and_scripts_of_the_project_are_covered_and_data_and_the_system_are_not()
     {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["api.json", "run", "server.js", "data.db", "tool.py", "lib.js"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        let text = "[sources.a]\nfile = 'api.json'\n[sources.b]\ncommand = ['node', 'server.js', 'data.db']\n\
                    [sources.c.tools.x]\nargv = ['./run', 'missing.js']\n\
                    [sources.c.tools.y]\nargv = ['/bin/sh', 'tool.py']\n";
        let digests = named_files(&ConfigDocument::parse(text).unwrap(), &root).unwrap();
        let names: Vec<_> = digests
            .keys()
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["api.json", "run", "server.js", "tool.py"]);
    }
}
