//! The messages of `serve` and `doctor` about the review of management calls that earlier versions allowed.

use crate::print;
use engine::policies::PolicySet;
use lifecycle::Timestamp;
use server::auth::review::{
    self, FindingKind, ManagementFinding, recorded_review, review_management,
};
use std::path::Path;
use store::sqlite::SqliteStore;

/// Reviews at the first start of this version, and lists the findings.
pub(crate) async fn review(store: &SqliteStore, now: Timestamp) -> anyhow::Result<()> {
    let Some(review) = review_management(store, now).await? else { return Ok(()) };
    for finding in &review.findings {
        print::print_note(&print::tamed(&format!("WARNING: {}", sentence(finding))));
    }
    Ok(())
}

/// The findings that still exist, a sentence each. Empty where the data directory cannot be read.
pub(crate) fn remaining(data_dir: &Path) -> Vec<String> {
    let recorded = SqliteStore::read_records(data_dir, review::KIND).unwrap_or_default();
    let Some(review) = recorded_review(&recorded) else { return vec![] };
    let is_there = |finding: &&ManagementFinding| {
        let records =
            SqliteStore::read_records(data_dir, finding.kind.record_kind()).unwrap_or_default();
        match finding.kind {
            FindingKind::Policy => PolicySet::unconfirmed_among(&records).contains(&finding.name),
            FindingKind::Source | FindingKind::Connection => {
                records.iter().any(|record| record.key == finding.name)
            }
        }
    };
    review
        .findings
        .iter()
        .filter(is_there)
        .map(|finding| print::tamed(&sentence(finding)))
        .collect()
}

fn sentence(finding: &ManagementFinding) -> String {
    let ManagementFinding { kind, name, origin } = finding;
    let (what, advice) = match kind {
        FindingKind::Policy => (
            "policy",
            format!("if it approves, it does not count until `airlock policy confirm {name}`"),
        ),
        FindingKind::Source => ("source", format!("`airlock source remove {name}` removes it")),
        FindingKind::Connection => ("connection", "check whether it is wanted".to_owned()),
    };
    let answered = match &origin.answered_by {
        Some(by) => format!("answered by {by}, who may not have been allowed to"),
        None => "which was not answered".to_owned(),
    };
    format!(
        "the {what} {name} was made by a call of {} in {}, {answered}; {advice}",
        origin.tool, origin.execution
    )
}
