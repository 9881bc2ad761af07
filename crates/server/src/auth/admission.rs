//! The checks of a listener before authentication: `Host` must name it, and pages of foreign origins may not send
//! requests.

use super::host::AllowedHosts;
use super::origins::{OriginRules, WebOrigin};
use crate::error::RequestError;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use std::net::SocketAddr;

/// The admission rules of one listener.
#[derive(Debug, Clone)]
pub(crate) struct RequestAdmission {
    hosts: AllowedHosts,
    origins: OriginRules,
}

impl RequestAdmission {
    /// `public` is the origin where browsers find this server; `named` are further origins whose pages may call it.
    pub(crate) fn new(
        listen: SocketAddr,
        public: Option<&WebOrigin>,
        named: &[WebOrigin],
        allowed_hosts: &[String],
    ) -> Self {
        let public_host = public.map(|public| public.host().to_owned());
        let hosts: Vec<_> = allowed_hosts.iter().cloned().chain(public_host).collect();
        let origins = OriginRules::new(listen, public, named, allowed_hosts);
        Self { hosts: AllowedHosts::new(listen, &hosts), origins }
    }

    /// The rules of a listener that has no settings.
    pub(crate) fn of_lone_door(listen: SocketAddr) -> Self {
        Self::new(listen, None, &[], &[])
    }

    /// Whether a request names this server and does not come from a page that may not call it.
    pub(crate) fn check_request(&self, request: &Request) -> Result<(), RequestError> {
        let Some(host) = self.checked_host(request) else {
            return Err(RequestError::forbidden(
                "The header Host must name this server: a loopback name, its listen address, or a name \
                 given with --allowed-host.",
            ));
        };
        for origin in request.headers().get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !self.origins.may_call(origin, host) {
                return Err(foreign_origin(origin));
            }
        }
        Ok(())
    }

    /// The URL to which a page request is redirected: see [`OriginRules::page_redirect`].
    pub(crate) fn page_redirect(&self, request: &Request) -> Option<&WebOrigin> {
        self.origins.page_redirect(self.checked_host(request)?)
    }

    /// The origin of page links in an answer to a request with this `Host`.
    pub(crate) fn page_origin(&self, host: Option<&str>) -> String {
        let reached = host.filter(|_| self.public_origin().is_none());
        let elsewhere = reached.filter(|host| self.origins.page_redirect(host).is_none());
        elsewhere
            .map_or_else(|| self.canonical_origin().to_string(), |host| format!("http://{host}"))
    }

    /// The origin under which people find this server's pages.
    pub(crate) const fn canonical_origin(&self) -> &WebOrigin {
        self.origins.canonical()
    }

    /// The origin of the public URL, if there is one.
    pub(crate) const fn public_origin(&self) -> Option<&WebOrigin> {
        self.origins.public()
    }

    /// Returns the single `Host` of a request if it and the request's target name this server.
    fn checked_host<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
        let host = host.to_str().ok().filter(|host| self.hosts.is_ours(host))?;
        let target = request.uri().authority();
        target.is_none_or(|target| self.hosts.is_ours(target.as_str())).then_some(host)
    }
}

fn foreign_origin(origin: &str) -> RequestError {
    RequestError::forbidden(match origin.parse::<WebOrigin>() {
        Ok(origin) => format!(
            "Pages of {origin} may not call this server; to allow them, start it with --allowed-origin {origin}."
        ),
        Err(_) => "Pages without an origin may not call this server.".to_owned(),
    })
}
