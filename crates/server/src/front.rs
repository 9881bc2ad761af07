//! Where a request goes: programs by the straight way, everything else through the router.
//!
//! The router finds one of a hundred routes and puts each of its layers into a box. For a small program that would be a
//! tenth of all there is to do.

use crate::answering::PageOrigin;
use crate::app::App;
use crate::auth::{Caller, PeerAddress};
use crate::body::JsonBody;
use crate::config::Doors;
use crate::doors::{executor, mcp};
use crate::edge::{ConnectionEntry, ConnectionHandle, Refusal};
use crate::error::Problem;
use crate::guard::guarded;
use crate::query::Query;
use crate::routes;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use protocols::server_proof;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

/// What answers the requests of a listener. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Front {
    /// None for listeners with one door, which have no straight way.
    app: Option<Arc<App>>,
    router: TowerToHyperService<Router>,
    /// Where the connection comes from.
    peer: Option<SocketAddr>,
    /// Our end of the connection.
    local: Option<SocketAddr>,
    /// The connection among all; none before there is one.
    connection: Option<Arc<ConnectionEntry>>,
}

/// What is answered when all places are taken.
const HEALTH_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/api/health"];

/// The requests that are told where they come from: their routes ask whether that is this machine.
const TOLD_THEIR_PEER: &str = "/api/sign-in/";

/// Our end of the connection that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalEndpoint(pub(crate) SocketAddr);

/// The routes that programs come by.
#[derive(Clone, Copy)]
enum Straight {
    Mcp,
    Execute,
}

impl Front {
    /// All doors of a server.
    pub(crate) fn of(app: &Arc<App>) -> Self {
        let straight = matches!(app.doors, Doors::All).then(|| Arc::clone(app));
        Self {
            app: straight,
            router: TowerToHyperService::new(routes::build(app)),
            peer: None,
            local: None,
            connection: None,
        }
    }

    /// A router and nothing else.
    pub(crate) fn with(router: Router) -> Self {
        let router = TowerToHyperService::new(router);
        Self { app: None, router, peer: None, local: None, connection: None }
    }

    /// The same for one connection: where it comes from, and the address of its end here.
    pub(crate) fn for_connection(
        &self,
        peer: SocketAddr,
        local: Option<SocketAddr>,
        connection: &Arc<ConnectionEntry>,
    ) -> Self {
        let connection = Some(Arc::clone(connection));
        Self { peer: Some(peer), local, connection, ..self.clone() }
    }

    /// Counts the request, and tells those that ask about it where it comes from.
    fn admit(&self, request: &mut Request) -> Result<(), Refusal> {
        let (Some(connection), Some(peer)) = (&self.connection, self.peer) else { return Ok(()) };
        connection.begin_request();
        let is_about_health = HEALTH_ROUTES.contains(&request.uri().path());
        if connection.is_reserve() && !is_about_health {
            return Err(Refusal::Places(connection.limits().connections_max));
        }
        let peer = connection.request_peer(peer, request.headers());
        if !is_about_health {
            connection.admit_peer(peer)?;
        }
        if let Some(peer) = peer.address()
            && request.uri().path().starts_with(TOLD_THEIR_PEER)
        {
            request.extensions_mut().insert(PeerAddress(peer));
        }
        // An extension costs an allocation. Once the caller is known, only a stream needs it again.
        if !connection.is_authenticated() || Straight::way(request).is_none() {
            let handle = ConnectionHandle(Arc::clone(connection));
            request.extensions_mut().insert(handle);
        }
        Ok(())
    }

    /// Follows an answer to its end.
    fn follow(connection: Option<Arc<ConnectionEntry>>, answer: Response) -> Response {
        match connection {
            Some(connection) => connection.follow(answer),
            None => answer,
        }
    }
}

impl Service<hyper::Request<Incoming>> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        let connection = self.connection.clone();
        if let Err(refusal) = self.admit(&mut request) {
            let answer = refusal.problem().into_response();
            return Box::pin(std::future::ready(Ok(Self::follow(connection, answer))));
        }
        // An extension costs an allocation, and one route needs it.
        if let Some(local) = self.local.filter(|_| request.uri().path() == server_proof::PATH) {
            request.extensions_mut().insert(LocalEndpoint(local));
        }
        match (&self.app, Straight::way(&request)) {
            (Some(app), Some(way)) => {
                let app = Arc::clone(app);
                let peer = self.peer;
                Box::pin(async move {
                    let answer = way.answer(app, peer, request).await;
                    Ok(Self::follow(connection, answer))
                })
            }
            (Some(_) | None, _) => {
                let answering = self.router.call(request);
                Box::pin(async move { Ok(Self::follow(connection, answering.await?)) })
            }
        }
    }
}

impl Straight {
    const fn route(self) -> &'static str {
        match self {
            Self::Mcp => "/mcp",
            Self::Execute => "/api/executions",
        }
    }

    fn way(request: &Request) -> Option<Self> {
        let is_it = |way: &Self| request.uri().path() == way.route();
        let way = [Self::Mcp, Self::Execute].into_iter().find(is_it);
        way.filter(|_| request.method() == Method::POST)
    }

    async fn answer(self, app: Arc<App>, peer: Option<SocketAddr>, request: Request) -> Response {
        let within = Arc::clone(&app);
        // In a box: whoever passes it on would copy all of it.
        let answer = |request| {
            Box::pin(async move {
                let answered = self.enter(within, peer, request).await;
                answered.unwrap_or_else(|problem| problem.into_response())
            })
        };
        guarded(&app, self.route(), request, answer).await
    }

    async fn enter(
        self,
        app: Arc<App>,
        peer: Option<SocketAddr>,
        request: Request,
    ) -> Result<Response, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, &app).await?;
        let Ok(query) = Query::from_request_parts(&mut parts, &app).await;
        let Ok(pages) = PageOrigin::from_request_parts(&mut parts, &app).await;
        let request = Request::from_parts(parts, body);
        match self {
            Self::Mcp => mcp::answer(app, caller, &query, peer, request).await,
            Self::Execute => {
                let body = JsonBody::from_request(request, &app).await?;
                executor::execute(State(app), caller, pages, query, body).await
            }
        }
    }
}
