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

use std::cell::Cell;
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
    /// The handler has received the end.
    pub(crate) has_ended: Cell<bool>,
    /// The handler has made use of timers.
    pub(crate) has_timers: bool,
}

impl<F: Family> Connection<F> {
    /// Whether the handler is called no more, once nothing waits to be sent.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_closing || self.has_ended.get() && !self.has_timers
    }

    /// Notes what was received into `room` octets.
    #[inline]
    fn note(&self, received: io::Result<usize>, room: impl FnOnce() -> bool) -> io::Result<usize> {
        if matches!(received, Ok(0)) && room() {
            self.has_ended.set(true);
        }
        received
    }
}

impl<F: Family, H> Service<F, H> {
    pub(crate) fn new(stream: Arc<F::Stream>, remote: F::Addr, handler: H, guest: Guest) -> Self {
        let outbox = Outbox::new(MAX_WAITING);
        let has_ended = Cell::new(false);
        let connection = Connection { stream, remote, outbox, guest, is_closing: false, has_ended, has_timers: false };
        Self { connection, handler }
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
    /// After the end the handler is given no further input. What was put is still sent; then the connection is closed, unless the handler
    /// has [scheduled](Self::schedule) a timer: then it is closed when the handler says so.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if a reactor runs the handler and nothing is there: pass it on with `?`. Others of the system.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = match self.runner {
            Runner::Reactor(_) => self.connection.stream.try_recv(buffer),
            Runner::Thread(_) => self.connection.stream.recv(buffer),
        };
        self.connection.note(received, || !buffer.is_empty())
    }

    /// Like [`recv`](Self::recv), into several slices in order.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let received = match self.runner {
            Runner::Reactor(_) => self.connection.stream.try_recv_v(slices),
            Runner::Thread(_) => self.connection.stream.recv_v(slices),
        };
        self.connection.note(received, || slices.iter().any(|slice| !slice.is_empty()))
    }

    /// Sends all of `data`. Run by a reactor, what the peer does not take now is kept and sent when it does; until then the handler is
    /// given no further input, so that a peer that does not read is not worked for.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when more than [`MAX_WAITING`] octets would wait; those of the system. After an error nobody knows
    /// how much was sent: pass it on, so that the connection is closed.
    #[inline]
    pub fn put(&mut self, data: &[u8]) -> io::Result<()> {
        let connection = &mut *self.connection;
        match self.runner {
            Runner::Reactor(_) => connection.outbox.put(&*connection.stream, data),
            Runner::Thread(_) => connection.stream.send_n(data).map_err(|error| {
                let error = io::Error::from(error);
                // Some systems call it so that the stream's time-out is over; but octets of this would be missing in what comes next.
                if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
            }),
        }
    }

    /// From now on at most so many octets may wait for the peer to take them, instead of [`MAX_WAITING`].
    pub fn limit_waiting(&mut self, octets: usize) {
        self.connection.outbox.limit(octets);
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
        let timer = match &mut self.runner {
            Runner::Reactor(context) => context.schedule(delay, interval, argument),
            Runner::Thread(seat) => seat.schedule(delay, interval, argument),
        }?;
        self.connection.has_timers = true;
        Ok(timer)
    }

    /// Cancels a timer; false if it is gone already.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        match &mut self.runner {
            Runner::Reactor(context) => context.cancel(timer),
            Runner::Thread(seat) => seat.cancel(timer),
        }
    }
}
