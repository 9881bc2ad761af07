//! Stories: a text file contains a plot and the expected transcripts of the journal and of each door.
//!
//! The sandbox and the store are real; tools are scripted, people answer from the file, and the clock is manual. `cargo
//! xtask bless` rewrites the expected transcripts.

use crate::story_player::{self, Plot, tell};
use std::path::Path;

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

/// The difference between the story and the expected transcripts, if there is one.
async fn differs(file: &Path) -> Option<String> {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let written = std::fs::read_to_string(file).unwrap();
    let mut parts = written.split("\n=== ");
    let text = parts.next().unwrap();
    let plot = Plot::parse(text);
    let mut told = text.to_owned();
    for part in parts {
        let door = part.lines().next().unwrap();
        let says = match door {
            "journal" => tell(&plot).await,
            "executor" => story_player::executor::tell(&plot).await,
            "enclave" => story_player::enclave::tell(&plot).await,
            "stream" => story_player::stream::tell(&plot).await,
            other => panic!("{name}: there is no door {other}"),
        };
        told.push_str(&format!("\n=== {door}\n{says}"));
    }
    if told == written {
        return None;
    }
    if std::env::var_os("AIRLOCK_BLESS").is_some() {
        std::fs::write(file, told).unwrap();
        return None;
    }
    Some(format!("--- {name}: written\n{written}--- {name}: told\n{told}"))
}
