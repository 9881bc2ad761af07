//! Which addresses requests reach, over real sockets: names are resolved by the test, and upstreams listen on
//! loopback. In some tests, the network treats loopback as the internet.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::Method;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tools::http::{ApiClient, ApiRequest, HttpError, HttpLimits, NameResolver, RequestReach};
use tools::mcp::{McpEndpoint, McpLimits, McpServer};
use tools::{CancelSignal, ChildSupervision, ToolCredential};

/// A network that resolves `IP.test` to that address, with `-` for `.` and `:`.
#[derive(Debug, Default)]
struct TestNetwork {
    is_loopback_public: bool,
    resolved: Mutex<Vec<String>>,
}

impl NameResolver for TestNetwork {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.resolved.lock().unwrap().push(name.clone());
        let label = name.strip_suffix(".test").unwrap_or_default();
        let found = [label.replace('-', "."), label.replace('-', ":")];
        let found = found.iter().find_map(|text| text.parse::<IpAddr>().ok());
        async move { Ok(found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect()) }.boxed()
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        self.is_loopback_public || !ip.is_loopback()
    }
}

fn client(is_loopback_public: bool) -> (ApiClient, Arc<TestNetwork>) {
    let network = Arc::new(TestNetwork { is_loopback_public, ..TestNetwork::default() });
    let shared: Arc<dyn NameResolver> = Arc::clone(&network) as _;
    (ApiClient::in_network(HttpLimits::default(), &shared), network)
}

async fn get(client: &ApiClient, url: &str, reach: RequestReach) -> Result<String, HttpError> {
    let request = ApiRequest { reach, ..ApiRequest::new(Method::GET, url.parse().unwrap()) };
    let sent = client.send(request, &ToolCredential::none(), &CancelSignal::never()).await?;
    Ok(String::from_utf8(sent.body).unwrap())
}

/// Starts an upstream that answers every request with `answer` and records the request heads.
async fn upstream(answer: String) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(vec![])));
    let lines = Arc::clone(&asked);
    run(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while stream.read_line(&mut head).await.unwrap() > 2 {}
            lines.lock().unwrap().push(head);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, asked)
}

#[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
fn run(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

fn body(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
}

fn redirect(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[tokio::test]
async fn no_request_reaches_a_link_local_or_metadata_address() {
    let (client, _) = client(true);
    let addresses = [
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[2002:a9fe:a9fe::]",
        "[::169.254.169.254]",
        "0xa9fea9fe",
        "169-254-169-254.test",
        "fd00-ec2--254.test",
        "--ffff-a9fe-a9fe.test",
    ];
    for address in addresses {
        let url = format!("http://{address}/latest/meta-data/");
        let seen = get(&client, &url, RequestReach::Anywhere).await.unwrap_err();
        assert_eq!((address, seen.code()), (address, "upstream_address_refused"));
        assert!(seen.to_string().contains("link-local or metadata address"), "{seen}");
        assert!(!seen.is_retryable());
        let public = get(&client, &url, RequestReach::Public).await.unwrap_err();
        assert_eq!((address, public.code()), (address, "upstream_address_refused"));
    }
}

#[tokio::test]
async fn an_exception_is_reached_and_ends_when_it_is_removed() {
    let (client, _) = client(false);
    let (own, _) = upstream(body("hello")).await;
    client.rules().add_listener(own);
    let url = format!("http://{own}/");
    let allow = vec![own.to_string().parse().unwrap()];
    client.rules().configure(allow, None);
    assert_eq!(get(&client, &url, RequestReach::Anywhere).await.unwrap(), "hello");
    client.rules().configure(vec![], None);
    let refused = get(&client, &url, RequestReach::Anywhere).await.unwrap_err();
    assert_eq!(refused.code(), "upstream_address_refused");
}

#[tokio::test]
async fn airlocks_own_listener_is_refused_by_address_and_by_name_and_its_neighbour_is_not() {
    let (client, network) = client(false);
    let (own, asked) = upstream(body("hello")).await;
    let (neighbour, _) = upstream(body("hello")).await;
    client.rules().add_listener(own);
    for host in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "127-0-0-1.test"] {
        let url = format!("http://{host}:{}/", own.port());
        let refused = get(&client, &url, RequestReach::Anywhere).await.unwrap_err();
        assert!(refused.to_string().contains("where Airlock itself listens"), "{refused}");
    }
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
    let url = format!("http://127-0-0-1.test:{}/", neighbour.port());
    assert_eq!(get(&client, &url, RequestReach::Anywhere).await.unwrap(), "hello");
    // One resolution for each request: the client connects to the same address that the policy checked.
    assert_eq!(*network.resolved.lock().unwrap(), ["127-0-0-1.test"; 2]);
}

#[tokio::test]
async fn a_private_source_is_redirected_within_its_own_origin_only() {
    let (client, _) = client(false);
    let (other, asked) = upstream(body("secret")).await;
    for to in [
        format!("http://{other}/"),
        format!("http://127-0-0-1.test:{}/", other.port()),
        "http://169.254.169.254/".to_owned(),
        "https://8.8.8.8/".to_owned(),
    ] {
        let (source, _) = upstream(redirect(&to)).await;
        // Both by address and by a name that looks public.
        for host in ["127.0.0.1", "127-0-0-1.test"] {
            let url = format!("http://{host}:{}/", source.port());
            let refused = get(&client, &url, RequestReach::Anywhere).await.unwrap_err();
            assert_eq!(refused.code(), "upstream_redirect_refused", "{host} {to}: {refused}");
        }
    }
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn every_hop_of_a_public_source_is_judged() {
    let (client, _) = client(true);
    let (last, asked) = upstream(body("public")).await;
    let (fine, _) = upstream(redirect(&format!("http://127-0-0-1.test:{}/", last.port()))).await;
    let at = |address: SocketAddr| format!("http://127-0-0-1.test:{}/", address.port());
    assert_eq!(get(&client, &at(fine), RequestReach::Anywhere).await.unwrap(), "public");
    // A request to another origin carries no credential.
    let (request, token) =
        (ApiRequest::new(Method::GET, at(fine).parse().unwrap()), ToolCredential::bearer("secret"));
    client.send(request, &token, &CancelSignal::never()).await.unwrap();
    let heads = asked.lock().unwrap().clone();
    assert!(heads.len() == 2 && !heads[1].contains("authorization"), "{heads:?}");
    for to in ["http://169-254-169-254.test/", "http://169.254.169.254/", "http://[fd00:ec2::254]/"]
    {
        let (source, _) = upstream(redirect(to)).await;
        let (first, _) = upstream(redirect(&at(source))).await;
        let refused = get(&client, &at(first), RequestReach::Anywhere).await.unwrap_err();
        assert_eq!(refused.code(), "upstream_address_refused", "{to}: {refused}");
    }
}

#[tokio::test]
async fn a_proxy_gets_the_address_that_was_judged_and_only_for_the_internet() {
    let (client, _) = client(true);
    let (api, asked) = upstream(body("through")).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://127-0-0-1.test:{}", listener.local_addr().unwrap().port());
    client.rules().configure(vec![], Some(proxy.parse().unwrap()));
    let url = format!("http://127-0-0-1.test:{}/x", api.port());
    let proxying = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            stream.read_line(&mut head).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
        let mut stream = stream.into_inner();
        let mut there = TcpStream::connect(api).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
        head
    };
    let (answer, head) = tokio::join!(get(&client, &url, RequestReach::Anywhere), proxying);
    assert_eq!(answer.unwrap(), "through");
    assert_eq!(head, format!("CONNECT {api} HTTP/1.1\r\nHost: {api}\r\n\r\n"));
    assert!(asked.lock().unwrap()[0].starts_with("GET /x HTTP/1.1"));
    let refused =
        get(&client, "http://169-254-169-254.test/", RequestReach::Anywhere).await.unwrap_err();
    assert_eq!(refused.code(), "upstream_address_refused");
}

#[tokio::test]
async fn a_private_address_is_reached_without_the_proxy() {
    let (client, _) = client(false);
    let (api, _) = upstream(body("direct")).await;
    client.rules().configure(vec![], Some("http://127-0-0-1.test:1".parse().unwrap()));
    let url = format!("http://127-0-0-1.test:{}/", api.port());
    assert_eq!(get(&client, &url, RequestReach::Anywhere).await.unwrap(), "direct");
}

#[tokio::test]
async fn an_mcp_server_is_no_way_around_the_rule() {
    let (client, _) = client(false);
    for url in ["http://169.254.169.254/mcp", "http://169-254-169-254.test/mcp"] {
        let endpoint = McpEndpoint::Http { url: url.into(), client: client.clone() };
        let server = McpServer::new(endpoint, ChildSupervision::Nobody, McpLimits::default());
        let why = server.import(&ToolCredential::none()).await.map(drop).unwrap_err();
        assert!(why.contains("link-local or metadata address"), "{why}");
        server.close().await;
    }
}

#[tokio::test]
async fn user_and_password_of_a_url_become_a_header() {
    let (client, _) = client(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://ann:p%40ss@{}/x", listener.local_addr().unwrap());
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(body("ok").as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    };
    let (_, head) = tokio::join!(get(&client, &url, RequestReach::Anywhere), answering);
    assert!(head.contains("authorization: Basic YW5uOnBAc3M="), "{head}");
    assert!(head.starts_with("GET /x HTTP/1.1") && head.contains("accept: */*"), "{head}");
}
