//! The Acceptor pattern: turns each accepted connection into a running service. Its counterpart is the
//! [`Connector`](crate::Connector).
//!
//! Counting and draining of its connections are in `service::open_connections`.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::{Accept, Family, Interest, Pollable};
use spandrel_sync::Arc;

use crate::service::Service;
use crate::service::connection_checks::ConnectionChecks;
use crate::service::open_connections::OpenConnections;
use crate::strategy::{AcceptAll, Acceptance, Concurrency, Creation, Reactive};
use crate::{CloseReason, Context, EventHandler, Expired, HandlerId, LogLimit, Registry, Unlogged};

/// The number of connections accepted before other handlers are dispatched.
const BATCH: usize = 64;
/// The greatest number of successive events in which one connection is accepted only.
const MOST_SINGLE: u32 = 32;
/// The number of failures in a batch that counts as a failure of the system.
const FAILURES: usize = 8;
/// The pause after that.
const FAILURE_PAUSE: Duration = Duration::from_millis(20);

/// Listens at an address and serves the connections.
///
/// Three decisions are type parameters: how a handler is made (`C`: [`Creation`]), which connections are
/// admitted (`A`: [`Acceptance`]), and which threads run the handlers (`K`: [`Concurrency`]).
///
/// ```
/// use std::io;
/// use spandrel_ipc::{Family, inet::{Addr, Inet}};
/// use spandrel_reactor::strategy::{AtMost, ThreadPerConnection};
/// use spandrel_reactor::{Acceptor, Peer, Reactor, ServiceHandler};
/// # struct Echo;
/// # impl<F: Family> ServiceHandler<F> for Echo {
/// #     fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> { Ok(peer.close()) }
/// # }
///
/// let reactor = Reactor::new()?;
/// let server = Acceptor::new(Inet::default(), || Echo)
///     .acceptance(AtMost(10_000))
///     .concurrency(ThreadPerConnection::new(64).or_reactive())
///     .open(reactor.registry(), &Addr::loopback(0))?;
/// println!("listening at {}", server.addr());
/// # server.close();
/// # Ok::<(), io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "it does nothing until it is opened"]
pub struct Acceptor<F, C, A = AcceptAll, K = Reactive> {
    family: F,
    creation: C,
    acceptance: A,
    concurrency: K,
    check_interval: Option<Duration>,
}

impl<F: Family, C: Creation<F>> Acceptor<F, C> {
    /// Serves each connection with a handler of `creation`, on the reactor's threads.
    pub fn new(family: F, creation: C) -> Self {
        Self { family, creation, acceptance: AcceptAll, concurrency: Reactive, check_interval: None }
    }
}

impl<F: Family, C: Creation<F>, A: Acceptance<F>, K: Concurrency<F, C::Handler>> Acceptor<F, C, A, K> {
    /// Sets the strategy that admits connections.
    pub fn acceptance<B: Acceptance<F>>(self, acceptance: B) -> Acceptor<F, C, B, K> {
        let Self { family, creation, concurrency, check_interval, .. } = self;
        Acceptor { family, creation, acceptance, concurrency, check_interval }
    }

    /// Sets the strategy that runs the services.
    pub fn concurrency<L: Concurrency<F, C::Handler>>(self, concurrency: L) -> Acceptor<F, C, A, L> {
        let Self { family, creation, acceptance, check_interval, .. } = self;
        Acceptor { family, creation, acceptance, concurrency, check_interval }
    }

    /// Calls [`handle_check`](crate::ServiceHandler::handle_check) of each open connection once in `interval`: for time
    /// limits that all connections have in common. One timer serves all that are in the reactor, where
    /// [`Peer::schedule`](crate::Peer::schedule) would need one for each. The checks go on until the last connection has
    /// ended, also after [`Server::close`]. They count as one more handler of the reactor. Zero: no checks.
    pub fn check_every(self, interval: Duration) -> Self {
        Self { check_interval: (!interval.is_zero()).then_some(interval), ..self }
    }

    /// Listens at `addr`, with the settings of the family.
    ///
    /// # Errors
    /// The errors of [`Family::open`] and [`Registry::register`].
    pub fn open(self, registry: &Registry, addr: &F::Addr) -> io::Result<Server<F>> {
        let acceptor = self.family.open(addr)?;
        self.adopt(registry, acceptor)
    }

    /// Accepts at an endpoint that listens already.
    ///
    /// # Errors
    /// The errors of [`Registry::register`].
    pub fn adopt(self, registry: &Registry, acceptor: F::Acceptor) -> io::Result<Server<F>> {
        acceptor.set_nonblocking(true)?;
        let addr = acceptor.local_addr()?;
        let open_connections = Arc::new(OpenConnections::with_checks(self.check_interval));
        let open = Arc::clone(&open_connections);
        let acceptor_life = Arc::new(());
        let checks = self.check_interval.map(|interval| ConnectionChecks {
            open: Arc::clone(&open),
            interval,
            acceptor: Arc::downgrade(&acceptor_life),
        });
        let (mut creation, mut acceptance, mut concurrency) = (self.creation, self.acceptance, self.concurrency);
        let on_accept = move |context: &Context<'_>, stream: F::Stream, remote: F::Addr| {
            let _ = &acceptor_life;
            if !acceptance.admits(&stream, &remote, open.len()) {
                return Ok(());
            }
            let stream = Arc::new(stream);
            let Some(entry) = open.admit() else { return Ok(()) };
            let handler = creation.make(&remote)?;
            concurrency.activate(context, Service::new(stream, remote, handler, entry))
        };
        if let Some(checks) = checks {
            registry.register(checks, Interest::NONE)?;
        }
        let id = registry.register(Listening::<F, _>::new(acceptor, on_accept), Interest::INPUT)?;
        Ok(Server { id, registry: registry.clone(), addr, open_connections })
    }
}

/// The source of connections of an [`AcceptLoop`]: any [`Accept`], or a wrapper of the acceptors of several
/// families.
pub trait ConnectionSource: Send + 'static {
    /// The type of a connection.
    type Stream;
    /// The address type of the peer.
    type Remote: Clone + fmt::Display;

    /// The handle by which the reactor finds that connections wait.
    fn pollable(&self) -> &dyn Pollable;

    /// Accepts one connection.
    ///
    /// # Errors
    /// The errors of [`Accept::accept`].
    fn accept(&mut self) -> io::Result<(Self::Stream, Self::Remote)>;
}

impl<A: Accept> ConnectionSource for A {
    type Stream = A::Stream;
    type Remote = A::Addr;

    fn pollable(&self) -> &dyn Pollable {
        self
    }

    fn accept(&mut self) -> io::Result<(A::Stream, A::Addr)> {
        Accept::accept(self)
    }
}

/// The [`AcceptLoop`] of an acceptor of one family.
pub type Listening<F, W> = AcceptLoop<<F as Family>::Acceptor, W>;

/// The event handler that accepts, for users that handle accepted connections themselves.
///
/// It accepts a bounded number of connections at a time, continues when a single one fails, and pauses when
/// all fail, so that it never spins.
pub struct AcceptLoop<S, W> {
    acceptor: S,
    on_accept: W,
    log_limit: LogLimit,
    /// The number of next events in which one connection is accepted only, and its last initial value. An attempt that
    /// finds no further connection costs a system call: after one, the next is made later.
    single: u32,
    last_single: u32,
}

impl<S: fmt::Debug, W> fmt::Debug for AcceptLoop<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptLoop").field("acceptor", &self.acceptor).finish_non_exhaustive()
    }
}

impl<S: ConnectionSource, W> AcceptLoop<S, W>
where
    W: FnMut(&Context<'_>, S::Stream, S::Remote) -> io::Result<()> + Send + 'static,
{
    /// Passes each connection to `on_accept`; an error or a panic of it concerns that connection only.
    /// `acceptor` must be nonblocking ([`Accept::set_nonblocking`]). To be registered for
    /// [`Interest::INPUT`] and the level trigger, since it may leave connections.
    pub fn new(acceptor: S, on_accept: W) -> Self {
        Self { acceptor, on_accept, log_limit: LogLimit::default(), single: 0, last_single: 0 }
    }

    /// An error or a panic concerns this connection only.
    fn receive(&mut self, context: &Context<'_>, stream: S::Stream, remote: S::Remote) {
        let from = remote.clone();
        let on_accept = AssertUnwindSafe(|| (self.on_accept)(context, stream, remote));
        match catch_unwind(on_accept) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                if let Some(Unlogged(unlogged)) = self.log_limit.admit("service") {
                    tracing::warn!(remote = %from, %error, unlogged, "a connection cannot be served");
                }
            }
            Err(panic) => {
                let panic = crate::dispatch::message(panic);
                tracing::error!(remote = %from, panic, "a panic while a connection was accepted");
            }
        }
    }
}

/// Whether the acceptor has been shut down. (The system has an error of the same kind that concerns one
/// connection.)
fn is_shut_down(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotConnected && error.raw_os_error().is_none()
}

impl<S: ConnectionSource, W> EventHandler for AcceptLoop<S, W>
where
    W: FnMut(&Context<'_>, S::Stream, S::Remote) -> io::Result<()> + Send + 'static,
{
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self.acceptor.pollable())
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let limit = if self.single > 0 { 1 } else { BATCH };
        self.single = self.single.saturating_sub(1);
        let mut failures = 0;
        for attempt in 0..limit {
            match self.acceptor.accept() {
                Ok((stream, remote)) => self.receive(context, stream, remote),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.last_single = if attempt == 1 { (self.last_single * 2).clamp(1, MOST_SINGLE) } else { 0 };
                    self.single = self.last_single;
                    return Ok(());
                }
                Err(error) if is_shut_down(&error) => {
                    context.close();
                    return Ok(());
                }
                // The connection's own failure, for example a failed handshake; or the system's.
                Err(error) if failures < FAILURES => {
                    tracing::debug!(%error, "a connection cannot be accepted");
                    failures += 1;
                }
                Err(error) => {
                    // No memory, or a network failure: open connections continue, further ones wait in the
                    // backlog.
                    if let Some(Unlogged(unlogged)) = self.log_limit.admit("accept") {
                        tracing::warn!(%error, unlogged, "cannot accept");
                    }
                    match context.schedule(FAILURE_PAUSE, None, 0) {
                        Ok(_) => context.set_interest(Interest::NONE),
                        Err(error) => tracing::error!(%error, "cannot pause"),
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn handle_timeout(&mut self, context: &Context<'_>, _timer: Expired) -> io::Result<()> {
        context.set_interest(Interest::INPUT);
        Ok(())
    }

    fn handle_close(&mut self, _context: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(error) = reason {
            tracing::error!(%error, "no longer accepting");
        }
    }
}

/// A running [`Acceptor`]. Dropping this handle changes nothing: the acceptor runs as long as its reactor
/// does.
#[derive(Clone, Debug)]
pub struct Server<F: Family> {
    id: HandlerId,
    registry: Registry,
    addr: F::Addr,
    open_connections: Arc<OpenConnections>,
}

impl<F: Family> Server<F> {
    /// The address at which it listens.
    #[must_use]
    pub fn addr(&self) -> &F::Addr {
        &self.addr
    }

    /// The number of its open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.open_connections.len()
    }

    /// Stops accepting until [`resume`](Self::resume): further connections wait in the backlog, as far as the system has
    /// room for them. Open connections continue.
    pub fn suspend(&self) {
        self.registry.suspend(self.id);
    }

    /// Accepts connections again after a suspension.
    pub fn resume(&self) {
        self.registry.resume(self.id);
    }

    /// Stops accepting. Open connections continue.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Waits until all connections are closed by their services or peers; false after `timeout`.
    ///
    /// Not to be called in a thread of the reactor, which would deadlock.
    #[must_use]
    pub fn wait_closed(&self, timeout: Duration) -> bool {
        self.open_connections.wait_empty(timeout)
    }

    /// Stops accepting, and lets every service finish, without waiting: the first step of
    /// [`drain`](Self::drain).
    pub fn begin_drain(&self) {
        self.close();
        self.open_connections.begin_drain();
    }

    /// Stops accepting and lets every service finish: its handler receives the octets that have arrived, and
    /// then the end. Waits until all connections are closed, at most for `timeout`; then closes the rest and
    /// returns their number. Those may take a moment to close, as [`connections`](Self::connections) shows: a
    /// running handler is not interrupted.
    ///
    /// Not to be called in a thread of the reactor, which would deadlock.
    ///
    /// To drain several servers, of one reactor or of many, begin with all before waiting for any. A program
    /// shuts down gracefully like this:
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use spandrel_ipc::inet::Inet;
    /// # use spandrel_reactor::{Reactor, Server};
    /// fn end(reactor: &Reactor, servers: &[Server<Inet>], timeout: Duration) -> usize {
    ///     let end = Instant::now() + timeout;
    ///     servers.iter().for_each(Server::begin_drain);
    ///     let drain = |server: &Server<Inet>| server.drain(end.saturating_duration_since(Instant::now()));
    ///     let cut = servers.iter().map(drain).sum();
    ///     reactor.stop();
    ///     cut
    /// }
    /// # let reactor = Reactor::new()?;
    /// # assert_eq!(end(&reactor, &[], Duration::ZERO), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use = "how many connections were cut"]
    pub fn drain(&self, timeout: Duration) -> usize {
        self.close();
        self.open_connections.drain(timeout)
    }
}
