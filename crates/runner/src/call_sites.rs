//! Records where outstanding calls were made: without this, the error of a failed call has no frame of the
//! program.

use crate::session::PROGRAM_FILE_NAME;
use lifecycle::CallId;
use std::collections::BTreeMap;

/// Longest stack that is recorded for one call.
const SITE_BYTES_MAX: usize = 1 << 10;

/// Limit of all recorded stacks together, which lie outside of the guest's own memory. Later calls have no
/// stack.
const SITES_BYTES_MAX: usize = 256 << 10;

/// The program's frames of each outstanding call, as the engine wrote them.
#[derive(Debug, Default)]
pub(crate) struct CallSites {
    sites: BTreeMap<CallId, Box<str>>,
    bytes: usize,
    /// The stack of the call that is being rejected.
    rejected: Option<Box<str>>,
}

impl CallSites {
    /// Records where a call was made.
    pub(crate) fn insert(&mut self, call: CallId, stack: &str) {
        let mut site = String::new();
        for line in stack.lines().filter(|line| line.contains(PROGRAM_FILE_NAME)) {
            if site.len() + line.len() > SITE_BYTES_MAX {
                break;
            }
            site.push_str(line);
            site.push('\n');
        }
        if !site.is_empty() && self.bytes + site.len() <= SITES_BYTES_MAX {
            self.bytes += site.len();
            self.sites.insert(call, site.into_boxed_str());
        }
    }

    /// Removes the settled call. If it failed, its site is used for the error that is created next.
    pub(crate) fn settle_call(&mut self, call: CallId, failed: bool) {
        let site = self.sites.remove(&call);
        self.bytes -= site.as_ref().map_or(0, |site| site.len());
        self.rejected = site.filter(|_| failed);
    }

    /// Takes the site of the call that is being rejected; `None` the second time.
    pub(crate) fn take_rejected(&mut self) -> Option<Box<str>> {
        self.rejected.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_frames_are_kept_until_the_call_is_settled() {
        let mut sites = CallSites::default();
        let stack = "    at issue (airlock:prelude:20:1)\n    at f (program.js:2:3)\n    at <anonymous> (program.js:9:1)\n";
        sites.insert(CallId(1), stack);
        sites.insert(CallId(2), "    at apply (native)\n");
        sites.settle_call(CallId(1), true);
        let kept = "    at f (program.js:2:3)\n    at <anonymous> (program.js:9:1)\n";
        assert_eq!(sites.take_rejected().as_deref(), Some(kept));
        assert_eq!((sites.take_rejected(), sites.bytes), (None, 0));
        sites.settle_call(CallId(2), true);
        assert_eq!(sites.take_rejected(), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut sites = CallSites::default();
        let frame = format!("    at {} (program.js:1:1)\n", "f".repeat(SITE_BYTES_MAX));
        sites.insert(CallId(0), &frame);
        assert!(sites.sites.is_empty());
        for call in 1..100_000 {
            sites.insert(CallId(call), "    at f (program.js:1:1)\n");
        }
        assert!(sites.bytes <= SITES_BYTES_MAX && sites.sites.len() < 100_000);
        for call in 1..100_000 {
            sites.settle_call(CallId(call), false);
        }
        assert_eq!(sites.bytes, 0);
    }
}
