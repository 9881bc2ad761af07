//! Classifies addresses: on the internet, in a private network, or refused for every request. Pure rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses outside of the link-local networks at which clouds serve credentials to the machine itself: Alibaba, Azure,
/// Oracle.
const METADATA: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Whether no request may reach an address, for public and private sources alike: link-local networks and the metadata
/// services of clouds. An IPv6 address that embeds an IPv4 address is judged as that address.
pub fn is_refused(ip: IpAddr) -> bool {
    match effective(ip) {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA.contains(&ip),
        IpAddr::V6(ip) => {
            let [first, second, ..] = ip.segments();
            let is_link_local = first & 0xffc0 == 0xfe80;
            // Amazon's services for its machines.
            is_link_local || (first, second) == (0xfd00, 0x0ec2)
        }
    }
}

/// The IPv4 address that an IPv6 address embeds, or the address itself.
pub(super) fn effective(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => embedded_v4(v6).map_or(ip, IpAddr::V4),
    }
}

/// Whether an address is on the internet.
pub(super) fn is_global(ip: IpAddr) -> bool {
    match effective(ip) {
        IpAddr::V4(ip) => is_global_v4(ip),
        IpAddr::V6(ip) => {
            let first = ip.segments()[0];
            let is_unique_local = first & 0xfe00 == 0xfc00;
            let is_link_local = first & 0xffc0 == 0xfe80;
            !(ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || is_unique_local
                || is_link_local)
        }
    }
}

fn is_global_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = (a, b, c) == (192, 0, 0);
    let is_benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 224
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || is_shared
        || is_protocol
        || is_benchmark)
}

/// The IPv4 address that an IPv6 address embeds: mapped, translated, NAT64, 6to4 or IPv4-compatible.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments @ [_, second, third, .., seventh, eighth] = ip.segments();
    let pair = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let last = pair(seventh, eighth);
    match segments {
        // 64:ff9b::/96, and the local-use prefix 64:ff9b:1::/48.
        [0x64, 0xff9b, ..] => Some(last),
        [0x2002, ..] => Some(pair(second, third)),
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(last),
        // `::` and `::1` are not embedded IPv4 addresses.
        [0, 0, 0, 0, 0, 0, ..] if seventh != 0 || eighth > 1 => Some(last),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_and_metadata_addresses_are_refused_in_every_notation() {
        let v4 = [
            "169.254.0.0",
            "169.254.169.254",
            "169.254.170.2",
            "169.254.255.255",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
        ];
        for text in v4 {
            let ip: Ipv4Addr = text.parse().unwrap();
            let [a, b, c, d] = ip.octets();
            let hex = format!("{a:02x}{b:02x}:{c:02x}{d:02x}");
            let notations = [
                text.to_owned(),
                format!("::ffff:{text}"),
                format!("::ffff:0:{text}"),
                format!("64:ff9b::{text}"),
                format!("64:ff9b:1::{text}"),
                format!("2002:{hex}::"),
                format!("2002:{hex}:1:2:3:4:5"),
                format!("::{text}"),
            ];
            for notation in notations {
                assert!(is_refused(notation.parse().unwrap()), "{notation}");
            }
        }
        let v6 = [
            "fe80::1",
            "fe80::a9fe:a9fe",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff",
        ];
        for text in v6 {
            assert!(is_refused(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn other_addresses_are_not_refused() {
        let others = [
            "8.8.8.8",
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "172.17.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "100.100.100.201",
            "168.63.129.17",
            "192.0.0.193",
            "0.0.0.0",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::8.8.8.8",
            "2002:808:808::",
            "fec0::1",
            "fd00::1",
            "fd00:ec3::254",
            "2606:4700::1111",
            "2606:4700::a9fe:a9fe",
        ];
        for text in others {
            assert!(!is_refused(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_address_that_stands_for_another_one_is_as_public_as_that_one() {
        for text in
            ["::7f00:1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "::ffff:0:a00:1"]
        {
            assert!(!is_global(text.parse().unwrap()), "{text}");
        }
        for text in ["64:ff9b::808:808", "2002:808:808::", "::ffff:8.8.8.8"] {
            assert!(is_global(text.parse().unwrap()), "{text}");
        }
    }
}
