//! Bytes in JSON as base64 with padding.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are serialized as base64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByteChunk(pub Vec<u8>);

impl ByteChunk {
    /// Decodes base64 text.
    pub fn parse(text: &str) -> Option<Self> {
        base64_simd::STANDARD.decode_to_vec(text.as_bytes()).ok().map(Self)
    }
}

impl Serialize for ByteChunk {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64_simd::STANDARD.encode_to_string(&self.0))
    }
}

impl<'de> Deserialize<'de> for ByteChunk {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("the bytes are not base64 with padding"))
    }
}
