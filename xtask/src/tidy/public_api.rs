//! The public items of the crates that other programs embed, compared with a listing in the tree. A change of the listing is
//! a change that those programs notice.

use super::TidyFinding;
use super::rust_text::RustText;
use super::tree::SourceFile;
use crate::cargo::root;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;

/// Crates whose public items are listed.
const LISTED_CRATES: [&str; 2] = ["client", "engine"];

/// Compares the public items with the listings.
pub(super) fn check_listings(files: &[SourceFile]) -> Vec<TidyFinding> {
    LISTED_CRATES.iter().filter_map(|name| check_listing(files, name)).collect()
}

/// Rewrites the listings.
pub(crate) fn write_listings() -> Result<()> {
    let files = super::tree::read(&root())?;
    for name in LISTED_CRATES {
        let path = root().join(listing_path(name));
        fs::write(&path, listing(&files, name)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn check_listing(files: &[SourceFile], name: &str) -> Option<TidyFinding> {
    let path = listing_path(name);
    let stored = files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let present = listing(files, name);
    if stored == present {
        return None;
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (stored, present) = (lines(stored), lines(&present));
    let change = |from: &BTreeSet<String>, to: &BTreeSet<String>| {
        to.difference(from).take(3).cloned().collect::<Vec<_>>().join(", ")
    };
    let what = format!(
        "public items changed: new [{}], gone [{}]; run cargo xtask bless -p xtask and read the diff",
        change(&stored, &present),
        change(&present, &stored)
    );
    Some(TidyFinding::insist(path, what))
}

fn listing_path(name: &str) -> String {
    format!("crates/{name}/public-api.txt")
}

/// One line for each public item: its file, its kind and its name.
fn listing(files: &[SourceFile], name: &str) -> String {
    let folder = format!("crates/{name}/src/");
    let mut lines = BTreeSet::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some(place) = file.path.strip_prefix(&folder) else { continue };
        if place.ends_with("tests.rs") || place.contains("/tests/") {
            continue;
        }
        let items = RustText::new(&file.text);
        lines.extend(items.public_items().map(|item| format!("{place}: {item}\n")));
    }
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_new_public_item_is_an_error_until_it_is_listed() {
        let code = file(
            "crates/client/src/http.rs",
            "pub struct AirlockClient;\npub(crate) struct Inner;\nimpl AirlockClient {\n    pub async fn start() {}\n}\n",
        );
        let engine = file("crates/engine/public-api.txt", "");
        let listed = "http.rs: fn start\nhttp.rs: struct AirlockClient\n";
        let stored = file("crates/client/public-api.txt", listed);
        assert_eq!(check_listings(&[code.clone(), engine.clone(), stored]), []);
        let stored = file("crates/client/public-api.txt", "http.rs: fn start\nhttp.rs: fn stop\n");
        let found = check_listings(&[code, engine, stored]);
        let what = "new [http.rs: struct AirlockClient], gone [http.rs: fn stop]";
        assert!(found[0].what.contains(what), "{found:?}");
    }
}
