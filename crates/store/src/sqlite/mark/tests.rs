//! The rules of the mark for arbitrary histories: no false alarm after a kill or a power cut, and every damage is detected.

use super::slot::{SLOT_BYTES, SLOT_STRIDE};
use super::verdict::StoreShortfall;
use super::*;
use crate::sqlite::wal::WalGeneration;
use proptest::prelude::*;
use uuid::Uuid;

const BOOT: BootId = BootId([1; 16]);
const OTHER_BOOT: BootId = BootId([2; 16]);

const fn generation(n: u32) -> WalGeneration {
    WalGeneration { salt_1: u32::MAX.wrapping_add(n), salt_2: n.wrapping_mul(0x9E37_79B9) }
}

fn state(log: Option<LogPosition>) -> MarkState {
    MarkState {
        boot: BOOT,
        history: Uuid::from_u128(7),
        epoch: 3,
        at: 1_700_000_000_000,
        log,
        main_bytes: 8_192,
        tails: [TailPosition { time: 5, end: 100 }, TailPosition::default()],
    }
}

fn log(written: u32, synced: u32, checkpointed: u32) -> LogPosition {
    LogPosition { generation: generation(1), written, synced, checkpointed }
}

fn files(log: FoundLog) -> FoundFiles {
    let tails = [FoundTail { time: Some(5), end: 100 }, FoundTail::default()];
    FoundFiles { log, main_bytes: 8_192, tails }
}

#[test]
fn a_slot_says_what_was_written_and_any_flipped_bit_is_found() {
    let state = state(Some(log(9, 4, 2)));
    let bytes = state.to_bytes(11);
    assert_eq!(MarkState::from_bytes(&bytes), Some((11, state)));
    for bit in 0..SLOT_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(MarkState::from_bytes(&flipped), None, "bit {bit}");
    }
    assert_eq!(MarkState::from_bytes(&[0; SLOT_BYTES]), None);
    assert_eq!(MarkState::from_bytes(&bytes[1..]), None);
}

#[test]
fn the_newer_sound_slot_counts() {
    let (older, newer) = (state(None), state(Some(log(1, 0, 0))));
    let mut file = vec![0; 2 * SLOT_STRIDE];
    file[..SLOT_BYTES].copy_from_slice(&newer.to_bytes(8));
    assert_eq!(MarkState::newest(&file), Some((8, newer)), "the other was never written");
    file[SLOT_STRIDE..SLOT_STRIDE + SLOT_BYTES].copy_from_slice(&older.to_bytes(7));
    assert_eq!(MarkState::newest(&file), Some((8, newer)));
    file[20] ^= 1;
    assert_eq!(MarkState::newest(&file), Some((7, older)));
    file[SLOT_STRIDE] ^= 1;
    assert_eq!(MarkState::newest(&file), None);
}

#[track_caller]
fn check(position: LogPosition, boot: BootId, found: FoundLog, expected: Option<StoreShortfall>) {
    let shortfalls = shortfalls(&state(Some(position)), &files(found), boot);
    assert_eq!(shortfalls, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn in_the_same_boot_everything_written_must_be_there() {
    let found = |frames| FoundLog::Frames(generation(1), frames);
    check(log(9, 4, 0), BOOT, found(9), None);
    check(log(9, 4, 0), BOOT, found(12), None);
    check(log(9, 4, 0), BOOT, found(8), Some(StoreShortfall::Log { found: 8, needed: 9 }));
    // The remaining frames hide newer pages of the database.
    check(log(9, 9, 9), BOOT, found(8), Some(StoreShortfall::Log { found: 8, needed: 9 }));
    check(log(9, 4, 8), BOOT, FoundLog::Empty, Some(StoreShortfall::LogGone { needed: 9 }));
    check(log(9, 9, 9), BOOT, FoundLog::Empty, None);
    check(log(9, 4, 0), BOOT, FoundLog::Frames(generation(2), 1), None);
    let unrelated = FoundLog::Frames(WalGeneration { salt_1: 1 << 31, salt_2: 1 }, 99);
    check(log(9, 4, 0), BOOT, unrelated, Some(StoreShortfall::LogGone { needed: 9 }));
}

#[test]
fn after_another_boot_only_what_was_synced_must_be_there() {
    let found = |frames| FoundLog::Frames(generation(1), frames);
    for boot in [OTHER_BOOT, BootId::UNKNOWN] {
        check(log(9, 4, 0), boot, found(4), None);
        check(log(9, 4, 0), boot, found(3), Some(StoreShortfall::Log { found: 3, needed: 4 }));
        check(log(9, 0, 0), boot, FoundLog::Empty, None);
        check(log(9, 4, 4), boot, FoundLog::Empty, None);
        check(log(9, 4, 3), boot, FoundLog::Empty, Some(StoreShortfall::LogGone { needed: 4 }));
    }
    let mut unknown = state(Some(log(9, 4, 0)));
    unknown.boot = BootId::UNKNOWN;
    assert_eq!(shortfalls(&unknown, &files(found(4)), BootId::UNKNOWN), []);
}

#[test]
fn the_database_and_the_tail_must_not_be_shorter_either() {
    let mut short = files(FoundLog::Empty);
    short.main_bytes = 4_096;
    short.tails[0].end = 50;
    let main = StoreShortfall::Main { found: 4_096, needed: 8_192 };
    let tail = StoreShortfall::Tail { which: 0, found: 50, needed: 100 };
    assert_eq!(shortfalls(&state(None), &short, BOOT), [main, tail]);
    assert_eq!(shortfalls(&state(None), &short, OTHER_BOOT), [main], "the tail is never synced");
    let mut another = files(FoundLog::Empty);
    another.tails[0].time = Some(6);
    let tail = StoreShortfall::Tail { which: 0, found: 0, needed: 100 };
    assert_eq!(shortfalls(&state(None), &another, BOOT), [tail]);
}

/// What happens to a log.
#[derive(Debug, Clone, Copy)]
enum Step {
    Commit {
        frames: u32,
        is_synced: bool,
    },
    Checkpoint {
        part: u32,
    },
    /// The helper has copied, and the writer does not know yet.
    SilentCheckpoint,
    SyncMark,
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..9_u32, any::<bool>()).prop_map(|(frames, is_synced)| Step::Commit { frames, is_synced }),
        1 => (0..10_u32).prop_map(|part| Step::Checkpoint { part }),
        1 => Just(Step::SilentCheckpoint),
        2 => Just(Step::SyncMark),
        1 => Just(Step::Close),
    ]
}

/// A log and its mark, with the store's rules.
struct Model {
    mark: MarkState,
    /// Every state of the mark that may be on the disk.
    marks: Vec<MarkState>,
    number: u32,
    /// The number of frames, of synced ones, and of copied ones.
    log: Option<(u32, u32, u32)>,
}

impl Model {
    fn new() -> Self {
        let mark = MarkState { tails: [TailPosition::default(); 2], ..state(None) };
        Self { mark, marks: vec![mark], number: 1, log: None }
    }

    fn found(&self) -> FoundLog {
        self.log.map_or(FoundLog::Empty, |(frames, _, _)| {
            FoundLog::Frames(generation(self.number), frames)
        })
    }

    fn set_mark(&mut self, log: Option<LogPosition>) {
        self.mark.log = log;
        self.marks.push(self.mark);
    }

    fn take(&mut self, step: Step) {
        let generation_now = generation(self.number);
        match step {
            Step::Commit { frames, is_synced } => {
                let (before, synced, copied) = match self.log {
                    Some((all, _, copied)) if all == copied => {
                        self.number += 1;
                        (0, 0, 0)
                    }
                    Some(log) => log,
                    None => {
                        self.number += 1;
                        (0, 0, 0)
                    }
                };
                let all = before + frames;
                let synced = if is_synced { all } else { synced };
                self.log = Some((all, synced, copied));
                let generation = generation(self.number);
                let known = self.mark.log.filter(|log| log.generation == generation);
                let checkpointed = known.map_or(0, |log| log.checkpointed);
                self.set_mark(Some(LogPosition { generation, written: all, synced, checkpointed }));
            }
            Step::Checkpoint { part } => {
                let Some((all, synced, copied)) = self.log else { return };
                let copied = copied.max(all.saturating_sub(part));
                let synced = synced.max(copied);
                self.log = Some((all, synced, copied));
                let generation = generation_now;
                self.set_mark(Some(LogPosition {
                    generation,
                    written: all,
                    synced,
                    checkpointed: copied,
                }));
            }
            Step::SilentCheckpoint => {
                let Some((all, _, _)) = self.log else { return };
                self.log = Some((all, all, all));
            }
            Step::SyncMark => self.marks = vec![self.mark],
            Step::Close => {
                self.take(Step::Checkpoint { part: 0 });
                self.take(Step::SyncMark);
                self.log = None;
                self.set_mark(None);
                self.take(Step::SyncMark);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_kill_and_no_power_cut_raises_an_alarm(steps in prop::collection::vec(step(), 0..60), cut in 0..1_000_u32, which in 0..1_000_usize) {
        let mut model = Model::new();
        for step in steps {
            model.take(step);
            let files = |log| FoundFiles { tails: [FoundTail::default(); 2], ..files(log) };
            // A kill between a commit and its mark leaves the mark before it.
            for mark in model.marks.iter().rev().take(2) {
                prop_assert_eq!(shortfalls(mark, &files(model.found()), BOOT), []);
            }
            let left = model.log.map_or(FoundLog::Empty, |(all, synced, _)| {
                FoundLog::Frames(generation(model.number), synced + cut % (all - synced + 1))
            });
            let mark = model.marks[which % model.marks.len()];
            prop_assert_eq!(shortfalls(&mark, &files(left), OTHER_BOOT), []);
        }
    }

    #[test]
    fn a_log_that_ends_before_what_was_acknowledged_raises_one(written in 1..100_u32, lost in 1..100_u32, synced in 0..100_u32, copied in 0..100_u32) {
        let synced = synced.min(written);
        let position = log(written, synced, copied.min(synced));
        let frames = written.saturating_sub(lost);
        let found = files(FoundLog::Frames(generation(1), frames));
        prop_assert_eq!(shortfalls(&state(Some(position)), &found, BOOT).len(), 1);
        let missing = shortfalls(&state(Some(position)), &found, OTHER_BOOT);
        prop_assert_eq!(missing.len(), usize::from(frames < synced));
    }
}
