//! Models of callers that share the connections to one peer.

use std::{io, ops::Deref, time::Duration};

use spandrel_sync::{Arc, Condition, Mutex, thread};
use spandrel_transport::{Address, Iiop, SocketSettings, Transport};

use super::{CallFailure, ClientConnection, ClientSettings, ConnectionCache, Lease, LeaseResult, Peer};
use crate::{
    client::{CacheSettings, FragmentSizes, Reply, ReplyReceiver, WriteLimits},
    diagnostics::statistics::Statistics,
    models::{check, messages, one_in, pipe},
};

const LIMIT: usize = 2;

fn peer() -> Arc<Peer> {
    let settings = ClientSettings {
        open_datagrams: None,
        connections_per_peer: LIMIT,
        write_limits: WriteLimits { requests: 16, octets: 1 << 20 },
        limits: Some(&crate::client::CONNECTION_LIMITS),
        cache: CacheSettings::default(),
        connect_timeout: None,
        max_message: 1 << 16,
        max_unfinished: 16,
        fragment_sizes: FragmentSizes::default(),
        sockets: SocketSettings::default(),
    };
    let cache = ConnectionCache::new(settings.cache);
    Arc::new(Peer::new(Address::new("pretend", ""), Arc::new(Iiop), Arc::new(settings), cache, Statistics::default()))
}

/// A connection whose other end is open, or closed.
fn connection(is_dead: bool) -> ClientConnection {
    let (near, far) = pipe::pair(4096);
    if is_dead {
        far.close();
    }
    ClientConnection::new(
        Arc::new(Address::new("pretend", "")),
        Arc::new(near),
        messages::reader(),
        Statistics::default(),
    )
}

fn verify(peer: &Peer) {
    let pool = peer.pool.lock();
    let open = pool.connections.iter().filter(|pooled| !pooled.connection.is_retired()).count();
    assert!(open + pool.opening <= LIMIT, "{open} connections are open and {} are being opened", pool.opening);
}

/// Leases a connection and opens one if needed. `may_fail`: opening fails at times.
fn lease(peer: &Peer, timeout: Option<Duration>, may_fail: bool) -> Result<Lease<&Peer>, CallFailure> {
    peer.lease_or(timeout, || open(peer, may_fail))
}

fn open(peer: &Peer, may_fail: bool) -> Result<ClientConnection, CallFailure> {
    verify(peer);
    thread::yield_now();
    if may_fail && one_in(3) {
        let kind = if one_in(2) { io::ErrorKind::ConnectionRefused } else { io::ErrorKind::TimedOut };
        return Err(peer.connect_failed(kind.into(), true));
    }
    Ok(connection(may_fail && one_in(2)))
}

/// An asynchronous call that waits for a connection.
#[derive(Debug, Default)]
struct Parked {
    outcome: Mutex<Option<Result<(), CallFailure>>>,
    changed: Condition,
}

impl ReplyReceiver for Parked {
    fn complete(self: Arc<Self>, _outcome: Result<Option<Reply>, CallFailure>) {
        unreachable!("no request is sent");
    }

    fn connection_opened(self: Arc<Self>, outcome: Result<(), CallFailure>) {
        let before = self.outcome.lock().replace(outcome);
        assert!(before.is_none(), "the receiver is notified once per wait");
        self.changed.notify_one();
    }
}

/// [`lease`] as an asynchronous call does it. Returns `None` if the wait was abandoned or no connection could
/// be opened.
fn lease_async(peer: &Arc<Peer>, is_limited: bool) -> Option<Lease<Arc<Peer>>> {
    let parked = Arc::<Parked>::default();
    let awaiting = Arc::clone(&parked) as Arc<dyn ReplyReceiver>;
    loop {
        match peer.lease_async_or(is_limited, &awaiting, |peer| open(peer, true)) {
            Ok(LeaseResult::Leased(lease)) => return Some(lease),
            Ok(LeaseResult::Parked) if one_in(4) => {
                // The receiver may be notified all the same.
                peer.unpark(&awaiting);
                return None;
            }
            Ok(LeaseResult::Parked) => {
                let mut outcome = parked.outcome.lock();
                parked.changed.wait_while(&mut outcome, |outcome| outcome.is_none());
                outcome.take()?.ok()?;
            }
            Err(_) => return None,
        }
    }
}

/// Makes a call, which fails and retires its connection if the other end is closed.
fn call<P: Deref<Target = Peer>>(lease: &Lease<P>) {
    let id = lease.request_id();
    let fake_request = messages::FakeRequest { id, token: id, is_two_way: false, is_limited: false };
    if lease.one_way(&messages::request(fake_request, 0), None).is_err() {
        assert!(lease.is_retired());
    }
}

fn callers(peer: &Arc<Peer>, count: usize, call: fn(&Arc<Peer>)) {
    let start = |_| {
        let peer = Arc::clone(peer);
        thread::spawn(move || call(&peer))
    };
    let threads: Vec<_> = (0..count).map(start).collect();
    threads.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
}

#[test]
fn connections_stay_within_the_limit_and_none_is_lost() {
    check(8000, || {
        let peer = peer();
        callers(&peer, 4, |peer| {
            let timeout = one_in(3).then(|| Duration::from_secs(3600));
            for _ in 0..2 {
                if let Ok(lease) = lease(peer, timeout, true) {
                    call(&lease);
                }
                verify(peer);
            }
        });
        let pool = peer.pool.lock();
        assert_eq!(pool.opening, 0);
        assert!(pool.connections.iter().all(|pooled| pooled.users == 0 && !pooled.connection.is_retired()));
    });
}

#[test]
fn a_call_opens_a_connection_before_it_shares_one() {
    check(4000, || {
        let peer = peer();
        callers(&peer, LIMIT, |peer| {
            let lease = lease(peer, None, false).unwrap_or_else(|failure| panic!("{}", failure.exception));
            let pool = peer.pool.lock();
            assert!(pool.connections.iter().all(|pooled| pooled.users <= 1));
            drop(pool);
            drop(lease);
        });
    });
}

#[test]
fn every_parked_call_is_resumed() {
    check(8000, || {
        let peer = peer();
        callers(&peer, 4, |peer| {
            let is_asynchronous = !one_in(3);
            for _ in 0..2 {
                if !is_asynchronous {
                    lease(peer, None, true).iter().for_each(call);
                } else if let Some(lease) = lease_async(peer, one_in(2)) {
                    call(&lease);
                }
                verify(peer);
            }
        });
        // Threads that open connections for abandoned waits end later.
        while peer.pool.lock().opening > 0 {
            thread::yield_now();
        }
        let pool = peer.pool.lock();
        assert!(pool.parked.is_empty());
        assert!(pool.connections.iter().all(|pooled| pooled.users == 0));
    });
}

mod caching {
    use super::*;
    use crate::client::Purging;

    /// Two peers, and a limit on the connections over both.
    fn peers(limit: usize, purging: Purging) -> [Arc<Peer>; 2] {
        let first = peer();
        let settings = CacheSettings { limit, purging, ..CacheSettings::default() };
        let cache = ConnectionCache::new(settings);
        ["first", "second"].map(|name| {
            let (settings, address) = (Arc::clone(&first.settings), Address::new("pretend", name));
            let peer = Peer::new(address, Arc::new(Iiop), settings, Arc::clone(&cache), Statistics::default());
            let peer = Arc::new(peer);
            cache.join(&peer);
            peer
        })
    }

    /// Makes a call on a connection that replaces another one, or waits for one.
    fn counted(peer: &Arc<Peer>) {
        let open = || peer.cache.reserve(&**peer, None).map(|slot| connection(false).with_slot(Some(slot)));
        let lease = peer.lease_or(None, open).unwrap_or_else(|failure| panic!("{}", failure.exception));
        assert!(!lease.is_retired(), "a leased connection is not closed");
        call(&lease);
        assert!(!lease.is_retired());
    }

    #[test]
    fn a_lease_is_never_a_connection_that_is_being_closed() {
        check(3000, || {
            let purging = if one_in(2) { Purging::LeastRecentlyUsed } else { Purging::LeastFrequentlyUsed };
            let peers = peers(if one_in(2) { 1 } else { 2 }, purging);
            let start = |caller: usize| {
                let peers = peers.clone();
                thread::spawn(move || {
                    counted(&peers[caller % 2]);
                    counted(&peers[(caller + 1) % 2]);
                })
            };
            let threads: Vec<_> = (0..3).map(start).collect();
            threads.into_iter().for_each(|caller| caller.join().expect("it did not panic"));
            peers[0].cache.maintenance_thread().close();
        });
    }
}
