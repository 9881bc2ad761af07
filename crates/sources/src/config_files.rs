//! Which configuration files apply, and with whose authority. A project's file is in a folder where an agent with an
//! edit tool can write, so it applies in the version that a person trusted; another version can only add restrictions.

use crate::config::ConfigDocument;
use crate::trusted::TrustedFile;
use lifecycle::PolicyAction;
use std::path::{Path, PathBuf};

/// The configuration files of a server, the most important first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFiles {
    /// The files; a missing file has no effect.
    pub files: Vec<ConfigFile>,
    /// The data directory, which records the project files that a person trusted.
    pub data_dir: PathBuf,
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its path.
    pub path: PathBuf,
    /// With whose authority it applies.
    pub authority: FileAuthority,
}

/// With whose authority a configuration file applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAuthority {
    /// The operator's: named on the command line, the user's own, or in the data directory.
    Operator,
    /// A project's: found in the directory where the server was started, or above it.
    Project,
}

impl ConfigFiles {
    /// One file of the operator's.
    pub fn with_named_file(path: &Path, data_dir: &Path) -> Self {
        let file = ConfigFile { path: path.to_owned(), authority: FileAuthority::Operator };
        Self { files: vec![file], data_dir: data_dir.to_owned() }
    }

    /// Project files take precedence over the user's file, and that over the data directory's. A file that is both is
    /// the operator's.
    pub fn usual(projects: &[PathBuf], user: Option<&Path>, data_dir: &Path) -> Self {
        let in_data = data_dir.join("airlock.toml");
        let own: Vec<&Path> = user.into_iter().chain([in_data.as_path()]).collect();
        let is_own = |path: &PathBuf| own.contains(&path.as_path());
        let project =
            |path: &PathBuf| ConfigFile { path: path.clone(), authority: FileAuthority::Project };
        let operator = |path: &&Path| ConfigFile {
            path: path.to_path_buf(),
            authority: FileAuthority::Operator,
        };
        let projects = projects.iter().filter(|path| !is_own(path)).map(project);
        let files = projects.chain(own.iter().map(operator)).collect();
        Self { files, data_dir: data_dir.to_owned() }
    }

    /// Every file that can change the configuration, records of trust included.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let projects = self.files.iter().filter(|file| file.authority == FileAuthority::Project);
        let records = projects.map(|file| TrustedFile::record_path(&self.data_dir, &file.path));
        self.files.iter().map(|file| file.path.clone()).chain(records).collect()
    }

    /// The project files among them.
    pub fn projects(&self) -> impl Iterator<Item = &Path> {
        let projects = self.files.iter().filter(|file| file.authority == FileAuthority::Project);
        projects.map(|file| file.path.as_path())
    }
}

/// What a project's file contributes, given its text and the trusted version. The second part is the notice about settings
/// that do not apply, and what to do about them.
pub(crate) fn project_part(
    path: &Path,
    text: Option<&str>,
    trusted: Option<&TrustedFile>,
) -> Result<(ConfigDocument, Vec<String>), String> {
    let shown = path.display();
    let advice = format!("read it, then run: airlock trust {shown}");
    let trusted = trusted.map(|trusted| (trusted, changed_reason(trusted)));
    let (mut file, mut notices) = match (text, trusted) {
        (None, None) => return Ok((ConfigDocument::default(), vec![])),
        (Some(text), Some((trusted, Some(why)))) => {
            let (file, notice) = tightening(text, &shown.to_string());
            let (before, _) = tightening(&trusted.text, "");
            let why = format!(
                "{shown} is not trusted any more, because {why}: only its policies that block or require approval count; \
                 {advice}"
            );
            let before = if trusted.is_of(text) { ConfigDocument::default() } else { before };
            (file.merged_over(before), notice.into_iter().chain([why]).collect())
        }
        (Some(text), Some((trusted, None))) if trusted.is_of(text) => {
            (ConfigDocument::parse(text)?, vec![])
        }
        (Some(text), Some((trusted, None))) => {
            let (changed, notice) = tightening(text, &shown.to_string());
            let trusted = ConfigDocument::parse(&trusted.text)?;
            let why = format!(
                "{shown} has changed since it was trusted: the trusted version counts, and of the new one only policies \
                 that block or require approval; {advice}"
            );
            (changed.merged_over(trusted), notice.into_iter().chain([why]).collect())
        }
        (Some(text), None) => {
            let (file, notice) = tightening(text, &shown.to_string());
            let why = format!(
                "{shown} is not trusted: only its policies that block or require approval count; {advice}"
            );
            (file, notice.into_iter().chain([why]).collect())
        }
        (None, Some((trusted, _))) => {
            let why = format!(
                "{shown} is gone: the policies of its trusted version that block or require approval still count; \
                 to forget them, run: airlock trust --forget {shown}"
            );
            (tightening(&trusted.text, "").0, vec![why])
        }
    };
    notices.extend(without_operators_sections(&mut file, &shown.to_string()));
    Ok((file, notices))
}

/// Why the files that a trusted text names differ from the trusted ones; none if they do not.
fn changed_reason(trusted: &TrustedFile) -> Option<String> {
    match trusted.changed_file() {
        Ok(changed) => changed.map(|path| {
            format!("{}, which it names, has changed since it was trusted", path.display())
        }),
        Err(why) => Some(why),
    }
}

/// Policies that block or require approval, and nothing else. A text that does not parse contributes nothing: an
/// agent must not be able to prevent a server from starting.
fn tightening(text: &str, shown: &str) -> (ConfigDocument, Option<String>) {
    let file = match ConfigDocument::parse(text) {
        Ok(file) => file,
        Err(why) => {
            return (
                ConfigDocument::default(),
                Some(format!("{shown} is wrong and ignored: {why}")),
            );
        }
    };
    let mut lists = file.lists;
    for list in &mut lists {
        list.retain(|rule| {
            matches!(rule.action, PolicyAction::Block | PolicyAction::RequireApproval)
        });
        list.iter_mut().for_each(|rule| rule.editable = false);
    }
    (ConfigDocument { lists, ..ConfigDocument::default() }, None)
}

/// Removes sections that are never taken from a project's file, trusted or not.
fn without_operators_sections(file: &mut ConfigDocument, shown: &str) -> Vec<String> {
    let mut ignored = vec![];
    if file.notify.take().is_some() {
        ignored.push("[notify]");
    }
    if std::mem::take(&mut file.quotas) != crate::config::QuotasConfig::default() {
        ignored.push("[quotas]");
    }
    if file.processes != crate::config::ProcessesConfig::default() {
        file.processes = crate::config::ProcessesConfig::default();
        ignored.push("[processes]");
    }
    if std::mem::take(&mut file.network) != crate::config::NetworkConfig::default() {
        ignored.push("[network]");
    }
    if std::mem::take(&mut file.listener) != crate::config::ListenerLimits::default() {
        ignored.push("[listener]");
    }
    let notice = |section: &str| {
        format!(
            "{shown}: {section} is ignored, because it is never taken from a project's file; write it into \
             ~/.config/airlock/airlock.toml, or name the file with --config"
        )
    };
    ignored.into_iter().map(notice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[sources.a]\nurl = 'http://a'\n[[policies]]\npattern = 'a.*'\naction = 'approve'\n\
                        [[policies]]\npattern = 'b.*'\naction = 'block'\n[notify]\ncommand = ['x']\n\
                        [processes.run]\n[network]\nallow = ['169.254.169.254']\nproxy = 'http://p'\n\
                        [listener]\nconnections_max = 1\n";

    fn patterns(file: &ConfigDocument) -> Vec<&str> {
        file.lists.iter().flatten().map(|rule| rule.pattern.as_str()).collect()
    }

    #[test]
    fn a_projects_file_counts_in_the_version_that_was_trusted() {
        let path = Path::new("/p/airlock.toml");
        let trusted = TrustedFile::new(path, TEXT, "ann", 1).unwrap();
        let (file, notices) = project_part(path, Some(TEXT), Some(&trusted)).unwrap();
        assert!(file.sources.contains_key("a") && patterns(&file) == ["a.*", "b.*"]);
        // Never taken from a project's file, trusted or not.
        assert!(file.notify.is_none() && file.processes.run.is_none());
        assert_eq!((file.network, file.listener), Default::default());
        assert_eq!(notices.len(), 4, "{notices:?}");
    }

    #[test]
    fn a_new_file_can_only_tighten() {
        let path = Path::new("/p/airlock.toml");
        let (file, notices) = project_part(path, Some(TEXT), None).unwrap();
        assert!(file.sources.is_empty() && patterns(&file) == ["b.*"]);
        assert!(notices[0].contains("is not trusted") && notices[0].contains("airlock trust"));
        let (file, notices) = project_part(path, Some("policies = 3"), None).unwrap();
        assert_eq!((file, notices.len()), (ConfigDocument::default(), 2));
    }

    #[test]
    fn a_changed_file_adds_to_the_trusted_version_and_takes_nothing_away() {
        let path = Path::new("/p/airlock.toml");
        let trusted = TrustedFile::new(path, TEXT, "ann", 1).unwrap();
        let changed = "[sources.evil]\nurl = 'http://e'\n[[policies]]\npattern = 'c'\naction = 'block'\n\
                       [[policies]]\npattern = '*'\naction = 'approve'\n";
        let (file, notices) = project_part(path, Some(changed), Some(&trusted)).unwrap();
        assert_eq!(patterns(&file), ["a.*", "b.*", "c"]);
        assert!(!file.sources.contains_key("evil"));
        assert!(notices[0].contains("has changed since it was trusted"), "{notices:?}");
        // Deleting the file does not remove the policies that block.
        let (file, _) = project_part(path, None, Some(&trusted)).unwrap();
        assert_eq!((patterns(&file), file.sources.len()), (vec!["b.*"], 0));
    }

    #[test]
    fn a_file_that_the_trusted_version_names_is_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("airlock.toml");
        let named = folder.path().join("api.json");
        let text =
            "[sources.a]\nfile = 'api.json'\n[[policies]]\npattern = 'b.*'\naction = 'block'\n";
        std::fs::write(&named, "{}").unwrap();
        let trusted = TrustedFile::new(&path, text, "ann", 1).unwrap();
        let part = || project_part(&path, Some(text), Some(&trusted)).unwrap();
        assert_eq!((part().0.sources.len(), part().1), (1, vec![]));
        std::fs::write(&named, "{ \"servers\": [] }").unwrap();
        let (file, notices) = part();
        assert_eq!((file.sources.len(), patterns(&file)), (0, vec!["b.*"]));
        assert!(notices[0].contains("api.json, which it names, has changed"), "{notices:?}");
        // Policies of the trusted version that block still apply beside another version.
        let other = "[[policies]]\npattern = 'c'\naction = 'block'\n";
        let (file, _) = project_part(&path, Some(other), Some(&trusted)).unwrap();
        assert_eq!(patterns(&file), ["b.*", "c"]);
    }

    #[test]
    fn a_file_that_is_also_the_operators_is_the_operators() {
        let user = Path::new("/u/airlock.toml");
        let projects = [user.to_owned(), "/p/airlock.toml".into()];
        let files = ConfigFiles::usual(&projects, Some(user), Path::new("/d"));
        let seen: Vec<_> =
            files.files.iter().map(|file| (file.path.to_str().unwrap(), file.authority)).collect();
        let expected = [
            ("/p/airlock.toml", FileAuthority::Project),
            ("/u/airlock.toml", FileAuthority::Operator),
            ("/d/airlock.toml", FileAuthority::Operator),
        ];
        assert_eq!(seen, expected);
    }
}
