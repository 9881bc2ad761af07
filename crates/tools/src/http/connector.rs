//! Makes the connections of requests. A name is resolved here, each of its addresses is judged, and only those that passed
//! are connected to: nothing is resolved a second time. Knows no proxy of the environment.

use super::rules::{ProxyAddress, RefusedAddress};
use super::{AddressRules, NameResolver, RequestReach};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long one address may take before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// Longest answer of a proxy to CONNECT.
const PROXY_ANSWER_BYTES_MAX: usize = 8 << 10;

/// Makes connections for requests of one reach.
#[derive(Clone)]
pub(super) struct CheckedConnector {
    pub(super) network: Arc<dyn NameResolver>,
    pub(super) rules: AddressRules,
    pub(super) reach: RequestReach,
    pub(super) tls: TlsConnector,
    pub(super) time_max: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiConnectError {
    #[error("{0}")]
    Refused(RefusedAddress),
    #[error("its name leads into a private network")]
    Private,
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("its address is no web address")]
    BadAddress,
    #[error("the proxy {proxy} does not connect: {why}")]
    Proxy { proxy: ProxyAddress, why: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The address that a response came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerAddress(pub(super) SocketAddr);

/// A connection, encrypted for `https`.
pub(super) struct ApiStream {
    io: Box<dyn DuplexStream>,
    address: SocketAddr,
}

trait DuplexStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> DuplexStream for T {}

impl CheckedConnector {
    async fn connect(self, uri: Uri) -> Result<ApiStream, ApiConnectError> {
        let (host, port, is_tls) = target(&uri).ok_or(ApiConnectError::BadAddress)?;
        let addresses = self.addresses(&host, port).await?;
        let proxy = self.rules.proxy();
        let attempt = |address: SocketAddr| -> ConnectAttempt {
            // A proxy cannot reach the machines of our private networks.
            match proxy.clone().filter(|_| self.network.is_public(address.ip())) {
                Some(proxy) => Box::pin(self.clone().through(proxy, address)),
                None => Box::pin(reach(address)),
            }
        };
        let (stream, address) = first_reached(addresses, attempt).await?;
        // A request is one small write: waiting for more to send would only delay it.
        stream.set_nodelay(true)?;
        if !is_tls {
            return Ok(ApiStream { io: Box::new(stream), address });
        }
        let name = ServerName::try_from(host).map_err(|_| ApiConnectError::BadAddress)?;
        Ok(ApiStream { io: Box::new(self.tls.connect(name, stream).await?), address })
    }

    /// The addresses of a host that may be connected to.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ApiConnectError> {
        let mut found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => self.network.resolve(host.to_owned()).await?,
        };
        found.iter_mut().for_each(|address| address.set_port(port));
        if self.reach == RequestReach::Public {
            found.retain(|address| self.network.is_public(address.ip()));
            if found.is_empty() {
                return Err(ApiConnectError::Private);
            }
        }
        let mut refused = None;
        found.retain(|address| match self.rules.check_address(*address) {
            Ok(()) => true,
            Err(why) => {
                refused = Some(why);
                false
            }
        });
        found.truncate(ADDRESSES_MAX);
        match (found.is_empty(), refused) {
            (true, Some(refused)) => Err(ApiConnectError::Refused(refused)),
            (true, None) => Err(io::Error::other("its name has no address").into()),
            (false, _) => Ok(found),
        }
    }

    /// A connection to `address` by way of a proxy, which gets the address that was judged and never a name.
    async fn through(
        self,
        proxy: ProxyAddress,
        address: SocketAddr,
    ) -> Result<TcpStream, ApiConnectError> {
        let host = proxy.host.trim_matches(['[', ']']).to_owned();
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, proxy.port)],
            Err(_) => self.network.resolve(host).await?,
        };
        let found = found.into_iter().map(|at| SocketAddr::new(at.ip(), proxy.port));
        let found: Vec<_> = found.take(ADDRESSES_MAX).collect();
        for at in &found {
            self.rules.check_address(*at).map_err(ApiConnectError::Refused)?;
        }
        let (mut stream, _) = first_reached(found, |at| Box::pin(reach(at))).await?;
        let failed = |why: String| ApiConnectError::Proxy { proxy: proxy.clone(), why };
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let head = answer_head(&mut stream).await.map_err(|error| failed(error.to_string()))?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        match status.starts_with('2') {
            true => Ok(stream),
            false => Err(failed(format!("it answered {status}"))),
        }
    }
}

/// One attempt to reach one address.
type ConnectAttempt = BoxFuture<'static, Result<TcpStream, ApiConnectError>>;

async fn reach(address: SocketAddr) -> Result<TcpStream, ApiConnectError> {
    Ok(TcpStream::connect(address).await?)
}

/// Host, port, and whether the connection is encrypted.
fn target(uri: &Uri) -> Option<(String, u16, bool)> {
    let is_tls = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let host = uri.host()?.trim_matches(['[', ']']).to_owned();
    Some((host, uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }), is_tls))
}

/// The first connection that comes about; addresses are tried in their order, each a moment after the one before it.
async fn first_reached(
    addresses: Vec<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> ConnectAttempt,
) -> Result<(TcpStream, SocketAddr), ApiConnectError> {
    let mut attempts = FuturesUnordered::new();
    let mut rest = addresses.into_iter();
    let mut failed = ApiConnectError::BadAddress;
    loop {
        match rest.next() {
            Some(address) => {
                let attempt = attempt(address);
                attempts.push(async move { attempt.await.map(|made| (made, address)) });
            }
            None if attempts.is_empty() => return Err(failed),
            None => {}
        }
        let is_last = rest.len() == 0;
        tokio::select! {
            Some(ended) = attempts.next() => match ended {
                Ok(made) => return Ok(made),
                Err(error) => failed = error,
            },
            () = tokio::time::sleep(STAGGER), if !is_last => {}
        }
    }
}

/// The head of a proxy's answer. Read byte by byte: what follows belongs to the connection.
async fn answer_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == PROXY_ANSWER_BYTES_MAX {
            return Err(io::Error::other("its answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

impl tower_service::Service<Uri> for CheckedConnector {
    type Response = TokioIo<ApiStream>;
    type Error = ApiConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ApiConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let time_max = connector.time_max;
            let connected = tokio::time::timeout(time_max, connector.connect(uri)).await;
            connected.unwrap_or(Err(ApiConnectError::TimedOut(time_max))).map(TokioIo::new)
        })
    }
}

impl Connection for ApiStream {
    fn connected(&self) -> Connected {
        Connected::new().extra(ServerAddress(self.address))
    }
}

impl AsyncRead for ApiStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for ApiStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
