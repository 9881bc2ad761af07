//! A server with a given configuration, and helpers for tests of sources.

use crate::server_fixture::{Client, Served, airlock, wait_for};
use serde_json::{Value, json};

/// A server with its configuration and its data.
pub(crate) struct House {
    dir: tempfile::TempDir,
    more: Vec<String>,
    pub(crate) served: Served,
}

impl House {
    /// Starts a server with this configuration.
    pub(crate) fn with(config: &str) -> Self {
        Self::with_args(config, &[])
    }

    /// The same, with additional arguments on its command line.
    pub(crate) fn with_args(config: &str, more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("airlock.toml"), config).unwrap();
        let more: Vec<_> = more.iter().map(|word| (*word).to_owned()).collect();
        let served = Self::serve(&dir, &more);
        Self { dir, more, served }
    }

    fn serve(dir: &tempfile::TempDir, more: &[String]) -> Served {
        let file = dir.path().join("airlock.toml");
        let mut words = vec!["--config", file.to_str().unwrap()];
        words.extend(more.iter().map(String::as_str));
        Served::with_model_answers(&dir.path().join("data"), &words)
    }

    /// Starts the same server after `kill -9`.
    pub(crate) fn again(self) -> Self {
        self.again_after(|_| {})
    }

    /// The same, and runs `meanwhile` while it is down. The folder contains `airlock.toml` and `data`.
    pub(crate) fn again_after(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
        let Self { dir, more, served } = self;
        served.kill();
        meanwhile(dir.path());
        let served = Self::serve(&dir, &more);
        Self { dir, more, served }
    }

    /// Runs a verb. Returns the exit code, stdout and stderr.
    pub(crate) fn says(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = airlock(words).arg("--data-dir").arg(&self.served.data_dir).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The verdict on a call of a tool.
    pub(crate) fn verdict(&self, tool: &str) -> String {
        let told = self.admin().get(&format!("/api/policies/test?tool={tool}")).json();
        told["verdict"].as_str().unwrap().to_owned()
    }

    pub(crate) fn admin(&self) -> Client {
        self.served.client("admin")
    }

    pub(crate) fn configure(&self, config: &str) {
        let new = self.dir.path().join("new.toml");
        std::fs::write(&new, config).unwrap();
        std::fs::rename(new, self.dir.path().join("airlock.toml")).unwrap();
    }

    pub(crate) fn source(&self, slug: &str) -> Option<Value> {
        let answer = self.admin().get(&format!("/api/integrations/{slug}"));
        (answer.status == 200).then(|| answer.json())
    }

    /// Waits until a source has been read, and returns it.
    pub(crate) fn ready(&self, slug: &str) -> Value {
        wait_for(|| self.source(slug).filter(|source| source["trouble"].is_null()))
    }

    /// The result of a program.
    pub(crate) fn run(&self, code: &str) -> Value {
        let answer = self.admin().execute(code).json();
        assert_eq!(answer["status"], "completed", "{answer}");
        answer["structured"]["result"].clone()
    }
}

/// The description of an API with these operations: method, path and id.
pub(crate) fn api(operations: &[(&str, &str, &str)]) -> String {
    let mut paths = json!({});
    for (method, path, id) in operations {
        paths[path][method] = json!({ "operationId": id, "tags": ["t"],
            "responses": { "200": { "description": "ok" } } });
    }
    let info = json!({ "title": "Things", "version": "1" });
    let servers = json!([{ "url": "http://127.0.0.1:9" }]);
    json!({ "openapi": "3.1.0", "info": info, "servers": servers, "paths": paths }).to_string()
}
