//! The bodies of the fuzz targets: each passes untrusted bytes to one decoder and checks invariants of the result.
//!
//! libFuzzer calls them from `fuzz/fuzz_targets`, and `tests/seeds.rs` calls them with the stored seeds.

mod documents;
mod doors;
mod link;
mod stored;

pub use documents::{configuration, graphql, json_schema, openapi};
pub use doors::{enclave, enclave_envelope, exec_server, executor, hotrepl, json_rpc};
pub use link::{execbox_from_runner, execbox_to_runner, ndjson, repl_session};
pub use stored::{append_file, journal_row};

/// A target: its name, which is also the name of its folder of seeds, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target. A test compares the list with the folders.
pub const TARGETS: &[Target] = &[
    ("append_file", append_file),
    ("configuration", configuration),
    ("enclave", enclave),
    ("enclave_envelope", enclave_envelope),
    ("exec_server", exec_server),
    ("execbox_from_runner", execbox_from_runner),
    ("execbox_to_runner", execbox_to_runner),
    ("executor", executor),
    ("graphql", graphql),
    ("hotrepl", hotrepl),
    ("journal_row", journal_row),
    ("json_rpc", json_rpc),
    ("json_schema", json_schema),
    ("ndjson", ndjson),
    ("openapi", openapi),
    ("repl_session", repl_session),
];

/// Returns the bytes as text, as a socket passes them to a text decoder.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
