//! Policies: whether a call is allowed, asks a person, or is refused.

use crate::{Timestamp, ToolPath};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The action of a rule for the tools that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyAction {
    /// Runs without asking, also where the tool would ask.
    Approve,
    /// Asks a person.
    RequireApproval,
    /// Never runs.
    Block,
}

/// A pattern and its action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// The tools that it matches.
    pub pattern: ToolPattern,
    /// The action for them.
    pub action: PolicyAction,
    /// When the rule was added; none for built-in rules. An approval covers tools as they were then.
    pub said: Option<Timestamp>,
    /// For rules that ask: whether the answerer may change the arguments.
    pub editable: bool,
}

/// A tool's properties that matter to policies, besides its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolTraits {
    /// Whether a person must agree if no policy applies.
    pub asks: bool,
    /// When a later update of its source added it; 0 if it came with its source.
    pub since: Timestamp,
    /// When an update last extended its arguments, its effects or its reach; 0 if never.
    pub grew: Timestamp,
    /// Whether each call needs its own answer. No policy approves such a tool, in any form; a policy can
    /// still block it.
    pub answer_only: bool,
}

impl ToolTraits {
    /// The properties of a tool that always existed and never changed.
    pub const fn lasting(asks: bool) -> Self {
        Self { asks, since: Timestamp(0), grew: Timestamp(0), answer_only: false }
    }
}

impl PolicyRule {
    /// A rule that applies regardless of when a tool was added.
    pub const fn lasting(pattern: ToolPattern, action: PolicyAction) -> Self {
        Self { pattern, action, said: None, editable: false }
    }

    /// Whether it applies to this tool. The approval of a pattern does not cover tools that were added later, and no
    /// approval covers changes that were made to a tool since.
    pub fn covers(&self, tool: &ToolPath, traits: ToolTraits) -> bool {
        self.pattern.matches(tool) && !self.is_outdated(traits) && !self.cannot_approve(traits)
    }

    /// Whether it approves a tool that only an answer can approve. Such a rule is skipped, so that a
    /// blocking rule below it still counts.
    pub fn cannot_approve(&self, traits: ToolTraits) -> bool {
        self.action == PolicyAction::Approve && traits.answer_only
    }

    /// Whether it would approve a tool that was unknown when the rule was added.
    pub fn is_outdated(&self, traits: ToolTraits) -> bool {
        match (self.action, self.said) {
            (PolicyAction::Approve, Some(said)) => {
                said < traits.grew || (said < traits.since && !self.pattern.is_exact())
            }
            (PolicyAction::Approve, None)
            | (PolicyAction::RequireApproval | PolicyAction::Block, _) => false,
        }
    }
}

/// Lists of rules, one list per owner. In each list the first match counts; between lists the most
/// restrictive, so that one owner can tighten but never loosen the rules of another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    lists: Vec<Vec<PolicyRule>>,
}

/// The verdict on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask {
        /// The rule that asks; `None` if the tool itself asks.
        pattern: Option<String>,
        /// Whether the answerer may change the arguments.
        editable: bool,
    },
    /// It does not run.
    Refuse {
        /// The rule that blocks.
        pattern: String,
    },
}

impl Policy {
    /// One list of rules per owner.
    pub const fn new(lists: Vec<Vec<PolicyRule>>) -> Self {
        Self { lists }
    }

    /// The lists of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.lists.extend(other.lists);
        self
    }

    /// Whether `tool` is blocked. Programs can neither list nor find it, and a call of it fails.
    pub fn hides(&self, tool: &ToolPath, traits: ToolTraits) -> bool {
        self.strictest(tool, traits).is_some_and(|rule| rule.action == PolicyAction::Block)
    }

    /// Whether a path may be listed: it is a tool's, and the tool is not blocked.
    pub fn shows(&self, path: &str, traits: ToolTraits) -> bool {
        ToolPath::parse(path).is_ok_and(|tool| !self.hides(&tool, traits))
    }

    /// The verdict on a call of `tool`.
    pub fn verdict(&self, tool: &ToolPath, traits: ToolTraits) -> PolicyVerdict {
        match self.strictest(tool, traits) {
            None if traits.asks || traits.answer_only => {
                PolicyVerdict::Ask { pattern: None, editable: false }
            }
            None => PolicyVerdict::Allow,
            Some(PolicyRule { action: PolicyAction::Approve, .. }) => PolicyVerdict::Allow,
            Some(PolicyRule { action: PolicyAction::RequireApproval, pattern, .. }) => {
                let editable = self.lets_edit(tool, traits);
                PolicyVerdict::Ask { pattern: Some(pattern.to_string()), editable }
            }
            Some(PolicyRule { action: PolicyAction::Block, pattern, .. }) => {
                PolicyVerdict::Refuse { pattern: pattern.to_string() }
            }
        }
    }

    /// The rule that decides about `tool`; `None` if the tool itself does.
    pub fn deciding_rule(&self, tool: &ToolPath, traits: ToolTraits) -> Option<&PolicyRule> {
        self.strictest(tool, traits)
    }

    /// The first match of each list, and of those the most restrictive.
    fn strictest(&self, tool: &ToolPath, traits: ToolTraits) -> Option<&PolicyRule> {
        self.first_matches(tool, traits).max_by_key(|rule| rule.action)
    }

    /// Whether all owners whose rules ask permit changes of the arguments.
    fn lets_edit(&self, tool: &ToolPath, traits: ToolTraits) -> bool {
        self.first_matches(tool, traits)
            .filter(|rule| rule.action == PolicyAction::RequireApproval)
            .all(|rule| rule.editable)
    }

    fn first_matches(
        &self,
        tool: &ToolPath,
        traits: ToolTraits,
    ) -> impl Iterator<Item = &PolicyRule> {
        self.lists
            .iter()
            .filter_map(move |rules| rules.iter().find(|rule| rule.covers(tool, traits)))
    }
}

/// `*`, an exact path, `a.b.*` (that subtree and `a.b` itself), or `a.*.c` (any one name between).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern(Vec<PatternSegment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternSegment {
    Name(String),
    AnyOne,
    AnyRest,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// Nothing between two dots.
    #[error("a pattern has no empty names")]
    EmptySegment,
    /// `*.x`.
    #[error("a pattern starts with a name, unless it is the lone *")]
    LeadingWildcard,
    /// `a.b*`.
    #[error("* stands for whole names only")]
    PartialWildcard,
    /// No path is as long.
    #[error("a pattern has at most {} bytes", ToolPath::BYTES_MAX)]
    TooLong,
    /// Line breaks and the like.
    #[error("a pattern has no control characters")]
    ControlCharacter,
    /// ` a.b`.
    #[error("a pattern has no spaces at its ends")]
    Space,
}

impl ToolPattern {
    /// Parses and validates a pattern. A leading `tools.` is removed: people copy paths from programs, and
    /// no path begins with it.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let text = text.strip_prefix("tools.").unwrap_or(text);
        if text.trim() != text {
            return Err(BadPattern::Space);
        }
        if text == "*" {
            return Ok(Self(vec![PatternSegment::AnyRest]));
        }
        if text.len() > ToolPath::BYTES_MAX {
            return Err(BadPattern::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(BadPattern::ControlCharacter);
        }
        let names: Vec<&str> = text.split('.').collect();
        let last = names.len() - 1;
        let segment = |(at, name): (usize, &&str)| match *name {
            "" => Err(BadPattern::EmptySegment),
            "*" if at == 0 => Err(BadPattern::LeadingWildcard),
            "*" if at == last => Ok(PatternSegment::AnyRest),
            "*" => Ok(PatternSegment::AnyOne),
            name if name.contains('*') => Err(BadPattern::PartialWildcard),
            name => Ok(PatternSegment::Name(name.to_owned())),
        };
        names.iter().enumerate().map(segment).collect::<Result<_, _>>().map(Self)
    }

    /// Whether it matches exactly one tool.
    pub fn is_exact(&self) -> bool {
        self.0.iter().all(|segment| matches!(segment, PatternSegment::Name(_)))
    }

    /// Whether the pattern matches `tool`.
    pub fn matches(&self, tool: &ToolPath) -> bool {
        let mut names = tool.segments();
        for segment in &self.0 {
            match (segment, names.next()) {
                (PatternSegment::AnyRest, _) => return true,
                (PatternSegment::AnyOne, Some(_)) => {}
                (PatternSegment::Name(wanted), Some(name)) if wanted == name => {}
                (PatternSegment::Name(_), Some(_))
                | (PatternSegment::Name(_) | PatternSegment::AnyOne, None) => {
                    return false;
                }
            }
        }
        names.next().is_none()
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            f.write_str(match segment {
                PatternSegment::Name(name) => name,
                PatternSegment::AnyOne | PatternSegment::AnyRest => "*",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY_SAID: PolicyVerdict = PolicyVerdict::Ask { pattern: None, editable: false };

    fn asks_by(pattern: &str) -> PolicyVerdict {
        PolicyVerdict::Ask { pattern: Some(pattern.into()), editable: false }
    }

    #[test]
    fn arguments_may_be_changed_where_everybody_who_asks_says_so() {
        let asks = |pattern: &str, editable| {
            let rule = PolicyRule::lasting(
                ToolPattern::parse(pattern).unwrap(),
                PolicyAction::RequireApproval,
            );
            vec![PolicyRule { editable, ..rule }]
        };
        let approves =
            vec![PolicyRule::lasting(ToolPattern::parse("*").unwrap(), PolicyAction::Approve)];
        let tool = ToolPath::parse("mail.send").unwrap();
        let cases = [
            (vec![asks("mail.*", true)], true),
            (vec![asks("mail.*", false)], false),
            (vec![asks("mail.*", true), approves], true),
            (vec![asks("mail.*", true), asks("*", true)], true),
            (vec![asks("mail.*", true), asks("*", false)], false),
            (vec![asks("*", false), asks("mail.*", true)], false),
        ];
        for (lists, expected) in cases {
            let verdict = Policy::new(lists.clone()).verdict(&tool, ToolTraits::lasting(true));
            let PolicyVerdict::Ask { editable, .. } = verdict else { panic!("{verdict:?}") };
            assert_eq!(editable, expected, "{lists:?}");
        }
    }

    #[test]
    fn patterns_match_what_they_say() {
        let cases = [
            ("*", "a.b", true),
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.*", "a.b.c", true),
            ("a.*", "a", true),
            ("a.*", "ab", false),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.b.b.c", false),
            ("a.*.c", "a.c", false),
            ("tools.a.b", "a.b", true),
            ("tools.*", "a.b", true),
            ("tools.a.*", "a.b.c", true),
            ("tools.a.b", "a.c", false),
        ];
        for (pattern, tool, expected) in cases {
            let parsed = ToolPattern::parse(pattern).unwrap();
            let matched = parsed.matches(&ToolPath::parse(tool).unwrap());
            assert_eq!((pattern, tool, matched), (pattern, tool, expected));
            assert_eq!(parsed.to_string(), pattern.strip_prefix("tools.").unwrap_or(pattern));
        }
    }

    #[test]
    fn what_is_not_a_pattern_is_refused() {
        assert_eq!(ToolPattern::parse(""), Err(BadPattern::EmptySegment));
        assert_eq!(ToolPattern::parse("a..b"), Err(BadPattern::EmptySegment));
        assert_eq!(ToolPattern::parse("*.a"), Err(BadPattern::LeadingWildcard));
        assert_eq!(ToolPattern::parse("a.b*"), Err(BadPattern::PartialWildcard));
        assert_eq!(ToolPattern::parse("**"), Err(BadPattern::PartialWildcard));
        assert_eq!(ToolPattern::parse("a.\u{7}"), Err(BadPattern::ControlCharacter));
        assert_eq!(ToolPattern::parse(" a.b"), Err(BadPattern::Space));
        assert_eq!(ToolPattern::parse("a.b\n"), Err(BadPattern::Space));
        assert_eq!(ToolPattern::parse("tools."), Err(BadPattern::EmptySegment));
        assert_eq!(ToolPattern::parse(&"a".repeat(513)), Err(BadPattern::TooLong));
    }

    #[test]
    fn an_owner_can_tighten_but_not_loosen() {
        let rule = |pattern: &str, action| {
            PolicyRule::lasting(ToolPattern::parse(pattern).unwrap(), action)
        };
        let (free, asks) = (ToolTraits::lasting(false), ToolTraits::lasting(true));
        let tool = ToolPath::parse("mail.send").unwrap();
        let org = vec![rule("mail.*", PolicyAction::RequireApproval)];
        let user = vec![rule("mail.send", PolicyAction::Approve), rule("*", PolicyAction::Block)];
        let policy = Policy::new(vec![org.clone(), user]);
        assert_eq!(policy.verdict(&tool, free), asks_by("mail.*"));
        let policy = Policy::new(vec![org, vec![rule("*", PolicyAction::Block)]]);
        assert_eq!(policy.verdict(&tool, free), PolicyVerdict::Refuse { pattern: "*".into() });
        assert!(policy.hides(&tool, free));
        assert_eq!(Policy::default().verdict(&tool, asks), NOBODY_SAID);
        let silenced = Policy::new(vec![vec![rule("mail.*", PolicyAction::Approve)]]);
        assert_eq!(silenced.verdict(&tool, asks), PolicyVerdict::Allow);
        let loosened =
            silenced.and(Policy::new(vec![vec![rule("*", PolicyAction::RequireApproval)]]));
        assert_eq!(loosened.verdict(&tool, asks), asks_by("*"));
    }

    #[test]
    fn no_rule_approves_a_tool_that_needs_an_answer_and_a_block_below_still_counts() {
        let rule = |pattern: &str, action| {
            PolicyRule::lasting(ToolPattern::parse(pattern).unwrap(), action)
        };
        let tool = ToolPath::parse("executor.coreTools.policies.create").unwrap();
        let needs_answer = ToolTraits { answer_only: true, ..ToolTraits::lasting(false) };
        for pattern in ["*", "executor.*", "executor.*.policies.create", tool.as_str()] {
            let approves = rule(pattern, PolicyAction::Approve);
            let policy = Policy::new(vec![vec![approves.clone()]]);
            assert_eq!(policy.verdict(&tool, needs_answer), NOBODY_SAID, "{pattern}");
            let above_block = vec![approves.clone(), rule("executor.*", PolicyAction::Block)];
            let policy = Policy::new(vec![above_block]);
            assert!(policy.hides(&tool, needs_answer), "{pattern}");
            let above_ask = vec![approves, rule("*", PolicyAction::RequireApproval)];
            assert_eq!(Policy::new(vec![above_ask]).verdict(&tool, needs_answer), asks_by("*"));
        }
    }

    #[test]
    fn an_approval_covers_what_was_there_when_it_was_given() {
        let rule = |pattern: &str, action, said| {
            let pattern = ToolPattern::parse(pattern).unwrap();
            PolicyRule { pattern, action, said: Some(Timestamp(said)), editable: false }
        };
        let tool = ToolPath::parse("mail.send").unwrap();
        let traits = |since, grew| ToolTraits {
            since: Timestamp(since),
            grew: Timestamp(grew),
            ..ToolTraits::lasting(true)
        };
        let (runs, asks) = (PolicyVerdict::Allow, NOBODY_SAID);
        let cases = [
            ("mail.*", 5, traits(0, 0), &runs),
            ("mail.*", 5, traits(5, 0), &runs),
            ("mail.*", 5, traits(6, 0), &asks),
            ("mail.*", 5, traits(0, 6), &asks),
            ("*", 5, traits(6, 0), &asks),
            ("mail.send", 5, traits(6, 0), &runs),
            ("mail.send", 5, traits(0, 6), &asks),
            ("mail.send", 7, traits(6, 7), &runs),
        ];
        for (pattern, said, traits, expected) in cases {
            let policy = Policy::new(vec![vec![rule(pattern, PolicyAction::Approve, said)]]);
            assert_eq!(policy.verdict(&tool, traits), *expected, "{pattern} {said} {traits:?}");
        }
        let (approved, blocked) =
            (rule("mail.*", PolicyAction::Approve, 5), rule("*", PolicyAction::Block, 1));
        let policy = Policy::new(vec![vec![approved, blocked]]);
        assert!(policy.hides(&tool, traits(6, 0)), "what blocks and asks always covers");
        assert!(!policy.hides(&tool, traits(0, 0)));
    }
}
