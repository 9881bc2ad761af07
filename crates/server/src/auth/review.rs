//! The review at the first start of this version. Earlier versions accepted answers to management calls from tokens
//! that could not answer. The review finds what such calls created: approving policies among it have no effect until
//! an administrator confirms them.

use super::Scope;
use super::tokens;
use engine::Fault;
use engine::policies::{KeptRule, ManagementOrigin, PolicyError, PolicySet};
use lifecycle::{
    Answer, CallId, CallOutcome, Event, ExecutionId, Json, Policy, Seq, Timestamp, ToolPath,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Journal, ListFilter, RecordStore, StoreError};

/// The kind of record in which the review is stored.
pub const KIND: &str = "management_review";

/// The record's key.
const KEY: &str = "1";

/// Number of executions and entries that are read in one step.
const PAGE_MAX: usize = 500;

/// The caller whose token is in the server's environment. It has all rights.
const ENVIRONMENT: &str = lifecycle::BuiltinCaller::Environment.name();

/// The findings of the review, and its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagementReview {
    /// When the review ran.
    pub at: Timestamp,
    /// Items that such calls created and that still exist.
    pub findings: Vec<ManagementFinding>,
}

/// An item created by a management call whose answer came from a token without `answer`, or from no token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagementFinding {
    /// The kind of item.
    pub kind: FindingKind,
    /// The item's id, slug or `<source>/<owner>/<name>`.
    pub name: String,
    /// The call that created it.
    pub origin: ManagementOrigin,
}

/// The kind of item that a management call created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A policy.
    Policy,
    /// A source.
    Source,
    /// A connection.
    Connection,
}

impl FindingKind {
    /// The record kind of the item, which is also its name.
    pub const fn record_kind(self) -> &'static str {
        match self {
            Self::Policy => engine::policies::KIND,
            Self::Source => "source",
            Self::Connection => "connection",
        }
    }
}

/// Reviews what management calls created, unless this was done before. Must run before the engine starts, so that
/// nothing continues under a policy that has no effect.
pub async fn review_management<S: Journal + RecordStore + Clone + 'static>(
    store: &S,
    now: Timestamp,
) -> Result<Option<ManagementReview>, Fault> {
    if store.get(KIND, KEY).await?.is_some() {
        return Ok(None);
    }
    let policies = PolicySet::open(Arc::new(store.clone()), Policy::default()).await?;
    let kept = ReviewItems::read(store, &policies).await?;
    let mut findings = vec![];
    if !kept.is_empty() {
        let trusted = trusted(store).await?;
        for (execution, call) in management_calls(store).await? {
            if call.answered_by.as_ref().is_none_or(|name| !trusted.contains(name)) {
                findings.extend(kept.made_by(execution, &call));
            }
        }
    }
    for finding in findings.iter().filter(|finding| finding.kind == FindingKind::Policy) {
        match policies.suspend(&finding.name, &finding.origin).await {
            Ok(()) | Err(PolicyError::Unknown(_)) => {}
            Err(PolicyError::Fault(fault)) => return Err(fault),
            Err(error @ (PolicyError::NotKept | PolicyError::TooMany | PolicyError::Contested)) => {
                return Err(StoreError::Other(error.to_string()).into());
            }
        }
    }
    let review = ManagementReview { at: now, findings };
    let value = serde_json::to_string(&review).expect("texts and a number are JSON");
    store.put(KIND, KEY, value, 0).await?;
    Ok(Some(review))
}

/// Returns the recorded review; none before the first start of this version.
pub fn recorded_review(records: &[store::StoredRecord]) -> Option<ManagementReview> {
    records.iter().find_map(|record| serde_json::from_str(&record.value).ok())
}

/// Names of the callers whose tokens may answer.
async fn trusted(records: &dyn RecordStore) -> Result<BTreeSet<String>, StoreError> {
    let tokens = tokens::list_tokens(records).await?;
    let may_answer = tokens.iter().filter(|token| token.scopes.has(Scope::Answer));
    let names = may_answer.map(|token| token.name.as_str().to_owned());
    Ok(names.chain([ENVIRONMENT.to_owned()]).collect())
}

/// The existing items that a management call may have created.
struct ReviewItems {
    rules: Vec<KeptRule>,
    sources: BTreeSet<String>,
    connections: BTreeSet<String>,
}

impl ReviewItems {
    async fn read(records: &dyn RecordStore, policies: &PolicySet) -> Result<Self, Fault> {
        let rules = policies.list_rules().await?;
        let mut names = vec![];
        for kind in [FindingKind::Source, FindingKind::Connection] {
            let kept = records.all(kind.record_kind()).await?;
            names.push(kept.into_iter().map(|record| record.key).collect());
        }
        let connections = names.pop().unwrap_or_default();
        let sources = names.pop().unwrap_or_default();
        Ok(Self { rules, sources, connections })
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.sources.is_empty() && self.connections.is_empty()
    }

    /// Returns the items that a call created.
    fn made_by(&self, execution: ExecutionId, call: &ManagementCall) -> Vec<ManagementFinding> {
        let text = |name: &str| call.args[name].as_str().unwrap_or_default();
        let owner = call.args["owner"].as_str().unwrap_or("org");
        let connection = || format!("{}/{owner}/{}", text("integration"), text("name"));
        let found = match call.tool.as_str() {
            "executor.coreTools.policies.create" | "executor.coreTools.policies.update" => {
                let rules = self.rules.iter().filter(|rule| call.made(rule));
                rules.map(|rule| (FindingKind::Policy, rule.id.clone())).collect()
            }
            "executor.openapi.addSpec"
            | "executor.graphql.addIntegration"
            | "executor.mcp.addServer" => vec![
                (FindingKind::Source, text("slug").to_owned()),
                (FindingKind::Connection, format!("{}/org/main", text("slug"))),
            ],
            "executor.coreTools.connections.create"
            | "executor.coreTools.connections.createHandoff"
            | "executor.coreTools.oauth.start" => vec![(FindingKind::Connection, connection())],
            _ => vec![],
        };
        let is_there = |(kind, name): &(FindingKind, String)| match kind {
            FindingKind::Policy => true,
            FindingKind::Source => self.sources.contains(name),
            FindingKind::Connection => self.connections.contains(name),
        };
        let origin = ManagementOrigin {
            execution: execution.to_string(),
            tool: call.tool.to_string(),
            answered_by: call.answered_by.clone(),
        };
        let finding = |(kind, name)| ManagementFinding { kind, name, origin: origin.clone() };
        found.into_iter().filter(is_there).map(finding).collect()
    }
}

/// A management call that was passed to its tool.
#[derive(Debug, Clone)]
struct ManagementCall {
    tool: ToolPath,
    args: Value,
    answered_by: Option<String>,
    dispatched: Option<Timestamp>,
    settled: Option<Timestamp>,
    /// The id of the policy that it returned.
    policy: Option<String>,
}

impl ManagementCall {
    /// Whether the call defined the rule as it is now. A rule that was defined again later, over HTTP or by another
    /// call, is not this call's.
    fn made(&self, rule: &KeptRule) -> bool {
        let Some(dispatched) = self.dispatched else { return false };
        let settled = self.settled.unwrap_or(Timestamp(i64::MAX));
        let is_named = match self.args["id"].as_str().or(self.policy.as_deref()) {
            Some(id) => rule.id == id,
            // Its server stopped before the result was known.
            None => self.args["pattern"].as_str() == Some(&rule.pattern.to_string()),
        };
        is_named && dispatched <= rule.said && rule.said <= settled
    }
}

/// Returns every management call in the journal that was passed to its tool.
async fn management_calls(
    journal: &dyn Journal,
) -> Result<Vec<(ExecutionId, ManagementCall)>, StoreError> {
    let mut found = vec![];
    let mut after = None;
    loop {
        let filter = ListFilter { phases: vec![], caller: None, after, n_max: PAGE_MAX };
        let page = journal.list_executions(filter).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.execution);
        for listed in &page {
            let calls = calls_of(journal, listed.execution).await?;
            found.extend(calls.into_iter().map(|call| (listed.execution, call)));
        }
    }
}

async fn calls_of(
    journal: &dyn Journal,
    execution: ExecutionId,
) -> Result<Vec<ManagementCall>, StoreError> {
    let mut calls: BTreeMap<CallId, ManagementCall> = BTreeMap::new();
    let mut after = Seq(0);
    loop {
        let entries = journal.read(execution, after, PAGE_MAX).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        for entry in &entries {
            observe(&mut calls, entry.at, &entry.event);
        }
    }
    Ok(calls.into_values().filter(|call| call.dispatched.is_some()).collect())
}

fn observe(calls: &mut BTreeMap<CallId, ManagementCall>, at: Timestamp, event: &Event) {
    match event {
        Event::CallMade { call, tool, args, .. } if super::permissions::is_management(tool) => {
            let made = ManagementCall {
                tool: tool.clone(),
                args: parsed(args),
                answered_by: None,
                dispatched: None,
                settled: None,
                policy: None,
            };
            calls.insert(*call, made);
        }
        Event::CallAnswered { call, answer: Answer::Accept { .. }, by, arguments, .. } => {
            if let Some(known) = calls.get_mut(call) {
                known.answered_by = Some(by.0.clone());
                if let Some(edited) = arguments {
                    known.args = parsed(edited);
                }
            }
        }
        Event::CallDispatched { call, .. } => {
            if let Some(known) = calls.get_mut(call) {
                known.dispatched.get_or_insert(at);
            }
        }
        Event::CallSettled { call, outcome } => {
            if let Some(known) = calls.get_mut(call) {
                known.settled = Some(at);
                if let CallOutcome::Returned { value: Some(value) } = outcome {
                    known.policy = parsed(value)["data"]["id"].as_str().map(str::to_owned);
                }
            }
        }
        Event::CallMade { .. }
        | Event::CallAnswered { .. }
        | Event::Started { .. }
        | Event::Prepared(_)
        | Event::Logged { .. }
        | Event::Emitted { .. }
        | Event::CallAsked(_)
        | Event::CallDeferred { .. }
        | Event::CallAdmitted { .. }
        | Event::CallProgressed { .. }
        | Event::TimerSet { .. }
        | Event::TimerCleared { .. }
        | Event::TimerFired { .. }
        | Event::Paused { .. }
        | Event::RecoveryFailed { .. }
        | Event::Parked
        | Event::EntriesMayBeLost
        | Event::Continued { .. }
        | Event::LimitReached { .. }
        | Event::Finished { .. } => {}
    }
}

fn parsed(json: &Json) -> Value {
    serde_json::from_str(json.as_text()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{MintedSecret, TokenName, TokenScopes};
    use engine::policies::{NewRule, PolicyOwner};
    use lifecycle::{
        CallerName, Entry, ExecutionLimits, ExecutionPhase, ExecutionSummary, PolicyAction,
        PolicyVerdict, Program, Question, QuestionId, QuestionKind, RandomSeed, ToolHost,
        ToolNature, ToolPattern, WriteStrength,
    };
    use store::JournalAppend;
    use store::sqlite::SqliteStore;
    use uuid::Uuid;

    fn json(value: &Value) -> Json {
        Json::from_value(value).unwrap()
    }

    /// Writes an execution of `caller` that called `tool` and got `data`, answered by `by`, starting at time `at`.
    async fn write_call(
        store: &SqliteStore,
        (tool, args, data): (&str, Value, Value),
        by: Option<&str>,
        at: i64,
    ) -> ExecutionId {
        let execution = ExecutionId::from_uuid(Uuid::now_v7());
        let (call, question) = (CallId(1), QuestionId::from_uuid(Uuid::now_v7()));
        let caller = CallerName("run".into());
        let program = Program {
            source: String::new(),
            convention: lifecycle::ValueConvention::LastExpression,
        };
        let nature = ToolNature { read_only: false, runs: ToolHost::Here };
        let mut events = vec![
            Event::Started {
                program,
                caller: caller.clone(),
                limits: ExecutionLimits::default(),
                seed: RandomSeed([0; 32]),
                terms: Box::default(),
            },
            Event::CallMade {
                call,
                tool: ToolPath::parse(tool).unwrap(),
                args: json(&args),
                nature,
                line: None,
                alias: None,
            },
        ];
        if let Some(by) = by {
            let (kind, message) = (QuestionKind::Approval, String::new());
            events.push(Event::CallAsked(Question {
                id: question,
                call,
                kind,
                message,
                revision: None,
                editable: false,
                answer_only: false,
            }));
            let answered = serde_json::json!({ "call_answered": {
                "question": question, "call": call, "by": by, "answer": { "accept": {} } } });
            events.push(serde_json::from_value(answered).unwrap());
        }
        events.push(Event::CallDispatched { call, attempt: 1 });
        let value = json(&serde_json::json!({ "ok": true, "data": data }));
        let outcome = CallOutcome::Returned { value: Some(value) };
        events.push(Event::CallSettled { call, outcome });
        let entries: Vec<_> = events
            .into_iter()
            .zip(1..)
            .map(|(event, seq)| Entry { seq: Seq(seq), at: Timestamp(at), event })
            .collect();
        let standing = ExecutionSummary { phase: ExecutionPhase::Running, caller, due: None };
        let (expected, strength) = (Seq(0), WriteStrength::Written);
        store
            .append(JournalAppend { execution, expected, entries, standing, strength })
            .await
            .unwrap();
        execution
    }

    async fn add_rule(store: &SqliteStore, pattern: &str, at: i64) -> (String, Value) {
        let policies = PolicySet::open(Arc::new(store.clone()), Policy::default()).await.unwrap();
        let new = NewRule {
            owner: PolicyOwner::Org,
            pattern: ToolPattern::parse(pattern).unwrap(),
            action: PolicyAction::Approve,
            editable: false,
            position: None,
        };
        let rule = policies.add(new, Timestamp(at)).await.unwrap();
        let args = serde_json::json!({ "owner": "org", "pattern": pattern, "action": "approve" });
        (rule.id, args)
    }

    #[tokio::test]
    async fn what_tokens_without_answer_approved_is_found_once_and_approves_nothing() {
        let store = SqliteStore::temporary().unwrap();
        for (name, scopes) in [("run", "run"), ("ann", "run,answer")] {
            let scopes = TokenScopes::parse(scopes.split(',')).unwrap();
            let (name, secret) = (TokenName::parse(name).unwrap(), MintedSecret::new().unwrap());
            let answers = lifecycle::AnswerRole::Person;
            tokens::add(&store, &name, (scopes, answers), &secret, Timestamp(0)).await.unwrap();
        }
        let create = "executor.coreTools.policies.create";
        let mut ids = vec![];
        for (n, by) in [Some("run"), Some("ann"), None, Some("gone"), Some("environment")]
            .into_iter()
            .enumerate()
        {
            let at = 100 * (n as i64 + 1);
            let (id, args) = add_rule(&store, &format!("t{n}.*"), at).await;
            write_call(&store, (create, args, serde_json::json!({ "id": id })), by, at).await;
            ids.push(id);
        }
        let (by_hand, _) = add_rule(&store, "hand.*", 900).await;
        store.put("source", "things", "{}".into(), 0).await.unwrap();
        let args = serde_json::json!({ "slug": "things", "url": "http://a/" });
        write_call(&store, ("executor.mcp.addServer", args, Value::Null), Some("run"), 50).await;
        let args = serde_json::json!({ "slug": "gone", "url": "http://a/" });
        write_call(&store, ("executor.mcp.addServer", args, Value::Null), Some("run"), 51).await;

        let review = review_management(&store, Timestamp(1_000)).await.unwrap().unwrap();
        let mut found: Vec<_> = review
            .findings
            .iter()
            .map(|finding| (finding.kind.record_kind(), finding.name.clone()))
            .collect();
        found.sort();
        let mut expected = [0, 2, 3].map(|n: usize| ("policy", ids[n].clone())).to_vec();
        expected.push(("source", "things".into()));
        expected.sort();
        assert_eq!(found, expected);

        let policies = PolicySet::open(Arc::new(store.clone()), Policy::default()).await.unwrap();
        let runs = |tool: &str| {
            let tool = ToolPath::parse(tool).unwrap();
            policies.live().verdict(&tool, lifecycle::ToolTraits::lasting(true))
                == PolicyVerdict::Allow
        };
        let verdicts = ["t0.x", "t1.x", "t2.x", "t3.x", "t4.x", "hand.x"].map(runs);
        assert_eq!(verdicts, [false, true, false, false, true, true]);
        assert!(policies.current(&by_hand).is_some_and(|rule| rule.unconfirmed.is_none()));
        assert_eq!(review_management(&store, Timestamp(2_000)).await.unwrap(), None);
        let recorded = recorded_review(&store.all(KIND).await.unwrap());
        assert_eq!(recorded, Some(review));
    }

    #[tokio::test]
    async fn a_rule_that_was_given_again_by_hand_is_not_the_calls() {
        let store = SqliteStore::temporary().unwrap();
        let (id, args) = add_rule(&store, "mail.*", 10).await;
        let call = ("executor.coreTools.policies.create", args, serde_json::json!({ "id": id }));
        write_call(&store, call, Some("run"), 10).await;
        let policies = PolicySet::open(Arc::new(store.clone()), Policy::default()).await.unwrap();
        let again = engine::policies::RuleChange {
            action: Some(PolicyAction::Approve),
            ..Default::default()
        };
        policies.change(&id, again, Timestamp(20)).await.unwrap();
        let review = review_management(&store, Timestamp(30)).await.unwrap().unwrap();
        assert_eq!(review.findings, []);
    }
}
