//! The Messaging interfaces that code generated with `--ami` uses: reply handlers, exception holders and
//! pollers (CORBA 3.3 Part 1, clause 17).
//!
//! The compiler generates a handler trait and a poller for each interface. This module has their common
//! parts, which build on [`AsyncReply`]: a task awaits the reply for a handler, and a poller stores it.

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, Condition, Mutex, time::Deadline};

use crate::{AsyncReply, ObjectRef, UserExceptions};

/// The supertrait of all reply handlers (`Messaging::ReplyHandler`).
///
/// The ORB's reactor thread for asynchronous calls runs the handlers, one after the other. A handler must not
/// block, since all asynchronous calls of the ORB would block with it.
pub trait ReplyHandler: Send + Sync {}

impl<H: Send + Sync + ?Sized> ReplyHandler for H {}

/// The exception that ended a request, for the handler's `…_excep` (`Messaging::ExceptionHolder`).
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionHolder<E>(E);

impl<E> ExceptionHolder<E> {
    /// Creates the holder that a reply handler gets instead of results.
    pub fn new(exception: E) -> Self {
        Self(exception)
    }

    /// The exception that the call ended with.
    pub fn exception(&self) -> &E {
        &self.0
    }

    /// Raises the exception, as the operation would.
    ///
    /// # Errors
    /// The exception, always.
    pub fn raise_exception<T>(self) -> Result<T, E> {
        Err(self.0)
    }
}

/// Passes a reply to a handler when it arrives; without a handler the reply is dropped.
///
/// # Errors
/// NO_RESOURCES if the ORB's thread for it could not be started; BAD_INV_ORDER after shutdown.
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

/// The time-out without a limit (CORBA 3.3 Part 1, clause 17 and 11.4).
const NO_LIMIT: u32 = u32::MAX;

/// An operation in progress that becomes ready (`CORBA::Pollable`).
pub trait Pollable: Send + Sync + fmt::Debug {
    /// Whether it is ready. Waits at most `timeout` milliseconds: 0 does not wait, `u32::MAX` waits without
    /// limit.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the result was taken before.
    fn is_ready(&self, timeout: u32) -> Result<bool, SystemException>;

    /// Registers `waiters`, which are notified when it becomes ready, or at once if it is ready.
    #[doc(hidden)]
    fn register(&self, waiters: &Arc<PollableSetState>);
}

/// The condition that threads wait on until one of several pollables is ready.
#[derive(Debug, Default)]
pub struct PollableSetState {
    notifications: Mutex<u64>,
    notified: Condition,
    /// Conditions that are notified with this one.
    linked: Mutex<Vec<Arc<PollableSetState>>>,
}

impl PollableSetState {
    fn notify(&self) {
        *self.notifications.lock() += 1;
        self.notified.notify_all();
        let linked = std::mem::take(&mut *self.linked.lock());
        linked.iter().for_each(|linked_set| linked_set.notify());
    }

    /// Waits at most `timeout` milliseconds until `find` returns a value.
    fn wait_for_value<T>(&self, timeout: u32, mut find: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Deadline::after((timeout != NO_LIMIT).then(|| Duration::from_millis(timeout.into())));
        loop {
            let before = *self.notifications.lock();
            if let Some(outcome) = find() {
                return Some(outcome);
            }
            if deadline.is_over() {
                return None;
            }
            let mut notifications = self.notifications.lock();
            while *notifications == before && !deadline.is_over() {
                self.notified.wait_until(&mut notifications, deadline);
            }
        }
    }
}

impl Wake for PollableSetState {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// A request whose reply the program polls for (`Messaging::Poller`). Generated pollers add a method for each
/// operation.
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
    /// `None` once it was taken.
    reply: Mutex<Option<AsyncReply<R, E>>>,
}

impl<R: Send + 'static, E: UserExceptions + Send + 'static> Pending<R, E> {
    /// Whether the result is available. It is not decoded here: decoding may run code of the program, and a
    /// lock is held.
    fn has_result(&self) -> Result<bool, SystemException> {
        let reply = self.reply.lock();
        let reply = reply.as_ref().ok_or_else(already_taken)?;
        Ok(reply.is_ready(&Waker::from(Arc::clone(&self.waiters))))
    }

    fn take(&self, timeout: u32) -> Result<R, E> {
        if !self.is_ready(timeout)? {
            let exception = match timeout {
                0 => SystemException::no_response(0, CompletionStatus::Maybe),
                _ => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::Maybe),
            };
            return Err(exception.with_detail("the reply has not arrived yet").into());
        }
        // `None` if another thread took it meanwhile.
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
        let outcome = self.waiters.wait_for_value(timeout, || match self.has_result() {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        });
        outcome.transpose().map(|outcome| outcome.is_some())
    }

    fn register(&self, waiters: &Arc<PollableSetState>) {
        let mut linked = self.waiters.linked.lock();
        if !linked.iter().any(|linked_set| Arc::ptr_eq(linked_set, waiters)) {
            linked.push(Arc::clone(waiters));
        }
        drop(linked);
        // Polled again, so that it notifies from now on.
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
    /// Holds the reply of a call until the program takes it.
    pub fn new<R: Send + 'static, E: UserExceptions + Send + 'static>(
        target: &ObjectRef,
        operation: &'static str,
        reply: AsyncReply<R, E>,
    ) -> Self {
        let pending = Pending { waiters: Arc::default(), reply: Mutex::new(Some(reply)) };
        Self { target: target.clone(), operation, pending: Arc::new(pending) }
    }

    /// The reference that the operation was called by (`operation_target`).
    #[must_use]
    pub fn operation_target(&self) -> &ObjectRef {
        &self.target
    }

    /// The operation's name, with `_get_` or `_set_` before that of an attribute.
    #[must_use]
    pub fn operation_name(&self) -> &'static str {
        self.operation
    }

    /// Whether the reply has arrived; as [`Pollable::is_ready`].
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the reply was taken before.
    pub fn is_ready(&self, timeout: u32) -> Result<bool, SystemException> {
        self.pending.is_ready(timeout)
    }

    /// The poller as a member for a [`PollableSet`].
    #[must_use]
    pub fn pollable(&self) -> Arc<dyn Pollable> {
        Arc::clone(&self.pending).as_pollable()
    }

    /// Takes the result of the operation. Waits at most `timeout` milliseconds: 0 does not wait, `u32::MAX`
    /// waits without limit.
    ///
    /// # Errors
    /// The exception of the operation. NO_RESPONSE if the reply has not arrived and `timeout` is 0, TIMEOUT
    /// if it has not arrived in time. OBJECT_NOT_EXIST if it was taken before. BAD_OPERATION if another
    /// operation was invoked.
    pub fn take<R: Send + 'static, E: UserExceptions + Send + 'static>(
        &self,
        operation: &str,
        timeout: u32,
    ) -> Result<R, E> {
        let pending = self.pending.as_any().downcast_ref::<Pending<R, E>>().filter(|_| operation == self.operation);
        let Some(pending) = pending else {
            let detail = format!("the poller belongs to `{}`, not to `{operation}`", self.operation);
            return Err(SystemException::bad_operation(0, CompletionStatus::No).with_detail(detail).into());
        };
        pending.take(timeout)
    }
}

/// A set of pollables, which waits for the first one that is ready (`CORBA::PollableSet`, CORBA 3.3 Part 1,
/// 11.4).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::ObjectRef;
/// use spandrel::messaging::{PollableSet, PollableSetError, Poller};
///
/// /// Waits for the first of several replies, at most one second.
/// fn first(pollers: &[Poller]) -> Result<(), PollableSetError> {
///     let set = PollableSet::new();
///     for poller in pollers {
///         set.add_pollable(poller.pollable());
///     }
///     set.get_ready_pollable(1000)?;
///     let ready = pollers.iter().find(|poller| poller.is_ready(0).unwrap_or(false)).expect("one is ready");
///     println!("{} was answered first", ready.operation_name());
///     Ok(())
/// }
/// assert_eq!(first(&[]), Err(PollableSetError::NoPossiblePollable));
/// ```
#[derive(Debug, Default)]
pub struct PollableSet {
    members: Mutex<Vec<Arc<dyn Pollable>>>,
    waiters: Arc<PollableSetState>,
}

/// The reason why a [`PollableSet`] returns no pollable.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PollableSetError {
    /// The set is empty.
    #[error("the pollable set is empty")]
    NoPossiblePollable,
    /// The pollable is not in the set.
    #[error("the pollable is not in the set")]
    UnknownPollable,
    /// NO_RESPONSE or TIMEOUT: no member is ready.
    #[error(transparent)]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(PollableSetError);

impl PollableSet {
    /// Creates an empty set, from which no pollable can be taken.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pollable. It stays in the set until it is returned as ready or removed.
    pub fn add_pollable(&self, potential: Arc<dyn Pollable>) {
        self.members.lock().push(Arc::clone(&potential));
        potential.register(&self.waiters);
    }

    /// Removes a pollable that is ready, and returns it. Waits at most `timeout` milliseconds: 0 does not
    /// wait, `u32::MAX` waits without limit.
    ///
    /// # Errors
    /// [`PollableSetError::NoPossiblePollable`] if the set is empty; NO_RESPONSE if no member is ready and
    /// `timeout` is 0, TIMEOUT if none became ready in time.
    pub fn get_ready_pollable(&self, timeout: u32) -> Result<Arc<dyn Pollable>, PollableSetError> {
        let outcome = self.waiters.wait_for_value(timeout, || {
            let mut members = self.members.lock();
            if members.is_empty() {
                return Some(Err(PollableSetError::NoPossiblePollable));
            }
            // A member whose result was taken meanwhile counts as ready.
            let at = members.iter().position(|member| !matches!(member.is_ready(0), Ok(false)))?;
            Some(Ok(members.swap_remove(at)))
        });
        outcome.unwrap_or_else(|| {
            let exception = match timeout {
                0 => SystemException::no_response(0, CompletionStatus::No),
                _ => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No),
            };
            Err(exception.with_detail("no member of the pollable set is ready").into())
        })
    }

    /// Takes a pollable out of the set. Its reply can still be taken by the poller.
    ///
    /// # Errors
    /// [`PollableSetError::UnknownPollable`] if the pollable is not in the set.
    pub fn remove(&self, potential: &Arc<dyn Pollable>) -> Result<(), PollableSetError> {
        let mut members = self.members.lock();
        let at = members.iter().position(|member| Arc::ptr_eq(member, potential));
        let removed = at.map(|at| members.swap_remove(at)).ok_or(PollableSetError::UnknownPollable)?;
        drop(members);
        drop(removed);
        Ok(())
    }

    /// The pollables that have not been returned or removed.
    #[must_use]
    pub fn number_left(&self) -> usize {
        self.members.lock().len()
    }
}
