//! A project's configuration file applies in the version that a person trusted.

use crate::pty;
use crate::server_fixture::{Served, airlock, wait_for};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

/// A project with a configuration file, and a data directory beside it.
struct Project {
    folder: tempfile::TempDir,
    data_dir: PathBuf,
    log: PathBuf,
}

/// Adds a tool, approves another, blocks a third, and would enable processes and notifications.
const FILE: &str = "[sources.c.tools.one]\nargv = ['echo', '1']\nread_only = true\n\
                    [[policies]]\npattern = 'demo.ask'\naction = 'approve'\n\
                    [[policies]]\npattern = 'demo.add'\naction = 'block'\n\
                    [processes.run]\n[notify]\ncommand = ['touch', 'notified']\n";

impl Project {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("airlock.toml"), text).unwrap();
        let (data_dir, log) = (folder.path().join("data"), folder.path().join("log"));
        Self { folder, data_dir, log }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("airlock.toml")
    }

    fn serve(&self, more: &[&str]) -> Served {
        let log = fs::File::create(&self.log).unwrap();
        Served::start_in(self.folder.path(), &self.data_dir, more, log.into())
    }

    fn verb(&self, words: &[&str]) -> Output {
        let mut command = airlock(words);
        command.env("AIRLOCK_DATA_DIR", &self.data_dir).current_dir(self.folder.path());
        command.env("HOME", self.folder.path().join("home")).env_remove("XDG_CONFIG_HOME");
        command.output().unwrap()
    }

    fn write(&self, text: &str) {
        // Renamed into place, so that a server never sees half of it.
        let new = self.folder.path().join("new.toml");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file()).unwrap();
    }
}

/// What a server permits: whether the project's tool exists, whether `demo.ask` needs no person, and whether `demo.add`
/// is blocked.
fn permitted(served: &Served) -> [bool; 3] {
    let client = served.client("admin");
    let status = |tool: &str| client.get(&format!("/api/policies/test?tool={tool}")).json();
    let has_tool = status("c.org.main.one")["toolExists"] == true;
    [has_tool, status("demo.ask")["verdict"] == "allow", status("demo.add")["verdict"] == "refuse"]
}

#[test]
fn a_projects_file_counts_once_it_is_trusted_and_a_change_counts_only_where_it_tightens() {
    let project = Project::new(FILE);
    let served = project.serve(&[]);
    assert_eq!(permitted(&served), [false, false, true], "only what blocks counts");
    let said = fs::read_to_string(&project.log).unwrap();
    assert!(said.contains("is not trusted") && said.contains("airlock trust"), "{said}");
    let notice = |served: &Served, token: &str| {
        served.client(token).get("/api/questions").json()["notice"].clone()
    };
    assert!(
        notice(&served, "admin").to_string().contains("is not trusted"),
        "the console shows it"
    );
    assert!(notice(&served, "run").is_null());
    // Trusted while the server runs: the server notices the change.
    let trusted = project.verb(&["trust"]);
    assert!(trusted.status.success(), "{trusted:?}");
    wait_for(|| (permitted(&served) == [true, true, true]).then_some(()));
    // Even a trusted project file may not start processes.
    let client = served.client("admin");
    let exists = |tool: &str| {
        client.get(&format!("/api/policies/test?tool={tool}")).json()["toolExists"].clone()
    };
    assert_eq!(exists("process.run"), false);
    // An agent edits the file: the trusted version's blocks stay in force, and only a block can be added.
    project.write("[[policies]]\npattern = 'demo.ask'\naction = 'block'\n[[policies]]\npattern = '*'\naction = 'approve'\n");
    let ask = || client.get("/api/policies/test?tool=demo.ask").json()["verdict"].clone();
    wait_for(|| (ask() == "refuse").then_some(()));
    assert_eq!(permitted(&served), [true, false, true]);
    // The next start gives the same result.
    served.kill();
    let served = project.serve(&[]);
    assert_eq!(ask_of(&served), "refuse");
    let said = fs::read_to_string(&project.log).unwrap();
    assert!(said.contains("has changed since it was trusted"), "{said}");
    let checked = project.verb(&["doctor"]);
    let text = String::from_utf8(checked.stdout).unwrap();
    assert!(text.contains("has changed since it was trusted"), "{text}");
    // Once trusted again, only the new version applies.
    assert!(project.verb(&["trust"]).status.success());
    wait_for(|| (!permitted(&served)[0]).then_some(()));
    served.stop();
}

fn ask_of(served: &Served) -> String {
    let told = served.client("admin").get("/api/policies/test?tool=demo.ask").json();
    told["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn a_projects_file_holds_for_a_server_that_is_started_elsewhere() {
    let project = Project::new(FILE);
    project.serve(&[]).stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let served =
        Served::start_in(elsewhere.path(), &project.data_dir, &[], std::process::Stdio::null());
    assert_eq!(permitted(&served), [false, false, true]);
    served.stop();
}

#[test]
fn the_operators_own_files_need_no_trust() {
    let project = Project::new("");
    let named = project.folder.path().join("named.toml");
    fs::write(&named, FILE.replace("[processes.run]\n", "")).unwrap();
    let served = project.serve(&["--config", named.to_str().unwrap()]);
    wait_for(|| (permitted(&served) == [true, true, true]).then_some(()));
    served.stop();
}

#[test]
fn no_notice_is_sent_by_a_projects_file() {
    let project = Project::new(FILE);
    assert!(project.verb(&["trust"]).status.success());
    let said = project.verb(&["doctor"]);
    let said = String::from_utf8(said.stdout).unwrap();
    for section in ["[notify] is ignored", "[processes] is ignored"] {
        assert!(said.contains(section), "{said}");
    }
    let forgotten = project.verb(&["trust", "--forget"]);
    assert!(forgotten.status.success(), "{forgotten:?}");
    assert_eq!(project.verb(&["trust", "--forget"]).status.code(), Some(1));
    assert_eq!(project.verb(&["trust", "/no/such/airlock.toml"]).status.code(), Some(1));
}

/// The confirmation of `serve` on a terminal.
#[tokio::test]
async fn a_person_at_the_terminal_trusts_the_file_by_a_yes() {
    let project = Project::new(FILE);
    let house = pty::house();
    let home = project.folder.path();
    let env = [("HOME", home), ("AIRLOCK_DATA_DIR", project.data_dir.as_path())];
    let words = ["serve", "--listen", "127.0.0.1:0"];
    let mut terminal = pty::Terminal::open_in(&house, home, 100, &env, &words).await;
    terminal.sees("Trust it as it is now?").await;
    terminal.types("y\r").await;
    terminal.sees("is trusted as it is now").await;
    terminal.sees("Airlock is ready").await;
    terminal.types("\u{3}").await;
    assert_eq!(terminal.ends().await, 0);
    house.shutdown().await;
    let record = sources::TrustedFile::load(&project.data_dir, &project.file()).unwrap();
    assert!(record.is_some_and(|trusted| trusted.is_of(FILE)));
}
