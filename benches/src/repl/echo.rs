//! The floor: the same WebSocket server, echoing.

use anyhow::{Context, Result};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::get;
use std::net::SocketAddr;

/// A server that echoes until it is dropped.
pub(super) struct Echo {
    pub(super) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Echo {
    pub(super) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let bound = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = bound.context("listen")?;
        let address = listener.local_addr()?;
        let open = async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo);
        let router = axum::Router::new().route("/", get(open));
        runtime.spawn(async move {
            let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await
        });
        Ok(Self { address, _runtime: runtime })
    }
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(text) = message
            && socket.send(Message::Text(text)).await.is_err()
        {
            return;
        }
    }
}
