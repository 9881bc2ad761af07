//! Options that were renamed. The old name works for one more version, with a warning.

use crate::print;

/// An option's old and new name.
struct RenamedOption {
    old: &'static str,
    new: &'static str,
    /// The verbs that had it; empty for all.
    verbs: &'static [&'static str],
    /// Verbs where the old name means something else.
    except: &'static [&'static str],
}

const RENAMED: [RenamedOption; 2] = [
    RenamedOption { old: "--base-url", new: "--server", verbs: &[], except: &crate::API_VERBS },
    RenamedOption {
        old: "--no-model-answers",
        new: "--answers person",
        verbs: &["serve"],
        except: &[],
    },
];

/// Warns of old names on a command line that was parsed: the words after the program's name.
pub(crate) fn warn(words: impl IntoIterator<Item = String>) {
    warnings(words).iter().for_each(|warning| print::print_note(warning));
}

fn warnings(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words = words.into_iter();
    let Some(verb) = words.next() else { return vec![] };
    // After `--` are the words of another program.
    let words: Vec<_> = words.take_while(|word| word != "--").collect();
    let is_here = |option: &&RenamedOption| {
        let is_given = |word: &String| {
            word.strip_prefix(option.old)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        (option.verbs.is_empty() || option.verbs.contains(&verb.as_str()))
            && !option.except.contains(&verb.as_str())
            && words.iter().any(is_given)
    };
    let warning = |RenamedOption { old, new, .. }: &RenamedOption| {
        format!("WARNING: {old} is called {new} now; the old name goes with the next version")
    };
    RENAMED.iter().filter(is_here).map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_name_is_warned_of_where_it_means_the_same() {
        let n = |words: &str| warnings(words.split(' ').map(str::to_owned)).len();
        assert_eq!(n("call a.b --base-url http://s"), 1);
        assert_eq!(n("executions list --base-url=http://s"), 1);
        assert_eq!(n("call a.b --server http://s"), 0);
        assert_eq!(n("source add u --base-url http://api"), 0, "an API's");
        assert_eq!(n("serve --no-model-answers"), 1);
        assert_eq!(n("exec -- curl --base-url x"), 0, "another program's");
        let text = warnings(["serve", "--no-model-answers"].map(str::to_owned));
        assert!(text[0].contains("--no-model-answers is called --answers person now"), "{text:?}");
    }
}
