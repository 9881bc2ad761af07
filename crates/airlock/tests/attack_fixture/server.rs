//! A server with secrets in every place that a guest must not read.

use crate::echo::{Echo, connect};
use crate::server_fixture::{Client, Served, airlock, wait_for};
use crate::traces;
use aho_corasick::AhoCorasick;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Secrets in the environment, in a file, in the vault, and in the code and output of another caller's program.
const CANARIES: [&str; 5] = [
    "canary-Environment/8Uv+Ke3",
    "canary-File/4Bn+Ty6wQ",
    "canary-Vault/9Zr+Lm1sX",
    "canary-OtherResult/2Ha+Vd5",
    "canary-OtherLog/6Jc+Wp8k",
];

/// The guests' limits: little processor time, because every door except this server's sets its own limits.
const CONFIG: &str = "[limits]
cpu_ms_max = 400
active_ms_max = 20000

[sources.hostile.tools.echo]
description = \"Returns its standard input.\"
argv = [\"cat\"]
read_only = true
[sources.hostile.tools.echo.input]
type = \"object\"

[sources.hostile.tools.print]
description = \"Prints a text as it is.\"
argv = [\"printf\", \"%s\", \"{text}\"]
read_only = true
[sources.hostile.tools.print.input]
type = \"object\"
required = [\"text\"]
properties = { text = { type = \"string\" } }
";

/// The server under attack.
pub(crate) struct Target {
    pub(crate) served: Served,
    pub(crate) data_dir: String,
    /// An execution of another caller.
    pub(crate) other: String,
    /// Every secret that must not be in any answer: the canaries and the tokens.
    secrets: Vec<String>,
    /// Finds every trace of every secret; `owners` maps a trace to its secret.
    finder: AhoCorasick,
    owners: Vec<usize>,
    _echo: Echo,
    _folder: tempfile::TempDir,
}

impl Target {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        fs::create_dir(&data_dir).unwrap();
        fs::write(data_dir.join("canary.txt"), CANARIES[1]).unwrap();
        let config = folder.path().join("airlock.toml");
        fs::write(&config, CONFIG).unwrap();
        let served = Served::start_command(command(&config), &data_dir, Stdio::null());
        let echo = Echo::start();
        let admin = served.client("admin");
        plant_in_vault(&admin, &echo);
        let other = other_execution(&admin);
        // The server reads the command's tools after it has started, so this program waits for them.
        let ready = "const found = await tools.search({ query: 'print a text' }); return found.items.length > 0";
        wait_for(|| (admin.execute(ready).result() == true).then_some(()));
        let tokens = ["admin", "run"].map(|name| token(&data_dir, name));
        let secrets: Vec<_> = CANARIES.map(str::to_owned).into_iter().chain(tokens).collect();
        let (finder, owners) = finder(&secrets);
        let data_dir = data_dir.display().to_string();
        Self { served, data_dir, other, secrets, finder, owners, _echo: echo, _folder: folder }
    }

    /// The secret that an answer contains, in any encoding, if there is one.
    pub(crate) fn leaked(&self, answer: &str) -> Option<&str> {
        let found = self.finder.find(answer)?;
        Some(&self.secrets[self.owners[found.pattern().as_usize()]])
    }

    /// A client with a new token that may only run programs.
    pub(crate) fn caller(&self, name: &str) -> Client {
        let wanted = json!({ "name": name, "scopes": ["run"] });
        let minted = self.served.client("admin").post("/api/tokens", &wanted.to_string()).json();
        self.served.client_with(minted["secret"].as_str().unwrap())
    }
}

fn finder(secrets: &[String]) -> (AhoCorasick, Vec<usize>) {
    let mut needles = vec![];
    let mut owners = vec![];
    for (owner, secret) in secrets.iter().enumerate() {
        let traces = traces::traces(secret);
        owners.extend(traces.iter().map(|_| owner));
        needles.extend(traces);
    }
    (AhoCorasick::new(needles).unwrap(), owners)
}

fn command(config: &Path) -> Command {
    let mut command = airlock(&["serve"]);
    command.env("AIRLOCK_TEST_CANARY", CANARIES[0]).arg("--config").arg(config);
    command
}

fn token(data_dir: &Path, name: &str) -> String {
    fs::read_to_string(data_dir.join("tokens").join(name)).unwrap().trim().to_owned()
}

fn plant_in_vault(admin: &Client, echo: &Echo) {
    let source =
        json!({ "slug": "things", "spec": { "kind": "blob", "value": echo.description() } });
    let added = admin.post("/api/openapi/specs", &source.to_string());
    assert!(added.status < 300, "{added:?}");
    connect(admin, json!({ "name": "main", "template": "bearer", "value": CANARIES[2] }));
}

fn other_execution(admin: &Client) -> String {
    let code = format!("console.log('{}'); return '{}'", CANARIES[4], CANARIES[3]);
    let ran = admin.execute(&code);
    assert_eq!(ran.result(), CANARIES[3]);
    ran.execution()
}
