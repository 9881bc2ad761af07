//! How HotRepl's servers on this machine are found: each writes a document of itself into its user's state directory and
//! takes it away when it ends. A document is a hint: whoever wrote it may be gone.

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

/// Documents that are looked at: nobody runs more.
const DOCUMENTS_MAX: usize = 64;

/// Longest document.
const DOCUMENT_BYTES_MAX: u64 = 64 << 10;

/// How long a server on this machine may take to be there.
const KNOCK_MAX: Duration = Duration::from_millis(500);

/// A document of ours. Dropping it takes it away.
pub(crate) struct InstanceFile(PathBuf);

impl InstanceFile {
    /// Says where a server listens. None where nothing says where its user's state is.
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
        // Others must never read half of it.
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
        // Who finds it nevertheless finds nobody there.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The addresses of servers on this machine that are there.
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

/// Where that is, if it is on this machine: a document must not lead anywhere else.
fn loopback(address: &str) -> Option<SocketAddr> {
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "ws")?;
    let mut places = url.socket_addrs(|| None).ok()?.into_iter();
    places.find(|place| place.ip().is_loopback())
}

/// The folder that HotRepl's own servers write to. Not one that others can write to as well.
fn folder() -> Option<PathBuf> {
    let said = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(folder) = said("XDG_RUNTIME_DIR") {
        return Some(folder.join("hotrepl/instances"));
    }
    let config = said("XDG_CONFIG_HOME").or_else(|| said("HOME").map(|home| home.join(".config")));
    config.map(|folder| folder.join("HotRepl/instances"))
}

/// Takes away what a server left behind that was killed: its port is ours now.
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

/// A time as it stands in names: without what separates, to the second.
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
