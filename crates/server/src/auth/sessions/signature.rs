//! How a browser signs a request with its session's key, and how a signature is checked. Free of side effects except
//! for the list of used values.
//!
//! The key cannot be extracted from the browser. The signature covers a nonce of the current run of the server, so
//! that one made for another process on the same port, or before a restart, is invalid.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::Timestamp;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use std::collections::{HashMap, HashSet, VecDeque};

/// The scheme in the header `Authorization`.
pub(super) const SCHEME: &str = "airlock-session";

/// The first line of the signed text; it changes with the version of the protocol.
const VERSION_LINE: &str = "airlock-session-v1";

/// Maximum difference between a request's time and the server's. The browser learns the server's time with the nonce.
const TIME_DIFFERENCE_MS_MAX: i64 = 60 * 1_000;

/// Maximum number of signed requests of one session within twice that time; one person's tabs send far fewer.
const VALUES_MAX: usize = 4_000;

/// Bytes of the random value that makes each request unique.
const VALUE_BYTES: usize = 16;

/// An uncompressed point of P-256.
const KEY_BYTES: usize = 65;

/// The members of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignedHeader<'a> {
    pub(super) id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) time: &'a str,
    pub(super) value: &'a str,
    /// SHA-256 of the body, in base64url.
    pub(super) body: &'a str,
    pub(super) signature: &'a str,
}

/// The signed data besides the header's own members.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a str,
    /// Path and query as they were sent.
    pub(super) target: &'a str,
    /// The header `Airlock-Elevation`, or an empty text.
    pub(super) elevation: &'a str,
}

impl<'a> SignedHeader<'a> {
    /// Parses the text after the scheme: `id=…,nonce=…,time=…,value=…,body=…,signature=…`, in any order.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let members = text.split(',').map(|member| member.trim().split_once('='));
        let members: HashMap<&str, &str> = members.collect::<Option<_>>()?;
        let member = |name| members.get(name).copied();
        Some(Self {
            id: member("id")?,
            nonce: member("nonce")?,
            time: member("time")?,
            value: member("value")?,
            body: member("body")?,
            signature: member("signature")?,
        })
    }

    /// Whether its time is close to `now`.
    pub(super) fn is_timely(&self, now: Timestamp) -> bool {
        let time = self.time.parse::<i64>().ok();
        time.is_some_and(|time| now.0.abs_diff(time) <= TIME_DIFFERENCE_MS_MAX.unsigned_abs())
    }

    /// Whether the holder of `key`, in base64url, signed this request.
    pub(super) fn is_signed_by(&self, key: &str, request: SignedRequest<'_>) -> bool {
        let verified = || {
            let key = parse_key(key)?;
            let signature = URL_SAFE_NO_PAD.decode(self.signature).ok()?;
            let signature = Signature::from_slice(&signature).ok()?;
            key.verify(self.signed_text(request).as_bytes(), &signature).ok()
        };
        verified().is_some()
    }

    fn signed_text(&self, request: SignedRequest<'_>) -> String {
        let SignedRequest { method, target, elevation } = request;
        let lines = [
            VERSION_LINE,
            method,
            target,
            self.body,
            self.nonce,
            self.time,
            self.value,
            self.id,
            elevation,
        ];
        lines.join("\n")
    }

    /// The random value of this request.
    pub(super) fn random_value(&self) -> Option<[u8; VALUE_BYTES]> {
        URL_SAFE_NO_PAD.decode(self.value).ok()?.try_into().ok()
    }
}

/// The digest that the header claims for the body; none if it is unreadable.
pub(super) fn claimed_digest(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Whether a text is a public key that can verify request signatures.
pub(crate) fn is_public_key(text: &str) -> bool {
    parse_key(text).is_some()
}

fn parse_key(text: &str) -> Option<VerifyingKey> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == KEY_BYTES)?;
    VerifyingKey::from_sec1_bytes(&bytes).ok()
}

/// The random values of requests that could still be replayed, by session.
#[derive(Default)]
pub(super) struct ReplayGuard(HashMap<String, SeenValues>);

#[derive(Default)]
struct SeenValues {
    values: HashSet<[u8; VALUE_BYTES]>,
    /// Ordered by expiry.
    ends: VecDeque<(i64, [u8; VALUE_BYTES])>,
}

/// Why a correctly signed request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplayRefusal {
    /// It was received before.
    Replayed,
    /// The session sends more requests than can be remembered.
    TooMany,
}

impl ReplayGuard {
    /// Remembers a request until its time is too old to be accepted.
    pub(super) fn check_nonce(
        &mut self,
        session: &str,
        value: [u8; VALUE_BYTES],
        now: Timestamp,
    ) -> Result<(), ReplayRefusal> {
        self.0.retain(|_, seen| seen.forget_before(now));
        let seen = self.0.entry(session.to_owned()).or_default();
        if seen.values.contains(&value) {
            return Err(ReplayRefusal::Replayed);
        }
        // Forgetting a value would allow it to be replayed.
        if seen.values.len() >= VALUES_MAX {
            return Err(ReplayRefusal::TooMany);
        }
        seen.values.insert(value);
        // The request's time is at most this far ahead of the server's, and is accepted this long after.
        seen.ends.push_back((now.0.saturating_add(2 * TIME_DIFFERENCE_MS_MAX), value));
        Ok(())
    }
}

impl SeenValues {
    /// Removes expired values; returns whether any are left.
    fn forget_before(&mut self, now: Timestamp) -> bool {
        while let Some((_, value)) = self.ends.pop_front_if(|(end, _)| *end < now.0) {
            self.values.remove(&value);
        }
        !self.values.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::ecdsa::SigningKey;
    use p256::ecdsa::signature::Signer as _;

    fn signed<'a>(header: SignedHeader<'a>, request: SignedRequest<'_>) -> (String, String) {
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let signature: Signature = key.sign(header.signed_text(request).as_bytes());
        let public = URL_SAFE_NO_PAD.encode(key.verifying_key().to_sec1_point(false));
        (public, URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }

    #[test]
    fn a_signature_covers_every_part_of_a_request() {
        let bare = SignedHeader {
            id: "web_a",
            nonce: "n",
            time: "5",
            value: "v",
            body: "b",
            signature: "",
        };
        let request = SignedRequest { method: "POST", target: "/api/x?y=1", elevation: "e" };
        let (key, signature) = signed(bare, request);
        let good = SignedHeader { signature: &signature, ..bare };
        assert!(good.is_signed_by(&key, request));
        let changed = [
            (SignedHeader { id: "web_b", ..good }, request),
            (SignedHeader { nonce: "m", ..good }, request),
            (SignedHeader { time: "6", ..good }, request),
            (SignedHeader { value: "w", ..good }, request),
            (SignedHeader { body: "c", ..good }, request),
            (SignedHeader { signature: "AAAA", ..good }, request),
            (good, SignedRequest { method: "PATCH", ..request }),
            (good, SignedRequest { target: "/api/x?y=2", ..request }),
            (good, SignedRequest { elevation: "", ..request }),
        ];
        for (header, request) in changed {
            assert!(!header.is_signed_by(&key, request), "{header:?} {request:?}");
        }
        assert!(!good.is_signed_by("", request), "no key");
        let other = SigningKey::from_slice(&[8; 32]).unwrap();
        let other = URL_SAFE_NO_PAD.encode(other.verifying_key().to_sec1_point(false));
        assert!(!good.is_signed_by(&other, request), "another key");
    }

    #[test]
    fn a_header_is_read_or_refused() {
        let text = "id=a, nonce=b,time=1,value=c,body=d,signature=e=f";
        let header = SignedHeader::parse(text).unwrap();
        assert_eq!((header.id, header.signature), ("a", "e=f"));
        for bad in ["", "id=a", "id", "id=a,nonce=b,time=1,value=c,body=d"] {
            assert_eq!(SignedHeader::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_request_counts_for_a_minute_on_either_side() {
        let header = SignedHeader::parse("id=a,nonce=b,time=100000,value=c,body=d,signature=e");
        let header = header.unwrap();
        for (now, expected) in
            [(39_999, false), (40_000, true), (100_000, true), (160_000, true), (160_001, false)]
        {
            assert_eq!((now, header.is_timely(Timestamp(now))), (now, expected));
        }
        let header = SignedHeader { time: "soon", ..header };
        assert!(!header.is_timely(Timestamp(0)));
    }

    #[test]
    fn a_value_is_refused_the_second_time_and_values_are_bounded() {
        let mut guard = ReplayGuard::default();
        let value = |n: usize| u128::try_from(n).unwrap().to_be_bytes();
        assert_eq!(guard.check_nonce("a", value(0), Timestamp(0)), Ok(()));
        assert_eq!(guard.check_nonce("a", value(0), Timestamp(1)), Err(ReplayRefusal::Replayed));
        assert_eq!(guard.check_nonce("b", value(0), Timestamp(1)), Ok(()), "another session");
        for n in 1..VALUES_MAX {
            assert_eq!(guard.check_nonce("a", value(n), Timestamp(2)), Ok(()));
        }
        let more = value(VALUES_MAX);
        assert_eq!(guard.check_nonce("a", more, Timestamp(3)), Err(ReplayRefusal::TooMany));
        let later = Timestamp(2 * TIME_DIFFERENCE_MS_MAX + 3);
        assert_eq!(
            guard.check_nonce("a", more, later),
            Ok(()),
            "the earlier ones are too old to count"
        );
        assert_eq!(guard.0.len(), 1, "sessions without values are forgotten");
    }
}
