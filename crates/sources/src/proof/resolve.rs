//! Values from where they are, at the moment in which they are needed; bounded in time and size.

use super::{Held, Trust, template};
use crate::config::{Text, Words};
use crate::vault::{VALUE_BYTES_MAX, VaultError};
use std::collections::BTreeMap;
use std::time::Duration;
use tools::envelope::Trouble;
use tools::{Credential, Place, Placement, Program, command, scrub};

/// How long a program may take to print a secret: some ask the network, some a finger.
const PROGRAM_TIME_MAX: Duration = Duration::from_secs(30);

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Lack {
    /// Nobody has entered it yet.
    Unentered,
    /// It is not where it should be.
    Missing(String),
    /// The vault does not open.
    Locked(String),
}

impl Lack {
    pub(super) fn trouble(self) -> Trouble {
        match self {
            Self::Unentered => Trouble::new(
                "connection_value_missing",
                "Nobody has entered this connection's secret yet.",
            ),
            Self::Missing(why) => Trouble::new(
                "connection_value_missing",
                format!("The connection has no proof: {why}."),
            ),
            // What to do about it is for the operator: it names files of the host.
            Self::Locked(why) => {
                tracing::error!("a call needs a secret, and the vault is locked: {why}");
                Trouble::new(
                    "connection_value_locked",
                    "The connection's secret cannot be opened: the vault is locked. Its operator finds out why with \
                     `airlock vault status`.",
                )
            }
        }
    }
}

/// Every value of a connection, each where it belongs.
pub(super) async fn credential(held: &Held) -> Result<Credential, Lack> {
    let connection = &held.connection;
    let mut placements = vec![];
    if let Some(token) = &connection.bearer {
        placements.extend(placed(&Credential::bearer(&held.trust.value(token).await?)));
    }
    if let Some(basic) = &connection.basic {
        let (user, password) =
            (held.trust.value(&basic.user).await?, held.trust.value(&basic.password).await?);
        placements.extend(placed(&Credential::basic(&user, &password)));
    }
    if let Some(name) = &connection.template {
        let wrong = || Lack::Missing(format!("its source knows no template {name}"));
        let method = template::method(&held.trust.methods(&held.key), name).ok_or_else(wrong)?;
        let mut values = BTreeMap::new();
        for (name, text) in &connection.values {
            values.insert(name.clone(), held.trust.value(text).await?);
        }
        let filled = template::fill(&method, &values).map_err(|_| Lack::Unentered)?;
        placements.extend(placed(&filled));
    }
    let groups = [
        (Place::Header, &connection.headers),
        (Place::Query, &connection.query),
        (Place::Environment, &connection.env),
    ];
    for (place, texts) in groups {
        for (name, text) in texts {
            let value = held.trust.value(text).await?.as_str().into();
            placements.push(Placement { place, name: name.clone(), value });
        }
    }
    for (name, text) in &connection.cookies {
        let value = format!("{name}={}", held.trust.value(text).await?).as_str().into();
        placements.push(Placement { place: Place::Header, name: "cookie".into(), value });
    }
    Ok(Credential::new(placements))
}

fn placed(credential: &Credential) -> Vec<Placement> {
    let headers = credential.at(Place::Header).map(|pair| (Place::Header, pair));
    let all = headers
        .chain(credential.at(Place::Query).map(|pair| (Place::Query, pair)))
        .chain(credential.at(Place::Environment).map(|pair| (Place::Environment, pair)));
    all.map(|(place, (name, value))| Placement { place, name: name.into(), value: value.into() })
        .collect()
}

impl Trust {
    /// The value behind a text. From then on it leaves in no other way.
    pub(super) async fn value(&self, text: &Text) -> Result<String, Lack> {
        let value = match text {
            Text::Plain(_) | Text::Env { .. } => text.read().map_err(Lack::Missing)?,
            Text::File { .. } => {
                let text = text.clone();
                // A file may lie on a disk that is far away.
                let read = tokio::task::spawn_blocking(move || text.read()).await;
                read.unwrap_or_else(|_| Err("it could not be read".into()))
                    .map_err(Lack::Missing)?
            }
            Text::Cmd { cmd } => self.printed(cmd).await.map_err(Lack::Missing)?,
            Text::Vault { vault } => match self.vault.get(vault).await {
                Ok(Some(value)) => value,
                Ok(None) => return Err(Lack::Missing("its secret is gone; enter it anew".into())),
                Err(VaultError::Locked(why)) => return Err(Lack::Locked(why)),
                Err(error @ VaultError::Damaged(_)) => {
                    return Err(Lack::Missing(error.to_string()));
                }
                Err(error) => return Err(Lack::Locked(error.to_string())),
            },
        };
        scrub::learn(&value);
        match value.is_empty() {
            true => Err(Lack::Missing("it is empty".into())),
            false => Ok(value),
        }
    }

    /// The same, for those who can only tell a call about it.
    pub(crate) async fn secret(&self, text: &Text) -> Result<String, Trouble> {
        self.value(text).await.map_err(Lack::trouble)
    }

    /// What the operator's own program prints. It runs as we do, with our variables but for our tokens.
    async fn printed(&self, words: &Words) -> Result<String, String> {
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !name.starts_with("AIRLOCK_"));
        let program = Program { argv: words.argv(), env: env.collect(), directory: None };
        let printed =
            command::printed(self.minding, program, PROGRAM_TIME_MAX, VALUE_BYTES_MAX).await?;
        Ok(printed.trim_end_matches(['\r', '\n']).to_owned())
    }
}
