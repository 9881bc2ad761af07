//! The format of SQLite's write-ahead log, as far as the mark and recovery need it. Pure: parses bytes.
//!
//! A log is a header and frames, each of which holds one page. The header's two salts identify the log's generation:
//! each time the log is restarted, the first salt is incremented and the second is random. Checksums run through all
//! frames, so SQLite ignores every frame behind a damaged one.

/// The log's header.
pub(super) const HEADER_BYTES: usize = 32;

/// The header before each page.
pub(super) const FRAME_HEADER_BYTES: usize = 24;

/// A generation that began this many restarts later still counts as a successor.
const RESTARTS_MAX: u32 = 1 << 20;

const MAGIC_LITTLE: u32 = 0x377f_0682;
const MAGIC_BIG: u32 = 0x377f_0683;

/// The generation of a log: its salts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalGeneration {
    pub(super) salt_1: u32,
    pub(super) salt_2: u32,
}

impl WalGeneration {
    /// From a frame's header, or from the salts in a log's header.
    pub(super) fn from_bytes(bytes: [u8; 8]) -> Self {
        let (salt_1, salt_2) = bytes.split_at(4);
        Self { salt_1: big_endian(salt_1), salt_2: big_endian(salt_2) }
    }

    /// Whether `self` began when a log of the generation `earlier` was restarted. SQLite restarts a log only after all of
    /// it was copied into the database.
    pub(super) const fn follows(self, earlier: Self) -> bool {
        let n_restarts = self.salt_1.wrapping_sub(earlier.salt_1);
        n_restarts > 0 && n_restarts <= RESTARTS_MAX
    }
}

/// The fields of a log's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogHeader {
    pub(super) generation: WalGeneration,
    pub(super) page_bytes: usize,
    is_big_endian: bool,
    checksum: (u32, u32),
}

impl LogHeader {
    /// Parses the header of a log; `None` if it is incomplete or damaged, which SQLite treats as an empty log.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let is_big_endian = match big_endian(&header[..4]) {
            MAGIC_LITTLE => false,
            MAGIC_BIG => true,
            _ => return None,
        };
        let page_bytes = usize::try_from(big_endian(&header[8..12])).ok()?;
        let checksum = checksum((0, 0), &header[..24], is_big_endian);
        let is_sound = page_bytes.is_power_of_two()
            && (512..=65_536).contains(&page_bytes)
            && stored_checksum(&header[24..]) == checksum;
        let generation = WalGeneration::from_bytes(header[16..24].try_into().ok()?);
        is_sound.then_some(Self { generation, page_bytes, is_big_endian, checksum })
    }

    /// A frame with its header.
    pub(super) const fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.page_bytes
    }

    /// Begins to check the frames of this log, from the first.
    pub(super) const fn frames(&self) -> FrameChecker {
        FrameChecker { header: *self, checksum: self.checksum }
    }
}

/// A frame with a valid checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalFrame {
    pub(super) page: u32,
    /// The number of the database's pages after the transaction that ends with this frame, if one does.
    pub(super) commits_with: Option<u32>,
}

/// Checks one frame after the other.
pub(super) struct FrameChecker {
    header: LogHeader,
    checksum: (u32, u32),
}

impl FrameChecker {
    /// Checks the next frame; `None` if it is of another generation or damaged. The one after it is
    /// then checked against the checksum that this one contains.
    pub(super) fn next(&mut self, frame: &[u8]) -> Option<WalFrame> {
        let (head, page) = frame.split_at_checked(FRAME_HEADER_BYTES)?;
        let of_page = checksum(self.checksum, &head[..8], self.header.is_big_endian);
        let of_page = checksum(of_page, page, self.header.is_big_endian);
        let named = stored_checksum(&head[16..]);
        let generation = WalGeneration::from_bytes(head[8..16].try_into().ok()?);
        let number = big_endian(&head[..4]);
        self.checksum = named;
        let n_pages = big_endian(&head[4..8]);
        (generation == self.header.generation && of_page == named && number > 0)
            .then(|| WalFrame { page: number, commits_with: (n_pages > 0).then_some(n_pages) })
    }
}

fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn stored_checksum(bytes: &[u8]) -> (u32, u32) {
    (big_endian(&bytes[..4]), big_endian(&bytes[4..8]))
}

/// SQLite's checksum of `bytes`, continued from `(s0, s1)`.
fn checksum((mut s0, mut s1): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let word = |word: [u8; 4]| match is_big_endian {
        true => u32::from_be_bytes(word),
        false => u32::from_le_bytes(word),
    };
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs {
        s0 = s0.wrapping_add(word([*a, *b, *c, *d])).wrapping_add(s1);
        s1 = s1.wrapping_add(word([*e, *f, *g, *h])).wrapping_add(s0);
    }
    (s0, s1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_follows_the_one_before_it_and_not_itself() {
        let generation = |salt_1| WalGeneration { salt_1, salt_2: 7 };
        assert!(generation(1).follows(generation(0)));
        assert!(generation(0).follows(generation(u32::MAX)), "salts wrap around");
        assert!(!generation(5).follows(generation(5)));
        assert!(!generation(4).follows(generation(5)));
    }

    #[test]
    fn the_frames_of_a_real_log_are_found_and_a_flipped_bit_ends_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        conn.execute_batch(
            "CREATE TABLE t (a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
        )
        .unwrap();
        let log = std::fs::read(path.with_extension("db-wal")).unwrap();
        let header = LogHeader::parse(&log).unwrap();
        let read = |log: &[u8]| {
            let mut checker = header.frames();
            log[HEADER_BYTES..]
                .chunks(header.frame_bytes())
                .map(|frame| checker.next(frame))
                .collect::<Vec<_>>()
        };
        let frames = read(&log);
        assert!(frames.len() >= 3 && frames.iter().all(Option::is_some), "{frames:?}");
        assert!(frames.last().unwrap().unwrap().commits_with.is_some());
        let mut flipped = log.clone();
        flipped[HEADER_BYTES + header.frame_bytes() + 100] ^= 1;
        let after = read(&flipped);
        assert_eq!(
            after.iter().filter(|frame| frame.is_none()).count(),
            1,
            "the others hold by themselves"
        );
        assert_eq!(after[1], None);
        flipped = log;
        flipped[17] ^= 1;
        assert_eq!(LogHeader::parse(&flipped), None);
    }
}
