//! Callers that are not tokens. No token may have one of these names: it would have access to the other's
//! executions and questions.

use crate::CallerName;

/// A caller that is part of Airlock, or that needs no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinCaller {
    /// The holder of the operator's secret, which comes from the environment.
    Environment,
    /// Every client of a server that requires no token.
    Anybody,
    /// The user of `airlock run`.
    Terminal,
    /// A program that embeds the engine.
    Embedder,
    /// The server, when it ends an enclave session that cannot be recovered.
    EnclaveRecovery,
    /// The server, when it sends a notification.
    Notifier,
    /// The server, when it checks a connection.
    HealthCheck,
    /// A page that a link led to, when it calls back.
    Callback,
}

/// The prefix of a token's caller name if the token has the name of a built-in caller.
const TOKEN_PREFIX: &str = "token.";

impl BuiltinCaller {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Environment,
        Self::Anybody,
        Self::Terminal,
        Self::Embedder,
        Self::EnclaveRecovery,
        Self::Notifier,
        Self::HealthCheck,
        Self::Callback,
    ];

    /// The name in the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Anybody => "anybody",
            Self::Terminal => "terminal",
            Self::Embedder => "embedder",
            Self::EnclaveRecovery => "airlock",
            Self::Notifier => "notify",
            Self::HealthCheck => "health",
            Self::Callback => "callback",
        }
    }

    /// Whether a built-in caller has this name.
    pub fn has_name(name: &str) -> bool {
        Self::ALL.iter().any(|caller| caller.name() == name)
    }

    /// Whether no new token may have this name: a built-in caller has it, or a token of such a name continues under it.
    pub fn reserves(name: &str) -> bool {
        Self::has_name(name) || name.starts_with(TOKEN_PREFIX)
    }
}

impl From<BuiltinCaller> for CallerName {
    fn from(caller: BuiltinCaller) -> Self {
        Self(caller.name().to_owned())
    }
}

impl CallerName {
    /// The caller of a token. One that has the name of a built-in caller, from before that was refused, continues as
    /// `token.NAME`.
    pub fn of_token(name: &str) -> Self {
        match BuiltinCaller::has_name(name) {
            true => Self(format!("{TOKEN_PREFIX}{name}")),
            false => Self(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_a_built_in_caller() {
        for caller in BuiltinCaller::ALL {
            let name = caller.name();
            assert!(
                BuiltinCaller::reserves(name) && BuiltinCaller::reserves(&format!("token.{name}"))
            );
            assert_eq!(CallerName::of_token(name).0, format!("token.{name}"));
            assert_ne!(CallerName::of_token(name), CallerName::from(caller));
        }
        assert!(BuiltinCaller::reserves("token.x") && !BuiltinCaller::reserves("tokens"));
        assert_eq!(CallerName::of_token("ann").0, "ann");
    }
}
