//! Serving one connection, in any thread or process.
//!
//! A [`ServiceHandler`] (the papers' service handler, `Svc_Handler`) holds the state of one connection and
//! handles its events. It uses the connection through a [`Peer`], which behaves the same in a reactor, in a
//! thread of its own, in a pool or in a process of its own. A [strategy](crate::strategy) of the
//! [`Acceptor`](crate::Acceptor) or [`Connector`](crate::Connector) chooses between these.

pub(crate) mod blocking;
pub(crate) mod connection_checks;
pub(crate) mod open_connections;
pub(crate) mod outbox;
pub(crate) mod posted;
pub(crate) mod reactive;
pub(crate) mod sender;
pub(crate) mod thread_timers;
pub(crate) mod thread_wait;

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::time::Duration;

use spandrel_ipc::{Family, Receive};
use spandrel_sync::Arc;

use crate::timer::TimerId;
use crate::{CloseReason, Context, Expired, HandlerId, Registry};

use open_connections::ConnectionEntry;
use outbox::Outbox;
use posted::{End, Notice, PostedWork, Turn};
use sender::{LinkedThread, Sender, SenderRunner, SenderState};
use thread_timers::ThreadTimers;
use thread_wait::ThreadWait;

/// The default limit on octets queued for a peer that does not read: 16 MiB.
pub const MAX_WAITING: usize = 16 << 20;
/// The capacity that the buffer for octets of senders keeps.
const SPARE_OCTETS: usize = 4096;

/// Serves one connection of a family.
///
/// An error or a panic closes the connection, and concerns no other; but [`io::ErrorKind::WouldBlock`] means
/// that there is nothing more to do now, and is no failure.
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
    /// The connection has been established. Called once, before any other method.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// There are octets to receive, or the end. It must receive: a thread that serves only this connection
    /// calls it without checking first, and `recv` waits there.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()>;

    /// All queued octets of [`put`](Peer::put) have been sent, or the turn that
    /// [`notify_sent`](Peer::notify_sent) has requested has come.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// A timer of this connection has expired.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        let _ = (peer, timer);
        Ok(())
    }

    /// The interval of [`Acceptor::check_every`](crate::Acceptor::check_every) has passed.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_check(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// A [`Sender`] of this connection has posted this notice. Called in the order of these posts. A thread
    /// that serves only this connection calls it between two other calls.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        let _ = (peer, notice);
        Ok(())
    }

    /// The connection ends. Called once, after all other methods, also when the connection failed. Its
    /// senders are closed already. `reason` tells which side closed.
    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = (peer, reason);
    }
}

/// A connection with its handler, to be run by a concurrency strategy.
#[derive(Debug)]
pub struct Service<F: Family, H> {
    pub(crate) connection: Connection<F>,
    pub(crate) handler: H,
}

/// One connection and its state.
#[derive(Debug)]
pub(crate) struct Connection<F: Family> {
    pub(crate) stream: Arc<F::Stream>,
    pub(crate) remote: F::Addr,
    pub(crate) outbox: Outbox,
    /// Dropping it removes the connection from the count of its acceptor or connector.
    pub(crate) entry: ConnectionEntry,
    /// To be closed once the queue is empty.
    pub(crate) is_closing: bool,
    /// The handler has received the end.
    pub(crate) has_ended: Cell<bool>,
    /// The handler has used timers.
    pub(crate) has_timers: bool,
    /// The handler is to be called in a later turn, as if the queue had been sent then.
    pub(crate) wants_turn: bool,
    /// The handler gets no input until it resumes.
    pub(crate) is_paused: bool,
    /// Shared with the senders, once there are any.
    pub(crate) sender: Option<Arc<SenderState>>,
    /// An empty buffer for octets of senders.
    spare: Vec<u8>,
}

impl<F: Family> Connection<F> {
    /// Whether the handler is not called any more, once the queue is empty.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_closing || self.has_ended.get() && !self.has_timers && !self.wants_turn
    }

    /// Ends the request for a later turn, and returns whether the handler is to be called now: while octets are
    /// queued, it is called once they are sent.
    pub(crate) fn take_turn(&mut self) -> bool {
        std::mem::take(&mut self.wants_turn) && self.outbox.is_empty() && !self.is_closing
    }

    /// Sends the octets that senders have put, as much as the peer takes now, and queues the rest.
    pub(crate) fn collect(&mut self) -> io::Result<()> {
        let Some(sender) = &self.sender else { return Ok(()) };
        sender.posted.take_octets(&mut self.spare, self.outbox.len());
        if !self.spare.is_empty() {
            self.outbox.append(&*self.stream, &self.spare)?;
            self.spare.clear();
            self.spare.shrink_to(SPARE_OCTETS);
            sender.posted.set_queued(self.outbox.len());
        }
        Ok(())
    }

    /// Accepts no more from senders, and sends the octets that they have put before.
    #[cold]
    pub(crate) fn finish_senders(&mut self) -> io::Result<()> {
        if let Some(sender) = &self.sender {
            sender.posted.refuse();
        }
        self.collect()
    }

    /// Reports the number of queued octets to the senders.
    #[inline]
    pub(crate) fn publish_queued(&self) {
        if let Some(sender) = &self.sender {
            sender.posted.set_queued(self.outbox.len());
        }
    }

    /// Takes the work that senders have posted, after a wake-up: sends the octets, and returns the notices to
    /// handle and the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionAborted`] if a sender has aborted the connection; those of the transfer.
    pub(crate) fn take_posted(&mut self) -> io::Result<Turn> {
        let Some(sender) = &self.sender else { return Ok(Turn::default()) };
        let turn = sender.posted.take_turn();
        if turn.end == Some(End::Abort) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.collect()?;
        Ok(turn)
    }

    /// The reason for the end of the connection as the handler gets it.
    pub(crate) fn close_reason(&self, reason: CloseReason) -> CloseReason {
        let connections = self.entry.open_connections();
        let is_aborted = self.sender.as_ref().is_some_and(|sender| sender.posted.is_aborted());
        match reason {
            CloseReason::Removed | CloseReason::Failed(_) if connections.is_cut() => CloseReason::Drained,
            CloseReason::Removed | CloseReason::Failed(_) if is_aborted => CloseReason::Aborted,
            CloseReason::Removed if self.has_ended.get() && connections.is_draining() => CloseReason::Drained,
            CloseReason::Failed(error)
                if error.kind() == io::ErrorKind::UnexpectedEof
                    && self.has_ended.get()
                    && connections.is_draining() =>
            {
                CloseReason::Drained // a message was cut by this side
            }
            CloseReason::Removed if self.has_ended.get() => CloseReason::PeerClosed,
            CloseReason::Failed(error) if error.kind() == io::ErrorKind::TimedOut => CloseReason::TimedOut(error),
            CloseReason::Failed(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                CloseReason::LimitExceeded(error)
            }
            reason => reason,
        }
    }

    /// Closes the queue to which senders on other threads post.
    pub(crate) fn close_senders(&self) {
        if let Some(sender) = &self.sender {
            sender.posted.close();
        }
    }

    /// Records the result of a receive into `room` octets.
    #[inline]
    fn note(&self, received: io::Result<usize>, room: impl FnOnce() -> bool) -> io::Result<usize> {
        if matches!(received, Ok(0)) && room() {
            self.has_ended.set(true);
        }
        received
    }
}

impl<F: Family, H> Service<F, H> {
    pub(crate) fn new(stream: Arc<F::Stream>, remote: F::Addr, handler: H, entry: ConnectionEntry) -> Self {
        let outbox = Outbox::new(MAX_WAITING);
        let has_ended = Cell::new(false);
        let connection = Connection {
            stream,
            remote,
            outbox,
            entry,
            is_closing: false,
            has_ended,
            has_timers: false,
            wants_turn: false,
            is_paused: false,
            sender: None,
            spare: Vec::new(),
        };
        Self { connection, handler }
    }

    /// Lets draining end the input of the stream, as suits a thread that serves it.
    pub(crate) fn set_thread_member(&self) {
        let Connection { stream, entry, .. } = &self.connection;
        entry.open_connections().set(entry, Arc::downgrade(stream));
    }

    /// The stream by which octets are exchanged with the peer.
    #[must_use]
    pub fn stream(&self) -> &F::Stream {
        &self.connection.stream
    }

    /// The address that the connection was accepted from, or made to.
    #[must_use]
    pub fn remote(&self) -> &F::Addr {
        &self.connection.remote
    }
}

/// The connection of a service handler during one of its calls.
#[derive(Debug)]
pub struct Peer<'a, F: Family> {
    pub(crate) connection: &'a mut Connection<F>,
    pub(crate) runner: Runner<'a>,
}

/// The thread type that runs the handler.
#[derive(Debug)]
pub(crate) enum Runner<'a> {
    /// A reactor, which must never wait for one connection.
    Reactor(&'a Context<'a>),
    /// A thread for this connection alone.
    Thread(&'a mut ThreadTimers),
}

impl<F: Family> Peer<'_, F> {
    /// Receives available octets into `buffer` and returns their number. Zero is the end. It waits if a
    /// thread of its own runs the handler.
    ///
    /// After the end the handler gets no further input. Queued octets are still sent. Then the connection is
    /// closed, unless the handler has [scheduled](Self::schedule) a timer: in that case the handler closes
    /// it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if a reactor runs the handler and nothing is queued: pass it on with
    /// `?`. Others of the system.
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

    /// Sends all of `data`. In a reactor, octets that the peer does not take now are queued; until they are
    /// sent the handler gets no further input, so that a peer that does not read causes no work.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] when more than [`MAX_WAITING`] octets would be queued; those of the
    /// system. After an error the number of octets sent is unknown: pass it on, so that the connection is
    /// closed.
    #[inline]
    pub fn put(&mut self, data: &[u8]) -> io::Result<()> {
        let connection = &mut *self.connection;
        connection.collect()?;
        match self.runner {
            Runner::Reactor(_) => connection.outbox.put(&*connection.stream, data)?,
            Runner::Thread(_) => {
                connection.outbox.send_all(&*connection.stream)?;
                connection.publish_queued();
                outbox::send_n(&*connection.stream, data)?;
            }
        }
        connection.publish_queued();
        Ok(())
    }

    /// A handle of this connection for other threads and for other services.
    ///
    /// Once there is one, a thread that serves only this connection waits for input before it calls
    /// [`handle_input`](ServiceHandler::handle_input), and sends and handles what senders post between two
    /// calls: a handler that waits in a second [`recv`](Self::recv) of one call delays them.
    ///
    /// # Errors
    /// Those of the system, if a thread of its own runs the handler: it needs handles to be woken.
    pub fn sender(&mut self) -> io::Result<Sender> {
        if let Some(sender) = &self.connection.sender {
            return Ok(Sender::new(Arc::clone(sender)));
        }
        let Connection { stream, outbox, entry, .. } = &*self.connection;
        let posted = PostedWork::new(outbox.len(), outbox.limit());
        let state = match self.runner {
            Runner::Reactor(context) => {
                SenderState::new(posted, SenderRunner::Reactor { registry: Registry::clone(context), id: context.id() })
            }
            Runner::Thread(_) => {
                let (wait, stream) = (ThreadWait::new()?, Arc::downgrade(stream));
                let runner = SenderRunner::Thread { wait, stream: Box::new(stream.clone()) };
                let state = SenderState::new(posted, runner);
                entry.open_connections().set(entry, LinkedThread { stream, state: Arc::clone(&state) });
                state
            }
        };
        self.connection.sender = Some(Arc::clone(&state));
        Ok(Sender::new(state))
    }

    /// Requests a call of [`handle_sent`](ServiceHandler::handle_sent) also if the peer has taken all octets at once:
    /// it comes after other handlers have had their turn. So a handler that sends much makes its output in pieces
    /// and keeps nobody waiting. Input that arrives before that call is handled before it.
    pub fn notify_sent(&mut self) {
        self.connection.wants_turn = true;
        if let Runner::Reactor(context) = &self.runner {
            context.wake_handler(context.id());
        }
    }

    /// Stops the input until [`resume`](Self::resume), for back-pressure: the peer's octets stay in the buffers of the
    /// system, and a peer that goes on sending has to wait. All other methods of the handler are called as before; one
    /// of them resumes, for example [`handle_notice`](ServiceHandler::handle_notice) when the work of the last input is
    /// done. The end of the peer's octets is input, too: it is not noticed meanwhile.
    ///
    /// In a thread of its own, a connection without a timer, a sender or a requested turn could never be resumed, and is
    /// closed with an error.
    pub fn pause(&mut self) {
        self.connection.is_paused = true;
    }

    /// Continues the input after a [`pause`](Self::pause).
    pub fn resume(&mut self) {
        self.connection.is_paused = false;
    }

    /// Whether the input is stopped by [`pause`](Self::pause).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.connection.is_paused
    }

    /// Sets the limit on queued octets, also for senders, instead of [`MAX_WAITING`].
    pub fn limit_waiting(&mut self, octets: usize) {
        self.connection.outbox.set_limit(octets);
        if let Some(sender) = &self.connection.sender {
            sender.posted.set_limit(octets);
        }
    }

    /// The number of octets queued for the peer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.connection.outbox.len()
    }

    /// Closes the connection once the handler has returned and the queued octets have been sent.
    pub fn close(&mut self) {
        self.connection.is_closing = true;
    }

    /// The stream itself, for options and addresses. Its transfers bypass the queue.
    #[must_use]
    pub fn stream(&self) -> &F::Stream {
        &self.connection.stream
    }

    /// The address that the connection was accepted from, or made to.
    #[must_use]
    pub fn remote(&self) -> &F::Addr {
        &self.connection.remote
    }

    /// The identifier of this handler in its reactor, if a reactor runs it.
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
            Runner::Thread(thread_timers) => thread_timers.schedule(delay, interval, argument),
        }?;
        self.connection.has_timers = true;
        Ok(timer)
    }

    /// Cancels a timer; false if it has expired or was cancelled.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        match &mut self.runner {
            Runner::Reactor(context) => context.cancel(timer),
            Runner::Thread(thread_timers) => thread_timers.cancel(timer),
        }
    }
}
