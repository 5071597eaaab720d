//! The connections of an ORB that was shut down end in a bounded time, whatever their peers do.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use spandrel::{Orb, options::Concurrency, ssliop::pem};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, fake_server, in_background, read_message, without_local_addresses},
};

use crate::certificates::{WithIdentity, authority, trusting};

/// The time for requests that run at the shutdown. None of these peers has one that lasts.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// The bound of `docs/life-cycle.md` after that time, with room for a loaded machine.
const BOUND: Duration = Duration::from_secs(10);

/// Octets that a peer writes at once.
const BLOCK: usize = 64 * 1024;

/// The behaviour of the peer from the first connection to its end.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// Sends one-ways without end.
    OneWays,
    /// Sends requests without end and takes the replies.
    Requests,
    /// Sends requests without end and takes no reply.
    UntakenReplies,
    /// Sends the parts of one request, without octets and without end.
    Fragments,
    /// Sends a long request in single octets.
    SingleOctets,
    /// Sends a part of a request, and nothing more.
    HalfRequest,
    /// Sends nothing and reads nothing.
    Silent,
}

impl Peer {
    const ALL: [Self; 7] = [
        Self::OneWays,
        Self::Requests,
        Self::UntakenReplies,
        Self::Fragments,
        Self::SingleOctets,
        Self::HalfRequest,
        Self::Silent,
    ];

    fn begin(self) -> Vec<u8> {
        match self {
            Self::Fragments => message(0, true, &7u32.to_le_bytes()),
            Self::SingleOctets | Self::HalfRequest => message(0, false, &[0; 1 << 20])[..16].to_vec(),
            _ => Vec::new(),
        }
    }

    /// The octets of one write, and the pause after it; `None` if nothing more is written.
    fn block(self, server: &Server) -> Option<(Vec<u8>, Duration)> {
        let (one, pause) = match self {
            Self::OneWays => (request(server, ResponseFlags::NONE), Duration::ZERO),
            Self::Requests | Self::UntakenReplies => (request(server, ResponseFlags::TWO_WAY), Duration::ZERO),
            Self::Fragments => (message(7, true, &7u32.to_le_bytes()), Duration::ZERO),
            Self::SingleOctets => return Some((vec![0], Duration::from_millis(20))),
            Self::HalfRequest | Self::Silent => return None,
        };
        Some((one.repeat(BLOCK / one.len()), pause))
    }
}

/// A message of GIOP 1.2 in little-endian order.
fn message(message_type: u8, has_more: bool, body: &[u8]) -> Vec<u8> {
    let flags = 1 | u8::from(has_more) << 1;
    let len = (body.len() as u32).to_le_bytes();
    [&[b'G', b'I', b'O', b'P', 1, 2, flags, message_type], &len[..], body].concat()
}

/// A request `ping` of the server's object.
fn request(server: &Server, response: ResponseFlags) -> Vec<u8> {
    let profile = without_local_addresses(&server.object.ior().profiles[0]);
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let mut out = Encoder::new(Wire::default());
    template.begin(&mut out, 1, response, "ping", &[]).end(&mut out).unwrap();
    out.to_vec()
}

/// The transport of a server's peers: plain TCP, or TLS over it.
#[derive(Clone, Copy, Debug)]
enum Layer {
    Tcp,
    Tls,
}

/// Begins what the peer does, and waits until it does it. Returns the event of its connection's end.
fn start(peer: Peer, layer: Layer, server: &Server) -> mpsc::Receiver<()> {
    match layer {
        Layer::Tcp => {
            let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
            if let Peer::Requests = peer {
                let mut replies = stream.try_clone().unwrap();
                thread::spawn(move || std::io::copy(&mut replies, &mut std::io::sink()));
            }
            run(peer, stream, server, |_| {})
        }
        Layer::Tls => {
            let mut stream = tls_stream(server);
            stream.conn.complete_io(&mut stream.sock).unwrap();
            run(
                peer,
                stream,
                server,
                match peer {
                    Peer::Requests => take_replies,
                    _ => |_| {},
                },
            )
        }
    }
}

fn tls_stream(server: &Server) -> StreamOwned<ClientConnection, TcpStream> {
    let roots = pem::authorities(authority().pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "127.0.0.1".try_into().unwrap()).unwrap();
    let port = server.orb.published().unwrap().addresses[0].host_and_port().unwrap().1;
    StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port)).unwrap())
}

/// Takes the replies that have arrived, and does not wait for others.
fn take_replies(stream: &mut StreamOwned<ClientConnection, TcpStream>) {
    stream.sock.set_nonblocking(true).unwrap();
    while matches!(stream.read(&mut [0; 4096]), Ok(octets) if octets > 0) {}
    stream.sock.set_nonblocking(false).unwrap();
}

/// As [`start`], over a stream. `between` is called between the writes of blocks.
fn run<S: Read + Write + Send + 'static>(
    peer: Peer,
    mut stream: S,
    server: &Server,
    between: fn(&mut S),
) -> mpsc::Receiver<()> {
    stream.write_all(&peer.begin()).unwrap();
    let Some((block, pause)) = peer.block(server) else {
        // The end stands behind what the server sent before.
        return in_background(move || drop(stream.read_to_end(&mut Vec::new())));
    };
    let (begun, has_begun) = mpsc::channel();
    let ended = in_background(move || {
        while stream.write_all(&block).is_ok() {
            let _ = begun.send(());
            between(&mut stream);
            thread::sleep(pause);
        }
    });
    for _ in 0..2 {
        // Those that take no replies are no longer read from at some time.
        let _ = has_begun.recv_timeout(Duration::from_secs(1));
    }
    ended
}

fn strategies() -> [Concurrency; 8] {
    [
        Concurrency::ThreadPerConnection { limit: 64 },
        Concurrency::ThreadPerConnection { limit: 0 },
        Concurrency::default(),
        Concurrency::Adaptive { limit: 0 },
        Concurrency::Reactive,
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(2) },
        Concurrency::ThreadPool { threads: 2, queue: 8 },
    ]
}

#[test]
fn connections_end_after_the_shutdown_whatever_their_peers_do() {
    check_all(Layer::Tcp);
}

#[test]
fn tls_connections_end_after_the_shutdown_whatever_their_peers_do() {
    check_all(Layer::Tls);
}

fn check_all(layer: Layer) {
    let all: Vec<_> = strategies().map(|strategy| (strategy, in_background(move || check(strategy, layer)))).into();
    for (strategy, checked) in all {
        checked.recv_timeout(8 * TEST_TIMEOUT).unwrap_or_else(|_| panic!("{strategy}"));
    }
}

fn check(strategy: Concurrency, layer: Layer) {
    let builder = Orb::builder().concurrency(strategy).shutdown_timeout(SHUTDOWN_TIMEOUT);
    let server = Server::with(match layer {
        Layer::Tcp => builder,
        Layer::Tls => {
            let ssliop = trusting(authority()).identity_of(&authority().issue("127.0.0.1"));
            builder.protocol(ssliop).listen("ssliop://127.0.0.1:0".parse().unwrap())
        }
    });
    let ends = Peer::ALL.map(|peer| (peer, start(peer, layer, &server)));
    let begun = Instant::now();
    server.orb.shutdown().unwrap();
    assert!(begun.elapsed() < SHUTDOWN_TIMEOUT + BOUND, "{strategy}: {:?}", begun.elapsed());
    let mut left: Vec<_> = Vec::new();
    for (peer, ended) in ends {
        if ended.recv_timeout(BOUND).is_err() {
            left.push(peer);
        }
    }
    assert!(left.is_empty(), "{strategy}: {left:?} have not ended");
}

/// A server that answers one request and then sends the parts of another reply, without octets and without end.
/// Returns its URL, and the events of the flood's begin and end.
fn flooding_server() -> (String, mpsc::Receiver<()>) {
    let (events, received) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        let events = events.clone();
        thread::spawn(move || {
            let request = read_message(&mut stream).unwrap();
            let reply = message(1, false, &[&request[12..16], &[0; 8]].concat());
            let block = message(7, true, &7u32.to_le_bytes()).repeat(BLOCK / 16);
            stream.write_all(&[reply, message(1, true, &7u32.to_le_bytes())].concat()).unwrap();
            let mut begun = Some(());
            while stream.write_all(&block).is_ok() {
                begun.take().into_iter().for_each(|()| events.send(()).unwrap());
            }
            events.send(()).unwrap();
        });
    });
    (format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x"), received)
}

#[test]
fn a_clients_connections_end_with_its_orb_although_the_server_floods_them() {
    type Call = fn(&Target);
    type End = fn(Orb);
    let calls: [Call; 2] = [|target| target.ping().unwrap(), |target| block_on(target.ping_async()).unwrap()];
    let ends: [End; 2] = [|orb| orb.shutdown().unwrap(), drop];
    for call in calls {
        for end in ends {
            let (url, flood) = flooding_server();
            let orb = Orb::builder().build().unwrap();
            let target: Target = orb.string_to_object(&url).unwrap().unchecked_narrow();
            call(&target);
            flood.recv_timeout(TEST_TIMEOUT).expect("the flood begins");
            drop(target);
            end(orb);
            flood.recv_timeout(BOUND).expect("the server's write ends");
        }
    }
}
