//! Connections in a simulated network and with a manual clock. A server on the internet must not direct requests into
//! internal networks: here 127.0.0.2 is the internet, and 127.0.0.1 is internal.

use crate::engine_fixture::{House, value};
use credentials::{
    CallbackOutcome, ConnectionConfig, CredentialOffer, FlowStart, KeyPlace, OAuthConfig,
    OAuthFlow, Vault,
};
use engine::{Clock, ManualClock};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{ExecutionLimits, Timestamp};
use serde_json::{Value, json};
use sources::{SourceRegistry, SourcesSetup};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::sqlite::SqliteStore;
use tools::http::{ApiClient, ApiRequest, HttpLimits, NameResolver, RequestReach, SystemResolver};
use tools::{
    CancelSignal, ChildSupervision, IntegrationSlug, SourceConfig, SourceKinds, ToolCredential,
};

const PUBLIC: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OURS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A resolver for a network whose internet is 127.0.0.2.
#[derive(Debug, Default)]
struct Near {
    n_rebound: AtomicUsize,
}

impl NameResolver for Near {
    fn resolve(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
        let ips: Vec<IpAddr> = match name.as_str() {
            "api.example.test" | "auth.example.test" => vec![PUBLIC.into()],
            "inside.example.test" => vec![OURS.into()],
            "mapped.example.test" => vec![OURS.to_ipv6_mapped().into()],
            "both.example.test" => vec![OURS.into(), PUBLIC.into()],
            "rebinding.example.test" => match self.n_rebound.fetch_add(1, Ordering::Relaxed) % 2 {
                0 => vec![PUBLIC.into()],
                _ => vec![OURS.into()],
            },
            _ => vec![],
        };
        async move { Ok(ips.into_iter().map(|ip| (ip, 0).into()).collect()) }.boxed()
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        ip == IpAddr::from(PUBLIC) || SystemResolver.is_public(ip)
    }
}

/// The response at each path: a document, or the address of a redirect.
type Pages = Arc<Mutex<Vec<(String, Result<Value, String>)>>>;

/// A server that counts its connections. It ends with the process: it holds nothing but a port.
struct Web {
    port: u16,
    pages: Pages,
    n_heard: Arc<AtomicUsize>,
}

impl Web {
    fn start(ip: Ipv4Addr, port: u16) -> Self {
        let listener = TcpListener::bind((ip, port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let web = Self { port, pages: Arc::default(), n_heard: Arc::default() };
        let (pages, n_heard) = (Arc::clone(&web.pages), Arc::clone(&web.n_heard));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                n_heard.fetch_add(1, Ordering::SeqCst);
                let mut line = String::new();
                let _ = BufReader::new(&stream).read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or_default();
                let pages = pages.lock().unwrap();
                let said = pages.iter().find(|(known, _)| known == path).map(|(_, said)| said);
                let (head, body) = match said {
                    Some(Ok(page)) => {
                        ("200 OK\r\nContent-Type: application/json".into(), page.to_string())
                    }
                    Some(Err(to)) => (format!("302 Found\r\nLocation: {to}"), String::new()),
                    None => ("404 Not Found".into(), String::new()),
                };
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        web
    }

    fn says(&self, path: &str, page: Value) {
        self.pages.lock().unwrap().push((path.to_owned(), Ok(page)));
    }

    fn leads(&self, path: &str, to: &str) {
        self.pages.lock().unwrap().push((path.to_owned(), Err(to.to_owned())));
    }

    fn n_heard(&self) -> usize {
        self.n_heard.load(Ordering::SeqCst)
    }
}

/// Servers on the same port on the internet and on the internal address. A misdirected request reaches the internal
/// one.
fn both() -> (Web, Web) {
    for _ in 0..100 {
        let ours = Web::start(OURS, 0);
        if let Ok(free) = TcpListener::bind((PUBLIC, ours.port)) {
            drop(free);
            let public = Web::start(PUBLIC, ours.port);
            return (public, ours);
        }
    }
    panic!("no port is free on both");
}

/// Sources in that network, with an engine that calls them.
struct Place {
    house: House,
    sources: SourceRegistry,
    _dir: tempfile::TempDir,
}

async fn place(network: &Arc<dyn NameResolver>, clock: Clock) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let house = House::open(&dir.path().join("engine"), |config| config.clock = clock).await;
    let records = Arc::new(SqliteStore::open(&dir.path().join("records")).unwrap());
    let vault = Vault::open(Arc::clone(&records) as _, KeyPlace::Memory).await.unwrap();
    let setup = SourcesSetup {
        engine: house.engine.clone(),
        usual: ExecutionLimits::default(),
        kinds: SourceKinds::default(),
        records,
        descriptions: None,
        files: sources::ConfigFiles::default(),
        minding: ChildSupervision::Nobody,
        vault,
        http: ApiClient::in_network(HttpLimits::default(), network),
        serves: true,
    };
    let sources = SourceRegistry::start(setup).await.unwrap();
    sources.listens_at("http://127.0.0.1:1".parse().unwrap());
    Place { house, sources, _dir: dir }
}

impl Place {
    /// Adds a source on the internet, described at `/<slug>/openapi.json`, with a connection that obtains tokens.
    async fn add(&self, slug: &str, port: u16, oauth: OAuthConfig) {
        let url = format!("http://api.example.test:{port}/{slug}/openapi.json");
        let spec = SourceConfig {
            kind: Some("openapi".into()),
            url: Some(url),
            ..SourceConfig::default()
        };
        let slug = IntegrationSlug::parse(slug).unwrap();
        self.sources.add(&slug, spec, false).await.unwrap();
        let connection = ConnectionConfig { oauth: Some(oauth), ..ConnectionConfig::default() };
        self.sources.connect(&slug, "main", connection).await.unwrap();
    }

    /// The error with which a program's call fails.
    async fn fails(&self, slug: &str) -> String {
        let code = format!(
            "const told = await tools.{slug}.org.main.t.list({{}}); return told.error.code + ': ' + told.error.message"
        );
        let outcome = self.house.run(&code, ExecutionLimits::default()).await;
        value(&outcome).trim_matches('"').to_owned()
    }
}

fn description(server: &str, schemes: Value) -> Value {
    let operation = json!({ "operationId": "list", "tags": ["t"], "responses": { "200": { "description": "ok" } } });
    json!({ "openapi": "3.2.0", "info": { "title": "x", "version": "1" }, "servers": [{ "url": server }],
        "components": { "securitySchemes": schemes }, "paths": { "/things": { "get": operation } } })
}

fn machine() -> OAuthConfig {
    let text = |text: &str| Some(text.to_owned());
    let mut oauth = OAuthConfig { client_id: text("machine"), ..OAuthConfig::default() };
    oauth.flow = Some(OAuthFlow::ClientCredentials);
    oauth
}

/// Internal addresses to which no external document may lead. An internal server listens at the first eight.
fn inside(port: u16) -> Vec<String> {
    let hosts = [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "inside.example.test",
        "mapped.example.test",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.1.1",
        "[fd00::1]",
    ];
    hosts.iter().map(|host| format!("http://{host}:{port}")).collect()
}

/// The simulated network with its servers.
struct World {
    public: Web,
    ours: Web,
    place: Place,
    api: String,
}

impl World {
    async fn new() -> Self {
        let (public, ours) = both();
        let api = format!("http://api.example.test:{}", public.port);
        let near = Arc::new(Near::default()) as Arc<dyn NameResolver>;
        Self { public, ours, place: place(&near, Clock::system()).await, api }
    }

    /// A source on the internet whose calls go to `server`.
    async fn add(&self, slug: &str, server: &str, schemes: Value, oauth: OAuthConfig) {
        self.public.says(&format!("/{slug}/openapi.json"), description(server, schemes));
        self.place.add(slug, self.public.port, oauth).await;
    }

    /// The same, protected by `issuer` according to its own metadata.
    async fn guarded(&self, slug: &str, issuer: &str, oauth: OAuthConfig) {
        let server = format!("{}/{slug}", self.api);
        let about = json!({ "resource": server, "authorization_servers": [issuer] });
        self.public.says(&format!("/.well-known/oauth-protected-resource/{slug}"), about);
        self.add(slug, &server, json!({}), oauth).await;
    }

    async fn fails(&self, slug: &str, with: &str, at: &str) {
        let why = self.place.fails(slug).await;
        assert!(why.starts_with(with), "{at}: {why}");
    }

    /// Asserts that no request reached the internal server, and that a direct request to it would have been counted.
    async fn nobody_came(self) {
        assert!(self.public.n_heard() > 0, "what is public was asked");
        assert_eq!(self.ours.n_heard(), 0, "nobody knocked at ours");
        let url = format!("http://127.0.0.1:{}", self.ours.port).parse().unwrap();
        let named = ApiRequest::new(hyper::Method::GET, url);
        let never = CancelSignal::never();
        let sent = ApiClient::default().send(named, &ToolCredential::none(), &never).await;
        assert!(sent.is_ok() && self.ours.n_heard() == 1, "{sent:?}");
        self.place.sources.shutdown().await;
        self.place.house.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_source_are_read_before_anybody_searches() {
    let world = World::new().await;
    world.add("things", &world.api, json!({}), OAuthConfig::default()).await;
    let catalogue = world.place.house.engine.catalogue();
    let indexed = async {
        while !catalogue.snapshot().is_indexed("things") {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(30), indexed).await;
    assert!(waited.is_ok(), "nobody searched, and the index is there");
    world.place.sources.shutdown().await;
    world.place.house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_public_source_or_server_publishes_leads_inside() {
    let world = World::new().await;
    let auth = format!("http://auth.example.test:{}", world.public.port);
    for (n, at) in inside(world.public.port).iter().enumerate() {
        // The authorization server itself.
        let slug = format!("issuer{n}");
        world.guarded(&slug, at, OAuthConfig::default()).await;
        world.fails(&slug, "oauth_discovery_failed", at).await;

        // The metadata of a public authorization server: its token endpoint and its registration endpoint.
        let (slug, issuer) = (format!("token{n}"), format!("{auth}/token{n}"));
        let about = json!({ "issuer": issuer, "authorization_endpoint": format!("{auth}/agree"),
            "token_endpoint": format!("{at}/token"), "registration_endpoint": format!("{at}/register") });
        world.public.says(&format!("/.well-known/oauth-authorization-server/{slug}"), about);
        world.guarded(&slug, &issuer, machine()).await;
        world.fails(&slug, "oauth_refresh_failed", at).await;
        let anybody =
            ConnectionConfig { oauth: Some(OAuthConfig::default()), ..ConnectionConfig::default() };
        let sources = &world.place.sources;
        let slug = IntegrationSlug::parse(&slug).unwrap();
        sources.connect(&slug, "main", anybody).await.unwrap();
        let why = sources.authorize(&slug, "org", "main").await.unwrap_err().to_string();
        assert!(why.contains("cannot be authorized"), "{at}: {why}");

        // A redirect on the way.
        let slug = format!("moved{n}");
        for path in [format!("/.well-known/oauth-protected-resource/{slug}"), format!("/{slug}")] {
            world.public.leads(&path, &format!("{at}/about"));
        }
        world.add(&slug, &format!("{}/{slug}", world.api), json!({}), OAuthConfig::default()).await;
        world.fails(&slug, "oauth_discovery_failed", at).await;
    }
    world.nobody_came().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_public_description_names_leads_inside() {
    let world = World::new().await;
    for (n, at) in inside(world.public.port).iter().enumerate() {
        // The token endpoint, and the document that names it.
        let flow =
            json!({ "clientCredentials": { "tokenUrl": format!("{at}/token"), "scopes": {} } });
        let schemes = json!({ "s": { "type": "oauth2", "flows": flow } });
        let slug = format!("flows{n}");
        world.add(&slug, &world.api, schemes, machine()).await;
        world.fails(&slug, "oauth_refresh_failed", at).await;
        let document = format!("{at}/.well-known/openid-configuration");
        let schemes = json!({ "s": { "type": "openIdConnect", "openIdConnectUrl": document } });
        let slug = format!("document{n}");
        world.add(&slug, &world.api, schemes, machine()).await;
        world.fails(&slug, "oauth_discovery_failed", at).await;

        // The API's own address: calls, health checks and the discovery of its authorization server all fail.
        let slug = format!("server{n}");
        world.add(&slug, at, json!({}), OAuthConfig::default()).await;
        world.fails(&slug, "oauth_discovery_failed", at).await;
        let (slug, sources) = (IntegrationSlug::parse(&slug).unwrap(), &world.place.sources);
        sources.connect(&slug, "main", ConnectionConfig::default()).await.unwrap();
        let health = sources.health(&slug, "org", "main").await.unwrap();
        assert!(!health.is_healthy, "{at}: {health:?}");
        world.fails(slug.as_str(), "upstream_", at).await;
    }
    world.nobody_came().await;
}

#[tokio::test]
async fn a_name_that_changes_its_mind_leads_to_the_address_that_was_judged() {
    let (public, ours) = both();
    public.says("/", json!({ "from": "the internet" }));
    let network = Arc::new(Near::default()) as Arc<dyn NameResolver>;
    let http = ApiClient::in_network(HttpLimits::default(), &network);
    let mut n_answered = 0;
    for _ in 0..20 {
        let url = format!("http://rebinding.example.test:{}/", public.port).parse().unwrap();
        let request =
            ApiRequest { reach: RequestReach::Public, ..ApiRequest::new(hyper::Method::GET, url) };
        match http.send(request, &ToolCredential::none(), &CancelSignal::never()).await {
            Ok(answer) => {
                assert_eq!(answer.body, br#"{"from":"the internet"}"#);
                n_answered += 1;
            }
            Err(error) => assert!(error.to_string().contains("private network"), "{error}"),
        }
        let url = format!("http://both.example.test:{}/", public.port).parse().unwrap();
        let request =
            ApiRequest { reach: RequestReach::Public, ..ApiRequest::new(hyper::Method::GET, url) };
        let answer =
            http.send(request, &ToolCredential::none(), &CancelSignal::never()).await.unwrap();
        assert_eq!(answer.body, br#"{"from":"the internet"}"#, "of several addresses a public one");
    }
    assert_eq!((n_answered, ours.n_heard()), (10, 0));
}

/// The time within which a person must complete a sign-in.
const VISIT: Duration = Duration::from_secs(30 * 60);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_too_late_is_not_expected_any_more() {
    let clock = ManualClock::starting_at(Timestamp(1_700_000_000_000));
    let network = Arc::new(SystemResolver) as Arc<dyn NameResolver>;
    let place = place(&network, Clock::Manual(clock.clone())).await;
    let (sources, slug) = (&place.sources, IntegrationSlug::parse("things").unwrap());
    let text = Some(description("http://127.0.0.1:1", json!({})).to_string());
    sources.add(&slug, SourceConfig { text, ..SourceConfig::default() }, false).await.unwrap();
    let offer = CredentialOffer {
        template: Some("bearer".into()),
        is_handed_off: true,
        ..CredentialOffer::default()
    };
    let made = sources.offered(&slug, offer).unwrap();
    sources.connect(&slug, "main", made).await.unwrap();

    let state = |url: &str| url.split_once('#').unwrap().1.to_owned();
    let url = sources.hand_off(&slug, "org", "main").await.unwrap();
    clock.advance(VISIT - Duration::from_millis(1));
    assert!(sources.handoff_form(&state(&url)).await.unwrap().is_some(), "the last moment");
    clock.advance(Duration::from_millis(1));
    let entered = || [("value".to_owned(), "a late secret".to_owned())].into();
    assert_eq!(sources.handoff_form(&state(&url)).await.unwrap(), None);
    assert!(!sources.enter_secret(&state(&url), entered()).await.unwrap());
    let again = sources.hand_off(&slug, "org", "main").await.unwrap();
    assert_ne!(again, url, "a new link is asked for");
    let too_long = [("value".to_owned(), "q".repeat((64 << 10) + 1))].into();
    let refused = sources.enter_secret(&state(&again), too_long).await.unwrap_err();
    assert!(refused.to_string().contains("65536 bytes at most"), "{refused}");
    assert!(
        sources.enter_secret(&state(&again), entered()).await.unwrap(),
        "which uses nothing up"
    );
    assert!(!sources.enter_secret(&state(&again), entered()).await.unwrap(), "and is good once");

    let oauth = OAuthConfig {
        authorization_url: Some("http://127.0.0.1:1/agree".into()),
        token_url: Some("http://127.0.0.1:1/token".into()),
        client_id: Some("us".into()),
        ..OAuthConfig::default()
    };
    let connection = ConnectionConfig { oauth: Some(oauth), ..ConnectionConfig::default() };
    sources.connect(&slug, "login", connection).await.unwrap();
    let begin = async || {
        let begun = sources.authorize(&slug, "org", "login").await.unwrap();
        let FlowStart::Visit { state: found, .. } = begun else { panic!("{begun:?}") };
        vec![("state".to_owned(), found), ("error".to_owned(), "access_denied".to_owned())]
    };
    let late = begin().await;
    clock.advance(VISIT);
    assert_eq!(sources.complete_callback(&late).await.unwrap(), CallbackOutcome::Unknown);
    let in_time = begin().await;
    assert_ne!(in_time, late);
    assert_eq!(sources.complete_callback(&in_time).await.unwrap(), CallbackOutcome::Declined);
    assert_eq!(
        sources.complete_callback(&in_time).await.unwrap(),
        CallbackOutcome::Unknown,
        "once"
    );
    place.sources.shutdown().await;
    place.house.close().await;
}
