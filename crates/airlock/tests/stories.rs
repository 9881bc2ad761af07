//! Stories: a text file tells a plot and what the journal, and each door, says of it.
//!
//! The sandbox and the store are real; tools are scripted, people answer from the file, the clock is
//! wound by hand. `cargo xtask bless` rewrites what the stories expect.
#![expect(clippy::unwrap_used, reason = "a story that cannot be told should stop")]

mod told;

use std::path::Path;
use told::{Plot, tell};

#[test]
fn every_story_is_told_as_it_is_written() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "the stories are gone");
    let wrong: Vec<_> = files.iter().filter_map(|file| runtime.block_on(differs(file))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How the story differs from what is written, if it does.
async fn differs(file: &Path) -> Option<String> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file).unwrap();
    let (plot, expected) = text.split_once("\n=== journal\n").expect("a story has a journal part");
    let told = tell(&Plot::parse(plot)).await;
    if told == expected {
        return None;
    }
    if std::env::var_os("AIRLOCK_BLESS").is_some() {
        std::fs::write(file, format!("{plot}\n=== journal\n{told}")).unwrap();
        return None;
    }
    Some(format!("--- {name}: written\n{expected}--- {name}: told\n{told}"))
}
