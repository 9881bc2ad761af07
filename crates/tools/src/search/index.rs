//! Which tools of a source have which words. Built once per import, from names and descriptions.

use super::words::words;
use crate::ToolSpec;
use std::collections::BTreeMap;

/// How much of a description is indexed: its beginning summarises the tool.
const DESCRIPTION_CHARS_MAX: usize = 600;

/// Maximum number of input members that are indexed.
const MEMBERS_MAX: usize = 24;

/// The weight of each field, in the order of [`IndexedField`].
pub(super) const WEIGHTS: [f32; 4] = [3.2, 1.6, 0.6, 0.5];

/// The length normalisation of each field, in the order of [`IndexedField`].
const LENGTH_MATTERS: [f32; 4] = [0.6, 0.4, 0.5, 0.6];

/// The field that contains a word.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum IndexedField {
    Name,
    Headline,
    Text,
    Members,
}

/// The words of a source's tools.
#[derive(Debug, Default)]
pub(crate) struct ToolIndex {
    postings: BTreeMap<Box<str>, Vec<WordPosting>>,
    n_tools: usize,
}

/// The weight of a word for a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordPosting {
    pub(super) tool_idx: u32,
    pub(super) weight: f32,
}

impl ToolIndex {
    /// Indexes all of `specs`; hits refer to them by their position.
    pub(crate) fn new<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Self {
        let fields: Vec<_> = specs.map(fields).collect();
        let n_tools = fields.len();
        let mut usual = [0.0_f32; 4];
        for tool in &fields {
            for (usual, field) in usual.iter_mut().zip(tool) {
                *usual += field.len() as f32 / n_tools as f32;
            }
        }
        let mut postings: BTreeMap<Box<str>, Vec<WordPosting>> = BTreeMap::new();
        for (tool_idx, tool) in (0_u32..).zip(fields) {
            let mut weights: BTreeMap<String, f32> = BTreeMap::new();
            for (at, field) in tool.into_iter().enumerate() {
                let length = field.len() as f32 / usual[at].max(1.0);
                let each = WEIGHTS[at] / (1.0 - LENGTH_MATTERS[at] + LENGTH_MATTERS[at] * length);
                for word in field {
                    *weights.entry(word).or_default() += each;
                }
            }
            for (word, weight) in weights {
                postings.entry(word.into()).or_default().push(WordPosting { tool_idx, weight });
            }
        }
        for list in postings.values_mut() {
            list.shrink_to_fit();
        }
        Self { postings, n_tools }
    }

    /// Tools with this word.
    pub(super) fn with(&self, word: &str) -> &[WordPosting] {
        self.postings.get(word).map_or(&[], Vec::as_slice)
    }

    /// Longer words with this prefix, with their tools.
    pub(super) fn beginning_with<'a>(
        &'a self,
        start: &'a str,
    ) -> impl Iterator<Item = &'a [WordPosting]> {
        let from = self
            .postings
            .range::<str, _>((std::ops::Bound::Excluded(start), std::ops::Bound::Unbounded));
        from.take_while(move |(word, _)| word.starts_with(start)).map(|(_, list)| list.as_slice())
    }

    pub(super) const fn n_tools(&self) -> usize {
        self.n_tools
    }
}

/// The words of a tool, field by field.
fn fields(spec: &ToolSpec) -> [Vec<String>; 4] {
    let text: String = spec.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let (headline, rest) = headline(&text);
    let mut fields = [vec![], vec![], vec![], vec![]];
    fields[IndexedField::Name as usize] = words(&spec.name);
    fields[IndexedField::Headline as usize] = words(headline);
    fields[IndexedField::Text as usize] = words(rest);
    let about = spec.about.as_deref().unwrap_or_default();
    fields[IndexedField::Members as usize] = words(about);
    let members = spec.input.as_ref().map(|input| members(input.schema_text())).unwrap_or_default();
    for member in members {
        fields[IndexedField::Members as usize].append(&mut words(&member));
    }
    fields
}

/// The first line or sentence, and what follows it.
fn headline(text: &str) -> (&str, &str) {
    let end = text.find('\n').into_iter().chain(text.find(". ").map(|at| at + 1)).min();
    text.split_at(end.unwrap_or(text.len()))
}

/// Names of the members that a schema lists at its top.
fn members(schema: &str) -> Vec<String> {
    use serde::Deserialize;
    #[derive(Deserialize)]
    struct BestScores {
        #[serde(default)]
        properties: BTreeMap<String, serde::de::IgnoredAny>,
    }
    let top: BestScores =
        serde_json::from_str(schema).unwrap_or(BestScores { properties: BTreeMap::new() });
    top.properties.into_keys().take(MEMBERS_MAX).collect()
}
