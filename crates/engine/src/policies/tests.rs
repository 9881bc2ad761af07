use super::*;
use lifecycle::{PolicyAction, PolicyRule, PolicyVerdict, ToolPath, ToolPattern, ToolTraits};
use store::sqlite::SqliteStore;

const NOW: Timestamp = Timestamp(7);

fn new(owner: PolicyOwner, pattern: &str, action: PolicyAction) -> NewRule {
    NewRule {
        owner,
        pattern: ToolPattern::parse(pattern).unwrap(),
        action,
        editable: false,
        position: None,
    }
}

fn tool(path: &str) -> ToolPath {
    ToolPath::parse(path).unwrap()
}

const fn free() -> ToolTraits {
    ToolTraits::lasting(false)
}

async fn open(store: &SqliteStore) -> PolicySet {
    PolicySet::open(Arc::new(store.clone()), Policy::default()).await.unwrap()
}

#[tokio::test]
async fn a_rule_counts_at_once_and_after_the_next_start() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    let before = policies.live();
    let rule =
        policies.add(new(PolicyOwner::Org, "mail.*", PolicyAction::Block), NOW).await.unwrap();
    assert!(!before.hides(&tool("mail.send"), free()), "who decided before keeps its policy");
    assert!(policies.live().hides(&tool("mail.send"), free()));
    let again = open(&store).await;
    assert!(again.live().hides(&tool("mail.send"), free()));
    assert_eq!(again.list_rules().await.unwrap(), std::slice::from_ref(&rule));
    again.remove(&rule.id, Some(PolicyOwner::Org)).await.unwrap();
    assert!(!again.live().hides(&tool("mail.send"), free()));
    assert!(
        policies.live().hides(&tool("mail.send"), free()),
        "another process reads again when it is told"
    );
    policies.reload().await.unwrap();
    assert!(!policies.live().hides(&tool("mail.send"), free()));
}

#[tokio::test]
async fn a_new_rule_stands_on_top_and_a_position_moves_it() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    let ask = PolicyAction::RequireApproval;
    let low = policies.add(new(PolicyOwner::Org, "mail.*", ask), NOW).await.unwrap();
    let high =
        policies.add(new(PolicyOwner::Org, "mail.send", PolicyAction::Approve), NOW).await.unwrap();
    assert_eq!(
        policies.live().verdict(&tool("mail.send"), ToolTraits::lasting(true)),
        PolicyVerdict::Allow
    );
    let position = Some(RulePosition::parse("b00").unwrap());
    let later = Timestamp(9);
    let change = RuleChange { position, ..RuleChange::default() };
    let moved = policies.change(&high.id, change, later).await.unwrap();
    assert_eq!((moved.created, moved.updated), (NOW, later));
    let asks = PolicyVerdict::Ask { pattern: Some("mail.*".into()), editable: false };
    assert_eq!(policies.live().verdict(&tool("mail.send"), free()), asks);
    assert_eq!(policies.list_rules().await.unwrap(), [low.clone(), moved]);
    let explained = policies.explain(&tool("mail.send"), free()).await.unwrap();
    let pattern = Some("mail.*".into());
    assert_eq!(
        explained,
        PolicyDecision { verdict: asks, pattern, rule: Some(low), ignored: None }
    );
}

#[tokio::test]
async fn a_configured_rule_cannot_be_loosened_and_the_other_owner_cannot_touch_a_rule() {
    let store = SqliteStore::temporary().unwrap();
    let rule = PolicyRule::lasting(ToolPattern::parse("mail.*").unwrap(), PolicyAction::Block);
    let configured = Policy::new(vec![vec![rule]]);
    let policies = PolicySet::open(Arc::new(store), configured).await.unwrap();
    let rule = policies.add(new(PolicyOwner::User, "*", PolicyAction::Approve), NOW).await.unwrap();
    assert!(policies.live().hides(&tool("mail.send"), free()));
    assert_eq!(policies.explain(&tool("mail.send"), free()).await.unwrap().rule, None);
    let refused = policies.remove(&rule.id, Some(PolicyOwner::Org)).await.unwrap_err();
    assert!(matches!(refused, PolicyError::Unknown(id) if id == rule.id));
    let change = RuleChange { owner: Some(PolicyOwner::Org), ..RuleChange::default() };
    assert!(matches!(policies.change(&rule.id, change, NOW).await, Err(PolicyError::Unknown(_))));
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_is_not_skipped() {
    let store = SqliteStore::temporary().unwrap();
    store.put(KIND, "policy_1", r#"{"owner":"org","pattern":"a..b"}"#.into(), 0).await.unwrap();
    assert!(PolicySet::open(Arc::new(store), Policy::default()).await.is_err());
}

#[tokio::test]
async fn an_engine_without_records_keeps_no_rules() {
    let policies = PolicySet::fixed(Policy::default());
    assert_eq!(policies.list_rules().await.unwrap(), []);
    let refused =
        policies.add(new(PolicyOwner::Org, "*", PolicyAction::Block), NOW).await.unwrap_err();
    assert!(matches!(refused, PolicyError::NotKept));
}

#[tokio::test]
async fn an_approval_covers_what_came_later_once_somebody_says_it_again() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    let rule =
        policies.add(new(PolicyOwner::Org, "mail.*", PolicyAction::Approve), NOW).await.unwrap();
    let newer = ToolTraits { since: Timestamp(8), ..ToolTraits::lasting(true) };
    let asks = PolicyVerdict::Ask { pattern: None, editable: false };
    let explained = policies.explain(&tool("mail.send"), newer).await.unwrap();
    let ignored = Some((rule.clone(), IgnoredApproval::Outdated));
    let expected = PolicyDecision { verdict: asks.clone(), pattern: None, rule: None, ignored };
    assert_eq!(explained, expected);
    let moved =
        RuleChange { position: Some(RulePosition::parse("b").unwrap()), ..RuleChange::default() };
    policies.change(&rule.id, moved, Timestamp(9)).await.unwrap();
    assert_eq!(open(&store).await.live().verdict(&tool("mail.send"), newer), asks);
    let again = RuleChange { action: Some(PolicyAction::Approve), ..RuleChange::default() };
    policies.change(&rule.id, again, Timestamp(9)).await.unwrap();
    assert_eq!(open(&store).await.live().verdict(&tool("mail.send"), newer), PolicyVerdict::Allow);
}

#[tokio::test]
async fn what_is_configured_anew_counts_at_once() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    policies.add(new(PolicyOwner::Org, "mail.*", PolicyAction::Approve), NOW).await.unwrap();
    let rule = PolicyRule::lasting(ToolPattern::parse("mail.send").unwrap(), PolicyAction::Block);
    policies.configure(Policy::new(vec![vec![rule]])).await.unwrap();
    assert!(policies.live().hides(&tool("mail.send"), free()));
    policies.configure(Policy::default()).await.unwrap();
    assert_eq!(policies.live().verdict(&tool("mail.send"), free()), PolicyVerdict::Allow);
}

#[tokio::test]
async fn a_rule_that_approves_is_explained_with_its_pattern() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    let rule =
        policies.add(new(PolicyOwner::Org, "mail.*", PolicyAction::Approve), NOW).await.unwrap();
    let explained = policies.explain(&tool("mail.send"), ToolTraits::lasting(true)).await.unwrap();
    let pattern = Some("mail.*".into());
    let expected =
        PolicyDecision { verdict: PolicyVerdict::Allow, pattern, rule: Some(rule), ignored: None };
    assert_eq!(explained, expected);
}

#[tokio::test]
async fn no_approval_counts_for_a_tool_that_needs_an_answer() {
    let store = SqliteStore::temporary().unwrap();
    let rule =
        PolicyRule::lasting(ToolPattern::parse("manage.create").unwrap(), PolicyAction::Approve);
    let configured = Policy::new(vec![vec![rule]]);
    let policies = PolicySet::open(Arc::new(store), configured).await.unwrap();
    let rule = policies
        .add(new(PolicyOwner::Org, "manage.create", PolicyAction::Approve), NOW)
        .await
        .unwrap();
    let traits = ToolTraits { answer_only: true, ..ToolTraits::lasting(true) };
    let explained = policies.explain(&tool("manage.create"), traits).await.unwrap();
    let verdict = PolicyVerdict::Ask { pattern: None, editable: false };
    let ignored = Some((rule, IgnoredApproval::AnswerOnly));
    assert_eq!(explained, PolicyDecision { verdict, pattern: None, rule: None, ignored });
}

#[tokio::test]
async fn an_unconfirmed_rule_approves_nothing_until_an_administrator_confirms_or_repeats_it() {
    let store = SqliteStore::temporary().unwrap();
    let policies = open(&store).await;
    let asks = ToolTraits::lasting(true);
    let held = PolicyVerdict::Ask { pattern: None, editable: false };
    let rule =
        policies.add(new(PolicyOwner::Org, "mail.*", PolicyAction::Approve), NOW).await.unwrap();
    policies.suspend(&rule.id, &origin()).await.unwrap();
    for policies in [&policies, &open(&store).await] {
        assert_eq!(policies.live().verdict(&tool("mail.send"), asks), held);
        let explained = policies.explain(&tool("mail.send"), asks).await.unwrap();
        assert_eq!(explained.ignored.map(|(_, why)| why), Some(IgnoredApproval::Unconfirmed));
    }
    let confirmed = policies.confirm(&rule.id, Timestamp(9)).await.unwrap();
    assert_eq!((confirmed.unconfirmed, confirmed.said), (None, NOW));
    assert_eq!(policies.live().verdict(&tool("mail.send"), asks), PolicyVerdict::Allow);
    policies.suspend(&rule.id, &origin()).await.unwrap();
    let moved =
        RuleChange { position: Some(RulePosition::parse("b").unwrap()), ..RuleChange::default() };
    assert_eq!(policies.change(&rule.id, moved, NOW).await.unwrap().unconfirmed, Some(origin()));
    let again = RuleChange { action: Some(PolicyAction::Approve), ..RuleChange::default() };
    assert_eq!(policies.change(&rule.id, again, NOW).await.unwrap().unconfirmed, None);
    let blocks =
        policies.add(new(PolicyOwner::Org, "mail.send", PolicyAction::Block), NOW).await.unwrap();
    policies.suspend(&blocks.id, &origin()).await.unwrap();
    assert!(policies.live().hides(&tool("mail.send"), asks), "what tightens counts at once");
}

fn origin() -> ManagementOrigin {
    let (execution, tool) = ("run_1".into(), "executor.coreTools.policies.create".into());
    ManagementOrigin { execution, tool, answered_by: Some("run".into()) }
}
