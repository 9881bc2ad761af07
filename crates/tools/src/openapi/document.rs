//! A description's text and its references. References lead inside the text and nowhere else: no description makes us
//! read a file or fetch an address.

use super::ImportError;
use super::raw::RawMembers;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use std::cell::Cell;
use std::collections::HashMap;

/// More references in a row than this are a loop.
const HOPS_MAX: usize = 32;

/// Bytes that following references may read in total. The largest public descriptions need a tenth;
/// one that needs more was made to be slow.
const READ_BYTES_MAX: usize = 4 << 30;

/// A description being imported.
pub(crate) struct OpenApiDocument<'a> {
    pub(crate) top: RawMembers<'a>,
    /// `components`, indexed two levels deep.
    components: HashMap<String, HashMap<String, &'a RawValue>>,
    paths: HashMap<String, &'a RawValue>,
    n_bytes_read: Cell<usize>,
}

impl<'a> OpenApiDocument<'a> {
    /// Parses the outermost levels of a JSON text.
    pub(crate) fn new(text: &'a str) -> Result<Self, ImportError> {
        let top =
            RawMembers::of_text(text).map_err(|error| ImportError::Syntax(error.to_string()))?;
        let mut components = HashMap::new();
        for (kind, raw) in top.members("components").unwrap_or_default().iter() {
            let members = RawMembers::from_raw(raw).unwrap_or_default();
            let members = members.iter().map(|(name, raw)| (name.to_owned(), raw)).collect();
            components.insert(kind.to_owned(), members);
        }
        let paths = top.members("paths").unwrap_or_default();
        let paths = paths.iter().map(|(path, raw)| (path.to_owned(), raw)).collect();
        Ok(Self { top, components, paths, n_bytes_read: Cell::new(0) })
    }

    /// The members of an object, or of the one that it refers to.
    pub(crate) fn resolve(&self, raw: &'a RawValue) -> Result<RawMembers<'a>, String> {
        let mut members = RawMembers::from_raw(raw).ok_or("it is not an object")?;
        for _ in 0..HOPS_MAX {
            let Some(reference) = members.text_member("$ref") else { return Ok(members) };
            let target = self.look_up(&reference)?;
            members = RawMembers::from_raw(target)
                .ok_or_else(|| format!("{reference} is not an object"))?;
        }
        Err("its references lead in a circle".into())
    }

    /// Resolves a reference such as `#/components/schemas/Pet`.
    pub(crate) fn look_up(&self, reference: &str) -> Result<&'a RawValue, String> {
        let Some(pointer) = reference.strip_prefix("#/") else {
            return Err(format!("{reference} leads outside the description"));
        };
        let names: Vec<String> = pointer.split('/').map(unescaped).collect();
        let nothing = || format!("{reference} leads to nothing");
        let (mut raw, rest) = self.enter_reference(&names).ok_or_else(nothing)?;
        for name in rest {
            self.n_bytes_read.set(self.n_bytes_read.get().saturating_add(raw.get().len()));
            if self.is_exhausted() {
                return Err("its references are too many and too deep".into());
            }
            raw = step(raw, name).ok_or_else(nothing)?;
        }
        Ok(raw)
    }

    /// Whether the limit on following references is exceeded.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.n_bytes_read.get() > READ_BYTES_MAX
    }

    /// Resolves the first steps with the index.
    fn enter_reference<'n>(&self, names: &'n [String]) -> Option<(&'a RawValue, &'n [String])> {
        match names {
            [first, kind, name, rest @ ..] if first == "components" => {
                Some((*self.components.get(kind)?.get(name)?, rest))
            }
            [first, path, rest @ ..] if first == "paths" => Some((*self.paths.get(path)?, rest)),
            [first, rest @ ..] => Some((self.top.raw(first)?, rest)),
            [] => None,
        }
    }
}

fn step<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    if raw.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        return items.get(name.parse::<usize>().ok()?).copied();
    }
    RawMembers::from_raw(raw)?.raw(name)
}

/// Decodes a name of a JSON pointer.
fn unescaped(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().replace("~1", "/").replace("~0", "~")
}
