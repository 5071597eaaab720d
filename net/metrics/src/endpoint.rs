//! The HTTP endpoint for Prometheus and health checks.

use std::{
    fmt, io,
    net::{Shutdown, SocketAddr},
    time::Duration,
};

use spandrel_ipc::inet::{self, Inet};
use spandrel_reactor::{
    Acceptor, Expired, Options, Peer, Reactor, ServiceHandler,
    strategy::{AtMost, Reactive},
};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    thread,
};

use crate::CONTENT_TYPE;
use crate::http::{self, EndpointRequest, EndpointResponse};

/// The most connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 16;
/// The longest time of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest request that is read, in octets.
const MAX_REQUEST_OCTETS: usize = 4096;
/// The most octets that are read and dropped after a response.
const MAX_DISCARDED_OCTETS: usize = 16 << 20;

/// Renders all metrics as text.
type RenderMetrics = Box<dyn Fn() -> String + Send + Sync>;

/// The content that the endpoint serves.
struct EndpointState {
    render: RenderMetrics,
    /// Whether the process is shutting down.
    is_closing: AtomicBool,
}

/// An HTTP endpoint with the paths `/metrics` and `/healthz`; closed when it is dropped.
///
/// It has a thread and a reactor of its own, so that it answers while the process is busy. It is no web server: each
/// connection has one request and one response, and what follows the request's header is dropped. It serves 16 connections at a time, each for 10
/// seconds at most. There is no access control beyond the address.
pub struct Endpoint {
    reactor: Reactor,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    state: Arc<EndpointState>,
    addr: SocketAddr,
}

impl Endpoint {
    /// Listens, and serves the text that `render` returns in a thread of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(addr: SocketAddr, render: impl Fn() -> String + Send + Sync + 'static) -> io::Result<Self> {
        let state = Arc::new(EndpointState { render: Box::new(render), is_closing: AtomicBool::new(false) });
        let reactor = Reactor::with(&Options::new().max_handlers(MAX_CONNECTIONS + 2))?;
        let answers = Arc::clone(&state);
        let acceptor = Acceptor::new(Inet::default(), move || EndpointConnection {
            state: Arc::clone(&answers),
            read: Vec::new(),
            phase: ConnectionPhase::Request,
        });
        let server = acceptor
            .acceptance(AtMost(MAX_CONNECTIONS))
            .concurrency(Reactive)
            .open(reactor.registry(), &inet::Addr::from(addr))?;
        let addr = SocketAddr::from(*server.addr());
        let event_loop = reactor.clone();
        let run = move || {
            if let Err(error) = event_loop.run() {
                tracing::error!(%error, "the metrics endpoint ended");
            }
        };
        let thread = thread::Builder::new().name("spandrel-metrics".into()).spawn(run)?;
        tracing::info!("serving metrics at http://{addr}/metrics");
        Ok(Self { reactor, thread: Mutex::new(Some(thread)), state, addr })
    }
}

impl Endpoint {
    /// The address, with the port that the system chose.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Makes `/healthz` fail with 503, when the process begins to shut down. `/metrics` goes on.
    pub fn begin_close(&self) {
        self.state.is_closing.store(true, Ordering::Relaxed);
    }

    /// Stops serving, and waits for the end of the thread.
    pub fn close(&self) {
        self.reactor.close();
        let thread = self.thread.lock().take();
        // Not if this is the endpoint's own thread, which may drop the last user of it.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // The thread has logged its error.
            let _ = thread.join();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// A connection of an HTTP client.
struct EndpointConnection {
    state: Arc<EndpointState>,
    /// The octets of the request; empty after the response.
    read: Vec<u8>,
    phase: ConnectionPhase,
}

/// The progress of a connection. After the response, input is read up to the client's end: a connection that is closed
/// with unread octets is reset, and the client may lose the response (RFC 9112, 9.6).
#[derive(Clone, Copy)]
enum ConnectionPhase {
    /// The request is read.
    Request,
    /// The response is queued. So many octets have been dropped after it.
    Discarding(usize),
}

impl EndpointConnection {
    fn respond(&self, request: &EndpointRequest<'_>) -> EndpointResponse {
        match request {
            EndpointRequest::Read("/metrics") => EndpointResponse::new("200 OK", CONTENT_TYPE, (self.state.render)()),
            EndpointRequest::Read("/healthz") if self.state.is_closing.load(Ordering::Relaxed) => {
                EndpointResponse::plain("503 Service Unavailable", "shutting down\n")
            }
            EndpointRequest::Read("/healthz") => EndpointResponse::plain("200 OK", "ok\n"),
            EndpointRequest::Read(_) => EndpointResponse::plain("404 Not Found", "there are /metrics and /healthz\n"),
            EndpointRequest::Write => {
                EndpointResponse::plain("405 Method Not Allowed", "there is nothing to change here\n")
            }
            EndpointRequest::Malformed => EndpointResponse::plain("400 Bad Request", "this is no HTTP request\n"),
            EndpointRequest::TooLong => {
                EndpointResponse::plain("431 Request Header Fields Too Large", "the request is too long\n")
            }
        }
    }
}

impl ServiceHandler<Inet> for EndpointConnection {
    fn open(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        peer.schedule(CONNECTION_TIMEOUT, None, 0).map(drop)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        let mut room = [0; 1024];
        let count = peer.recv(&mut room)?;
        if count == 0 {
            peer.close();
            return Ok(());
        }
        if let ConnectionPhase::Discarding(octets) = &mut self.phase {
            *octets += count;
            if *octets > MAX_DISCARDED_OCTETS {
                peer.close();
            }
            return Ok(());
        }
        self.read.extend_from_slice(&room[..count]);
        let Some((request, wants_body)) = http::read(&self.read, MAX_REQUEST_OCTETS) else { return Ok(()) };
        let response = self.respond(&request).to_octets(wants_body);
        self.read = Vec::new();
        self.phase = ConnectionPhase::Discarding(0);
        peer.limit_waiting(response.len());
        peer.put(&response)?;
        if peer.waiting() == 0 { self.handle_sent(peer) } else { Ok(()) }
    }

    /// Ends the output after the response.
    fn handle_sent(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        peer.stream().shutdown(Shutdown::Write)
    }

    /// Closes a connection that has taken too long.
    fn handle_timeout(&mut self, peer: &mut Peer<'_, Inet>, _timer: Expired) -> io::Result<()> {
        let _ = peer;
        Err(io::ErrorKind::TimedOut.into())
    }
}
