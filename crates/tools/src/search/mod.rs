//! Finds the tools that match an intent. BM25 over names, descriptions and members, extended for common habits of people:
//! synonyms for verbs, abbreviated words, the name of the service.

mod index;
mod words;

use crate::catalogue::{CatalogueSnapshot, FoundTool};
pub(crate) use index::ToolIndex;
pub(crate) use words::words;
use words::{alike, is_empty};

/// Longest query that is accepted; longer ones are not intents.
const QUERY_CHARS_MAX: usize = 500;

/// Maximum number of words of a query.
const WORDS_MAX: usize = 24;

/// The BM25 saturation of repeated words.
const SATURATION: f32 = 1.4;

/// The weight of a synonym.
const ALIKE_WEIGHT: f32 = 0.55;

/// The weight of a longer word with the same prefix.
const PREFIX_WEIGHT: f32 = 0.5;

/// Shortest word that may be the beginning of another.
const PREFIX_CHARS_MIN: usize = 3;

/// Maximum number of longer words that are tried for an unknown word.
const PREFIXES_MAX: usize = 50;

/// The weight of the source's name.
const SOURCE_WEIGHT: f32 = 2.2;

/// A search for tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSearch {
    /// Intent and key nouns. Blank matches nothing, or, with a namespace, everything in it.
    pub query: String,
    /// An integration, or the beginning of a path.
    pub namespace: Option<String>,
    /// Maximum number of hits.
    pub limit: usize,
    /// The number of hits to skip.
    pub offset: usize,
}

/// Some of the hits, best first.
#[derive(Debug, Clone, Default)]
pub struct ToolSearchPage {
    /// Tools with their scores.
    pub hits: Vec<(FoundTool, f32)>,
    /// The total number of hits.
    pub total: usize,
}

impl CatalogueSnapshot {
    /// Tools that match, best first; equal scores by path. `shows` decides which tools are visible.
    pub fn search(
        &self,
        wanted: &ToolSearch,
        shows: &dyn Fn(&FoundTool) -> bool,
    ) -> ToolSearchPage {
        let namespace = wanted.namespace.as_deref().map(words).unwrap_or_default();
        let query = WordQuery::new(&wanted.query);
        let mut hits = match (query.is_blank(), namespace.is_empty()) {
            (true, true) => vec![],
            (true, false) => self.tools().map(|found| (found, 0.0)).collect(),
            (false, _) => self.scored(&query),
        };
        hits.retain(|(found, _)| is_within(found, &namespace) && shows(found));
        let total = hits.len();
        let hits = best(hits, wanted.offset.saturating_add(wanted.limit));
        ToolSearchPage { hits: hits.into_iter().skip(wanted.offset).collect(), total }
    }

    fn scored(&self, query: &WordQuery) -> Vec<(FoundTool, f32)> {
        let shelves: Vec<_> = self.shelves().map(|shelf| (shelf.index(), shelf)).collect();
        let n_tools = shelves.iter().map(|(index, _)| index.n_tools()).sum::<usize>().max(1) as f32;
        let mut scores: Vec<SourceScores> =
            shelves.iter().map(|(index, _)| SourceScores::new(index.n_tools())).collect();
        let mut sources = vec![ToolScore::default(); shelves.len()];
        for (word_idx, word) in query.words.iter().enumerate() {
            let n_with: usize = shelves.iter().map(|(index, _)| index.with(word).len()).sum();
            let by_name = |shelf: &crate::catalogue::LabelledSource<'_>| shelf.label.contains(word);
            let n_named: usize =
                shelves.iter().filter(|(_, s)| by_name(s)).map(|(i, _)| i.n_tools()).sum();
            let rarity =
                |n: usize| (1.0 + (n_tools - n as f32 + 0.5).max(0.0) / (n as f32 + 0.5)).ln();
            let worth = rarity(n_with.max(1));
            for (at, (index, shelf)) in shelves.iter().enumerate() {
                let found = &mut scores[at];
                let mut add = |postings: &[index::WordPosting], factor: f32| {
                    for posting in postings {
                        let part = worth * factor * posting.weight / (SATURATION + posting.weight);
                        found.score_at(posting.tool_idx).take(word_idx, part);
                    }
                };
                add(index.with(word), 1.0);
                for other in alike(word) {
                    add(index.with(other), ALIKE_WEIGHT);
                }
                if n_with == 0 && word.chars().count() >= PREFIX_CHARS_MIN {
                    for postings in index.beginning_with(word).take(PREFIXES_MAX) {
                        add(postings, PREFIX_WEIGHT);
                    }
                }
                if by_name(shelf) {
                    sources[at].take(word_idx, rarity(n_named).max(0.1) * SOURCE_WEIGHT);
                }
            }
        }
        let mut hits = vec![];
        for ((found, source), (index, shelf)) in scores.iter_mut().zip(&sources).zip(&shelves) {
            if source.n_words > 0 && usize::from(source.n_words) == query.words.len() {
                // The query is only the name of the source: all of its tools match.
                found.hits = (0..index.n_tools() as u32).collect();
            }
            for tool_idx in &found.hits {
                let mut score = found.all[*tool_idx as usize];
                score.join(source);
                let total = score.total(query.words.len());
                hits.extend(shelf.tool_at(*tool_idx as usize).map(|found| (found, total)));
            }
        }
        hits
    }
}

/// A query in words.
struct WordQuery {
    words: Vec<String>,
}

impl WordQuery {
    fn new(text: &str) -> Self {
        let text: String = text.chars().take(QUERY_CHARS_MAX).collect();
        let all = words(&text);
        let mut telling: Vec<_> = all.iter().filter(|word| !is_empty(word)).cloned().collect();
        if telling.is_empty() {
            telling = all;
        }
        let mut words: Vec<String> = vec![];
        for word in telling {
            if !words.contains(&word) && words.len() < WORDS_MAX {
                words.push(word);
            }
        }
        Self { words }
    }

    const fn is_blank(&self) -> bool {
        self.words.is_empty()
    }
}

/// The first `n` by score, equal scores by path. Paths are built only for candidates: all other matches may be
/// every tool that exists.
fn best(mut hits: Vec<(FoundTool, f32)>, n: usize) -> Vec<(FoundTool, f32)> {
    if (1..hits.len()).contains(&n) {
        let (_, last, _) = hits.select_nth_unstable_by(n - 1, |(_, a), (_, b)| b.total_cmp(a));
        let least = last.1;
        hits.retain(|(_, score)| *score >= least);
    }
    let mut hits: Vec<_> =
        hits.into_iter().map(|(found, score)| (found.path(), found, score)).collect();
    hits.sort_by(|(a_path, _, a), (b_path, _, b)| b.total_cmp(a).then_with(|| a_path.cmp(b_path)));
    hits.into_iter().take(n).map(|(_, found, score)| (found, score)).collect()
}

/// The scores of a source's tools, and the tools with a score.
struct SourceScores {
    all: Vec<ToolScore>,
    hits: Vec<u32>,
}

impl SourceScores {
    fn new(n_tools: usize) -> Self {
        Self { all: vec![ToolScore::default(); n_tools], hits: vec![] }
    }

    fn score_at(&mut self, tool_idx: u32) -> &mut ToolScore {
        let score = &mut self.all[tool_idx as usize];
        if score.seen == 0 {
            self.hits.push(tool_idx);
        }
        score
    }
}

/// The score of a tool so far. A word counts once, by its best match.
#[derive(Debug, Clone, Copy, Default)]
struct ToolScore {
    sum: f32,
    best: f32,
    /// One bit per word of the query.
    seen: u32,
    word_idx: u16,
    n_words: u16,
}

const _: () = assert!(WORDS_MAX <= u32::BITS as usize, "a bit for each word");

impl ToolScore {
    fn take(&mut self, word_idx: usize, part: f32) {
        if self.seen & (1 << word_idx) == 0 {
            self.seen |= 1 << word_idx;
            self.n_words += 1;
            self.word_idx = word_idx as u16;
            self.best = part;
            self.sum += part;
        } else if usize::from(self.word_idx) == word_idx && part > self.best {
            self.sum += part - self.best;
            self.best = part;
        }
    }

    fn join(&mut self, source: &Self) {
        self.sum += source.sum;
        self.seen |= source.seen;
        self.n_words = self.seen.count_ones() as u16;
    }

    /// A tool that matches all words ranks before one that matches a rare word.
    fn total(&self, n_words: usize) -> f32 {
        let coverage = f32::from(self.n_words) / n_words as f32;
        let score = self.sum * (0.35 + 0.65 * coverage * coverage);
        (score * 1_000.0).round() / 1_000.0
    }
}

/// Whether the namespace's words are a prefix of those of the integration or the path.
fn is_within(found: &FoundTool, namespace: &[String]) -> bool {
    namespace.is_empty()
        || words(&found.card().name).starts_with(namespace)
        || words(&found.path()).starts_with(namespace)
}
