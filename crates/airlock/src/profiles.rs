//! Named servers, stored in the data directory with access for this user only.

use serde_json::{Map, Value, json};
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

const FILE: &str = "servers.json";

/// The largest number of stored servers: a list for one person.
const SERVERS_MAX: usize = 100;

/// Longest name.
const NAME_CHARS_MAX: usize = 64;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A server with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerProfile {
    /// Its name.
    pub(crate) name: String,
    /// Its URL.
    pub(crate) url: String,
    /// The token for it.
    pub(crate) token: Option<String>,
    /// The server's own address, where the URL is that of a proxy or a tunnel.
    pub(crate) address: Option<String>,
}

/// All named servers, and the default one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerProfiles {
    /// Sorted by name.
    pub(crate) servers: Vec<ServerProfile>,
    /// The name of the default server.
    pub(crate) used: Option<String>,
}

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    /// The file cannot be read or written.
    #[error("use {0}: {1}")]
    File(PathBuf, io::Error),
    /// The requested change is invalid.
    #[error("{0}")]
    Wrong(String),
}

impl ServerProfiles {
    /// Loads the list of a data directory; an empty one where there is none.
    pub(crate) fn load(data_dir: &Path) -> Result<Self, ProfileError> {
        let path = data_dir.join(FILE);
        let trouble = |error| ProfileError::File(path.clone(), error);
        let text = match fs::File::open(&path) {
            Ok(file) => crate::input::read(FILE, file, FILE_BYTES_MAX)
                .map_err(|why| trouble(io::Error::other(why)))?,
            // The code that needs the directory reports a better error.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Self::default());
            }
            Err(error) => return Err(trouble(error)),
        };
        let kept: Value =
            serde_json::from_str(&text).map_err(|error| trouble(io::Error::other(error)))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let servers = kept["servers"].as_object().into_iter().flatten();
        let servers = servers.filter_map(|(name, kept)| {
            let (name, url) = (name.clone(), text(&kept["url"])?);
            Some(ServerProfile {
                name,
                url,
                token: text(&kept["token"]),
                address: text(&kept["address"]),
            })
        });
        Ok(Self { servers: servers.collect(), used: text(&kept["use"]) })
    }

    /// Writes the whole list atomically.
    pub(crate) fn save(&self, data_dir: &Path) -> Result<(), ProfileError> {
        let path = data_dir.join(FILE);
        let servers: Map<_, _> = self
            .servers
            .iter()
            .map(|server| {
                let ServerProfile { name, url, token, address } = server;
                (name.clone(), json!({ "url": url, "token": token, "address": address }))
            })
            .collect();
        let text = format!("{:#}\n", json!({ "use": self.used, "servers": servers }));
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
            // Readable by this user only, from its first byte on.
            let mut file = tempfile::NamedTempFile::new_in(data_dir)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        write().map_err(|error| ProfileError::File(path.clone(), error))
    }

    /// Returns the server of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&ServerProfile> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Returns the default server.
    pub(crate) fn in_use(&self) -> Option<&ServerProfile> {
        self.used.as_deref().and_then(|name| self.find(name))
    }

    /// Adds a server, or replaces the one of this name.
    pub(crate) fn put(&mut self, profile: ServerProfile) -> Result<(), ProfileError> {
        if !is_name(&profile.name) {
            return Err(ProfileError::Wrong(format!(
                "{} is not a valid server name: it has 1 to {NAME_CHARS_MAX} letters, digits, _ and -",
                crate::print::tamed(&profile.name)
            )));
        }
        self.servers.retain(|server| server.name != profile.name);
        if self.servers.len() >= SERVERS_MAX {
            return Err(ProfileError::Wrong(format!("there are {SERVERS_MAX} servers already")));
        }
        let at = self.servers.partition_point(|server| server.name < profile.name);
        self.servers.insert(at, profile);
        Ok(())
    }

    /// Sets the default server; `None` is the server of this machine.
    pub(crate) fn mean(&mut self, name: Option<&str>) -> Result<(), ProfileError> {
        if let Some(name) = name
            && self.find(name).is_none()
        {
            return Err(unknown_profile(name));
        }
        self.used = name.map(str::to_owned);
        Ok(())
    }

    /// Removes a server.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), ProfileError> {
        if self.find(name).is_none() {
            return Err(unknown_profile(name));
        }
        self.servers.retain(|server| server.name != name);
        self.used.take_if(|used| used == name);
        Ok(())
    }
}

/// Whether a text could be a name: an address has dots, colons or slashes.
pub(crate) fn is_name(text: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_good) && text != "localhost"
}

/// The error for an unknown name.
pub(crate) fn unknown_profile(name: &str) -> ProfileError {
    let name = crate::print::tamed(name);
    ProfileError::Wrong(format!(
        "there is no server {name}; airlock server list names those there are"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn profile(name: &str, token: Option<&str>) -> ServerProfile {
        let token = token.map(str::to_owned);
        ServerProfile { name: name.into(), url: format!("http://{name}:1"), token, address: None }
    }

    #[test]
    fn servers_are_kept_for_nobody_elses_eyes() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("new");
        let mut profiles = ServerProfiles::load(&home).unwrap();
        assert_eq!(profiles, ServerProfiles::default());
        profiles.put(profile("b", Some("alk_x"))).unwrap();
        profiles.put(profile("a", None)).unwrap();
        profiles.mean(Some("b")).unwrap();
        profiles.save(&home).unwrap();
        let read = ServerProfiles::load(&home).unwrap();
        assert_eq!(read, profiles);
        assert_eq!(read.servers, [profile("a", None), profile("b", Some("alk_x"))]);
        assert_eq!(read.in_use(), Some(&profile("b", Some("alk_x"))));
        let mode = fs::metadata(home.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        profiles.remove("b").unwrap();
        assert_eq!((profiles.in_use(), profiles.servers.len()), (None, 1));
        assert!(profiles.remove("b").is_err() && profiles.mean(Some("b")).is_err());
    }

    #[test]
    fn a_name_cannot_be_taken_for_an_address() {
        let is_taken = |name: &str| ServerProfiles::default().put(profile(name, None)).is_ok();
        assert!(["a", "prod-1", "A_b"].into_iter().all(is_taken));
        let long = "a".repeat(65);
        assert!(!["", "localhost", "a.b", "a:1", "a/b", "ä", &long].into_iter().any(is_taken));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "{").unwrap();
        let why = ServerProfiles::load(dir.path()).unwrap_err().to_string();
        assert!(why.starts_with("use /") && why.contains("servers.json: EOF"), "{why}");
    }
}
