//! The content of a mark, and its encoding. Pure.

use crate::sqlite::seal::RowChecksum;
use crate::sqlite::wal::WalGeneration;
use uuid::Uuid;

/// Distance between the two slots: a torn write of one does not affect the other.
pub(in crate::sqlite) const SLOT_STRIDE: usize = 4_096;

/// Size of a slot: its content and a checksum.
pub(in crate::sqlite) const SLOT_BYTES: usize = 144;

const MAGIC: [u8; 8] = *b"AIRLMARK";

/// Incremented when the layout changes. A slot of another version counts as missing.
const VERSION: u32 = 1;

/// Identifies a run of the kernel. Data that was written and not synced survives only within one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// The kernel does not report one: equal to no other.
    pub const UNKNOWN: Self = Self([0; 16]);

    /// The present run.
    pub fn current() -> Self {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Uuid::parse_str(text.trim()).map_or(Self::UNKNOWN, |id| Self(id.into_bytes()))
    }

    /// Whether data written in one run must be present in the other.
    pub(in crate::sqlite) fn is_same_as(self, other: Self) -> bool {
        self == other && self != Self::UNKNOWN
    }
}

/// What the store had acknowledged when the mark was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct MarkState {
    pub(in crate::sqlite) boot: BootId,
    /// Identifies the history in this directory; a restored copy continues under another one.
    pub(in crate::sqlite) history: Uuid,
    /// Incremented each time the store is opened and closed. The database contains it too.
    pub(in crate::sqlite) epoch: u64,
    /// When it was written, in milliseconds since 1970.
    pub(in crate::sqlite) at: i64,
    /// The position in the log; `None` while the log is empty.
    pub(in crate::sqlite) log: Option<LogPosition>,
    /// The length of the database at its last sync, with the log copied into it.
    pub(in crate::sqlite) main_bytes: u64,
    pub(in crate::sqlite) tails: [TailPosition; 2],
}

/// The end of the log, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct LogPosition {
    pub(in crate::sqlite) generation: WalGeneration,
    pub(in crate::sqlite) written: u32,
    pub(in crate::sqlite) synced: u32,
    /// Frames that were copied into the database, and synced there.
    pub(in crate::sqlite) checkpointed: u32,
}

/// The end of an append file. An `end` of 0: nothing in it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sqlite) struct TailPosition {
    pub(in crate::sqlite) time: u64,
    pub(in crate::sqlite) end: u64,
}

impl MarkState {
    /// Encodes the slot; of two slots the one with the higher `sequence` is valid.
    pub(in crate::sqlite) fn to_bytes(self, sequence: u64) -> [u8; SLOT_BYTES] {
        let mut out = SlotWriter { bytes: [0; SLOT_BYTES], at: 0 };
        let log = self.log.unwrap_or(LogPosition {
            generation: WalGeneration { salt_1: 0, salt_2: 0 },
            written: 0,
            synced: 0,
            checkpointed: 0,
        });
        out.put(&MAGIC);
        out.put(&VERSION.to_le_bytes());
        out.put(&u32::from(self.log.is_some()).to_le_bytes());
        out.put(&sequence.to_le_bytes());
        out.put(&self.boot.0);
        out.put(self.history.as_bytes());
        out.put(&self.epoch.to_le_bytes());
        out.put(&self.at.to_le_bytes());
        for word in [log.generation.salt_1, log.generation.salt_2, log.written, log.synced] {
            out.put(&word.to_le_bytes());
        }
        out.put(&u64::from(log.checkpointed).to_le_bytes());
        out.put(&self.main_bytes.to_le_bytes());
        for tail in self.tails {
            out.put(&tail.time.to_le_bytes());
            out.put(&tail.end.to_le_bytes());
        }
        let seal = seal(&out.bytes[..out.at]);
        out.put(&seal.to_le_bytes());
        out.bytes
    }

    /// Decodes a slot and its sequence number; `None` if it is damaged or was never written.
    pub(in crate::sqlite) fn from_bytes(bytes: &[u8]) -> Option<(u64, Self)> {
        let (said, sealed) = bytes.get(..SLOT_BYTES)?.split_at(SLOT_BYTES - 8);
        let sealed = i64::from_le_bytes(sealed.try_into().ok()?);
        if seal(said) != sealed {
            return None;
        }
        let mut rest = SlotReader(said);
        if rest.take::<8>()? != MAGIC || rest.u32()? != VERSION {
            return None;
        }
        let has_log = rest.u32()? != 0;
        let sequence = rest.u64()?;
        let (boot, history) = (BootId(rest.take()?), Uuid::from_bytes(rest.take()?));
        let (epoch, at) = (rest.u64()?, i64::from_le_bytes(rest.take()?));
        let generation = WalGeneration { salt_1: rest.u32()?, salt_2: rest.u32()? };
        let (written, synced) = (rest.u32()?, rest.u32()?);
        let checkpointed = u32::try_from(rest.u64()?).ok()?;
        let log = has_log.then_some(LogPosition { generation, written, synced, checkpointed });
        let main_bytes = rest.u64()?;
        let mut tail = || Some(TailPosition { time: rest.u64()?, end: rest.u64()? });
        let tails = [tail()?, tail()?];
        Some((sequence, Self { boot, history, epoch, at, log, main_bytes, tails }))
    }

    /// The newer valid slot of a file.
    pub(in crate::sqlite) fn newest(file: &[u8]) -> Option<(u64, Self)> {
        let slots = [file.get(..SLOT_BYTES), file.get(SLOT_STRIDE..SLOT_STRIDE + SLOT_BYTES)];
        slots
            .into_iter()
            .flatten()
            .filter_map(Self::from_bytes)
            .max_by_key(|(sequence, _)| *sequence)
    }
}

fn seal(bytes: &[u8]) -> i64 {
    RowChecksum::new().bytes(bytes).done()
}

struct SlotWriter {
    bytes: [u8; SLOT_BYTES],
    at: usize,
}

impl SlotWriter {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

struct SlotReader<'a>(&'a [u8]);

impl SlotReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.0.split_off(..N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
