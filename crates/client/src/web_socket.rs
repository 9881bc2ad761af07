//! Opens WebSockets: a TCP connection, and a request that carries the token in a header, where no log stores it.

use crate::address::BaseAddress;
use crate::connector::ConnectorError;
use crate::proof::{ServerToken, prove_server};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use transport::{ClientReader, ClientWriter, connect_web_socket};

/// Opens the WebSocket at a `ws://` URL. The server gets the token once it has given the proof that the token requires.
pub(crate) async fn open(
    url: &str,
    token: Option<&ServerToken>,
    bytes_max: usize,
) -> Result<(ClientReader, ClientWriter), ConnectorError> {
    let (stream, request) = connect(url, token).await?;
    Ok(connect_web_socket(request, stream, bytes_max).await?)
}

async fn connect(
    url: &str,
    token: Option<&ServerToken>,
) -> Result<(TcpStream, Request), ConnectorError> {
    let rest = url.strip_prefix("ws://").ok_or("the URL must begin with ws://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut request = url.into_client_request()?;
    let mut stream = TcpStream::connect(&address).await?;
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.secret))?;
        value.set_sensitive(true);
        request.headers_mut().insert("Authorization", value);
        let server = BaseAddress::parse(&format!("http://{authority}"))?;
        stream = match prove_server(&server, token, stream).await? {
            Some(stream) => stream,
            None => TcpStream::connect(&address).await?,
        };
    }
    // Nagle's algorithm would delay a keystroke until the next one.
    stream.set_nodelay(true)?;
    Ok((stream, request))
}
