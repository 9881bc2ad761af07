//! The administrator's secret in the server's environment. A client's variable must not become one: a server that a client
//! starts would take a `run` secret for the administrator's.

use crate::exit::UsageError;
use crate::print;
use server::auth;
use store::RecordStore;

/// Shortest secret that is accepted; a minted one has 47 characters.
const CHARS_MIN: usize = 32;

const ADMIN: &str = "AIRLOCK_ADMIN_TOKEN";
const OLD: &str = "AIRLOCK_TOKEN";

/// The use of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EnvironmentSecret {
    /// It is not set.
    Unset,
    /// It is the administrator's secret.
    Admin(String),
    /// It is the administrator's secret, under the name that clients use; accepted in this version only.
    Renamed(String),
    /// It is a client's secret, or too short, and gives no access.
    Ignored,
}

/// Reads the environment. Refuses a secret that is too short, or that a token already has.
pub(super) async fn read(records: &dyn RecordStore) -> anyhow::Result<Option<String>> {
    let variable = |name| std::env::var(name).ok();
    let chosen = choose(variable(ADMIN).as_deref(), variable(OLD).as_deref())?;
    match chosen {
        EnvironmentSecret::Unset => Ok(None),
        EnvironmentSecret::Admin(secret) => match auth::is_minted_secret(records, &secret).await? {
            true => Err(UsageError(format!(
                "{ADMIN} is the secret of a token, which would become an administrator's; set another one"
            ))
            .into()),
            false => Ok(Some(secret)),
        },
        EnvironmentSecret::Renamed(secret) if !auth::is_minted_secret(records, &secret).await? => {
            print::print_note(&format!(
                "WARNING: {OLD} counts as the administrator's secret for one more version; name it {ADMIN}"
            ));
            Ok(Some(secret))
        }
        EnvironmentSecret::Renamed(_) | EnvironmentSecret::Ignored => {
            print::print_note(&format!(
                "{OLD} is ignored: it is a client's, or has less than {CHARS_MIN} characters. The administrator's \
                 variable is {ADMIN}"
            ));
            Ok(None)
        }
    }
}

fn choose(admin: Option<&str>, old: Option<&str>) -> Result<EnvironmentSecret, UsageError> {
    let given =
        |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let is_long = |text: &str| text.chars().count() >= CHARS_MIN;
    match (given(admin), given(old)) {
        (Some(secret), _) if is_long(&secret) => Ok(EnvironmentSecret::Admin(secret)),
        (Some(_), _) => Err(UsageError(format!(
            "{ADMIN} has less than {CHARS_MIN} characters; make one with: openssl rand -hex 32"
        ))),
        (None, Some(secret)) if is_long(&secret) => Ok(EnvironmentSecret::Renamed(secret)),
        (None, Some(_)) => Ok(EnvironmentSecret::Ignored),
        (None, None) => Ok(EnvironmentSecret::Unset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_variable_counts_and_a_short_secret_does_not() {
        let (long, short) = ("x".repeat(CHARS_MIN), "x".repeat(CHARS_MIN - 1));
        let (long, short) = (Some(long.as_str()), Some(short.as_str()));
        let secret = || "x".repeat(CHARS_MIN);
        assert_eq!(choose(None, None), Ok(EnvironmentSecret::Unset));
        assert_eq!(choose(Some(" "), None), Ok(EnvironmentSecret::Unset));
        assert_eq!(choose(long, None), Ok(EnvironmentSecret::Admin(secret())));
        assert_eq!(choose(long, short), Ok(EnvironmentSecret::Admin(secret())));
        assert_eq!(choose(None, long), Ok(EnvironmentSecret::Renamed(secret())));
        assert_eq!(choose(None, short), Ok(EnvironmentSecret::Ignored));
        assert!(choose(short, long).is_err());
    }
}
