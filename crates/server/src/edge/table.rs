//! All connections of a listener. Decides which connection gets a slot, and which loses one when there is none left.

use super::entry::{ConnectionEntry, ConnectionGuard, ConnectionPhase};
use super::limits::{CLOSING_MAX, ConnectionLimits, HEALTH_CONNECTIONS_MAX};
use super::peer::PeerKey;
use super::refusal::{ConnectionRefusal, RefusedConnections};
use super::streams::{CallerStreams, StreamPlace};
use lifecycle::CallerName;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// All connections of a listener.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
    streams: Arc<CallerStreams>,
    refused: RefusedConnections,
    n_accepted: AtomicU64,
    n_changes: AtomicU64,
    /// Notified when a connection that had lost its slot is closed.
    closed: Notify,
}

/// Has at most as many entries as there are slots.
#[derive(Debug, Default)]
struct OpenConnections {
    /// Connections that have a slot, or one of the reserve.
    entries: HashMap<u64, Arc<ConnectionEntry>>,
    n_reserve: usize,
    /// Connections that have lost theirs and are not closed.
    n_closing: usize,
    by_address: HashMap<PeerKey, usize>,
}

/// One request of one address, through a trusted proxy, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressPlace {
    table: Arc<ConnectionTable>,
    key: PeerKey,
}

impl ConnectionTable {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            streams: CallerStreams::new(limits.streams_per_caller_max),
            limits,
            open: Mutex::default(),
            refused: RefusedConnections::default(),
            n_accepted: AtomicU64::new(0),
            n_changes: AtomicU64::new(0),
            closed: Notify::new(),
        })
    }

    pub(crate) const fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    pub(crate) const fn count_refusal(&self) -> &RefusedConnections {
        &self.refused
    }

    /// Gives a new connection a slot, or returns why it gets none. Another connection may lose its slot to it.
    pub(crate) fn admit_connection(
        self: &Arc<Self>,
        peer: SocketAddr,
    ) -> Result<ConnectionGuard, ConnectionRefusal> {
        self.n_accepted.fetch_add(1, Ordering::Relaxed);
        let admitted = self.place(peer);
        if let Err(refusal) = &admitted {
            self.refused.count(*refusal);
        }
        admitted
    }

    fn place(self: &Arc<Self>, peer: SocketAddr) -> Result<ConnectionGuard, ConnectionRefusal> {
        let (mut open, peer) = (self.lock(), self.limits.counted_key(peer.ip()));
        if let Some(key) = peer
            && open.by_address.get(&key).is_some_and(|n| *n >= self.limits.per_address_max)
        {
            let refusal = ConnectionRefusal::Address(key, self.limits.per_address_max);
            // An address's own connections are displaced before it is refused another one.
            let own = |entry: &ConnectionEntry| entry.peer == Some(key);
            open.displace(own, refusal).ok_or(refusal)?;
        }
        let n_max = self.limits.connections_max;
        let has_place = open.entries.len() - open.n_reserve < n_max
            || open
                .displace(|entry| !entry.is_reserve(), ConnectionRefusal::Displaced(n_max))
                .is_some();
        if !has_place && open.n_reserve >= HEALTH_CONNECTIONS_MAX {
            let unfinished = |entry: &ConnectionEntry| {
                entry.is_reserve() && entry.phase() == ConnectionPhase::FirstHead
            };
            let displaced = open.displace(unfinished, ConnectionRefusal::Displaced(n_max));
            displaced.ok_or(ConnectionRefusal::Places(n_max))?;
        }
        let id = self.next_change();
        let entry = ConnectionEntry::new((id, !has_place), peer, Arc::clone(self));
        Ok(ConnectionGuard(open.insert(entry)))
    }

    /// Counts a request from a trusted proxy.
    pub(super) fn admit_request(
        self: &Arc<Self>,
        key: PeerKey,
    ) -> Result<AddressPlace, ConnectionRefusal> {
        let mut open = self.lock();
        let n_open = open.by_address.entry(key).or_default();
        if *n_open >= self.limits.per_address_max {
            let refusal = ConnectionRefusal::Address(key, self.limits.per_address_max);
            self.refused.count(refusal);
            return Err(refusal);
        }
        *n_open += 1;
        Ok(AddressPlace { table: Arc::clone(self), key })
    }

    /// Counts a WebSocket or an event stream.
    pub(super) fn admit_stream(
        &self,
        caller: &CallerName,
    ) -> Result<StreamPlace, ConnectionRefusal> {
        self.streams.admit_stream(caller).inspect_err(|refusal| self.refused.count(*refusal))
    }

    /// Frees the slot of a closed connection.
    pub(super) fn remove(&self, entry: &ConnectionEntry) {
        let mut open = self.lock();
        if open.remove_entry(entry).is_none() {
            open.n_closing -= 1;
            self.closed.notify_one();
        }
    }

    /// Takes away a connection's slot when the system has no descriptor for another one, and waits briefly until it
    /// is closed.
    pub(crate) async fn make_way(&self, patience: Duration) {
        let n_max = self.limits.connections_max;
        let displaced = self.lock().displace(|_| true, ConnectionRefusal::Displaced(n_max));
        match displaced {
            // Other events that free a descriptor are not noticed: then the next attempt fails too.
            Some(()) => drop(tokio::time::timeout(patience, self.closed.notified()).await),
            None => tokio::time::sleep(patience).await,
        }
    }

    /// Waits while too many connections have lost their slots and are not closed yet.
    pub(crate) async fn ready(&self) {
        while self.lock().n_closing >= CLOSING_MAX {
            self.closed.notified().await;
        }
    }

    pub(super) fn next_change(&self) -> u64 {
        self.n_changes.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of connections, by phase.
    pub(crate) fn counts(&self) -> [(&'static str, u64); ConnectionPhase::ALL.len()] {
        let open = self.lock();
        let n_in = |phase| open.entries.values().filter(|entry| entry.phase() == phase).count();
        ConnectionPhase::ALL.map(|(phase, name)| (name, n_in(phase) as u64))
    }

    /// The number of connections that were accepted.
    pub(crate) fn n_accepted(&self) -> u64 {
        self.n_accepted.load(Ordering::Relaxed)
    }

    /// WebSockets and event streams of authenticated callers.
    pub(crate) fn n_streams(&self) -> u64 {
        self.streams.n_open() as u64
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn insert(&mut self, entry: ConnectionEntry) -> Arc<ConnectionEntry> {
        let entry = Arc::new(entry);
        if let Some(key) = entry.peer {
            *self.by_address.entry(key).or_default() += 1;
        }
        self.n_reserve += usize::from(entry.is_reserve());
        self.entries.insert(entry.id, Arc::clone(&entry));
        entry
    }

    fn remove_entry(&mut self, entry: &ConnectionEntry) -> Option<Arc<ConnectionEntry>> {
        let entry = self.entries.remove(&entry.id)?;
        self.n_reserve -= usize::from(entry.is_reserve());
        if let Some(key) = entry.peer {
            self.leave_address(key);
        }
        Some(entry)
    }

    fn leave_address(&mut self, key: PeerKey) {
        match self.by_address.get_mut(&key) {
            Some(n_open) if *n_open > 1 => *n_open -= 1,
            Some(_) | None => drop(self.by_address.remove(&key)),
        }
    }

    /// Takes the slot of the first connection in displacement order among those for which `may` is true. Examines all
    /// connections, because it runs only when slots run out.
    fn displace(
        &mut self,
        may: impl Fn(&ConnectionEntry) -> bool,
        why: ConnectionRefusal,
    ) -> Option<()> {
        let candidates = self.entries.values().filter(|entry| may(entry));
        let ranked = candidates.filter_map(|entry| Some((entry.rank()?, Arc::clone(entry))));
        let (_, victim) = ranked.min_by_key(|(rank, _)| *rank)?;
        self.remove_entry(&victim);
        self.n_closing += 1;
        victim.end_connection(why);
        Some(())
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        self.table.lock().leave_address(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(connections_max: usize, per_address_max: usize) -> Arc<ConnectionTable> {
        let trusted_proxies = vec!["198.51.100.0/24".parse().unwrap()];
        let limits = ConnectionLimits {
            connections_max,
            per_address_max,
            trusted_proxies,
            ..ConnectionLimits::default()
        };
        ConnectionTable::new(limits)
    }

    fn admit(table: &Arc<ConnectionTable>, ip: &str) -> Result<ConnectionGuard, ConnectionRefusal> {
        table.admit_connection(SocketAddr::new(ip.parse().unwrap(), 1_000))
    }

    /// Advances a connection through a whole request and its answer.
    fn idle(guard: &ConnectionGuard, is_authenticated: bool) {
        guard.0.begin_request();
        if is_authenticated {
            guard.0.authenticate();
        }
        drop(guard.0.follow(Response::default()));
    }

    use axum::response::Response;

    fn is_ended(guard: &ConnectionGuard) -> bool {
        futures_util::FutureExt::now_or_never(guard.0.ended()).is_some()
    }

    #[test]
    fn an_address_has_so_many_connections_and_loopback_and_trusted_proxies_any_number() {
        let table = table(100, 2);
        let streams = |ip: &str| {
            let opened = (0..3).map(|_| {
                let guard = admit(&table, ip)?;
                guard.0.begin_request();
                guard.0.authenticate();
                Ok(guard)
            });
            opened.collect::<Vec<Result<_, ConnectionRefusal>>>()
        };
        for ip in ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.7"] {
            let mut opened = streams(ip);
            let key = PeerKey::from_ip(ip.parse().unwrap());
            assert_eq!(
                opened.pop().unwrap().unwrap_err(),
                ConnectionRefusal::Address(key, 2),
                "{ip}"
            );
            if ip.starts_with("2001") {
                // Another address of the same half.
                assert!(admit(&table, "2001:db8::2").is_err());
                assert!(admit(&table, "2001:db8:0:1::2").is_ok());
            }
            drop(opened);
            assert!(admit(&table, ip).is_ok(), "{ip}");
        }
        for ip in ["127.0.0.1", "::1", "198.51.100.7"] {
            assert!(streams(ip).iter().all(Result::is_ok), "{ip}");
        }
    }

    #[test]
    fn an_addresss_own_unfinished_heads_give_way_to_its_next_connection() {
        let table = table(100, 2);
        let first = admit(&table, "192.0.2.1").unwrap();
        let second = admit(&table, "192.0.2.1").unwrap();
        let other = admit(&table, "192.0.2.2").unwrap();
        let third = admit(&table, "192.0.2.1").unwrap();
        let ended = [&first, &second, &other, &third].map(is_ended);
        assert_eq!(ended, [true, false, false, false]);
    }

    #[test]
    fn unfinished_heads_give_way_first_then_unknown_callers_then_idle_ones_and_nobody_else() {
        let table = table(5, 100);
        let open = || admit(&table, "127.0.0.1").unwrap();
        let (known, unknown, head, working, younger) = (open(), open(), open(), open(), open());
        idle(&known, true);
        idle(&unknown, false);
        working.0.begin_request();
        working.0.authenticate();
        let all = [&known, &unknown, &head, &working, &younger];
        let mut order = vec![];
        let mut later = vec![];
        for _ in 0..4 {
            let guard = open();
            assert!(!guard.0.is_reserve());
            guard.0.begin_request();
            guard.0.authenticate();
            later.push(guard);
            let is_new = |n: &usize| is_ended(all[*n]) && !order.contains(n);
            let found: Vec<_> = (0..all.len()).filter(is_new).collect();
            order.extend(found);
        }
        // Heads, the older one first; the unauthenticated caller; the idle one. A request in progress is not
        // displaced.
        assert_eq!(order, [2, 4, 1, 0]);
        assert!(!is_ended(&working));
        // From now on there is only the reserve.
        let reserve: Vec<_> = (0..HEALTH_CONNECTIONS_MAX).map(|_| open()).collect();
        assert!(reserve.iter().all(|guard| guard.0.is_reserve()));
        assert!(open().0.is_reserve());
        let ended: Vec<_> = reserve.iter().filter(|guard| is_ended(guard)).collect();
        assert_eq!(ended.len(), 1, "the oldest unfinished head of the reserve gave way");
        assert!(is_ended(&reserve[0]));
        let counted = table.count_refusal().counts();
        assert_eq!(counted[1], ("displaced", 5));
    }

    #[test]
    fn a_client_that_does_not_read_is_not_taken_for_idle() {
        let table = table(1, 100);
        let slow = admit(&table, "127.0.0.1").unwrap();
        idle(&slow, true);
        slow.0.set_blocked(true);
        assert!(admit(&table, "127.0.0.1").unwrap().0.is_reserve());
        slow.0.set_blocked(false);
        assert!(!admit(&table, "127.0.0.1").unwrap().0.is_reserve());
    }

    #[test]
    fn every_place_is_free_again_when_all_are_gone() {
        let table = table(3, 2);
        for _ in 0..3 {
            let opened: Vec<_> = (0..100).map(|n| admit(&table, &format!("192.0.2.{n}"))).collect();
            drop(opened);
            let open = table.lock();
            let left = (open.entries.len(), open.n_reserve, open.n_closing, open.by_address.len());
            assert_eq!(left, (0, 0, 0, 0));
        }
        assert_eq!(table.n_accepted(), 300);
    }
}
