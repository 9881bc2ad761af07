//! Reads a process's status from the system: its parent, its processor time, and whether it has ended.

/// The status of a process at one moment.
pub(super) struct ProcessStat {
    /// It has ended and waits to be reaped.
    pub(super) has_ended: bool,
    pub(super) parent: u32,
    pub(super) n_threads: u64,
    /// When it started. A number can be reused, but not with the same start time.
    pub(super) begun: u64,
    /// Processor time, user and system together.
    pub(super) own_ticks: u64,
    /// Processor time of the descendants that were reaped.
    pub(super) reaped_ticks: u64,
}

impl ProcessStat {
    /// `None` if there is no such process.
    pub(super) fn from_pid(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it is chosen by the program and may contain anything, but the text after the last
        // bracket is the kernel's.
        let (_, after_name) = stat.rsplit_once(')')?;
        let words: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let number = |word_idx: usize| words.get(word_idx)?.parse::<u64>().ok();
        let n_threads = number(17)?;
        Some(Self {
            // After the end of the first thread, others may continue.
            has_ended: matches!(*words.first()?, "Z" | "X") && n_threads <= 1,
            n_threads,
            parent: u32::try_from(number(1)?).ok()?,
            begun: number(19)?,
            own_ticks: number(11)? + number(12)?,
            reaped_ticks: number(13)? + number(14)?,
        })
    }
}
