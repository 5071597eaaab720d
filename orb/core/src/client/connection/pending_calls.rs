//! The calls that wait on a connection, the reader role, and the notification of calls by the thread that has it.
//!
//! `ClientHalf` (`client` of `spandrel-connection`) decides what a reply, or the end of the connection, means
//! for a call; it drops replies to
//! unknown requests. `async_calls` checks their number (`-ORBPendingRequests`).

use std::cell::{Cell, RefCell};
use std::fmt;

use spandrel_connection::ClientHalf;
use spandrel_sync::{Arc, Condition, thread_local};
use spandrel_transport::MessageReader;

use super::{CallFailure, ClientConnection, Reply, has_async_calls, shared_writes::AppendedRequests};

/// The message reader, the client's half of the connection, and the requests that share a write.
#[derive(Debug)]
pub(super) struct PendingCalls {
    /// Taken by the thread that has the reader role.
    pub(super) reader: Option<Box<MessageReader>>,
    pub(super) half: ClientHalf<ReplyWaiter>,
    pub(super) appended: AppendedRequests,
}

/// The thread or the task that is given the reply to a request.
#[derive(Debug)]
pub(super) enum ReplyWaiter {
    Thread {
        /// The thread's condition variable, set once the thread waits for another reader. From then on the
        /// thread may be given the reader role. A thread that still writes must not have the role: no thread
        /// would read meanwhile.
        wake: Option<Arc<Condition>>,
        reply: Option<Reply>,
    },
    /// A call that no thread waits for: the receiver takes the reply.
    Task(Arc<dyn ReplyReceiver>),
}

/// An asynchronous call: the receiver of the outcome of a request.
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

impl PendingCalls {
    /// Gives the reader role to one of the waiting threads; returns false if there is none.
    pub(super) fn wake_next_reader(&self) -> bool {
        let wake = self.next_reader();
        wake.inspect(|wake| wake.notify_one()).is_some()
    }

    /// Whether a thread waits, and may be given the reader role.
    pub(super) fn has_waiting_thread(&self) -> bool {
        self.next_reader().is_some()
    }

    /// The condition variable of a thread that waits for a reply to a request that is written.
    fn next_reader(&self) -> Option<&Arc<Condition>> {
        let waiting = |(request_id, waiter)| match waiter {
            &ReplyWaiter::Thread { ref wake, reply: None } => {
                wake.as_ref().filter(|_| self.appended.is_written(request_id))
            }
            _ => None,
        };
        self.half.calls().find_map(waiting)
    }

    /// Whether messages are awaited that no thread waits for.
    pub(super) fn needs_reactor(&self) -> bool {
        self.half.needs_reader(ReplyWaiter::is_thread)
    }

    /// Gives a thread its reply. Returns the reply of an asynchronous call with its receiver.
    pub(super) fn deliver(&mut self, reply: Reply) -> Option<(Arc<dyn ReplyReceiver>, Reply)> {
        let mut call = self.half.reply(reply.request_id)?;
        if let ReplyWaiter::Thread { wake, reply: slot } = call.waiter() {
            wake.iter().for_each(|wake| wake.notify_one());
            *slot = Some(reply);
            return None;
        }
        if has_async_calls() { Some((call.remove().task()?, reply)) } else { None }
    }
}

impl ReplyWaiter {
    /// The entry of a thread, before it waits.
    pub(super) const THREAD: Self = Self::Thread { wake: None, reply: None };

    pub(super) fn is_thread(&self) -> bool {
        !has_async_calls() || matches!(self, Self::Thread { .. })
    }

    /// The condition variable of a thread that waits.
    pub(super) fn wake(&self) -> Option<&Arc<Condition>> {
        match self {
            Self::Thread { wake, .. } => wake.as_ref(),
            Self::Task(_) => None,
        }
    }

    /// The reply that another thread has read for this one.
    pub(super) fn take_reply(&mut self) -> Option<Reply> {
        match self {
            Self::Thread { reply, .. } => reply.take(),
            Self::Task(_) => None,
        }
    }

    /// The receiver, if the waiter is an asynchronous call.
    pub(super) fn task(self) -> Option<Arc<dyn ReplyReceiver>> {
        match self {
            Self::Thread { .. } => None,
            Self::Task(receiver) => Some(receiver),
        }
    }
}

impl From<Arc<dyn ReplyReceiver>> for ReplyWaiter {
    fn from(receiver: Arc<dyn ReplyReceiver>) -> Self {
        Self::Task(receiver)
    }
}

thread_local! {
    /// The addresses of the connections that this thread reads and whose calls it is notifying.
    static NOTIFYING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether there are any.
    static IS_NOTIFYING: Cell<bool> = const { Cell::new(false) };
}

/// The time in which the reading thread notifies a receiver. That runs code of the application and may make
/// calls. A call on the same connection would wait for its own thread.
pub(super) struct NotificationScope(());

impl NotificationScope {
    pub(super) fn begin(connection: &ClientConnection) -> Self {
        NOTIFYING.with(|notifying| notifying.borrow_mut().push(std::ptr::from_ref(connection).addr()));
        IS_NOTIFYING.with(|is_notifying| is_notifying.set(true));
        Self(())
    }

    /// Whether this thread is notifying a call of this connection.
    #[inline]
    pub(super) fn is_entered(connection: &ClientConnection) -> bool {
        IS_NOTIFYING.with(Cell::get)
            && NOTIFYING.with(|notifying| notifying.borrow().contains(&std::ptr::from_ref(connection).addr()))
    }
}

impl Drop for NotificationScope {
    fn drop(&mut self) {
        let still = NOTIFYING.with(|notifying| {
            let mut notifying = notifying.borrow_mut();
            notifying.pop();
            !notifying.is_empty()
        });
        IS_NOTIFYING.with(|is_notifying| is_notifying.set(still));
    }
}
