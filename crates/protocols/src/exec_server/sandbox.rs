//! What a process or a file request shall be kept from. Nothing can be enforced here yet, so whatever asks for a
//! restriction is refused, and whatever asks for none is done.

use serde::Deserialize;
use serde_json::Value;

/// As much of a sandbox as tells whether it restricts anything.
#[derive(Debug, Deserialize)]
struct Sandbox {
    permissions: Permissions,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Permissions {
    /// Everything is allowed.
    Disabled,
    /// Whoever runs the server keeps it in.
    External {},
    /// The server shall.
    Managed { file_system: FileSystem, network: Network },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum FileSystem {
    Unrestricted {},
    Restricted {},
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Network {
    Enabled,
    Restricted,
}

/// Why a request with this sandbox cannot be done; none where it asks for no restriction.
pub fn not_enforced(sandbox: Option<&Value>) -> Option<String> {
    let sandbox = sandbox.filter(|sandbox| !sandbox.is_null())?;
    match Sandbox::deserialize(sandbox) {
        Err(error) => Some(format!("the sandbox cannot be read: {error}")),
        Ok(Sandbox { permissions }) => match permissions {
            Permissions::Disabled | Permissions::External {} => None,
            Permissions::Managed { file_system: FileSystem::Unrestricted {}, network } => {
                (network == Network::Restricted).then(|| refusal("networks"))
            }
            Permissions::Managed { file_system: FileSystem::Restricted {}, .. } => {
                Some(refusal("files"))
            }
        },
    }
}

fn refusal(what: &str) -> String {
    format!(
        "this exec-server enforces no sandbox and was asked to restrict {what}; ask for none, such as with \
         sandbox_mode danger-full-access, and contain the server itself"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_restricts_nothing_is_taken() {
        let managed = |file_system: &str, network: &str| {
            json!({"permissions": {
                "type": "managed",
                "file_system": {"type": file_system, "entries": []},
                "network": network,
            }, "cwd": "file:///"})
        };
        assert_eq!(not_enforced(None), None);
        for taken in [
            json!(null),
            json!({"permissions": {"type": "disabled"}}),
            json!({"permissions": {"type": "external", "network": "restricted"}}),
            managed("unrestricted", "enabled"),
        ] {
            assert_eq!(not_enforced(Some(&taken)), None, "{taken}");
        }
        for (refused, why) in [
            (managed("restricted", "enabled"), "restrict files"),
            (managed("unrestricted", "restricted"), "restrict networks"),
            (managed("walled", "enabled"), "unknown variant `walled`"),
            (json!({"permissions": {"type": "odd"}}), "unknown variant `odd`"),
            (json!({}), "missing field `permissions`"),
            (json!(7), "invalid type"),
        ] {
            let said = not_enforced(Some(&refused)).unwrap();
            assert!(said.contains(why), "{refused}: {said}");
        }
    }
}
