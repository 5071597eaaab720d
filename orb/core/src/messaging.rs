//! The Messaging interfaces that `--ami` code stands on: reply handlers, exception holders and pollers (CORBA 3.3 Part 1, clause 17).
//!
//! What is generated for an interface is its own handler trait and poller; here is what those of all interfaces have in common. All
//! of it stands on [`AsyncReply`]: a handler is told by a task that awaits one, a poller keeps one.

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, Condition, Mutex, time::Instant};

use crate::{AsyncReply, ObjectRef, UserExceptions};

/// What every reply handler is (`Messaging::ReplyHandler`).
///
/// Handlers are called by the ORB's thread that reads the replies of asynchronous calls, one after the other. They must not wait:
/// every asynchronous call of the ORB would wait with them.
pub trait ReplyHandler: Send + Sync {}

impl<H: Send + Sync + ?Sized> ReplyHandler for H {}

/// The exception that a request ended in, for the handler's `…_excep` (`Messaging::ExceptionHolder`).
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionHolder<E>(E);

impl<E> ExceptionHolder<E> {
    /// Holds an exception.
    pub fn new(exception: E) -> Self {
        Self(exception)
    }

    /// The exception.
    pub fn exception(&self) -> &E {
        &self.0
    }

    /// Raises it, as the operation would have.
    ///
    /// # Errors
    /// The exception, always.
    pub fn raise_exception<T>(self) -> Result<T, E> {
        Err(self.0)
    }
}

/// Has a handler told of a reply when it comes; without a handler it is dropped when it comes.
///
/// # Errors
/// If the ORB has no thread for that, or is shut down.
pub fn send_to_handler<R, E, H>(
    object: &ObjectRef,
    reply: AsyncReply<R, E>,
    handler: Option<Arc<H>>,
    deliver: fn(&H, Result<R, E>),
) -> Result<(), SystemException>
where
    R: Send + 'static,
    E: UserExceptions + Send + 'static,
    H: ReplyHandler + ?Sized + 'static,
{
    object.orb().spawn(async move {
        let outcome = reply.await;
        if let Some(handler) = handler {
            deliver(&handler, outcome);
        }
    })
}

/// The time-out that means: for ever (CORBA 3.3 Part 1, clause 17 and 11.4).
const FOR_EVER: u32 = u32::MAX;

/// Something that becomes ready (`CORBA::Pollable`).
pub trait Pollable: Send + Sync + fmt::Debug {
    /// True once there is something to take. Waits for it so many milliseconds at most; 0 does not wait, the greatest value waits
    /// for ever.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it has been taken already.
    fn is_ready(&self, timeout: u32) -> Result<bool, SystemException>;

    /// Has `waiters` rung when it becomes ready, which it may be already.
    #[doc(hidden)]
    fn register(&self, waiters: &Arc<PollableSetState>);
}

/// What threads wait on for one of several things to become ready.
#[derive(Debug, Default)]
pub struct PollableSetState {
    notifications: Mutex<u64>,
    notified: Condition,
    /// Others that ring with it.
    linked: Mutex<Vec<Arc<PollableSetState>>>,
}

impl PollableSetState {
    fn notify(&self) {
        *self.notifications.lock() += 1;
        self.notified.notify_all();
        let linked = std::mem::take(&mut *self.linked.lock());
        linked.iter().for_each(|linked_set| linked_set.notify());
    }

    /// Waits until `find` finds something, for so many milliseconds at most.
    fn wait_for_value<T>(&self, timeout: u32, mut find: impl FnMut() -> Option<T>) -> Option<T> {
        let end = (timeout != FOR_EVER).then(|| Instant::now() + Duration::from_millis(timeout.into()));
        loop {
            let before = *self.notifications.lock();
            if let Some(found) = find() {
                return Some(found);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let mut notifications = self.notifications.lock();
            while *notifications == before {
                match end {
                    None => self.notified.wait(&mut notifications),
                    Some(end) => {
                        let left = end.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            break;
                        }
                        self.notified.wait_for(&mut notifications, left);
                    }
                }
            }
        }
    }
}

impl Wake for PollableSetState {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// A request that was sent and whose reply is asked for (`Messaging::Poller`); generated pollers add a method for each operation.
#[derive(Clone, Debug)]
pub struct Poller {
    target: ObjectRef,
    operation: &'static str,
    pending: Arc<dyn PendingReply>,
}

trait PendingReply: Pollable {
    fn as_any(&self) -> &dyn Any;
    fn as_pollable(self: Arc<Self>) -> Arc<dyn Pollable>;
}

/// A reply of known types.
struct Pending<R, E> {
    waiters: Arc<PollableSetState>,
    /// None once it was taken.
    reply: Mutex<Option<AsyncReply<R, E>>>,
}

impl<R: Send + 'static, E: UserExceptions + Send + 'static> Pending<R, E> {
    /// True if there is a result now. It is not read here: that may run what the program has registered, and a lock is held.
    fn has_result(&self) -> Result<bool, SystemException> {
        let reply = self.reply.lock();
        let reply = reply.as_ref().ok_or_else(already_taken)?;
        Ok(reply.has_come(&Waker::from(Arc::clone(&self.waiters))))
    }

    fn take(&self, timeout: u32) -> Result<R, E> {
        if !self.is_ready(timeout)? {
            let exception = match timeout {
                0 => SystemException::no_response(0, CompletionStatus::Maybe),
                _ => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe),
            };
            return Err(exception.with_detail("the reply has not come yet").into());
        }
        // None if another thread was quicker.
        let mut reply = self.reply.lock().take().ok_or_else(already_taken)?;
        match Pin::new(&mut reply).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(SystemException::internal(0, CompletionStatus::Maybe).into()),
        }
    }
}

fn already_taken() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::Yes)
        .with_detail("the reply was taken from its poller before")
}

impl<R: Send + 'static, E: UserExceptions + Send + 'static> Pollable for Pending<R, E> {
    fn is_ready(&self, timeout: u32) -> Result<bool, SystemException> {
        let found = self.waiters.wait_for_value(timeout, || match self.has_result() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        found.transpose().map(|found| found.is_some())
    }

    fn register(&self, waiters: &Arc<PollableSetState>) {
        let mut linked = self.waiters.linked.lock();
        if !linked.iter().any(|linked_set| Arc::ptr_eq(linked_set, waiters)) {
            linked.push(Arc::clone(waiters));
        }
        drop(linked);
        // Polled anew, so that it rings from now on.
        if !matches!(self.has_result(), Ok(false)) {
            waiters.notify();
        }
    }
}

impl<R: Send + 'static, E: UserExceptions + Send + 'static> PendingReply for Pending<R, E> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_pollable(self: Arc<Self>) -> Arc<dyn Pollable> {
        self
    }
}

impl<R, E> fmt::Debug for Pending<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl Poller {
    /// Keeps a reply until it is asked for.
    pub fn new<R: Send + 'static, E: UserExceptions + Send + 'static>(
        target: &ObjectRef,
        operation: &'static str,
        reply: AsyncReply<R, E>,
    ) -> Self {
        let pending = Pending { waiters: Arc::default(), reply: Mutex::new(Some(reply)) };
        Self { target: target.clone(), operation, pending: Arc::new(pending) }
    }

    /// The object that the request was sent to.
    #[must_use]
    pub fn operation_target(&self) -> &ObjectRef {
        &self.target
    }

    /// The operation's name, with `_get_` or `_set_` before that of an attribute.
    #[must_use]
    pub fn operation_name(&self) -> &'static str {
        self.operation
    }

    /// True once the reply has come; as [`Pollable::is_ready`].
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it has been taken.
    pub fn is_ready(&self, timeout: u32) -> Result<bool, SystemException> {
        self.pending.is_ready(timeout)
    }

    /// For a [`PollableSet`].
    #[must_use]
    pub fn pollable(&self) -> Arc<dyn Pollable> {
        Arc::clone(&self.pending).as_pollable()
    }

    /// What the operation returned or raised. Waits for it so many milliseconds at most; 0 does not wait, the greatest value waits
    /// for ever.
    ///
    /// # Errors
    /// What the operation raised, or failed with; NO_RESPONSE if it has not come and 0 was given, TIMEOUT if it has not come in
    /// time, OBJECT_NOT_EXIST if it has been taken; BAD_OPERATION if this is not what was invoked.
    pub fn take<R: Send + 'static, E: UserExceptions + Send + 'static>(
        &self,
        operation: &str,
        timeout: u32,
    ) -> Result<R, E> {
        let pending = self.pending.as_any().downcast_ref::<Pending<R, E>>().filter(|_| operation == self.operation);
        let Some(pending) = pending else {
            let detail = format!("the poller is for `{}`, and not for `{operation}`", self.operation);
            return Err(SystemException::bad_operation(0, CompletionStatus::No).with_detail(detail).into());
        };
        pending.take(timeout)
    }
}

/// Waits for whichever of several things becomes ready first (`CORBA::PollableSet`, CORBA 3.3 Part 1, 11.4).
#[derive(Debug, Default)]
pub struct PollableSet {
    members: Mutex<Vec<Arc<dyn Pollable>>>,
    waiters: Arc<PollableSetState>,
}

/// Why a [`PollableSet`] gives nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PollableSetError {
    /// There is nothing in it.
    #[error("nothing is in the set that could become ready")]
    NoPossiblePollable,
    /// That is not in it.
    #[error("that is not in the set")]
    UnknownPollable,
    /// NO_RESPONSE or TIMEOUT: nothing in it is ready.
    #[error(transparent)]
    System(#[from] SystemException),
}

impl PollableSet {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds something to wait for.
    pub fn add_pollable(&self, potential: Arc<dyn Pollable>) {
        self.members.lock().push(Arc::clone(&potential));
        potential.register(&self.waiters);
    }

    /// Something that is ready, which is taken out of the set. Waits for it so many milliseconds at most; 0 does not wait, the
    /// greatest value waits for ever.
    ///
    /// # Errors
    /// [`PollableSetError::NoPossiblePollable`]; NO_RESPONSE if nothing is ready and 0 was given, TIMEOUT if nothing was in time.
    pub fn get_ready_pollable(&self, timeout: u32) -> Result<Arc<dyn Pollable>, PollableSetError> {
        let found = self.waiters.wait_for_value(timeout, || {
            let mut members = self.members.lock();
            if members.is_empty() {
                return Some(Err(PollableSetError::NoPossiblePollable));
            }
            // What somebody has taken meanwhile is none of ours any more, and ready nevertheless.
            let at = members.iter().position(|member| !matches!(member.is_ready(0), Ok(false)))?;
            Some(Ok(members.swap_remove(at)))
        });
        found.unwrap_or_else(|| {
            let exception = match timeout {
                0 => SystemException::no_response(0, CompletionStatus::No),
                _ => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No),
            };
            Err(exception.with_detail("nothing in the set is ready").into())
        })
    }

    /// Takes something out.
    ///
    /// # Errors
    /// [`PollableSetError::UnknownPollable`] if it is not in the set.
    pub fn remove(&self, potential: &Arc<dyn Pollable>) -> Result<(), PollableSetError> {
        let mut members = self.members.lock();
        let at = members.iter().position(|member| Arc::ptr_eq(member, potential));
        let removed = at.map(|at| members.swap_remove(at)).ok_or(PollableSetError::UnknownPollable)?;
        drop(members);
        drop(removed);
        Ok(())
    }

    /// How many are in it.
    #[must_use]
    pub fn number_left(&self) -> usize {
        self.members.lock().len()
    }
}
