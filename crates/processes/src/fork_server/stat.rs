//! What the system says of a process: who is its parent, how long it ran, and whether it still does.

/// A process at one moment.
pub(super) struct ProcessStat {
    /// It runs no more and waits to be reaped.
    pub(super) has_ended: bool,
    pub(super) parent: u32,
    pub(super) n_threads: u64,
    /// When it began. A number is given again, but not with the same time.
    pub(super) begun: u64,
    /// Time on processors, as a user and in the system together.
    pub(super) own_ticks: u64,
    /// That of children that it has reaped, and of theirs.
    pub(super) reaped_ticks: u64,
}

impl ProcessStat {
    /// None where there is no such process.
    pub(super) fn from_pid(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it is the program's own and may hold anything, but no text after its last bracket.
        let (_, after_name) = stat.rsplit_once(')')?;
        let words: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let number = |word_idx: usize| words.get(word_idx)?.parse::<u64>().ok();
        let n_threads = number(17)?;
        Some(Self {
            // Where the first thread has ended, others may go on.
            has_ended: matches!(*words.first()?, "Z" | "X") && n_threads <= 1,
            n_threads,
            parent: u32::try_from(number(1)?).ok()?,
            begun: number(19)?,
            own_ticks: number(11)? + number(12)?,
            reaped_ticks: number(13)? + number(14)?,
        })
    }
}
