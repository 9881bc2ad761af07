//! Searches bytes for all known secrets, both as they are and with their escapes decoded.

use super::BLOT;
use super::decoded::{DecodedBytes, broken_off_at};
use super::finder::SecretFinder;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// How often escapes are decoded: a URL within JSON, and one more.
const LAYERS_MAX: usize = 3;

/// The finders of all secrets.
pub(super) struct SearchForm([Option<Arc<SecretFinder>>; 2]);

impl SearchForm {
    pub(super) const fn with(finders: [Option<Arc<SecretFinder>>; 2]) -> Self {
        Self(finders)
    }

    /// The bytes without secrets.
    pub(super) fn blotted<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let found = self.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let (mut blotted, mut end) = (vec![], 0);
        for place in found {
            blotted.extend_from_slice(&bytes[end..place.start]);
            blotted.extend_from_slice(BLOT.as_bytes());
            end = place.end;
        }
        blotted.extend_from_slice(&bytes[end..]);
        Cow::Owned(blotted)
    }

    /// The ranges of secrets, in order and without overlaps.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.finders().next().is_none() {
            return vec![];
        }
        let mut found = self.find_as_it_is(bytes);
        let layers = layers(bytes);
        for (n, layer) in layers.iter().enumerate() {
            let places = self.find_as_it_is(&layer.bytes).into_iter();
            found.extend(places.map(|place| raw(&layers[..=n], place)));
        }
        found.sort_unstable_by_key(|place| (place.start, place.end));
        let mut apart: Vec<Range<usize>> = vec![];
        for place in found {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        apart
    }

    /// The first position at which an incomplete secret may begin that continues after the end of the bytes.
    pub(super) fn open_from(&self, bytes: &[u8]) -> usize {
        if self.finders().next().is_none() {
            return bytes.len();
        }
        let broken_off = broken_off_at(bytes);
        let open = |bytes: &[u8]| self.finders().map(|finder| finder.open_from(bytes)).min();
        let mut first = broken_off.min(open(bytes).unwrap_or(bytes.len()));
        // Later bytes may complete a split escape: a secret may begin before it.
        first = first.min(open(&bytes[..broken_off]).unwrap_or(broken_off));
        let layers = layers(&bytes[..broken_off]);
        for (n, layer) in layers.iter().enumerate() {
            let end = layer.bytes.len();
            let at = open(&layer.bytes).filter(|at| *at < end);
            first = at.map_or(first, |at| first.min(raw(&layers[..=n], at..end).start));
        }
        first
    }

    fn finders(&self) -> impl Iterator<Item = &Arc<SecretFinder>> {
        self.0.iter().flatten()
    }

    fn find_as_it_is(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        self.finders().flat_map(|finder| finder.find(bytes)).collect()
    }
}

/// The bytes with their escapes decoded once, twice and so on, as long as there are any.
fn layers(bytes: &[u8]) -> Vec<DecodedBytes> {
    let mut layers: Vec<DecodedBytes> = vec![];
    while layers.len() < LAYERS_MAX {
        match DecodedBytes::from_bytes(layers.last().map_or(bytes, |layer| &layer.bytes)) {
            Some(next) => layers.push(next),
            None => break,
        }
    }
    layers
}

/// The original range of a part of the last layer.
fn raw(layers: &[DecodedBytes], place: Range<usize>) -> Range<usize> {
    layers.iter().rev().fold(place, |place, layer| layer.raw(place))
}
