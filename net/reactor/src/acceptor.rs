//! The Acceptor pattern: turns each connection that comes into a service that runs.

use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::{Accept, Family, Interest, Pollable};
use spandrel_sync::Arc;

use crate::service::Service;
use crate::service::population::Population;
use crate::strategy::{AcceptAll, Acceptance, Concurrency, Creation, Reactive};
use crate::{CloseReason, Context, EventHandler, Expired, HandlerId, Registry};

/// How many connections are accepted before other handlers have their turn.
const BATCH: usize = 64;
/// How long nothing is accepted after the system refused to.
const BREATH: Duration = Duration::from_millis(20);

/// Listens at an address and serves whoever connects.
///
/// The three decisions that servers differ in are type parameters: how a handler is made (`C`: [`Creation`]), who is let in (`A`:
/// [`Acceptance`]), and who runs the handlers (`K`: [`Concurrency`]).
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
}

impl<F: Family, C: Creation<F>> Acceptor<F, C> {
    /// Serves each connection with a handler of `creation`, on the reactor's threads.
    pub fn new(family: F, creation: C) -> Self {
        Self { family, creation, acceptance: AcceptAll, concurrency: Reactive }
    }
}

impl<F: Family, C: Creation<F>, A: Acceptance<F>, K: Concurrency<F, C::Handler>> Acceptor<F, C, A, K> {
    /// Lets in whom this strategy admits.
    pub fn acceptance<B: Acceptance<F>>(self, acceptance: B) -> Acceptor<F, C, B, K> {
        Acceptor { family: self.family, creation: self.creation, acceptance, concurrency: self.concurrency }
    }

    /// Has the services run by this strategy.
    pub fn concurrency<L: Concurrency<F, C::Handler>>(self, concurrency: L) -> Acceptor<F, C, A, L> {
        Acceptor { family: self.family, creation: self.creation, acceptance: self.acceptance, concurrency }
    }

    /// Listens at `addr`, with the settings of the family.
    ///
    /// # Errors
    /// Those of [`Family::open`] and [`Registry::register`].
    pub fn open(self, registry: &Registry, addr: &F::Addr) -> io::Result<Server<F>> {
        let acceptor = self.family.open(addr)?;
        self.adopt(registry, acceptor)
    }

    /// Accepts at an endpoint that listens already.
    ///
    /// # Errors
    /// Those of [`Registry::register`].
    pub fn adopt(self, registry: &Registry, acceptor: F::Acceptor) -> io::Result<Server<F>> {
        acceptor.set_nonblocking(true)?;
        let addr = acceptor.local_addr()?;
        let population = Arc::new(Population::default());
        let guests = Arc::clone(&population);
        let (mut creation, mut acceptance, mut concurrency) = (self.creation, self.acceptance, self.concurrency);
        let welcome = move |context: &Context<'_>, stream: F::Stream, remote: F::Addr| {
            if !acceptance.admits(&stream, &remote, guests.len()) {
                return Ok(());
            }
            let stream = Arc::new(stream);
            let Some(guest) = guests.enter(Arc::downgrade(&stream)) else { return Ok(()) };
            let handler = creation.make(&remote)?;
            concurrency.activate(context, Service::new(stream, remote, handler, guest))
        };
        let id = registry.register(Listening::<F, _>::new(acceptor, welcome), Interest::INPUT)?;
        Ok(Server { id, registry: registry.clone(), addr, population })
    }
}

/// The event handler that accepts, for whoever wants to decide alone what becomes of a connection.
///
/// It accepts a bounded number of connections at a time, goes on when the system refuses one, and pauses when the system refuses them
/// all, so that it never spins.
pub struct Listening<F: Family, W> {
    acceptor: F::Acceptor,
    welcome: W,
}

impl<F: Family, W> fmt::Debug for Listening<F, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("acceptor", &self.acceptor).finish_non_exhaustive()
    }
}

impl<F: Family, W> Listening<F, W>
where
    W: FnMut(&Context<'_>, F::Stream, F::Addr) -> io::Result<()> + Send + 'static,
{
    /// Gives each connection to `welcome`; an error of it concerns that connection only. `acceptor` must not block
    /// ([`Accept::set_nonblocking`]). To be registered for [`Interest::INPUT`].
    pub fn new(acceptor: F::Acceptor, welcome: W) -> Self {
        Self { acceptor, welcome }
    }
}

impl<F: Family, W> EventHandler for Listening<F, W>
where
    W: FnMut(&Context<'_>, F::Stream, F::Addr) -> io::Result<()> + Send + 'static,
{
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.acceptor)
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.acceptor.accept() {
                Ok((stream, remote)) => {
                    let from = remote.to_string();
                    if let Err(error) = (self.welcome)(context, stream, remote) {
                        tracing::warn!(remote = %from, %error, "a connection cannot be served");
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    context.close();
                    return Ok(());
                }
                Err(error) => {
                    // No memory, or a network that is down: what is connected goes on, the rest waits in the backlog.
                    tracing::warn!(%error, "cannot accept");
                    context.set_interest(Interest::NONE);
                    context.schedule(BREATH, None, 0)?;
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

/// What an [`Acceptor`] has opened. Dropping it changes nothing: it goes on as long as its reactor does.
#[derive(Clone, Debug)]
pub struct Server<F: Family> {
    id: HandlerId,
    registry: Registry,
    addr: F::Addr,
    population: Arc<Population>,
}

impl<F: Family> Server<F> {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> &F::Addr {
        &self.addr
    }

    /// How many of its connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.population.len()
    }

    /// Stops accepting. Open connections go on.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Stops accepting, lets every service end what it has begun (it receives what has come, and then the end), and waits until all
    /// connections are closed, `timeout` at most; then cuts the rest and says how many that were.
    ///
    /// Not to be called in a reactor's thread, which would wait for itself.
    #[must_use = "how many connections were cut"]
    pub fn drain(&self, timeout: Duration) -> usize {
        self.close();
        self.population.drain(timeout)
    }
}
