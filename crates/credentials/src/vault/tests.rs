use super::*;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use store::sqlite::SqliteStore;

async fn vault(store: &SqliteStore, file: &Path) -> Vault {
    let place = KeyPlace::File(file.to_owned());
    Vault::open(Arc::new(store.clone()), place).await.unwrap()
}

fn house() -> (tempfile::TempDir, PathBuf, SqliteStore) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("vault.key");
    (dir, file, SqliteStore::temporary().unwrap())
}

fn locked(error: VaultError) -> String {
    let VaultError::Locked(why) = error else { panic!("{error}") };
    why
}

#[tokio::test]
async fn a_secret_is_sealed_at_rest_and_comes_back_after_a_restart() {
    let (_dir, file, store) = house();
    vault(&store, &file).await.put("a", "canary-at-rest").await.unwrap();
    let record = store.get(SECRET, "a").await.unwrap().unwrap().value;
    assert!(!record.contains("canary"), "{record}");
    let again = vault(&store, &file).await;
    assert_eq!(again.get("a").await.unwrap().as_deref(), Some("canary-at-rest"));
    assert_eq!(again.get("b").await.unwrap(), None);
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    assert!(matches!(again.put("a", &long).await, Err(VaultError::TooLong)));
}

#[tokio::test]
async fn a_record_that_was_moved_or_damaged_does_not_open() {
    let (_dir, file, store) = house();
    let vault = vault(&store, &file).await;
    vault.put("a", "secret-of-a").await.unwrap();
    let record = store.get(SECRET, "a").await.unwrap().unwrap().value;
    store.put(SECRET, "b", record, 0).await.unwrap();
    assert!(matches!(vault.get("b").await, Err(VaultError::Damaged(name)) if name == "b"));
    store.put(SECRET, "c", "{}".into(), 0).await.unwrap();
    assert!(matches!(vault.get("c").await, Err(VaultError::Damaged(_))));
}

#[tokio::test]
async fn a_lost_wrong_or_public_key_gives_advice_and_destroys_nothing() {
    let (dir, file, store) = house();
    vault(&store, &file).await.put("a", "still-here").await.unwrap();
    let kept = std::fs::read(&file).unwrap();

    std::fs::remove_file(&file).unwrap();
    let lost = vault(&store, &file).await;
    let why = locked(lost.get("a").await.unwrap_err());
    assert!(why.contains("is missing") && why.contains("Nothing was deleted"), "{why}");
    assert!(locked(lost.put("b", "new").await.unwrap_err()).contains("missing"));
    assert!(!file.exists(), "no new key hides that the old one is lost");

    let (_other_dir, other, other_store) = house();
    vault(&other_store, &other).await;
    std::fs::copy(&other, &file).unwrap();
    let why = locked(vault(&store, &file).await.get("a").await.unwrap_err());
    assert!(why.contains("were sealed with"), "{why}");

    std::fs::write(&file, &kept).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let public = vault(&store, &file).await;
    assert!(locked(public.get("a").await.unwrap_err()).contains("chmod 600"));
    assert!(public.status().await.unwrap().trouble.is_some());

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(public.unlock().await.unwrap(), "the same process opens it once the file is right");
    assert_eq!(public.get("a").await.unwrap().as_deref(), Some("still-here"));
    assert_eq!(store.all(SECRET).await.unwrap().len(), 1);
    drop(dir);
}

#[tokio::test]
async fn rotation_seals_everything_anew_and_the_old_key_opens_nothing() {
    let (_dir, file, store) = house();
    let before = vault(&store, &file).await;
    for n in 0..5 {
        before.put(&format!("s{n}"), &format!("value-{n}")).await.unwrap();
    }
    let old_file = std::fs::read(&file).unwrap();
    let old_record = store.get(SECRET, "s1").await.unwrap().unwrap().value;
    assert_eq!(before.rotate().await.unwrap(), 5);
    assert_ne!(std::fs::read(&file).unwrap(), old_file);
    assert_ne!(store.get(SECRET, "s1").await.unwrap().unwrap().value, old_record);
    let after = vault(&store, &file).await;
    assert_eq!(after.get("s4").await.unwrap().as_deref(), Some("value-4"));
    std::fs::write(&file, old_file).unwrap();
    assert!(
        locked(vault(&store, &file).await.get("s1").await.unwrap_err()).contains("sealed with")
    );
}

#[tokio::test]
async fn a_rotation_that_was_cut_off_leaves_everything_readable() {
    let (_dir, file, store) = house();
    let first = vault(&store, &file).await;
    first.put("a", "value-a").await.unwrap();
    // A crash after the first step: both keys in the file, and the record still under the old one.
    let opened = first.open_keys().unwrap();
    let stray = ("feedbeef".to_owned(), SealingKey::random().unwrap());
    first.write_file(&vec![opened.outer.clone(), stray]).unwrap();
    let second = vault(&store, &file).await;
    assert_eq!(second.get("a").await.unwrap().as_deref(), Some("value-a"));
    assert_eq!(key_file::read(&file).unwrap().unwrap().len(), 1, "what is left over goes");
    // A crash after a later step: two data keys, and a secret under the older one.
    let outer = (key_id().unwrap(), SealingKey::random().unwrap());
    let mut data = opened.data.clone();
    data.insert("new".into(), SealingKey::random().unwrap());
    second.write_file(&vec![opened.outer.clone(), outer.clone()]).unwrap();
    second.save_keys(&OpenKeys { outer, data, current: "new".into() }).await.unwrap();
    let third = vault(&store, &file).await;
    third.put("b", "value-b").await.unwrap();
    assert_eq!(third.rotate().await.unwrap(), 2);
    let fourth = vault(&store, &file).await;
    assert_eq!(fourth.get("a").await.unwrap().as_deref(), Some("value-a"));
    assert_eq!(fourth.get("b").await.unwrap().as_deref(), Some("value-b"));
}

#[tokio::test]
async fn what_can_be_had_once_is_had_once() {
    let (_dir, file, store) = house();
    let vault = vault(&store, &file).await;
    vault.put("once", "value").await.unwrap();
    let (one, two) = tokio::join!(vault.take("once"), vault.take("once"));
    let n_had = [one.unwrap(), two.unwrap()].iter().flatten().count();
    assert_eq!(n_had, 1);
    assert_eq!(vault.take("once").await.unwrap(), None);
}

#[tokio::test]
async fn an_export_opens_with_its_passphrase_elsewhere_and_replaces_nothing() {
    let (_dir, file, store) = house();
    let here = vault(&store, &file).await;
    here.put("a", "canary-exported").await.unwrap();
    here.put("b", "value-b").await.unwrap();
    assert!(matches!(here.export("short").await, Err(VaultError::Backup(_))));
    let backup = here.export("correct horse battery").await.unwrap();
    assert!(!backup.contains("canary"));

    let (_there_dir, there_file, there_store) = house();
    let there = vault(&there_store, &there_file).await;
    there.put("b", "mine").await.unwrap();
    assert!(matches!(
        there.import("wrong horse battery", &backup).await,
        Err(VaultError::Backup(_))
    ));
    assert!(matches!(
        there.import("correct horse battery", "{}").await,
        Err(VaultError::Backup(_))
    ));
    let done = there.import("correct horse battery", &backup).await.unwrap();
    assert_eq!(done, VaultImport { n_added: 1, n_kept: 1 });
    assert_eq!(there.get("a").await.unwrap().as_deref(), Some("canary-exported"));
    assert_eq!(there.get("b").await.unwrap().as_deref(), Some("mine"));
}
