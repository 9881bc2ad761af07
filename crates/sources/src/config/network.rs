//! What the operator says about the network: which addresses requests may reach besides, and how many connections the server
//! takes. Never taken from a project's file.

use serde::Deserialize;
use tools::http::{ALLOWED_MAX, AddressRules, AllowedAddress, ProxyAddress};

/// Most places that a listener may be given: each is a descriptor.
const CONNECTIONS_MAX: u64 = 65_536;

/// Longest time for the head of a request.
const HEAD_MS_MAX: u64 = 75_000;

/// Where requests to APIs may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Addresses, networks and single ports that are not refused although the rule says so.
    pub allow: Option<Vec<String>>,
    /// An HTTP proxy for addresses on the internet.
    pub proxy: Option<String>,
}

/// How many connections the server takes. None of these is as usual.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenerLimits {
    /// Connections at a time.
    pub connections_max: Option<u64>,
    /// Of them, from one address.
    pub connections_per_address_max: Option<u64>,
    /// WebSockets and event streams of one caller.
    pub streams_per_caller_max: Option<u64>,
    /// Time for the first head on a connection.
    pub head_ms_max: Option<u64>,
}

impl NetworkConfig {
    pub(super) fn check_values(&self) -> Result<(), String> {
        self.allowed()?;
        self.proxy()?;
        Ok(())
    }

    /// Makes these the rules.
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
