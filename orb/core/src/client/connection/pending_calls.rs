//! Who waits on a connection, and who of them reads for the others.

#[cfg(not(feature = "asynchronous"))]
use std::convert::Infallible;
#[cfg(feature = "asynchronous")]
use std::fmt;

use spandrel_sync::{Arc, Condition};
use spandrel_transport::MessageReader;

use super::reply::{CallFailure, Reply};

/// Who reads, who waits, and whether there is anything left to wait for.
#[derive(Debug)]
pub(super) struct PendingCalls {
    /// Taken by the leader while it reads.
    pub(super) reader: Option<Box<MessageReader>>,
    pub(super) waiters: Vec<Waiter>,
    pub(super) closed: Option<CallFailure>,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request_id: u32,
    pub(super) reply: Option<Reply>,
    pub(super) waiter: ReplyWaiter,
}

/// Who waits for a reply.
#[derive(Debug)]
pub(super) enum ReplyWaiter {
    /// A thread, with what it waits on: set once it waits for a leader, and may be asked to lead itself. One that still
    /// writes may not, or nobody would read while it does.
    Thread(Option<Arc<Condition>>),
    /// A call that is told.
    #[cfg(feature = "asynchronous")]
    Task {
        receiver: ReplyReceiverHandle,
        /// The transport has taken the last octet of its request, or may have.
        is_sent: bool,
    },
    /// Nobody any more: the reply is dropped when it comes. Until then somebody has to read.
    #[cfg(feature = "asynchronous")]
    Nobody,
    /// The peer, which may send requests at any time: no reply comes for this one, and somebody always has to read.
    #[cfg(feature = "server")]
    Peer,
}

/// Somebody who is told what becomes of a request.
#[cfg(feature = "asynchronous")]
pub(crate) trait ReplyReceiver: Send + Sync + fmt::Debug {
    /// The reply has come, or the transport has taken a one-way, or nothing will come. Called once, without any lock held, by any
    /// thread; possibly before `ClientConnection::send_soon` has returned.
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>);

    /// A connection that was waited for has been opened, by which there may be one; or there will be none.
    fn opened(self: Arc<Self>, outcome: Result<(), CallFailure>);

    /// One that was in use is so no longer.
    fn freed(self: Arc<Self>) {
        self.opened(Ok(()));
    }
}

/// Who is told.
#[cfg(feature = "asynchronous")]
pub(crate) type ReplyReceiverHandle = Arc<dyn ReplyReceiver>;

/// Who is told: nobody.
#[cfg(not(feature = "asynchronous"))]
#[derive(Debug)]
pub(crate) struct ReplyReceiverHandle(Infallible);

#[cfg(not(feature = "asynchronous"))]
impl ReplyReceiverHandle {
    pub(crate) fn done(self, _outcome: Result<Option<Reply>, CallFailure>) {
        match self.0 {}
    }

    pub(crate) fn opened(self, _outcome: Result<(), CallFailure>) {
        match self.0 {}
    }

    pub(crate) fn freed(self) {
        match self.0 {}
    }
}

impl PendingCalls {
    /// Asks one of the threads that still wait to read on; false if there is none.
    pub(super) fn wake_next_leader(&self) -> bool {
        let mut waiting = self.waiters.iter().filter(|waiter| waiter.reply.is_none());
        let wake = waiting.find_map(Waiter::wake);
        wake.inspect(|wake| wake.notify_one()).is_some()
    }

    /// What threads wait on.
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

    /// Gives a thread its reply; gives that of a task back with whom to tell.
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

    /// What it waits on, if it is a thread.
    fn thread(&self) -> Option<&Option<Arc<Condition>>> {
        match &self.waiter {
            ReplyWaiter::Thread(wake) => Some(wake),
            #[cfg(feature = "asynchronous")]
            _ => None,
        }
    }

    /// Who is told, if anybody is.
    fn task(self) -> Option<ReplyReceiverHandle> {
        match self.waiter {
            ReplyWaiter::Thread(_) => None,
            #[cfg(feature = "asynchronous")]
            ReplyWaiter::Task { receiver, .. } => Some(receiver),
            #[cfg(feature = "asynchronous")]
            ReplyWaiter::Nobody => None,
            #[cfg(feature = "server")]
            ReplyWaiter::Peer => None,
        }
    }
}
