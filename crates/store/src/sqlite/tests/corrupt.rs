//! The campaign `corrupt`: every file of a data directory is damaged at random, or loses blocks in a power cut. Everything
//! acknowledged before is equal afterwards, or the damage is reported.
//!
//! Small in the daily test. `cargo xtask soak corrupt` runs 2,000 cases in slices; a case is a seed.

// The only reader of a campaign's environment; the tests of `airlock` contain it as a separate module.
#[path = "../../../../airlock/tests/campaign/mod.rs"]
mod campaign;

use super::mark::{Image, image, lay_out};
use super::*;
use crate::sqlite::tables::TableWrite;
use crate::sqlite::{BootId, OpenError};
use crate::{RecordStore, StoredRecord};
use std::collections::BTreeMap;

const CASES_DAILY: u64 = 50;

/// Smallest part of a file that reaches the disk as a whole.
const BLOCK_BYTES: usize = 512;

const OTHER_BOOT: BootId = BootId([9; 16]);

/// Random numbers of a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }
}

/// What was acknowledged.
type Acknowledged = BTreeMap<u128, Vec<Entry>>;

/// A directory during use.
struct Life {
    /// The files after a kill.
    now: Image,
    acknowledged: Acknowledged,
    n_records: usize,
    /// The minimum that remains after a power cut, and what was acknowledged with it.
    durable: Image,
    survives: Acknowledged,
}

async fn append_synced(store: &SqliteStore, append: JournalAppend) {
    let append = JournalAppend { strength: WriteStrength::Synced, ..append };
    store.append(append).await.unwrap();
}

/// Uses a store for a while: appends of each kind, records, restarts.
async fn lived(random: &mut Random) -> Life {
    let temp = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(temp.path()).unwrap();
    let (mut acknowledged, mut n_records) = (Acknowledged::new(), 0);
    let (mut durable, mut survives) = (image(temp.path()), Acknowledged::new());
    let mut n_barriers = 0;
    for _ in 0..10 + random.below(40) {
        let n = acknowledged.len() as u128 + 1;
        let text = "x".repeat(random.below(300));
        let mut synced = None;
        match random.below(12) {
            0..3 => {
                store.append(whole(n)).await.unwrap();
                acknowledged.insert(n, vec![line(1, "a"), end(2)]);
            }
            3..7 => {
                write(&store, n, vec![line(1, &text)]).await.unwrap();
                acknowledged.insert(n, vec![line(1, &text)]);
            }
            7..9 if n > 1 => {
                let n = 1 + random.below(acknowledged.len()) as u128;
                let entries = acknowledged.get_mut(&n).unwrap();
                if !matches!(entries.last().unwrap().event, Event::Finished { .. }) {
                    let next = line(entries.len() as u64 + 1, &text);
                    write(&store, n, vec![next.clone()]).await.unwrap();
                    entries.push(next);
                }
            }
            9 => {
                n_records += 1;
                store.put("policy", &n_records.to_string(), text, 0).await.unwrap();
                synced = Some(Synced::Log);
            }
            10 => match random.below(4) {
                0 => {
                    store.close().await;
                    store = SqliteStore::open(temp.path()).unwrap();
                    synced = Some(Synced::All);
                }
                // The barrier below is the first commit of the next log.
                1 => {
                    let checkpoint = TableWrite::Trouble("PRAGMA wal_checkpoint(PASSIVE)");
                    store.write(Ok(checkpoint), drop).await.unwrap();
                    synced = Some(Synced::Log);
                }
                _ => {}
            },
            _ => {
                append_synced(&store, append(n, vec![line(1, &text)], running())).await;
                acknowledged.insert(n, vec![line(1, &text)]);
                synced = Some(Synced::Log);
            }
        }
        if let Some(synced) = synced {
            // The append files are never synced; inserted executions are.
            let sorted: Vec<StoredRecord> = store.all("none").await.unwrap();
            assert_eq!(sorted, []);
            n_barriers += 1;
            let barrier = append(u128::MAX - n_barriers, vec![line(1, "")], running());
            append_synced(&store, barrier).await;
            durable = synced.durable(durable, image(temp.path()), random);
            survives = acknowledged.clone();
        }
    }
    let now = image(temp.path());
    store.close().await;
    Life { now, acknowledged, n_records, durable, survives }
}

/// What reached the disk for certain.
#[derive(Clone, Copy)]
enum Synced {
    /// The log, and the part of the database that the log does not contain.
    Log,
    /// The mark, too.
    All,
}

impl Synced {
    /// What remains after a power cut from here on, if `before` remained until now. The mark is synced at its own times
    /// and the append files never: both may still be earlier versions.
    fn durable(self, before: Image, now: Image, random: &mut Random) -> Image {
        let mut durable = now;
        for (name, earlier) in before {
            let is_synced = match name.as_str() {
                "store.mark" => matches!(self, Self::All),
                name => !name.starts_with("store.tail"),
            };
            if !is_synced && random.below(2) == 0 {
                durable.insert(name, earlier);
            }
        }
        durable
    }
}

/// Damages one file, and describes how.
fn damage(image: &mut Image, random: &mut Random) -> String {
    let names: Vec<_> = image.keys().filter(|name| !name.ends_with("-shm")).cloned().collect();
    let name = names[random.below(names.len())].clone();
    let bytes = image.get_mut(&name).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let at = random.below(used);
    match random.below(4) {
        0 if !bytes.is_empty() => {
            bytes[at] ^= 1 << random.below(8);
            format!("{name}: a bit of byte {at} is flipped")
        }
        1 => {
            let end = bytes.len().min(at + 1 + random.below(4_096));
            bytes[at..end].fill(0);
            format!("{name}: bytes {at} to {end} are zero")
        }
        2 => {
            bytes.truncate(at);
            format!("{name}: cut at {at}")
        }
        _ => {
            image.remove(&name);
            format!("{name} is gone")
        }
    }
}

fn cut_power(life: &Life, random: &mut Random) -> Image {
    let left = |(name, now): (&String, &Vec<u8>)| {
        let before = life.durable.get(name).map_or(&[][..], Vec::as_slice);
        (name.clone(), file_after_power_cut(before, now, random))
    };
    life.now.iter().map(left).collect()
}

/// Of what changed since the last sync, each block is present or not, and so is the new length.
///
/// A block that the synced file fills in part is one block on the disk. It is written again completely when the file
/// grows, and both of its versions hold the synced bytes.
fn file_after_power_cut(before: &[u8], now: &[u8], random: &mut Random) -> Vec<u8> {
    let padded = |bytes: &[u8]| {
        let mut padded = bytes.to_vec();
        padded.resize(before.len().max(now.len()), 0);
        padded
    };
    let length = if random.below(2) == 0 { now.len() } else { before.len() };
    let mut left = padded(now);
    for (block, old) in left.chunks_mut(BLOCK_BYTES).zip(padded(before).chunks(BLOCK_BYTES)) {
        if random.below(2) == 0 {
            block.copy_from_slice(old);
        }
    }
    left.truncate(length);
    left
}

/// The totals of a campaign.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    cases: usize,
    refused: usize,
    reported: usize,
    unharmed: usize,
    recovered: usize,
    power_cuts: usize,
    alarms: usize,
    silent: usize,
}

impl Sums {
    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "cases": self.cases,
            "refused": self.refused,
            "reported": self.reported,
            "unharmed": self.unharmed,
            "recovered": self.recovered,
            "power cuts": self.power_cuts,
            "false alarms": self.alarms,
            "silent": self.silent,
        })
    }
}

/// Everything acknowledged, as the store returns it; none if it reports damage.
async fn shown(store: &SqliteStore, acknowledged: &Acknowledged, n_records: usize) -> Option<bool> {
    let mut is_equal = true;
    for (n, entries) in acknowledged {
        match Journal::read(store, id(*n), Seq(0), usize::MAX).await {
            Ok(found) => is_equal &= found.starts_with(entries),
            Err(StoreError::Damaged(_)) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    match store.all("policy").await {
        Ok(records) => Some(is_equal && records.len() >= n_records),
        Err(StoreError::Damaged(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

async fn damaged_case(life: &Life, random: &mut Random, sums: &mut Sums) -> String {
    let mut image = life.now.clone();
    let how = damage(&mut image, random);
    let dir = lay_out(&image);
    let store = match SqliteStore::open(dir.path()) {
        Ok(store) => store,
        Err(
            OpenError::Short { .. } | OpenError::Foreign | OpenError::Store(StoreError::Damaged(_)),
        ) => {
            sums.refused += 1;
            SqliteStore::recover(dir.path(), Timestamp(1))
                .unwrap_or_else(|error| panic!("{how}: {error}"));
            let store =
                SqliteStore::open(dir.path()).unwrap_or_else(|error| panic!("{how}: {error}"));
            assert!(store.data_loss().await.unwrap().is_some(), "{how}");
            let is_read = shown(&store, &life.acknowledged, life.n_records).await;
            sums.recovered += usize::from(is_read.is_some());
            store.close().await;
            return how;
        }
        Err(other) => panic!("{how}: {other}"),
    };
    let is_reported = store.data_loss().await.unwrap().is_some();
    match (shown(&store, &life.acknowledged, life.n_records).await, is_reported) {
        (None, _) | (Some(_), true) => sums.reported += 1,
        (Some(true), false) => sums.unharmed += 1,
        (Some(false), false) => sums.silent += 1,
    }
    store.close().await;
    how
}

async fn power_case(life: &Life, random: &mut Random, sums: &mut Sums) {
    let dir = lay_out(&cut_power(life, random));
    sums.power_cuts += 1;
    match SqliteStore::open_in_boot(dir.path(), OTHER_BOOT) {
        Ok(store) => {
            let is_equal = shown(&store, &life.survives, 0).await;
            assert_eq!(is_equal, Some(true), "something synced is gone");
            sums.alarms += usize::from(store.data_loss().await.unwrap().is_some());
            store.close().await;
        }
        Err(_) => sums.alarms += 1,
    }
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "a campaign prints its sums")]
async fn corrupt_files_are_reported_and_power_cuts_raise_no_alarm() {
    let seeds = campaign::soak_range().unwrap_or(0..CASES_DAILY);
    let mut sums = Sums::default();
    for seed in seeds.clone() {
        let mut random = Random(seed);
        let life = lived(&mut random).await;
        let how = damaged_case(&life, &mut random, &mut sums).await;
        assert_eq!(sums.silent, 0, "seed {seed}: {how}");
        power_case(&life, &mut random, &mut sums).await;
        assert_eq!(sums.alarms, 0, "seed {seed}: a power cut raised an alarm");
        sums.cases += 1;
    }
    println!("corrupt, seeds {seeds:?}: {sums:?}");
    campaign::report_sums(&sums.to_json());
}

#[test]
fn a_power_cut_leaves_every_synced_byte_of_a_file_that_grew() {
    let before = vec![1; BLOCK_BYTES + 188];
    let mut now = before.clone();
    now.resize(5 * BLOCK_BYTES, 2);
    let mut lengths = BTreeMap::<usize, u32>::new();
    for seed in 0..64 {
        let left = file_after_power_cut(&before, &now, &mut Random(seed));
        assert!(left.starts_with(&before), "seed {seed}");
        *lengths.entry(left.len()).or_default() += 1;
    }
    assert_eq!(lengths.keys().collect::<Vec<_>>(), [&before.len(), &now.len()]);
}
