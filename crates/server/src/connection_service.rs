//! Serves the requests of one connection: counts each request against the limits of the edge, attaches the
//! connection's data for the router, and follows the answer to its end.

use crate::auth::PeerAddress;
use crate::edge::{ConnectionEntry, ConnectionHandle, ConnectionRefusal};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

/// The routes that are also served on reserve connections, which exist when all slots are taken.
const HEALTH_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/api/health"];

/// Both ends of the TCP connection of a request. The peer may be a proxy: see [`PeerAddress`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionEndpoints {
    pub(crate) peer: SocketAddr,
    /// None if the system did not report it.
    pub(crate) local: Option<SocketAddr>,
}

/// Answers the requests of one connection with a router.
pub(crate) struct ConnectionService {
    router: TowerToHyperService<Router>,
    endpoints: ConnectionEndpoints,
    connection: Arc<ConnectionEntry>,
}

impl ConnectionService {
    pub(crate) fn new(
        router: &Router,
        endpoints: ConnectionEndpoints,
        connection: &Arc<ConnectionEntry>,
    ) -> Self {
        let router = TowerToHyperService::new(router.clone());
        Self { router, endpoints, connection: Arc::clone(connection) }
    }

    /// Counts the request, and attaches the connection's data that handlers need.
    fn admit_request(&self, request: &mut Request) -> Result<(), ConnectionRefusal> {
        let connection = &self.connection;
        connection.begin_request();
        let is_about_health = HEALTH_ROUTES.contains(&request.uri().path());
        if connection.is_reserve() && !is_about_health {
            return Err(ConnectionRefusal::Places(connection.limits().connections_max));
        }
        let peer = connection.request_peer(self.endpoints.peer, request.headers());
        if !is_about_health {
            connection.admit_peer(peer)?;
        }
        let extensions = request.extensions_mut();
        if let Some(address) = peer.address() {
            extensions.insert(PeerAddress(address));
        }
        extensions.insert(self.endpoints);
        extensions.insert(ConnectionHandle(Arc::clone(connection)));
        Ok(())
    }
}

impl Service<hyper::Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        let connection = Arc::clone(&self.connection);
        if let Err(refusal) = self.admit_request(&mut request) {
            let answer = refusal.problem().into_response();
            return Box::pin(std::future::ready(Ok(connection.follow(answer))));
        }
        let answering = self.router.call(request);
        Box::pin(async move { Ok(connection.follow(answering.await?)) })
    }
}
