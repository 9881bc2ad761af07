//! Discovery of HotRepl servers on this machine: each writes an instance file into its user's state directory and
//! removes it when it ends. A file is only a hint: its server may be gone.

use client::repl::PROTOCOL_VERSION;
use lifecycle::{Timestamp, UtcTime};
use serde_json::{Value, json};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Instance files that are read; more servers on one machine are unlikely.
const DOCUMENTS_MAX: usize = 64;

/// Longest instance file.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;

/// How long a server on this machine may take to accept a connection.
const KNOCK_MAX: Duration = Duration::from_millis(500);

/// The instance file of this server. Dropping it removes the file.
pub(crate) struct InstanceFile(PathBuf);

impl InstanceFile {
    /// Writes the address of a server. `None` where the user's state directory is unknown.
    pub(crate) fn write(listens: SocketAddr, now: Timestamp) -> io::Result<Option<Self>> {
        let Some(folder) = folder() else { return Ok(None) };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        forget_former(&folder, listens);
        let (port, started) = (listens.port(), UtcTime::from(now).exact());
        let id = format!("Airlock-{port}-{}", compact(&started));
        let document = json!({
            "schemaVersion": 1,
            "instanceId": id,
            "url": format!("ws://{listens}"),
            "bindHost": listens.ip(),
            "port": port,
            "startedAt": started,
            "process": { "id": std::process::id(), "name": "airlock" },
            "host": {
                "name": "Airlock",
                "runtime": "QuickJS",
                "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
            },
            "controlPlane": { "supported": true, "protocolVersion": PROTOCOL_VERSION },
        });
        let path = folder.join(format!("{id}.json"));
        let unfinished = folder.join(format!("{id}.json.tmp"));
        // A reader must never see a partial file.
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(document.to_string().as_bytes())?;
        std::fs::rename(&unfinished, &path)?;
        Ok(Some(Self(path)))
    }
}

impl Drop for InstanceFile {
    fn drop(&mut self) {
        // A client that still finds the file fails to connect.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The addresses of servers on this machine that accept connections.
pub(crate) fn living() -> Vec<String> {
    let documents = folder().map(|folder| documents(&folder)).unwrap_or_default();
    let addresses = documents.into_iter().filter_map(|(_, document)| {
        let address = document["url"].as_str()?.to_owned();
        let there = loopback(&address)?;
        TcpStream::connect_timeout(&there, KNOCK_MAX).is_ok().then_some(address)
    });
    let mut living: Vec<String> = addresses.collect();
    living.sort();
    living.dedup();
    living
}

/// Parses an address of this machine: a file must not direct clients to another one.
fn loopback(address: &str) -> Option<SocketAddr> {
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "ws")?;
    let mut places = url.socket_addrs(|| None).ok()?.into_iter();
    places.find(|place| place.ip().is_loopback())
}

/// The folder that HotRepl's own servers write to; `None` if other users can write to it as well.
fn folder() -> Option<PathBuf> {
    let said = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(folder) = said("XDG_RUNTIME_DIR") {
        return Some(folder.join("hotrepl/instances"));
    }
    let config = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
    config.map(|folder| folder.join("HotRepl/instances"))
}

/// Removes the file of a killed server whose port is now ours.
fn forget_former(folder: &Path, listens: SocketAddr) {
    let ours = format!("ws://{listens}");
    for (path, document) in documents(folder) {
        if document["url"] == ours.as_str() {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn documents(folder: &Path) -> Vec<(PathBuf, Value)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let read = |path: PathBuf| {
        let mut text = String::new();
        File::open(&path).ok()?.take(DOCUMENT_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some((path, serde_json::from_str(&text).ok()?))
    };
    paths.take(DOCUMENTS_MAX).filter_map(read).collect()
}

/// A time in file names: without separators, to the second.
fn compact(time: &str) -> String {
    let seconds = time.split(['.', 'Z']).next().unwrap_or_default();
    format!("{}Z", seconds.replace(['-', ':'], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_leads_to_this_machine_only() {
        assert_eq!(loopback("ws://127.0.0.1:18590"), "127.0.0.1:18590".parse().ok());
        assert_eq!(loopback("ws://[::1]:5/x?session=a"), "[::1]:5".parse().ok());
        for elsewhere in ["ws://192.0.2.1:18590", "http://127.0.0.1:1", "", "x"] {
            assert_eq!(loopback(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(compact("2026-05-03T01:02:03.456Z"), "20260503T010203Z");
    }
}
