//! Several executions on one channel: an extension of ours, only for hosts that request it.

use serde::Deserialize;

/// Whether an `execute` carries `options.multiplex: true`: it may run concurrently with others on its
/// channel. Without it, execbox's rule applies, one execution at a time.
pub fn asks_to_multiplex(line: &[u8]) -> bool {
    serde_json::from_slice::<MultiplexRequest>(line).is_ok_and(|asks| asks.options.multiplex)
}

#[derive(Deserialize)]
struct MultiplexRequest {
    options: Options,
}

#[derive(Deserialize)]
struct Options {
    multiplex: bool,
}

#[cfg(test)]
mod tests {
    use super::asks_to_multiplex;

    #[test]
    fn only_a_plain_true_asks() {
        assert!(asks_to_multiplex(br#"{"options":{"timeoutMs":1,"multiplex":true}}"#));
        for line in [&b"{}"[..], br#"{"options":{}}"#, br#"{"options":{"multiplex":1}}"#, b"x"] {
            assert!(!asks_to_multiplex(line));
        }
    }
}
