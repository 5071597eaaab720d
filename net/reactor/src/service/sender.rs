//! Senders: access to a connection from other threads and other services.
//!
//! A sender only queues and wakes; the thread that runs the service transfers the octets and calls the
//! handler, so that the connection and its handler need no lock. Receiving is in [`Peer`](crate::Peer).

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

use spandrel_ipc::Transfer;
use spandrel_sync::{Arc, Weak};

use super::open_connections::Member;
use super::posted::{End, PostedWork, SendError};
use super::thread_wait::ThreadWait;
use crate::{HandlerId, Registry};

/// A handle of a connection for other threads and other services: sends octets to the peer, posts notices to
/// the service, and closes the connection.
///
/// [`Peer::sender`](crate::Peer::sender) makes it, in every strategy of [concurrency](crate::strategy). Cheap
/// to clone. Every method may be called from any thread, also inside of any handler and while locks are held:
/// none waits, and none calls a handler. Senders of one connection are equal.
///
/// ```
/// use std::io;
/// use std::sync::{Arc, Mutex};
/// use spandrel_reactor::{Family, Peer, Sender, ServiceHandler};
///
/// /// Sends its input to all connections.
/// struct Broadcast(Arc<Mutex<Vec<Sender>>>);
///
/// impl<F: Family> ServiceHandler<F> for Broadcast {
///     fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
///         self.0.lock().unwrap().push(peer.sender()?);
///         Ok(())
///     }
///     fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
///         let mut buffer = [0; 4096];
///         let count = peer.recv(&mut buffer)?;
///         // A connection that has ended, or whose peer does not read, is left out from now on.
///         self.0.lock().unwrap().retain(|sender| sender.put(&buffer[..count]).is_ok());
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Sender(Arc<SenderState>);

/// The state that the senders and the service of a connection share.
pub(crate) struct SenderState {
    pub(crate) posted: PostedWork,
    pub(crate) runner: SenderRunner,
}

/// The thread type that runs the service of a sender.
pub(crate) enum SenderRunner {
    Reactor { registry: Registry, id: HandlerId },
    Thread { wait: ThreadWait, stream: Box<dyn Member> },
}

impl SenderState {
    pub(crate) fn new(posted: PostedWork, runner: SenderRunner) -> Arc<Self> {
        Arc::new(Self { posted, runner })
    }

    /// Makes the service look at its posted work.
    pub(crate) fn wake(&self) {
        match &self.runner {
            // A handler that was removed has closed its posted work, or is about to.
            SenderRunner::Reactor { registry, id } => drop(registry.wake_handler(*id)),
            SenderRunner::Thread { wait, .. } => wait.wake(),
        }
    }

    fn wake_if(&self, is_first: bool) {
        if is_first {
            self.wake();
        }
    }

    /// Ends the connection without sending the queued octets.
    pub(crate) fn abort(&self) {
        self.wake_if(self.posted.end(End::Abort));
        // A thread may be waiting in a transfer.
        if let SenderRunner::Thread { stream, .. } = &self.runner {
            stream.cut();
        }
    }
}

/// A stream served by a thread that waits for senders, too.
pub(crate) struct LinkedThread<S> {
    pub(crate) stream: Weak<S>,
    pub(crate) state: Arc<SenderState>,
}

impl<S: Transfer> Member for LinkedThread<S> {
    fn drain(&self) {
        self.stream.drain();
        // Where the handle does not show the end of the input (shared memory, Windows), the stream has to be
        // checked again.
        self.state.posted.end_input();
        self.state.wake();
    }

    fn cut(&self) {
        self.state.abort();
    }
}

impl Sender {
    pub(crate) fn new(state: Arc<SenderState>) -> Self {
        Self(state)
    }

    /// Queues all of `data` for the peer, or nothing. The octets of one call stay together, and those of one
    /// sender are sent in the order of its calls. At most one system call.
    ///
    /// # Errors
    /// [`SendError::PeerDoesNotRead`] when more octets would wait for the peer than the connection's limit
    /// ([`Peer::limit_waiting`](crate::Peer::limit_waiting)): try again later, or [`abort`](Self::abort).
    /// [`SendError::Closed`] when the connection has ended, or was told to end.
    pub fn put(&self, data: &[u8]) -> Result<(), SendError> {
        let is_first = self.0.posted.put(data)?;
        self.0.wake_if(is_first);
        Ok(())
    }

    /// Posts a notice to the service, whose [`handle_notice`](crate::ServiceHandler::handle_notice) is called
    /// with it, in the order of these calls. Octets [put](Self::put) before are sent before those that the
    /// handler then sends. The notices that the service has not handled when it ends are dropped.
    ///
    /// # Errors
    /// [`SendError::TooManyNotices`] when [`MAX_NOTICES`](crate::MAX_NOTICES) notices wait for the service;
    /// [`SendError::Closed`] as for [`put`](Self::put). The notice is dropped then.
    pub fn notice(&self, notice: impl Any + Send) -> Result<(), SendError> {
        let is_first = self.0.posted.notice(Box::new(notice))?;
        self.0.wake_if(is_first);
        Ok(())
    }

    /// Closes the connection once the octets and notices from before this call have been sent and handled.
    /// Later ones are refused. No effect on a connection that has ended.
    pub fn close(&self) {
        self.0.wake_if(self.0.posted.end(End::Close));
    }

    /// Closes the connection at once: queued octets and notices are dropped. No effect on a connection that
    /// has ended.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Whether [`put`](Self::put) fails because the connection has ended, or was told to end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.posted.is_closed()
    }

    /// The number of octets that wait for the peer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.posted.waiting()
    }
}

impl PartialEq for Sender {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Sender {}

impl Hash for Sender {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::from_ref(&*self.0).hash(state);
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Sender");
        out.field("waiting", &self.waiting()).field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl fmt::Debug for SenderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderState").finish_non_exhaustive()
    }
}
