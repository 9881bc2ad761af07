//! Converts an `executor.jsonc` to an `airlock.toml`: its sources and their credentials. Performs no I/O.

use serde_json::Value;
use std::collections::BTreeMap;
use toml::{Table, Value as Toml};
use tools::{IntegrationSlug, SourceKinds};

/// Most sources that are imported: more than a person writes into one file.
const SOURCES_MAX: usize = 1_000;

/// The prefix of Executor's references to stored secrets.
const SECRET_REF: &str = "secret-public-ref:";

/// A configuration for Airlock, and the remaining tasks of a person.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ExecutorImport {
    /// The text of an `airlock.toml`.
    pub(crate) text: String,
    /// The remaining tasks, a sentence each.
    pub(crate) notes: Vec<String>,
    /// The number of its sources.
    pub(crate) n_sources: usize,
}

/// Converts the text of an `executor.jsonc`.
pub(crate) fn import(text: &str) -> Result<ExecutorImport, String> {
    let plain = without_comments(text);
    let file: Value = serde_json::from_str(&plain)
        .map_err(|error| format!("it is not JSON with comments: {error}"))?;
    let sources = file["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !file.is_object() {
        return Err("it is no object".into());
    }
    if sources.len() > SOURCES_MAX {
        return Err(format!("it has {} sources, {SOURCES_MAX} at most", sources.len()));
    }
    let mut made = ConfigDraft::default();
    for (n, source) in sources.iter().enumerate() {
        if let Err(why) = made.take(source) {
            made.notes.push(format!("Source {} was left out: {why}.", n + 1));
        }
    }
    if file["plugins"].as_array().is_some_and(|plugins| !plugins.is_empty()) {
        let note = "Plugins were left out: Airlock has no plugins. MCP servers and command tools replace them.";
        made.notes.push(note.into());
    }
    made.finish()
}

#[derive(Default)]
struct ConfigDraft {
    sources: Table,
    connections: Table,
    notes: Vec<String>,
}

impl ConfigDraft {
    fn take(&mut self, source: &Value) -> Result<(), String> {
        let kind = source["kind"].as_str().ok_or("it has no kind")?;
        let known = SourceKinds::default().by_name(kind);
        let known = known.ok_or_else(|| format!("there is no kind {kind} here"))?;
        let config = known.config_from_executor(source)?;
        let slug = self.slug(source, config.url.as_deref())?;
        let made = Table::try_from(&config).map_err(|error| error.to_string())?;
        if let Some(proof) = self.proof(&slug, source) {
            let main = Table::from_iter([("main".to_owned(), Toml::Table(proof))]);
            self.connections.insert(slug.clone(), Toml::Table(main));
        }
        self.sources.insert(slug, Toml::Table(made));
        Ok(())
    }

    fn slug(&self, source: &Value, address: Option<&str>) -> Result<String, String> {
        let named = ["namespace", "name"].iter().find_map(|name| source[*name].as_str());
        let host = || {
            let url = url::Url::parse(address?).ok()?;
            url.host_str().map(str::to_owned)
        };
        let text = named.map(str::to_owned).or_else(host).unwrap_or_default();
        let slug =
            IntegrationSlug::parse(&text).ok().or_else(|| IntegrationSlug::resembling(&text));
        let slug = slug.ok_or("it has no name; give it a namespace")?.to_string();
        match self.sources.contains_key(&slug) {
            true => Err(format!("there is another source {slug}")),
            false => Ok(slug),
        }
    }

    /// The credential of a source, where it has one.
    fn proof(&mut self, slug: &str, source: &Value) -> Option<Table> {
        let mut given: BTreeMap<String, (String, String)> = BTreeMap::new();
        for (name, value) in source["headers"].as_object().into_iter().flatten() {
            let prefix = value["prefix"].as_str().unwrap_or_default().to_owned();
            let text = value.as_str().or_else(|| value["value"].as_str()).unwrap_or_default();
            given.insert(name.clone(), (text.to_owned(), prefix));
        }
        let auth = &source["auth"];
        match auth["kind"].as_str() {
            Some("header") => {
                let text = |name: &str| auth[name].as_str().unwrap_or_default().to_owned();
                let secret = format!("{SECRET_REF}{}", text("secret"));
                given.insert(text("headerName"), (secret, text("prefix")));
            }
            Some("oauth2") => self.notes.push(format!(
                "{slug} signs in with OAuth: airlock connection add {slug} --oauth, and open the address that it prints."
            )),
            Some(_) | None => {}
        }
        if given.is_empty() {
            return None;
        }
        let mut proof = Table::new();
        let mut headers = Table::new();
        for (name, (text, prefix)) in given {
            let is_bearer = name.eq_ignore_ascii_case("authorization") && prefix.trim() == "Bearer";
            let value = self.value(slug, &text, if is_bearer { "" } else { &prefix });
            if is_bearer {
                proof.insert("bearer".into(), value);
            } else {
                headers.insert(name, value);
            }
        }
        if !headers.is_empty() {
            proof.insert("headers".into(), Toml::Table(headers));
        }
        Some(proof)
    }

    /// The literal value, or a reference to it, if Executor stores it as a secret.
    fn value(&mut self, slug: &str, text: &str, prefix: &str) -> Toml {
        let Some(id) = text.strip_prefix(SECRET_REF) else {
            return Toml::String(format!("{prefix}{text}"));
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let variable = format!("EXECUTOR_SECRET_{}", id.chars().map(plain).collect::<String>());
        let begins = match prefix {
            "" => String::new(),
            prefix => format!(", with {prefix:?} before it"),
        };
        self.notes.push(format!(
            "{slug} needs the secret {id:?}: put it into the server's variable {variable}{begins}, or enter it with \
             airlock connection add."
        ));
        Toml::Table(Table::from_iter([("env".to_owned(), Toml::String(variable))]))
    }

    fn finish(self) -> Result<ExecutorImport, String> {
        let n_sources = self.sources.len();
        let mut file = Table::new();
        for (name, table) in [("sources", self.sources), ("connections", self.connections)] {
            if !table.is_empty() {
                file.insert(name.into(), Toml::Table(table));
            }
        }
        let text = toml::to_string_pretty(&file).map_err(|error| error.to_string())?;
        let text = format!(
            "# Imported from an executor.jsonc. docs/from-executor.md says what differs.\n\n{text}"
        );
        Ok(ExecutorImport { text, notes: self.notes, n_sources })
    }
}

/// JSON without comments and without commas before a closing bracket.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut within_text = false;
    while let Some(c) = chars.next() {
        match (within_text, c, chars.peek()) {
            (true, '\\', Some(next)) => {
                plain.extend([c, *next]);
                chars.next();
                continue;
            }
            (false, '/', Some('/')) => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            (false, '/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                continue;
            }
            (_, '"', _) => within_text = !within_text,
            (false, '}' | ']', _) => {
                let end = plain.trim_end().len();
                if plain[..end].ends_with(',') {
                    plain.truncate(end - 1);
                }
            }
            (_, _, _) => {}
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use sources::config::ConfigDocument;

    const FILE: &str = r#"{
  // what an agent may use
  "name": "mine",
  "sources": [
    { "kind": "openapi", "spec": "https://shop.example/openapi.json", "namespace": "shop",
      "baseUrl": "https://shop.example/v2",
      "headers": { "Authorization": { "value": "secret-public-ref:shop-key", "prefix": "Bearer " },
                   "X-Team": "blue", }, },
    { "kind": "graphql", "endpoint": "https://graph.example/api" },
    { "kind": "mcp", "transport": "remote", "name": "My Server", "endpoint": "https://mcp.example/mcp",
      "queryParams": { "v": "1" }, "auth": { "kind": "oauth2", "connectionId": "c" } },
    { "kind": "mcp", "transport": "stdio", "name": "files", "command": "npx", "args": ["-y", "server"],
      "env": { "A": "b" }, "cwd": "/srv" }, /* the last */
    { "kind": "telepathy" },
  ],
  "plugins": [{ "package": "x" }],
}"#;

    #[test]
    fn sources_and_headers_become_a_configuration_that_is_valid() {
        let made = import(FILE).unwrap();
        assert_eq!(made.n_sources, 4);
        let file = ConfigDocument::parse(&made.text).unwrap();
        let names: Vec<_> = file.sources.keys().map(String::as_str).collect();
        assert_eq!(names, ["files", "graphExample", "myServer", "shop"]);
        let shop = &file.sources["shop"];
        assert_eq!(shop.url.as_deref(), Some("https://shop.example/openapi.json"));
        assert_eq!(shop.base_url.as_deref(), Some("https://shop.example/v2"));
        assert_eq!(file.sources["files"].command, ["npx", "-y", "server"]);
        assert_eq!(file.sources["myServer"].url.as_deref(), Some("https://mcp.example/mcp?v=1"));
        assert!(made.text.contains("env = \"EXECUTOR_SECRET_SHOP_KEY\""), "{}", made.text);
        let notes = made.notes.join("\n");
        for expected in
            ["\"shop-key\"", "myServer signs in with OAuth", "Source 5 was left out", "Plugins"]
        {
            assert!(notes.contains(expected), "{expected}: {notes}");
        }
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        assert!(import("[1]").is_err() && import("{").is_err());
        assert_eq!(import("{}").unwrap().n_sources, 0);
        assert_eq!(without_comments(r#"{"a":"//x/*",}"#), r#"{"a":"//x/*"}"#);
    }
}
