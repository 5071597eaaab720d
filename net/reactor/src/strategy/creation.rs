//! Creation of service handlers.

use std::io;

use spandrel_ipc::Family;
use spandrel_sync::{Arc, Mutex};

use crate::{CloseReason, Expired, Notice, Peer, ServiceHandler};

/// Makes the handler of each connection.
///
/// A closure that returns a handler creates one for each connection. [`Pooled`] reuses handlers,
/// [`Singleton`] shares one.
pub trait Creation<F: Family>: Send + 'static {
    /// The handler type.
    type Handler: ServiceHandler<F>;

    /// The handler for a connection from, or to, `remote`.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn make(&mut self, remote: &F::Addr) -> io::Result<Self::Handler>;
}

impl<F: Family, H: ServiceHandler<F>, M: FnMut() -> H + Send + 'static> Creation<F> for M {
    type Handler = H;

    fn make(&mut self, _remote: &F::Addr) -> io::Result<H> {
        Ok(self())
    }
}

/// Reuses a handler whose connection has ended: for handlers that are costly to make. Its `open` must reset
/// it.
#[derive(Debug)]
pub struct Pooled<H, M> {
    make: M,
    idle: Arc<Mutex<Vec<H>>>,
    keep: usize,
}

impl<H: Send + 'static, M: FnMut() -> H + Send + 'static> Pooled<H, M> {
    /// Makes handlers with `make` when none is idle, and keeps up to `keep` idle ones.
    pub fn new(keep: usize, make: M) -> Self {
        Self { make, idle: Arc::new(Mutex::new(Vec::new())), keep }
    }

    /// Makes that many in advance, up to the number that is kept.
    #[must_use]
    pub fn filled(mut self, count: usize) -> Self {
        let made: Vec<H> = (0..count.min(self.keep)).map(|_| (self.make)()).collect();
        self.idle.lock().extend(made);
        self
    }
}

impl<F: Family, H: ServiceHandler<F>, M: FnMut() -> H + Send + 'static> Creation<F> for Pooled<H, M> {
    type Handler = Recycled<H>;

    fn make(&mut self, _remote: &F::Addr) -> io::Result<Recycled<H>> {
        let idle = self.idle.lock().pop();
        let handler = idle.unwrap_or_else(|| (self.make)());
        Ok(Recycled { handler: Some(handler), idle: Arc::clone(&self.idle), keep: self.keep })
    }
}

/// A handler from a [`Pooled`]; it returns there when its connection has ended, unless it panicked.
#[derive(Debug)]
pub struct Recycled<H> {
    /// None only after it was returned.
    handler: Option<H>,
    idle: Arc<Mutex<Vec<H>>>,
    keep: usize,
}

const IN_USE: &str = "a handler returns to its pool only after `close`";

impl<F: Family, H: ServiceHandler<F>> ServiceHandler<F> for Recycled<H> {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.handler.as_mut().expect(IN_USE).open(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.handler.as_mut().expect(IN_USE).handle_input(peer)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.handler.as_mut().expect(IN_USE).handle_sent(peer)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        self.handler.as_mut().expect(IN_USE).handle_timeout(peer, timer)
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        self.handler.as_mut().expect(IN_USE).handle_notice(peer, notice)
    }

    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        let Some(mut handler) = self.handler.take() else { return };
        handler.close(peer, reason);
        if matches!(reason, CloseReason::Panicked(_)) {
            return; // its state is unknown
        }
        let mut idle = self.idle.lock();
        if idle.len() < self.keep {
            idle.push(handler);
        }
    }
}

/// One handler for all connections, used by one of them at a time. If it panics, the connection that it was
/// serving is closed, and it continues with the others: it must support that.
#[derive(Debug)]
pub struct Singleton<H>(Arc<Mutex<H>>);

impl<H> Singleton<H> {
    /// Gives this handler to every connection.
    pub fn new(handler: H) -> Self {
        Self(Arc::new(Mutex::new(handler)))
    }

    /// The handler, for inspection.
    #[must_use]
    pub fn handler(&self) -> Arc<Mutex<H>> {
        Arc::clone(&self.0)
    }
}

impl<F: Family, H: ServiceHandler<F>> Creation<F> for Singleton<H> {
    type Handler = Shared<H>;

    fn make(&mut self, _remote: &F::Addr) -> io::Result<Shared<H>> {
        Ok(Shared(Arc::clone(&self.0)))
    }
}

/// The handler of a [`Singleton`]. While one connection uses it, others wait: with a thread for each
/// connection, the handler must not wait for its peer.
#[derive(Debug)]
pub struct Shared<H>(Arc<Mutex<H>>);

impl<F: Family, H: ServiceHandler<F>> ServiceHandler<F> for Shared<H> {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.lock().open(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.lock().handle_input(peer)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.0.lock().handle_sent(peer)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        self.0.lock().handle_timeout(peer, timer)
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        self.0.lock().handle_notice(peer, notice)
    }

    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        self.0.lock().close(peer, reason);
    }
}
