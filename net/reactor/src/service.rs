//! Serving one connection, whatever thread or process does it.
//!
//! A [`ServiceHandler`] (the papers' service handler, `Svc_Handler`) holds the state of one connection and is told what happens on it.
//! It sees its connection as a [`Peer`], which behaves the same whether a reactor, a thread of its own, a pool or a process of its own
//! runs it; which of them does is a [strategy](crate::strategy) of the [`Acceptor`](crate::Acceptor) or
//! [`Connector`](crate::Connector) that made it.

pub(crate) mod blocking;
pub(crate) mod outbox;
pub(crate) mod population;
pub(crate) mod reactive;

use std::io::{self, IoSliceMut};
use std::time::Duration;

use spandrel_ipc::{Family, Receive, Transmit};
use spandrel_sync::Arc;

use crate::timer::TimerId;
use crate::{CloseReason, Context, Expired, HandlerId};

use blocking::Seat;
use outbox::Outbox;
use population::Guest;

/// How many octets may wait for a peer that does not read, unless it is set otherwise: 16 MiB.
pub const MAX_WAITING: usize = 16 << 20;

/// Serves one connection of a family.
///
/// An error or a panic closes the connection, and concerns no other; but [`io::ErrorKind::WouldBlock`] says that nothing more is to be
/// done now, and is no failure.
///
/// ```
/// use std::io;
/// use spandrel_ipc::Family;
/// use spandrel_reactor::{Peer, ServiceHandler};
///
/// /// Sends back what it receives.
/// struct Echo;
///
/// impl<F: Family> ServiceHandler<F> for Echo {
///     fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
///         let mut buffer = [0; 4096];
///         match peer.recv(&mut buffer)? {
///             0 => Ok(peer.close()),
///             count => peer.put(&buffer[..count]),
///         }
///     }
/// }
/// ```
pub trait ServiceHandler<F: Family>: Send + 'static {
    /// The connection has been made. Called once, before anything else.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// There is something to receive, or the end. It must receive: a thread that serves nothing else calls this without looking first,
    /// and `recv` waits there.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()>;

    /// All that was [put](Peer::put) and had to wait has been sent.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// A timer of this connection has run out.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        let _ = (peer, timer);
        Ok(())
    }

    /// The connection ends. Called once, after everything else, also when it failed.
    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = (peer, reason);
    }
}

/// A connection with its handler: what a concurrency strategy is given to run.
#[derive(Debug)]
pub struct Service<F: Family, H> {
    pub(crate) connection: Connection<F>,
    pub(crate) handler: H,
}

/// One connection and what goes with it.
#[derive(Debug)]
pub(crate) struct Connection<F: Family> {
    pub(crate) stream: Arc<F::Stream>,
    pub(crate) remote: F::Addr,
    pub(crate) outbox: Outbox,
    /// Leaves the acceptor's or connector's count when it is dropped.
    pub(crate) guest: Guest,
    /// To be closed once nothing waits to be sent.
    pub(crate) is_closing: bool,
}

impl<F: Family, H> Service<F, H> {
    pub(crate) fn new(stream: Arc<F::Stream>, remote: F::Addr, handler: H, guest: Guest) -> Self {
        let outbox = Outbox::new(MAX_WAITING);
        Self { connection: Connection { stream, remote, outbox, guest, is_closing: false }, handler }
    }

    /// The connection's stream.
    #[must_use]
    pub fn stream(&self) -> &F::Stream {
        &self.connection.stream
    }

    /// Where the connection comes from or leads to.
    #[must_use]
    pub fn remote(&self) -> &F::Addr {
        &self.connection.remote
    }
}

/// A handler's connection.
#[derive(Debug)]
pub struct Peer<'a, F: Family> {
    pub(crate) connection: &'a mut Connection<F>,
    pub(crate) runner: Runner<'a>,
}

/// Who runs the handler.
#[derive(Debug)]
pub(crate) enum Runner<'a> {
    /// A reactor, which must never wait for one connection.
    Reactor(&'a Context<'a>),
    /// A thread that does nothing else.
    Thread(&'a mut Seat),
}

impl<F: Family> Peer<'_, F> {
    /// Receives into `buffer` what is there and says how many octets. Zero is the end. Run by a thread of its own it waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if a reactor runs the handler and nothing is there: pass it on with `?`. Others of the system.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.runner {
            Runner::Reactor(_) => self.connection.stream.try_recv(buffer),
            Runner::Thread(_) => self.connection.stream.recv(buffer),
        }
    }

    /// Like [`recv`](Self::recv), into several slices in order.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self.runner {
            Runner::Reactor(_) => self.connection.stream.try_recv_v(slices),
            Runner::Thread(_) => self.connection.stream.recv_v(slices),
        }
    }

    /// Sends all of `data`. Run by a reactor, what the peer does not take now is kept and sent when it does; until then the handler is
    /// given no further input, so that a peer that does not read is not worked for.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when more than [`MAX_WAITING`] octets would wait; those of the system.
    #[inline]
    pub fn put(&mut self, data: &[u8]) -> io::Result<()> {
        let connection = &mut *self.connection;
        match self.runner {
            Runner::Reactor(_) => connection.outbox.put(&*connection.stream, data),
            Runner::Thread(_) => Ok(connection.stream.send_n(data)?),
        }
    }

    /// How many octets wait for the peer to take them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.connection.outbox.len()
    }

    /// Closes the connection once the handler has returned and what was put has been sent.
    pub fn close(&mut self) {
        self.connection.is_closing = true;
    }

    /// The stream itself, for options and addresses. Its transfers do not know of what waits to be sent.
    #[must_use]
    pub fn stream(&self) -> &F::Stream {
        &self.connection.stream
    }

    /// Where the connection comes from or leads to.
    #[must_use]
    pub fn remote(&self) -> &F::Addr {
        &self.connection.remote
    }

    /// This handler in its reactor, if a reactor runs it.
    #[must_use]
    pub fn id(&self) -> Option<HandlerId> {
        match self.runner {
            Runner::Reactor(context) => Some(context.id()),
            Runner::Thread(_) => None,
        }
    }

    /// Calls `handle_timeout` after `delay`, and then again each `interval` if there is one.
    ///
    /// # Errors
    /// When there are too many timers.
    pub fn schedule(&mut self, delay: Duration, interval: Option<Duration>, argument: u64) -> io::Result<TimerId> {
        match &mut self.runner {
            Runner::Reactor(context) => context.schedule(delay, interval, argument),
            Runner::Thread(seat) => seat.schedule(delay, interval, argument),
        }
    }

    /// Cancels a timer; false if it is gone already.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        match &mut self.runner {
            Runner::Reactor(context) => context.cancel(timer),
            Runner::Thread(seat) => seat.cancel(timer),
        }
    }
}
