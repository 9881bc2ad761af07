//! A server with a configuration of its own, and what tests of sources ask of it.

use crate::server_fixture::{Client, Served, airlock, wait_for};
use serde_json::{Value, json};

/// A server with a configuration of its own.
pub(crate) struct House {
    dir: tempfile::TempDir,
    more: Vec<String>,
    pub(crate) served: Served,
}

impl House {
    /// A server with this configuration.
    pub(crate) fn with(config: &str) -> Self {
        Self::with_args(config, &[])
    }

    /// The same, with more words on its command line.
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

    /// The same server after `kill -9`.
    pub(crate) fn again(self) -> Self {
        self.again_after(|_| {})
    }

    /// The same, with something done while it is down. The folder holds `airlock.toml` and `data`.
    pub(crate) fn again_after(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
        let Self { dir, more, served } = self;
        served.kill();
        meanwhile(dir.path());
        let served = Self::serve(&dir, &more);
        Self { dir, more, served }
    }

    /// What the terminal says: the exit code, what is printed, and what is noted beside it.
    pub(crate) fn says(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = airlock(words).arg("--data-dir").arg(&self.served.data_dir).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// What would happen to a call of a tool.
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

    /// Waits until a source has been read.
    pub(crate) fn ready(&self, slug: &str) -> Value {
        wait_for(|| self.source(slug).filter(|source| source["trouble"].is_null()))
    }

    /// What a program returns.
    pub(crate) fn run(&self, code: &str) -> Value {
        let answer = self.admin().execute(code).json();
        assert_eq!(answer["status"], "completed", "{answer}");
        answer["structured"]["result"].clone()
    }
}

/// An API with these operations: method, path and id.
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
