//! The rights of a token, and who may do what to whose execution.

use super::sessions::SessionCredential;
use super::tokens::TokenId;
use crate::error::RequestError;
use lifecycle::{AnswerRole, CallerName};
use std::fmt;
use std::str::FromStr;

/// One right of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Start executions, see and end one's own. Intended for agents.
    Run,
    /// See and answer the questions of all callers. Intended for people.
    Answer,
    /// Spawn processes.
    Process,
    /// Everything.
    Admin,
}

impl Scope {
    /// All scopes, weakest first.
    pub const ALL: [Self; 4] = [Self::Run, Self::Answer, Self::Process, Self::Admin];

    /// The scope's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Process => "process",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Run => 1,
            Self::Answer => 2,
            Self::Process => 4,
            Self::Admin => 8,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token has at least one of the scopes run, answer, process and admin")]
pub struct BadScope;

impl FromStr for Scope {
    type Err = BadScope;
    fn from_str(text: &str) -> Result<Self, BadScope> {
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or(BadScope)
    }
}

/// The scopes of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenScopes(u8);

impl TokenScopes {
    /// At least one scope, by name.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, BadScope> {
        let scopes: Vec<Scope> =
            names.into_iter().map(|name| name.trim().parse()).collect::<Result<_, _>>()?;
        if scopes.is_empty() { Err(BadScope) } else { Ok(Self::from(scopes.as_slice())) }
    }

    /// Whether it includes `scope`; `admin` includes all.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// The scopes that were given, weakest first.
    pub fn given(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl From<&[Scope]> for TokenScopes {
    fn from(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given().map(Scope::name).collect::<Vec<_>>().join(","))
    }
}

/// An authenticated caller, and the scopes of its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub(crate) name: CallerName,
    pub(crate) scopes: TokenScopes,
    /// The limit on who may answer with this token: its own value, bounded by the server's.
    pub(crate) answers: AnswerRole,
    pub(crate) credential: CallerCredential,
}

/// The credential that identified a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallerCredential {
    /// None: the server requires no token.
    NotAsked,
    /// A token's secret.
    Token(TokenId),
    /// A browser session.
    Session(SessionCredential),
}

/// Why a caller lacks permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessDenied {
    /// It belongs to another caller: treated as if it did not exist.
    Hidden,
    /// The token lacks this scope.
    Needs(Scope),
    /// Only a person may answer, on the question's page or with a token that has the scope `answer`.
    PersonAnswers,
    /// Only a token with the scope `answer` may approve calls before they are asked about.
    NotInAdvance,
    /// The caller may answer, but accepting this call also requires this scope.
    AcceptNeeds(Scope),
}

impl Caller {
    /// The caller name of the token.
    pub const fn name(&self) -> &CallerName {
        &self.name
    }

    /// Passes callers whose token has `scope`.
    pub fn require(&self, scope: Scope) -> Result<(), RequestError> {
        self.needs(scope).map_err(|denied| RequestError::denied(denied, ""))
    }

    /// Whether the caller may start an execution.
    pub(crate) const fn may_run(&self) -> Result<(), AccessDenied> {
        self.needs(Scope::Run)
    }

    /// Whether the caller may spawn processes.
    pub(crate) const fn may_spawn(&self) -> Result<(), AccessDenied> {
        self.needs(Scope::Process)
    }

    /// Whether the caller may see an execution. A caller that answers questions sees the executions that asked one.
    pub(crate) fn may_see(&self, owner: &CallerName, has_asked: bool) -> Result<(), AccessDenied> {
        if self.sees_all() || (has_asked && self.scopes.has(Scope::Answer)) {
            return Ok(());
        }
        self.owns(owner)?;
        if self.scopes.has(Scope::Answer) { Ok(()) } else { self.needs(Scope::Run) }
    }

    /// Whether the caller may end an execution.
    pub(crate) fn may_cancel(&self, owner: &CallerName) -> Result<(), AccessDenied> {
        if self.sees_all() {
            return Ok(());
        }
        self.owns(owner)?;
        self.needs(Scope::Run)
    }

    /// Whether the caller may mint and remove tokens and read the metrics.
    pub(crate) const fn may_administer(&self) -> Result<(), AccessDenied> {
        self.needs(Scope::Admin)
    }

    /// Whether this is the same caller as `earlier`, with at least the same rights.
    pub(crate) fn covers(&self, earlier: &Self) -> bool {
        self.name == earlier.name
            && earlier.scopes.given().all(|scope| self.scopes.has(scope))
            && self.answers >= earlier.answers
    }

    /// Whether the executions of all callers are shown.
    pub(crate) const fn sees_all(&self) -> bool {
        self.scopes.has(Scope::Admin)
    }

    /// Whether the questions of all callers are shown.
    pub(crate) const fn sees_all_questions(&self) -> bool {
        self.scopes.has(Scope::Answer)
    }

    /// Passes the owner of an execution; for others it is treated as if it did not exist.
    pub(crate) fn owns(&self, owner: &CallerName) -> Result<(), AccessDenied> {
        if self.name == *owner { Ok(()) } else { Err(AccessDenied::Hidden) }
    }

    const fn needs(&self, scope: Scope) -> Result<(), AccessDenied> {
        if self.scopes.has(scope) { Ok(()) } else { Err(AccessDenied::Needs(scope)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str, scopes: &str) -> Caller {
        let scopes = TokenScopes::parse(scopes.split(',')).unwrap();
        let (answers, credential) = (AnswerRole::Person, CallerCredential::NotAsked);
        Caller { name: CallerName(name.into()), scopes, answers, credential }
    }

    #[test]
    fn who_may_do_what_to_whose_execution() {
        use AccessDenied::{Hidden, Needs};
        use Scope::{Admin, Run};
        let ok = Ok(());
        // who, scopes: run, see, see one that asked, cancel, administer
        let table = [
            ("ann", "run", [ok, ok, ok, ok, Err(Needs(Admin))]),
            ("ann", "answer", [Err(Needs(Run)), ok, ok, Err(Needs(Run)), Err(Needs(Admin))]),
            ("ann", "run,answer", [ok, ok, ok, ok, Err(Needs(Admin))]),
            ("ann", "admin", [ok; 5]),
            (
                "ann",
                "process",
                [
                    Err(Needs(Run)),
                    Err(Needs(Run)),
                    Err(Needs(Run)),
                    Err(Needs(Run)),
                    Err(Needs(Admin)),
                ],
            ),
            ("bob", "run", [ok, Err(Hidden), Err(Hidden), Err(Hidden), Err(Needs(Admin))]),
            ("bob", "answer", [Err(Needs(Run)), Err(Hidden), ok, Err(Hidden), Err(Needs(Admin))]),
            ("bob", "admin", [ok; 5]),
        ];
        let ann = CallerName("ann".into());
        for (name, scopes, expected) in table {
            let caller = caller(name, scopes);
            let seen = [
                caller.may_run(),
                caller.may_see(&ann, false),
                caller.may_see(&ann, true),
                caller.may_cancel(&ann),
                caller.may_administer(),
            ];
            assert_eq!((name, scopes, seen), (name, scopes, expected));
        }
    }

    #[test]
    fn scopes_read_back_as_written() {
        assert_eq!(TokenScopes::parse(["answer", " run"]).unwrap().to_string(), "run,answer");
        assert_eq!(TokenScopes::parse([]), Err(BadScope));
        assert_eq!(TokenScopes::parse(["root"]), Err(BadScope));
    }
}
