//! Builds the environment of a process.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a process's environment is derived from the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvPolicy {
    /// The inherited part of the server's environment.
    pub inherit: EnvironmentBase,
    /// Whether variables with names that look like secrets are inherited, too.
    pub ignore_default_excludes: bool,
    /// Patterns of names to remove.
    pub exclude: Vec<String>,
    /// Variables to add.
    pub set: BTreeMap<String, String>,
    /// If not empty, only these names remain.
    pub include_only: Vec<String>,
}

/// The inherited part of the server's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvironmentBase {
    /// All variables.
    All,
    /// The variables that most programs need, such as PATH and HOME.
    Core,
    /// No variables.
    None,
}

const CORE: [&str; 11] = [
    "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME",
    "USER",
];

const SECRETS: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];

/// Credentials of a server, which no process inherits.
const NEVER: [&str; 8] = [
    "AIRLOCK_ADMIN_TOKEN",
    "AIRLOCK_TOKEN",
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "NODE_REPL_AUTH_TOKEN",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
];

/// The environment of a process: `own` is the server's, `sent` came with the request.
pub fn environment(
    policy: Option<&EnvPolicy>,
    own: impl IntoIterator<Item = (String, String)>,
    sent: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut env = match policy {
        Some(policy) => inherited(policy, own),
        None => BTreeMap::new(),
    };
    env.extend(sent.iter().map(|(name, value)| (name.clone(), value.clone())));
    env.retain(|name, _| !is_secret(name));
    env
}

/// Whether a variable is a credential of the server itself, which no client may use.
pub fn is_secret(name: &str) -> bool {
    NEVER.contains(&name)
}

fn inherited(
    policy: &EnvPolicy,
    own: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let any = |globs: &[String], name: &str| globs.iter().any(|glob| matches(glob, name));
    let mut env: BTreeMap<String, String> = match policy.inherit {
        EnvironmentBase::All => own.into_iter().collect(),
        EnvironmentBase::Core => {
            own.into_iter().filter(|(name, _)| CORE.contains(&name.as_str())).collect()
        }
        EnvironmentBase::None => BTreeMap::new(),
    };
    if !policy.ignore_default_excludes {
        env.retain(|name, _| !SECRETS.iter().any(|glob| matches(glob, name)));
    }
    env.retain(|name, _| !any(&policy.exclude, name));
    env.extend(policy.set.iter().map(|(name, value)| (name.clone(), value.clone())));
    if !policy.include_only.is_empty() {
        env.retain(|name, _| any(&policy.include_only, name));
    }
    env
}

/// Whether a name matches a glob of `*` and `?`, ignoring case. The time is proportional to the product of
/// both lengths.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.to_ascii_lowercase(), name.to_ascii_lowercase());
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[seen] => (at, seen) = (at + 1, seen + 1),
            _ => match star {
                Some((star_at, star_seen)) => {
                    star = Some((star_at, star_seen + 1));
                    (at, seen) = (star_at + 1, star_seen + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_names_whatever_their_case() {
        let cases = [
            ("*KEY*", "api_key_1", true),
            ("HARN*", "harness", true),
            ("HARN*", "a_harness", false),
            ("a?c", "ABC", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("", "", true),
            ("*", "anything", true),
        ];
        for (glob, name, expected) in cases {
            assert_eq!((glob, name, matches(glob, name)), (glob, name, expected));
        }
    }

    #[test]
    fn a_policy_takes_drops_adds_and_the_request_has_the_last_word() {
        let own =
            [("PATH", "/bin"), ("HOME", "/root"), ("MY_TOKEN", "s"), ("HARNESS", "1"), ("X", "1")];
        let own = || own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let policy = |inherit, include_only: &[&str]| EnvPolicy {
            inherit,
            ignore_default_excludes: false,
            exclude: vec!["HARN*".into()],
            set: map(&[("S", "3")]),
            include_only: include_only.iter().map(|&name| name.to_owned()).collect(),
        };
        let sent = map(&[("B", "2"), ("AIRLOCK_TOKEN", "x")]);
        let names = |policy: Option<&EnvPolicy>| -> Vec<String> {
            environment(policy, own(), &sent).into_keys().collect()
        };
        assert_eq!(names(None), ["B"]);
        assert_eq!(
            names(Some(&policy(EnvironmentBase::All, &[]))),
            ["B", "HOME", "PATH", "S", "X"]
        );
        assert_eq!(names(Some(&policy(EnvironmentBase::Core, &[]))), ["B", "HOME", "PATH", "S"]);
        assert_eq!(names(Some(&policy(EnvironmentBase::None, &[]))), ["B", "S"]);
        assert_eq!(names(Some(&policy(EnvironmentBase::All, &["pa*"]))), ["B", "PATH"]);
    }
}
