//! The calls that wait on a connection, and the reader role.

#[cfg(not(feature = "asynchronous"))]
use std::convert::Infallible;
#[cfg(feature = "asynchronous")]
use std::fmt;

use spandrel_sync::{Arc, Condition};
use spandrel_transport::MessageReader;

use super::{CallFailure, ConnectionEnd, Reply};

/// The message reader, the pending calls, and the reason for the end of the connection.
#[derive(Debug)]
pub(super) struct PendingCalls {
    /// Taken by the thread that has the reader role.
    pub(super) reader: Option<Box<MessageReader>>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) closed: Option<ConnectionEnd>,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request_id: u32,
    pub(super) reply: Option<Reply>,
    pub(super) waiter: ReplyWaiter,
}

/// The waiter for a reply.
#[derive(Debug)]
pub(super) enum ReplyWaiter {
    /// A thread, with its condition variable, which is set once the thread waits for another reader. From then
    /// on the thread may be given the reader role. A thread that still writes must not have the role: no thread
    /// would read meanwhile.
    Thread(Option<Arc<Condition>>),
    /// An asynchronous call.
    #[cfg(feature = "asynchronous")]
    Task {
        receiver: ReplyReceiverHandle,
        /// Whether the transport has taken the last octet of its request, or may have.
        is_sent: bool,
    },
    /// An abandoned call: the reply is dropped when it comes. Until then a thread has to read.
    #[cfg(feature = "asynchronous")]
    Abandoned,
    /// The peer, which may send requests at any time. The entry gets no reply, and keeps a thread reading.
    #[cfg(feature = "server")]
    Peer,
}

/// The receiver of the outcome of a request.
#[cfg(feature = "asynchronous")]
pub(crate) trait ReplyReceiver: Send + Sync + fmt::Debug {
    /// Receives the reply, the end of a one-way's writing (`None`), or the failure. Called once, without any
    /// lock held, by any thread; possibly before `ClientConnection::send_async` has returned.
    fn complete(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>);

    /// Receives the end of a wait for a connection: it was opened, or could not be.
    fn connection_opened(self: Arc<Self>, outcome: Result<(), CallFailure>);

    /// Receives the news that a connection in use has become free.
    fn connection_freed(self: Arc<Self>) {
        self.connection_opened(Ok(()));
    }
}

/// A shared receiver.
#[cfg(feature = "asynchronous")]
pub(crate) type ReplyReceiverHandle = Arc<dyn ReplyReceiver>;

/// A receiver that cannot exist: this build has no asynchronous calls.
#[cfg(not(feature = "asynchronous"))]
#[derive(Debug)]
pub(crate) struct ReplyReceiverHandle(Infallible);

#[cfg(not(feature = "asynchronous"))]
impl ReplyReceiverHandle {
    pub(crate) fn complete(self, _outcome: Result<Option<Reply>, CallFailure>) {
        match self.0 {}
    }

    pub(crate) fn connection_opened(self, _outcome: Result<(), CallFailure>) {
        match self.0 {}
    }

    pub(crate) fn connection_freed(self) {
        match self.0 {}
    }
}

impl PendingCalls {
    /// Gives the reader role to one of the waiting threads; returns false if there is none.
    pub(super) fn wake_next_reader(&self) -> bool {
        let mut waiting = self.waiters.iter().filter(|waiter| waiter.reply.is_none());
        let wake = waiting.find_map(Waiter::wake);
        wake.inspect(|wake| wake.notify_one()).is_some()
    }

    /// The condition variables of the waiting threads.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Arc<Condition>> {
        self.waiters.iter().filter_map(Waiter::wake)
    }

    pub(super) fn position(&self, request_id: u32) -> usize {
        self.find(request_id).expect("a thread stays registered until it has taken its outcome")
    }

    pub(super) fn find(&self, request_id: u32) -> Option<usize> {
        self.waiters.iter().position(|waiter| waiter.request_id == request_id)
    }

    pub(super) fn remove(&mut self, request_id: u32) {
        let waiter = self.position(request_id);
        self.waiters.swap_remove(waiter);
    }

    /// Gives a thread its reply. Returns the reply of an asynchronous call with its receiver.
    pub(super) fn deliver(&mut self, reply: Reply) -> Option<(ReplyReceiverHandle, Reply)> {
        let at = self.find(reply.request_id)?;
        #[cfg(feature = "server")]
        if matches!(self.waiters[at].waiter, ReplyWaiter::Peer) {
            return None;
        }
        let waiter = &mut self.waiters[at];
        if let Some(wake) = waiter.thread() {
            wake.iter().for_each(|wake| wake.notify_one());
            waiter.reply = Some(reply);
            return None;
        }
        Some((self.waiters.swap_remove(at).task()?, reply))
    }
}

impl Waiter {
    fn wake(&self) -> Option<&Arc<Condition>> {
        self.thread()?.as_ref()
    }

    /// The thread's condition variable, if the waiter is a thread.
    fn thread(&self) -> Option<&Option<Arc<Condition>>> {
        match &self.waiter {
            ReplyWaiter::Thread(wake) => Some(wake),
            #[cfg(feature = "asynchronous")]
            _ => None,
        }
    }

    /// The receiver, if the waiter is an asynchronous call.
    fn task(self) -> Option<ReplyReceiverHandle> {
        match self.waiter {
            ReplyWaiter::Thread(_) => None,
            #[cfg(feature = "asynchronous")]
            ReplyWaiter::Task { receiver, .. } => Some(receiver),
            #[cfg(feature = "asynchronous")]
            ReplyWaiter::Abandoned => None,
            #[cfg(feature = "server")]
            ReplyWaiter::Peer => None,
        }
    }
}
