//! Counts idioms in comments and documents that a reader must translate.

use super::sample::draw;
use super::tree::SourceFile;

/// Words and phrases that plain technical English does not need, in lower case.
const IDIOMS: [&str; 24] = [
    "whoever",
    "whatever",
    "stands",
    "somebody",
    "nobody",
    "whose turn",
    "what is over",
    "as it was",
    "told",
    "tells",
    "said",
    "heard",
    "hears",
    "kept",
    "at once",
    "the house",
    "a way of its own",
    "a name of its own",
    "of their own accord",
    "in one breath",
    "who comes back",
    "this room",
    "rooms",
    "by hand",
];

/// The largest wanted number of idioms per 1,000 lines of comments.
const IN_COMMENTS_WANTED: f64 = 3.0;
/// The largest wanted number of idioms per 1,000 words of documents.
const IN_DOCUMENTS_WANTED: f64 = 0.5;

/// The number of comments in a sample.
const N_DRAWN: usize = 50;

/// These files list the words that they search for.
const LISTS: [&str; 2] = ["xtask/src/tidy/prose.rs", "xtask/src/tidy/names.rs"];

/// The comments of Rust files and the texts of documents.
#[derive(Debug, Default)]
pub(super) struct ProseIndex {
    n_comment_lines: usize,
    comment_idioms: Vec<String>,
    n_document_words: usize,
    document_idioms: Vec<String>,
    /// Whole comments, with their places.
    comments: Vec<String>,
}

impl ProseIndex {
    pub(super) fn new(files: &[SourceFile]) -> Self {
        let mut index = Self::default();
        for file in files.iter().filter(|file| !LISTS.contains(&file.path.as_str())) {
            if file.path.ends_with(".rs") {
                index.add_comments(file);
            } else if is_document(&file.path) {
                index.add_document(file);
            }
        }
        index
    }

    fn add_comments(&mut self, file: &SourceFile) {
        let mut comment = String::new();
        let mut first_line = 0;
        for (line_idx, line) in file.text.lines().enumerate() {
            let Some(text) = comment_text(line) else {
                self.end_comment(file, first_line, &mut comment);
                continue;
            };
            if comment.is_empty() {
                first_line = line_idx + 1;
            }
            comment.push_str(text);
            comment.push(' ');
            self.n_comment_lines += 1;
            for idiom in idioms(text) {
                self.comment_idioms.push(format!("{}:{}: {idiom}", file.path, line_idx + 1));
            }
        }
        self.end_comment(file, first_line, &mut comment);
    }

    fn end_comment(&mut self, file: &SourceFile, line: usize, comment: &mut String) {
        if !comment.trim().is_empty() {
            self.comments.push(format!("{}:{line}: {}", file.path, comment.trim()));
        }
        comment.clear();
    }

    fn add_document(&mut self, file: &SourceFile) {
        let mut is_code = false;
        for (line_idx, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                self.n_document_words += line.split_whitespace().count();
                for idiom in idioms(line) {
                    self.document_idioms.push(format!("{}:{}: {idiom}", file.path, line_idx + 1));
                }
            }
        }
    }

    /// The figures, a line each.
    pub(super) fn summary(&self) -> Vec<String> {
        vec![
            format!(
                "comments: {:.1} idioms in 1,000 of {} lines (wanted: {IN_COMMENTS_WANTED} at most)",
                per_thousand(self.comment_idioms.len(), self.n_comment_lines),
                self.n_comment_lines
            ),
            format!(
                "documents: {:.2} idioms in 1,000 of {} words (wanted: {IN_DOCUMENTS_WANTED} at most)",
                per_thousand(self.document_idioms.len(), self.n_document_words),
                self.n_document_words
            ),
        ]
    }

    /// The places of the idioms.
    pub(super) fn places(&self) -> impl Iterator<Item = &String> {
        self.comment_idioms.iter().chain(&self.document_idioms)
    }

    /// A sample of comments for a reader to judge, the same in each run.
    pub(super) fn sample(&self) -> Vec<String> {
        draw(self.comments.clone(), N_DRAWN)
    }
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md")
}

/// The text of a line that is only a comment.
fn comment_text(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']).trim())
}

/// The idioms in `text`, as whole words and outside of backticks.
fn idioms(text: &str) -> Vec<&'static str> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
    IDIOMS
        .into_iter()
        .filter(|idiom| super::rust_text::words(&prose, idiom).next().is_some())
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines are far below 2^52")]
fn per_thousand(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 1_000.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(path: &str, text: &str) -> ProseIndex {
        ProseIndex::new(&[SourceFile { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn idioms_in_comments_are_found_as_whole_words_outside_of_code() {
        let text = "/// Whoever waits is told.\nfn told() {} // nobody\n// `told`, foretold\n";
        let index = index("crates/a/src/lib.rs", text);
        assert_eq!(
            index.comment_idioms,
            ["crates/a/src/lib.rs:1: whoever", "crates/a/src/lib.rs:1: told"]
        );
        assert_eq!(index.n_comment_lines, 2);
    }

    #[test]
    fn documents_are_counted_without_their_examples() {
        let index = index("docs/a.md", "Nobody reads this.\n```sh\nnobody\n```\n");
        assert_eq!(index.document_idioms, ["docs/a.md:1: nobody"]);
        assert_eq!(index.n_document_words, 3);
        assert_eq!(
            index.summary()[1],
            "documents: 333.33 idioms in 1,000 of 3 words (wanted: 0.5 at most)"
        );
    }

    #[test]
    fn a_comment_of_several_lines_is_drawn_whole() {
        let index = index("crates/a/src/lib.rs", "// One\n// two.\nfn a() {}\n// Three.\n");
        let mut drawn = index.sample();
        drawn.sort();
        assert_eq!(drawn, ["crates/a/src/lib.rs:1: One two.", "crates/a/src/lib.rs:4: Three."]);
    }
}
