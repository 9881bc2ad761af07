//! The sandbox of a process: in codex's format, or in a shorter format of our own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The restrictions of a process. A path without a rule cannot be accessed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxConfines {
    /// Access rules; of two places the one with the longer path applies.
    pub rules: Vec<(FileSystemPlace, PlaceAccess)>,
    /// The network that the process may use.
    pub network: NetworkReach,
    /// Memory limit of the process and all its descendants together.
    pub memory_bytes: Option<u64>,
    /// Limit of their processor time.
    pub cpu_ms: Option<u64>,
    /// Limit of the number of processes.
    pub processes: Option<u64>,
}

/// A part of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystemPlace {
    /// The whole file system.
    Root,
    /// The paths that programs need to run at all.
    Minimal,
    /// The client's workspace folders, or a path below each of them.
    Workspace(Option<String>),
    /// The folder of the variable `TMPDIR`.
    TemporaryFolder,
    /// A path, or a `file:` URI.
    At(String),
}

/// The permitted access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PlaceAccess {
    Read,
    Write,
    #[serde(alias = "none")]
    Deny,
}

/// The network that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkReach {
    /// The host's network.
    #[default]
    All,
    /// A separate loopback, shared with its descendants.
    Loopback,
    /// No network.
    None,
}

/// A sandbox as the client requested it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedSandbox {
    /// The restrictions.
    pub confines: SandboxConfines,
    /// The client's workspace folders, if it names them.
    pub workspaces: Vec<String>,
}

/// The short format.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PlainSandbox {
    /// Writable folders; everything else is read-only.
    pub writable: Vec<String>,
    /// Paths without any access.
    pub hidden: Vec<String>,
    /// The network that the process may use.
    pub network: NetworkReach,
    /// Memory limit of the process and all its descendants together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Limit of their processor time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Limit of the number of processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl From<PlainSandbox> for SandboxConfines {
    fn from(plain: PlainSandbox) -> Self {
        let root = match plain.writable.iter().any(|path| path == "/") {
            true => PlaceAccess::Write,
            false => PlaceAccess::Read,
        };
        let root = std::iter::once((FileSystemPlace::Root, root));
        let at = |access| move |path| (FileSystemPlace::At(path), access);
        let written = plain.writable.into_iter().map(at(PlaceAccess::Write));
        let hidden = plain.hidden.into_iter().map(at(PlaceAccess::Deny));
        let PlainSandbox { network, memory_bytes, cpu_ms, processes, .. } = plain;
        let rules = root.chain(written).chain(hidden).collect();
        Self { rules, network, memory_bytes, cpu_ms, processes }
    }
}

/// Codex's format.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexSandbox {
    permissions: SandboxPermissions,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    policy_context: Option<PolicyContext>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyContext {
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    workspace_roots: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum SandboxPermissions {
    /// No restrictions.
    Disabled,
    /// The environment of the server enforces restrictions.
    External {},
    /// The server enforces restrictions.
    Managed { file_system: FileSystem, network: CodexNetwork },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum FileSystem {
    Unrestricted {},
    Restricted { entries: Vec<SandboxEntry> },
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum CodexNetwork {
    Enabled,
    Restricted,
}

#[derive(Debug, Deserialize)]
struct SandboxEntry {
    path: EntryPath,
    access: PlaceAccess,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EntryPath {
    Path { path: String },
    GlobPattern { pattern: String },
    Special { value: SpecialPath },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum SpecialPath {
    Root,
    Minimal,
    #[serde(alias = "current_working_directory")]
    ProjectRoots {
        #[serde(default)]
        subpath: Option<String>,
    },
    Tmpdir,
    SlashTmp,
    #[serde(other)]
    Unknown,
}

/// Parses a sandbox; `None` if nothing is restricted. Unknown constructs are refused with a message.
pub fn read_sandbox(given: Option<&Value>) -> Result<Option<RequestedSandbox>, String> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    if given.get("permissions").is_none() && given.is_object() {
        let plain = PlainSandbox::deserialize(given);
        let plain = plain.map_err(|error| format!("the sandbox cannot be read: {error}"))?;
        return Ok(Some(RequestedSandbox { confines: plain.into(), workspaces: vec![] }));
    }
    let sandbox = CodexSandbox::deserialize(given);
    let sandbox = sandbox.map_err(|error| format!("the sandbox cannot be read: {error}"))?;
    let SandboxPermissions::Managed { file_system, network } = sandbox.permissions else {
        return Ok(None);
    };
    let rules = match (file_system, &network) {
        (FileSystem::Unrestricted {}, CodexNetwork::Enabled) => return Ok(None),
        (FileSystem::Unrestricted {}, CodexNetwork::Restricted) => {
            vec![(FileSystemPlace::Root, PlaceAccess::Write)]
        }
        (FileSystem::Restricted { entries }, _) => {
            let rules: Result<Vec<_>, String> = entries.into_iter().map(place).collect();
            rules?.into_iter().flatten().collect()
        }
    };
    let network =
        if network == CodexNetwork::Enabled { NetworkReach::All } else { NetworkReach::None };
    let context = sandbox.policy_context.unwrap_or_default();
    let cwd = context.cwd.or(sandbox.cwd).into_iter();
    let workspaces = match context.workspace_roots.is_empty() {
        true => cwd.collect(),
        false => context.workspace_roots,
    };
    Ok(Some(RequestedSandbox {
        confines: SandboxConfines { rules, network, ..SandboxConfines::default() },
        workspaces,
    }))
}

fn place(
    SandboxEntry { path, access }: SandboxEntry,
) -> Result<Option<(FileSystemPlace, PlaceAccess)>, String> {
    let place = match path {
        EntryPath::Path { path } => FileSystemPlace::At(path),
        EntryPath::GlobPattern { pattern } => match plain_path(&pattern, access) {
            Some(path) => FileSystemPlace::At(path.to_owned()),
            None => {
                return Err(format!(
                    "the sandbox names {pattern}, and patterns are not enforced here"
                ));
            }
        },
        EntryPath::Special { value } => match value {
            SpecialPath::Root => FileSystemPlace::Root,
            SpecialPath::Minimal => FileSystemPlace::Minimal,
            SpecialPath::ProjectRoots { subpath } => FileSystemPlace::Workspace(subpath),
            SpecialPath::Tmpdir => FileSystemPlace::TemporaryFolder,
            SpecialPath::SlashTmp => FileSystemPlace::At("/tmp".into()),
            // An unknown path may be ignored if it would be allowed, but not if it would be denied.
            SpecialPath::Unknown if access == PlaceAccess::Deny => {
                return Err("the sandbox denies a place that this exec-server does not know".into());
            }
            SpecialPath::Unknown => return Ok(None),
        },
    };
    Ok(Some((place, access)))
}

/// The path that a pattern is equivalent to, if there is one: it has no wildcard, or denies all that is
/// below a folder.
fn plain_path(pattern: &str, access: PlaceAccess) -> Option<&str> {
    let folder = pattern.strip_suffix("/**").filter(|_| access == PlaceAccess::Deny);
    let path = folder.unwrap_or(pattern);
    (path.starts_with('/') && !path.contains(['*', '?', '[', ']', '{', '}', '\\'])).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn managed(file_system: &Value, network: &str) -> Value {
        json!({"permissions": {"type": "managed", "file_system": file_system, "network": network},
               "cwd": "file:///work"})
    }

    #[test]
    fn what_restricts_nothing_is_no_sandbox() {
        assert_eq!(read_sandbox(None), Ok(None));
        for none in [
            json!(null),
            json!({"permissions": {"type": "disabled"}}),
            json!({"permissions": {"type": "external", "network": "restricted"}}),
            managed(&json!({"type": "unrestricted"}), "enabled"),
        ] {
            assert_eq!(read_sandbox(Some(&none)), Ok(None), "{none}");
        }
    }

    #[test]
    fn codex_s_words_are_understood() {
        let special = |kind: &str, access: &str| json!({"path": {"type": "special", "value": {"kind": kind}}, "access": access});
        let entries = json!([
            special("root", "read"),
            special("project_roots", "write"),
            {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": ".git"}}, "access": "read"},
            special("tmpdir", "write"),
            special("slash_tmp", "write"),
            special("something_new", "write"),
            {"path": {"type": "path", "path": "/etc/shadow"}, "access": "deny"},
        ]);
        let given = managed(&json!({"type": "restricted", "entries": entries}), "restricted");
        let rules = vec![
            (FileSystemPlace::Root, PlaceAccess::Read),
            (FileSystemPlace::Workspace(None), PlaceAccess::Write),
            (FileSystemPlace::Workspace(Some(".git".into())), PlaceAccess::Read),
            (FileSystemPlace::TemporaryFolder, PlaceAccess::Write),
            (FileSystemPlace::At("/tmp".into()), PlaceAccess::Write),
            (FileSystemPlace::At("/etc/shadow".into()), PlaceAccess::Deny),
        ];
        let confines =
            SandboxConfines { rules, network: NetworkReach::None, ..SandboxConfines::default() };
        let expected = RequestedSandbox { confines, workspaces: vec!["file:///work".into()] };
        assert_eq!(read_sandbox(Some(&given)), Ok(Some(expected)));
        let network_only = managed(&json!({"type": "unrestricted"}), "restricted");
        let read = read_sandbox(Some(&network_only)).unwrap().unwrap();
        assert_eq!(read.confines.rules, [(FileSystemPlace::Root, PlaceAccess::Write)]);
    }

    #[test]
    fn our_own_words_are_fewer() {
        let given = json!({"writable": ["/work"], "network": "loopback", "memoryBytes": 7});
        let rules = vec![
            (FileSystemPlace::Root, PlaceAccess::Read),
            (FileSystemPlace::At("/work".into()), PlaceAccess::Write),
        ];
        let confines = SandboxConfines {
            rules,
            network: NetworkReach::Loopback,
            memory_bytes: Some(7),
            ..SandboxConfines::default()
        };
        assert_eq!(
            read_sandbox(Some(&given)),
            Ok(Some(RequestedSandbox { confines, workspaces: vec![] }))
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let glob =
            json!([{"path": {"type": "glob_pattern", "pattern": "**/*.env"}, "access": "deny"}]);
        let unknown =
            json!([{"path": {"type": "special", "value": {"kind": "odd"}}, "access": "deny"}]);
        for (refused, why) in [
            (managed(&json!({"type": "walled"}), "enabled"), "unknown variant `walled`"),
            (managed(&json!({"type": "restricted", "entries": glob}), "enabled"), "**/*.env"),
            (
                managed(&json!({"type": "restricted", "entries": unknown}), "enabled"),
                "does not know",
            ),
            (json!({"permissions": {"type": "odd"}}), "unknown variant `odd`"),
            (json!({"writeable": []}), "unknown field `writeable`"),
            (json!(7), "invalid type"),
        ] {
            let said = read_sandbox(Some(&refused)).unwrap_err();
            assert!(said.contains(why), "{refused}: {said}");
        }
    }

    #[test]
    fn a_pattern_that_means_a_path_is_one_and_any_other_is_refused() {
        let read = |pattern: &str, access: &str| {
            let path = json!({"type": "glob_pattern", "pattern": pattern});
            let entries = json!([{"path": path, "access": access}]);
            let given = managed(&json!({"type": "restricted", "entries": entries}), "enabled");
            read_sandbox(Some(&given)).map(|read| read.unwrap().confines.rules)
        };
        let at = |path: &str, access| Ok(vec![(FileSystemPlace::At(path.into()), access)]);
        assert_eq!(read("/work/.env", "deny"), at("/work/.env", PlaceAccess::Deny));
        assert_eq!(read("/work/.env", "read"), at("/work/.env", PlaceAccess::Read));
        assert_eq!(read("/work/secret/**", "deny"), at("/work/secret", PlaceAccess::Deny));
        for (pattern, access) in [
            ("/work/**", "write"),
            ("**/*.env", "deny"),
            ("/work/**/.env", "deny"),
            ("/work/*/**", "deny"),
            ("/**", "deny"),
            ("secret", "deny"),
            ("/work/[ab]", "deny"),
        ] {
            assert!(read(pattern, access).is_err(), "{pattern}");
        }
    }
}
