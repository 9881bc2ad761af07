//! An API that requires tokens, the server that issues them, and an Airlock server that obtains them.

use crate::echo::Echo;
use crate::issuer::{self, Browser, Issuer};
use crate::server_fixture::{Answer, Client, Served, good, wait_for};
use crate::traces::{unseen, unseen_below};
use serde_json::{Value, json};

/// A protected API, its authorization server, and an Airlock server with a connection to it.
pub(crate) struct House {
    pub(crate) api: Echo,
    pub(crate) issuer: Issuer,
    pub(crate) served: Served,
    pub(crate) dir: tempfile::TempDir,
}

impl House {
    /// Tokens expire after this many seconds; `oauth` configures the connection.
    pub(crate) fn new(seconds: u32, oauth: Value) -> Self {
        let house = Self::open(seconds, &[]);
        house.connect("things", oauth);
        house
    }

    /// The same without a connection, and with additional arguments for the server.
    pub(crate) fn open(seconds: u32, more: &[&str]) -> Self {
        let port = issuer::free_port();
        let api = Echo::guarded(Some(Box::new(move |token| issuer::is_valid(port, token))));
        api.names(&format!("http://127.0.0.1:{port}"));
        let issuer = Issuer::start(port, seconds, &api.url);
        let dir = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(dir.path().join("log.txt")).unwrap();
        let more = [&["--answers", "model"], more].concat();
        let served = Served::telling(&dir.path().join("data"), &more, log, "");
        served.let_model_answer();
        let house = Self { api, issuer, served, dir };
        let spec = json!({ "slug": "things", "spec": { "kind": "blob", "value": house.api.description() } });
        good(house.admin().post("/api/openapi/specs", &spec.to_string()));
        house
    }

    pub(crate) fn connect(&self, integration: &str, oauth: Value) {
        let body = json!({ "integration": integration, "name": "main", "template": "oauth", "oauth": oauth });
        good(self.admin().post("/api/connections", &body.to_string()));
    }

    pub(crate) fn admin(&self) -> Client {
        self.served.client("admin")
    }

    /// Starts the same server after `kill -9`, at the same address.
    pub(crate) fn again(self) -> Self {
        let Self { api, issuer, served, dir } = self;
        let listen = served.url.strip_prefix("http://").unwrap().to_owned();
        served.kill();
        let served = Served::start(&dir.path().join("data"), &["--listen", &listen]);
        Self { api, issuer, served, dir }
    }

    /// Consents at the authorization server. Returns the address to which it redirects the browser.
    pub(crate) fn agree(&self, url: &str) -> String {
        Browser::default().visit(url, &self.served.url).unwrap()
    }

    pub(crate) fn come_back(&self, url: &str) -> Answer {
        let nobody = Client { secret: String::new(), ..self.admin() };
        nobody
            .get(url.strip_prefix(&self.served.url).unwrap_or_else(|| panic!("it leads to {url}")))
    }

    /// Asserts that the issuer's secrets reached the API only.
    pub(crate) fn told_nobody(self) {
        let secrets = self.issuer.secrets();
        assert!(!secrets.is_empty(), "something was given out");
        let data = self.dir.path().join("data");
        assert_eq!(self.served.stop(), Some(0));
        unseen_below(&data, &secrets);
        unseen(&std::fs::read(self.dir.path().join("log.txt")).unwrap(), &secrets, "the log");
    }
}

/// The link that a paused execution shows.
pub(crate) fn link(paused: &Answer) -> String {
    let told = paused.json();
    let url = told["structured"]["interaction"]["url"].as_str();
    url.unwrap_or_else(|| panic!("no link: {told}")).to_owned()
}

pub(crate) fn parameter(url: &str, name: &str) -> String {
    let query = url.split_once('?').unwrap().1;
    let found = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    found.unwrap_or_else(|| panic!("no {name} in {url}")).to_owned()
}

/// The result of an execution, once it has one.
#[track_caller]
pub(crate) fn result(client: &Client, execution: &str) -> Value {
    wait_for(|| {
        let shown = client.get(&format!("/api/executions/{execution}/result"));
        (shown.status == 200).then(|| shown.json()["result"].clone())
    })
}

/// Consents to every request of an execution until it ends. Returns its result and the number of requests.
pub(crate) fn agreed(house: &House, agent: &Client, execution: &str) -> (Value, usize) {
    let mut seen: Vec<String> = vec![];
    loop {
        let found = wait_for(|| {
            let shown = agent.get(&format!("/api/executions/{execution}/result"));
            if shown.status == 200 {
                return Some(Err(shown.json()["result"].clone()));
            }
            let asked = agent.get(&format!("/api/executions/{execution}/questions")).json();
            let urls = asked["questions"].as_array()?.iter();
            let url = urls.filter_map(|asked| asked["interaction"]["url"].as_str()).next()?;
            (!seen.iter().any(|known| known == url)).then(|| Ok(url.to_owned()))
        });
        match found {
            Err(result) => return (result, seen.len()),
            Ok(url) => {
                assert_eq!(house.come_back(&house.agree(&url)).status, 200);
                seen.push(url);
            }
        }
    }
}
