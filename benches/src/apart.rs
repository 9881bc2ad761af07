//! Pins two processes to two cores. Their mutual wake-ups then cross cores; on one core they would only take turns, and the
//! scheduler's choice varies between runs.
#![expect(unsafe_code, reason = "which core a thread runs on has no safe interface")]

use anyhow::Result;
use std::io;

/// The core of the requesting side.
const ASKING: usize = 0;
/// The core of the answering side.
const ANSWERING: usize = 1;

/// Pins the current thread to one core. Children that it starts in the meantime inherit that.
#[derive(Debug)]
pub(crate) struct Apart {
    before: Option<libc::cpu_set_t>,
}

impl Apart {
    /// For the requesting side.
    pub(crate) fn asking() -> Result<Self> {
        Self::on(ASKING)
    }

    /// For the answering side.
    pub(crate) fn answering() -> Result<Self> {
        Self::on(ANSWERING)
    }

    /// A machine with one core has no choice.
    fn on(core: usize) -> Result<Self> {
        if std::thread::available_parallelism().is_ok_and(|n| n.get() < 2) {
            return Ok(Self { before: None });
        }
        // SAFETY: a set of cores is made of integers, for which zeros are a value; CPU_SET writes one bit of it, whose
        // number is far below its size; the kernel reads and writes each set during its call only.
        let before = unsafe {
            let (mut before, mut cores): (libc::cpu_set_t, libc::cpu_set_t) = std::mem::zeroed();
            libc::CPU_SET(core, &mut cores);
            let size = size_of::<libc::cpu_set_t>();
            if libc::sched_getaffinity(0, size, &raw mut before) < 0
                || libc::sched_setaffinity(0, size, &raw const cores) < 0
            {
                return Err(io::Error::last_os_error().into());
            }
            before
        };
        Ok(Self { before: Some(before) })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: as above. A set that was ours before is one we may have again.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before) };
        }
    }
}
