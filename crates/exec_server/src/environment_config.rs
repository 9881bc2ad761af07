//! `environmentConfig/read`: returns those codex settings on this machine that a client asks for.

use super::outbox::RequestReply;
use protocols::exec_server::{
    ConfigLayer, ConfigLayers, EnvironmentConfigParams, EnvironmentConfigResponse, path_of, uri_of,
};
use protocols::json_rpc::{ErrorObject, INTERNAL, INVALID_PARAMS};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use tokio_util::task::TaskTracker;
use toml::{Table, Value};

/// Maximum size of a settings file: people edit these files themselves.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of settings in one request.
const PATHS_MAX: usize = 256;

/// Answers in a separate task, so that other requests do not wait.
pub(super) fn read(tasks: &TaskTracker, asked: EnvironmentConfigParams, reply: RequestReply) {
    tasks.spawn(async move {
        let reading = tokio::task::spawn_blocking(move || environment_config(&asked));
        let broken = |_| Err(ErrorObject::new(INTERNAL, "the settings could not be read"));
        reply.give(reading.await.unwrap_or_else(broken));
    });
}

fn environment_config(
    asked: &EnvironmentConfigParams,
) -> Result<EnvironmentConfigResponse, ErrorObject> {
    let bad = |text: String| ErrorObject::new(INVALID_PARAMS, text);
    path_of(&asked.cwd).map_err(|error| bad(error.to_string()))?;
    if asked.config_paths.len() + asked.requirements_paths.len() > PATHS_MAX {
        return Err(bad(format!("environmentConfig/read takes at most {PATHS_MAX} paths")));
    }
    let user_home = std::env::var_os("HOME").map(PathBuf::from);
    let home = codex_home(user_home.as_deref());
    let layers = |file: &str, paths| -> Result<ConfigLayers, ErrorObject> {
        let layer = layer(&home.join(file), paths).map_err(|error| {
            ErrorObject::new(INTERNAL, format!("{file} of codex could not be read: {error}"))
        })?;
        Ok(ConfigLayers { layers: layer.into_iter().collect(), cloud_insertion_index: 0 })
    };
    Ok(EnvironmentConfigResponse {
        user_home_dir: user_home.as_deref().map(uri_of),
        codex_home_dir: uri_of(&home),
        hostname: hostname(),
        config: layers("config.toml", &asked.config_paths)?,
        requirements: layers("requirements.toml", &asked.requirements_paths)?,
    })
}

fn codex_home(user_home: Option<&Path>) -> PathBuf {
    let named = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.unwrap_or_else(|| user_home.unwrap_or(Path::new("/")).join(".codex"))
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Returns the requested settings of one file; none if it has none of them.
fn layer(file: &Path, paths: &[Vec<String>]) -> io::Result<Option<ConfigLayer>> {
    let mut text = String::new();
    match fs::File::open(file) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let all: Table = text.parse().map_err(io::Error::other)?;
    let chosen = chosen(&all, paths);
    if chosen.is_empty() {
        return Ok(None);
    }
    let base = file.parent().unwrap_or(Path::new("/"));
    Ok(Some(ConfigLayer {
        source: format!("user ({})", file.display()),
        base_dir: uri_of(base),
        toml: toml::to_string(&chosen).map_err(io::Error::other)?,
    }))
}

/// Returns the parts of a table that the paths select.
fn chosen(all: &Table, paths: &[Vec<String>]) -> Table {
    let mut chosen = Table::new();
    for path in paths {
        if let Some((last, way)) = path.split_last() {
            copy(all, &mut chosen, way, last);
        }
    }
    chosen
}

fn copy(from: &Table, to: &mut Table, way: &[String], last: &str) {
    let Some((next, way)) = way.split_first() else {
        if let Some(value) = from.get(last) {
            to.insert(last.to_owned(), value.clone());
        }
        return;
    };
    let Some(Value::Table(inner)) = from.get(next) else { return };
    let mut part = match to.remove(next) {
        Some(Value::Table(part)) => part,
        Some(_) | None => Table::new(),
    };
    copy(inner, &mut part, way, last);
    if !part.is_empty() {
        to.insert(next.clone(), Value::Table(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(layer(&file, &[path("model")]).unwrap(), None);
        fs::write(&file, "model = 'x'\nkey = 'secret'\n[a.b]\nc = 1\nd = 2\n[a.e]\nf = 3\n")
            .unwrap();
        let told = layer(&file, &[path("model"), path("a.b.c"), path("a.e"), path("no.such")]);
        let told = told.unwrap().unwrap();
        assert_eq!(told.toml, "model = \"x\"\n\n[a.b]\nc = 1\n\n[a.e]\nf = 3\n");
        assert_eq!(told.base_dir, uri_of(folder.path()));
        assert_eq!(layer(&file, &[path("no"), vec![]]).unwrap(), None);
        fs::write(&file, "model = ").unwrap();
        assert!(layer(&file, &[path("model")]).is_err());
    }
}
