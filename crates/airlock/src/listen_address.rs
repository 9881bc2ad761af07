//! Addresses to listen on as people write them: `127.0.0.1:4788`, `localhost:4788`, or a port alone.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Parses an address. A port alone, and `localhost`, mean this machine only.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    if let Some(port) = text.strip_prefix(':') {
        return Err(format!(
            "{text} does not say who may connect: {port} is this machine only, 0.0.0.0:{port} every machine"
        ));
    }
    Err("it is IP:PORT such as 127.0.0.1:4788, localhost:PORT, or a port from 0 to 65535".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_and_localhost_mean_this_machine() {
        let parsed = |text: &str| parse(text).map(|address| address.to_string());
        for (text, expected) in [
            ("127.0.0.1:4788", "127.0.0.1:4788"),
            ("localhost:4788", "127.0.0.1:4788"),
            ("4788", "127.0.0.1:4788"),
            ("0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:1", "0.0.0.0:1"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(parse(":4788").unwrap_err().contains("0.0.0.0:4788 every machine"));
        for wrong in ["", "70000", "example.org:4788", "localhost", "127.0.0.1"] {
            assert!(parse(wrong).unwrap_err().starts_with("it is IP:PORT"), "{wrong}");
        }
    }
}
