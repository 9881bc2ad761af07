//! The operator's network settings: which additional addresses requests may reach, and how many connections the server
//! accepts. Never taken from a project's file.

use serde::Deserialize;
use tools::http::{ALLOWED_MAX, AddressRules, AllowedAddress, ProxyAddress};

/// Maximum connection limit: each connection is a descriptor.
const CONNECTIONS_MAX: u64 = 65_536;

/// Maximum time limit for the head of a request.
const HEAD_MS_MAX: u64 = 75_000;

/// The reach of requests to APIs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Addresses, networks and single ports that are allowed although the rules refuse them.
    pub allow: Option<Vec<String>>,
    /// An HTTP proxy for addresses on the internet.
    pub proxy: Option<String>,
}

/// Limits on connections to the server. Absent limits have their defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerLimits {
    /// Concurrent connections.
    pub connections_max: Option<u64>,
    /// Concurrent connections from one address.
    pub connections_per_address_max: Option<u64>,
    /// Concurrent WebSockets and event streams of one caller.
    pub streams_per_caller_max: Option<u64>,
    /// Time until the first request head of a connection is complete.
    pub head_ms_max: Option<u64>,
}

impl NetworkConfig {
    pub(super) fn check_values(&self) -> Result<(), String> {
        self.allowed()?;
        self.proxy()?;
        Ok(())
    }

    /// Applies these settings to the rules.
    pub(crate) fn configure(&self, rules: &AddressRules) -> Result<(), String> {
        rules.configure(self.allowed()?, self.proxy()?);
        Ok(())
    }

    fn allowed(&self) -> Result<Vec<AllowedAddress>, String> {
        let texts = self.allow.as_deref().unwrap_or_default();
        if texts.len() > ALLOWED_MAX {
            return Err(format!("network.allow has more than {ALLOWED_MAX} members"));
        }
        let parse = |text: &String| text.parse().map_err(|why| format!("network.allow: {why}"));
        texts.iter().map(parse).collect()
    }

    fn proxy(&self) -> Result<Option<ProxyAddress>, String> {
        let parse = |text: &String| text.parse().map_err(|why| format!("network.proxy: {why}"));
        self.proxy.as_ref().map(parse).transpose()
    }

    pub(super) fn merged_over(self, other: Self) -> Self {
        Self { allow: self.allow.or(other.allow), proxy: self.proxy.or(other.proxy) }
    }
}

impl ListenerLimits {
    pub(super) fn check_values(&self) -> Result<(), String> {
        let limits = [
            ("connections_max", self.connections_max, CONNECTIONS_MAX),
            ("connections_per_address_max", self.connections_per_address_max, CONNECTIONS_MAX),
            ("streams_per_caller_max", self.streams_per_caller_max, CONNECTIONS_MAX),
            ("head_ms_max", self.head_ms_max, HEAD_MS_MAX),
        ];
        let is_bad = |(_, value, most): &&(&str, Option<u64>, u64)| {
            value.is_some_and(|value| !(1..=*most).contains(&value))
        };
        match limits.iter().find(is_bad) {
            Some((name, _, most)) => Err(format!("listener.{name} is 1 to {most}")),
            None => Ok(()),
        }
    }

    pub(super) fn merged_over(self, other: Self) -> Self {
        let per_address = self.connections_per_address_max;
        Self {
            connections_max: self.connections_max.or(other.connections_max),
            connections_per_address_max: per_address.or(other.connections_per_address_max),
            streams_per_caller_max: self.streams_per_caller_max.or(other.streams_per_caller_max),
            head_ms_max: self.head_ms_max.or(other.head_ms_max),
        }
    }
}
