//! Resolves secret values when they are needed; bounded in time and size.

use crate::{
    CommandWords, ConnectionProof, Credentials, SecretText, VALUE_BYTES_MAX, VaultError,
    auth_template,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tools::envelope::ToolFailure;
use tools::{ChildProgram, CredentialPlacement, PlacementKind, ToolCredential, command, scrub};

/// How long a program may take to print a secret: some use the network, some wait for a fingerprint.
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(30);

/// Why a connection's value is missing.
#[derive(Debug)]
pub(crate) enum MissingValue {
    /// No value has been entered yet.
    Unentered,
    /// It is not at its location.
    Missing(String),
    /// The vault is locked.
    Locked(String),
}

impl MissingValue {
    pub(crate) fn trouble(self) -> ToolFailure {
        match self {
            Self::Unentered => ToolFailure::new(
                "connection_value_missing",
                "Nobody has entered this connection's secret yet.",
            ),
            Self::Missing(why) => ToolFailure::new(
                "connection_value_missing",
                format!("The connection has no proof: {why}."),
            ),
            // The remedy is for the operator only: it names files of the host.
            Self::Locked(why) => {
                tracing::error!("a call needs a secret, and the vault is locked: {why}");
                ToolFailure::new(
                    "connection_value_locked",
                    "The connection's secret cannot be opened: the vault is locked. Its operator finds out why with \
                     `airlock vault status`.",
                )
            }
        }
    }
}

/// Resolves every value of a connection and places it.
pub(crate) async fn credential(proof: &ConnectionProof) -> Result<ToolCredential, MissingValue> {
    let connection = &proof.connection;
    let mut placements = vec![];
    if let Some(token) = &connection.bearer {
        placements.extend(placed(&ToolCredential::bearer(&proof.credentials.value(token).await?)));
    }
    if let Some(basic) = &connection.basic {
        let (user, password) = (
            proof.credentials.value(&basic.user).await?,
            proof.credentials.value(&basic.password).await?,
        );
        placements.extend(placed(&ToolCredential::basic(&user, &password)));
    }
    if let Some(name) = &connection.template {
        let wrong = || MissingValue::Missing(format!("its source knows no template {name}"));
        let method = auth_template::method(&proof.credentials.methods(&proof.key), name)
            .ok_or_else(wrong)?;
        let mut values = BTreeMap::new();
        for (name, text) in &connection.values {
            values.insert(name.clone(), proof.credentials.value(text).await?);
        }
        let filled = auth_template::fill(&method, &values).map_err(|_| MissingValue::Unentered)?;
        placements.extend(placed(&filled));
    }
    let groups = [
        (PlacementKind::Header, &connection.headers),
        (PlacementKind::Query, &connection.query),
        (PlacementKind::Environment, &connection.env),
    ];
    for (place, texts) in groups {
        for (name, text) in texts {
            let value = proof.credentials.value(text).await?.as_str().into();
            placements.push(CredentialPlacement { place, name: name.clone(), value });
        }
    }
    for (name, text) in &connection.cookies {
        let value = format!("{name}={}", proof.credentials.value(text).await?).as_str().into();
        placements.push(CredentialPlacement {
            place: PlacementKind::Header,
            name: "cookie".into(),
            value,
        });
    }
    Ok(ToolCredential::new(placements))
}

fn placed(credential: &ToolCredential) -> Vec<CredentialPlacement> {
    let headers =
        credential.value_at(PlacementKind::Header).map(|pair| (PlacementKind::Header, pair));
    let all = headers
        .chain(credential.value_at(PlacementKind::Query).map(|pair| (PlacementKind::Query, pair)))
        .chain(
            credential
                .value_at(PlacementKind::Environment)
                .map(|pair| (PlacementKind::Environment, pair)),
        );
    all.map(|(place, (name, value))| CredentialPlacement {
        place,
        name: name.into(),
        value: value.into(),
    })
    .collect()
}

impl Credentials {
    /// Resolves the value of a text, and registers it for redaction.
    pub(crate) async fn value(&self, text: &SecretText) -> Result<String, MissingValue> {
        let value = match text {
            SecretText::Plain(_) | SecretText::Env { .. } => {
                text.read().map_err(MissingValue::Missing)?
            }
            SecretText::File { .. } => {
                let text = text.clone();
                // A file may be on a slow network disk.
                let read = tokio::task::spawn_blocking(move || text.read()).await;
                read.unwrap_or_else(|_| Err("it could not be read".into()))
                    .map_err(MissingValue::Missing)?
            }
            SecretText::Cmd { cmd } => self.printed(cmd).await.map_err(MissingValue::Missing)?,
            SecretText::Vault { vault } => match self.vault.get(vault).await {
                Ok(Some(value)) => value,
                Ok(None) => {
                    return Err(MissingValue::Missing("its secret is gone; enter it again".into()));
                }
                Err(VaultError::Locked(why)) => return Err(MissingValue::Locked(why)),
                Err(error @ VaultError::Damaged(_)) => {
                    return Err(MissingValue::Missing(error.to_string()));
                }
                Err(error) => return Err(MissingValue::Locked(error.to_string())),
            },
        };
        scrub::learn(&value);
        match value.is_empty() {
            true => Err(MissingValue::Missing("it is empty".into())),
            false => Ok(value),
        }
    }

    /// The same, with the error as a tool failure.
    pub(crate) async fn secret(&self, text: &SecretText) -> Result<String, ToolFailure> {
        self.value(text).await.map_err(MissingValue::trouble)
    }

    /// The output of the operator's program. It runs with the server's environment, except for the server's tokens.
    async fn printed(&self, words: &CommandWords) -> Result<String, String> {
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !name.starts_with("AIRLOCK_"));
        let program = ChildProgram { argv: words.argv(), env: env.collect(), directory: None };
        let printed =
            command::printed(self.minding, program, PROGRAM_TIME_MAX, VALUE_BYTES_MAX).await?;
        Ok(printed.trim_end_matches(['\r', '\n']).to_owned())
    }
}
