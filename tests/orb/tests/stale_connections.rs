//! Connections that ended while no call used them, without CloseConnection: the next call uses another one.

use crate::certificates;

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use certificates::{WithIdentity, authority, client, trusting};
use socket2::{Domain, SockAddr, Socket, Type};
use spandrel::{
    Orb, OrbBuilder, SystemException, SystemExceptionKind,
    diagnostics::statistics::Event,
    policy::{BufferingConstraintPolicy, RebindPolicy, SetOverrideType, SyncScopePolicy},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{ReservedPort, block_on, wait_until},
};

/// A proxy that forwards octets and can end its connections to clients.
struct Proxy {
    open: Arc<Mutex<Vec<Socket>>>,
    accepted: Arc<AtomicUsize>,
}

impl Proxy {
    fn between(listener: Socket, domain: Domain, server: SockAddr) -> Self {
        let proxy = Self { open: Arc::default(), accepted: Arc::default() };
        let (open, accepted) = (Arc::clone(&proxy.open), Arc::clone(&proxy.accepted));
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = Socket::new(domain, Type::STREAM, None).unwrap();
                far.connect(&server).unwrap();
                forward(near.try_clone().unwrap(), far.try_clone().unwrap());
                forward(far, near.try_clone().unwrap());
                open.lock().unwrap().push(near);
                accepted.fetch_add(1, Ordering::SeqCst);
            }
        });
        proxy
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Ends all connections to clients. The end has arrived there when this returns.
    fn end_connections(&self) {
        let ended = self.accepted();
        wait_until("the proxy's connections", || self.open.lock().unwrap().len() == 1);
        for near in self.open.lock().unwrap().drain(..) {
            near.shutdown(std::net::Shutdown::Write).unwrap();
        }
        assert_eq!(self.accepted(), ended);
    }
}

fn forward(mut from: Socket, mut to: Socket) {
    thread::spawn(move || {
        let mut octets = vec![0; 65536];
        while let Ok(count @ 1..) = from.read(&mut octets) {
            if to.write_all(&octets[..count]).is_err() {
                return;
            }
        }
    });
}

/// A server behind a proxy, and a builder of its clients.
struct Stage {
    server: Server,
    proxy: Proxy,
    ior: String,
    client: fn() -> OrbBuilder,
    _held: Box<dyn std::any::Any>,
}

fn over_inet(scheme: &str, builder: OrbBuilder, client: fn() -> OrbBuilder) -> Stage {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(16).unwrap();
    let published = listener.local_addr().unwrap().as_socket().unwrap().port();
    let reserved = ReservedPort::reserve();
    let endpoint = format!("{scheme}://127.0.0.1:{}/publish=127.0.0.1:{published}", reserved.port);
    let server = Server::with(builder.listen(endpoint.parse().unwrap()));
    let far = SocketAddr::from((Ipv4Addr::LOCALHOST, reserved.port)).into();
    let proxy = Proxy::between(listener, Domain::IPV4, far);
    Stage { ior: server.ior(), server, proxy, client, _held: Box::new(reserved) }
}

fn over_tcp() -> Stage {
    over_inet("iiop", Orb::builder(), Orb::builder)
}

fn over_tls() -> Stage {
    let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
    over_inet("ssliop", Orb::builder().protocol(ssliop), client)
}

#[cfg(unix)]
fn over_uds() -> Stage {
    use spandrel::types::{IiopProfile, Ior, ior_to_string};
    use spandrel_giop::{ids::TAG_LOCAL_ADDRESS, local_address::UnixTransport};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = Server::with(Orb::builder().listen(format!("uds://{}", path("server")).parse().unwrap()));
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(path("proxy")).unwrap()).unwrap();
    listener.listen(16).unwrap();
    let proxy = Proxy::between(listener, Domain::UNIX, SockAddr::unix(path("server")).unwrap());
    let mut profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    profile.components.retain(|component| component.tag != TAG_LOCAL_ADDRESS);
    for component in &mut profile.components {
        if let Some(address) = UnixTransport::decode(component).unwrap() {
            *component = UnixTransport { path: path("proxy"), ..address }.encode().unwrap();
        }
    }
    let type_id = server.object.ior().type_id.clone();
    let ior = ior_to_string(&Ior { type_id, profiles: vec![profile.encode().unwrap()] });
    Stage { ior, server, proxy, client: Orb::builder, _held: Box::new(folder) }
}

/// A transport, and the stage over it.
type TransportStage = (&'static str, fn() -> Stage);

const STAGES: &[TransportStage] = &[
    ("TCP", over_tcp),
    ("TLS", over_tls),
    #[cfg(unix)]
    ("UNIX domain", over_uds),
];

type CallKind = fn(&Target) -> Result<(), SystemException>;

const CALL_KINDS: [(&str, CallKind); 4] = [
    ("synchronous", |target| target.ping()),
    ("asynchronous", |target| block_on(target.add_async(20, 22)).map(|sum| assert_eq!(sum, 42))),
    ("locate", |target| target.as_object().locate().map(drop)),
    ("one-way", |target| target.note(&[7])),
];

/// Waits until a connection that was leased before counts as unused for a time.
fn pause() {
    thread::sleep(Duration::from_millis(2));
}

#[test]
fn a_call_after_a_silent_end_uses_another_connection() {
    for (transport, stage) in STAGES {
        for (kind, call) in CALL_KINDS {
            let Stage { server, proxy, ior, client, _held } = stage();
            let orb = client().build().unwrap();
            let target = Target::unchecked_narrow(&orb.string_to_object(&ior).unwrap());
            target.ping().unwrap();
            call(&target).unwrap();
            assert_eq!(proxy.accepted(), 1, "{transport}, {kind}");
            proxy.end_connections();
            pause();
            call(&target).unwrap_or_else(|error| panic!("{transport}, {kind}: {error}"));
            target.ping().unwrap();
            assert_eq!(proxy.accepted(), 2, "{transport}, {kind}");
            assert_eq!(orb.statistics().count(Event::Retried), 0, "{transport}, {kind}");
            if kind == "one-way" {
                wait_until("both one-ways", || server.probe.counted() == 2);
            }
        }
    }
}

#[test]
fn a_buffered_one_way_after_a_silent_end_arrives() {
    let Stage { server, proxy, ior, client, _held } = over_tcp();
    let constraint = BufferingConstraintPolicy { timeout: Duration::MAX, messages: u32::MAX, octets: usize::MAX };
    let orb = client().build().unwrap();
    let policies = [SyncScopePolicy::None.into(), constraint.into()];
    let object = orb.string_to_object(&ior).unwrap();
    let target =
        Target::unchecked_narrow(&object.set_policy_overrides(&policies, SetOverrideType::SetOverride).unwrap());
    target.ping().unwrap();
    proxy.end_connections();
    pause();
    target.note(&[7]).unwrap();
    target.ping().unwrap();
    wait_until("the one-way", || server.probe.counted() == 1);
    assert_eq!(orb.statistics().count(Event::OneWayDropped), 0);
}

#[test]
fn calls_that_share_one_connection_do_not_use_it_after_its_silent_end() {
    let Stage { proxy, ior, client, _held, server: _server } = over_tcp();
    let orb = client().connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&ior).unwrap());
    target.ping().unwrap();
    proxy.end_connections();
    pause();
    let start = std::sync::Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                target.ping().unwrap();
            });
        }
    });
}

#[test]
fn a_silent_end_is_reported_where_reconnecting_is_forbidden() {
    let Stage { proxy, ior, client, _held, server: _server } = over_tcp();
    let orb = client().build().unwrap();
    let object = orb.string_to_object(&ior).unwrap();
    Target::unchecked_narrow(&object).ping().unwrap();
    let policies = [RebindPolicy::NoReconnect.into()];
    let bound = object.set_policy_overrides(&policies, SetOverrideType::AddOverride).unwrap();
    bound.validate_connection().unwrap();
    proxy.end_connections();
    pause();
    let error = Target::unchecked_narrow(&bound).ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Rebind, "{error}");
}
