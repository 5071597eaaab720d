//! The priority of the calling thread (`RTCORBA::Current`).

use std::cell::Cell;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::thread_local;

use crate::{Priority, Scheduling};

thread_local! {
    /// `None` until the thread has a priority of CORBA.
    static PRIORITY: Cell<Option<Priority>> = const { Cell::new(None) };
    /// Whether the program has changed the native priority since a pool asked last.
    static IS_NATIVE_CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread's priority of CORBA (`RTCORBA::Current`). Setting it changes the native priority as well.
///
/// ```
/// use spandrel_rt::{LinearMapping, Priority, RtCurrent, Scheduling, SchedulingClass};
/// use spandrel_sync::Arc;
///
/// let current = RtCurrent::new(Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping)));
/// assert!(current.the_priority().is_err()); // INITIALIZE: none was set
/// current.set_the_priority(700)?;
/// assert_eq!(current.the_priority()?, Priority::new(700)?);
/// # Ok::<(), spandrel_giop::SystemException>(())
/// ```
#[derive(Clone, Debug)]
pub struct RtCurrent {
    scheduling: Scheduling,
}

impl RtCurrent {
    /// The current of threads that are scheduled like this. [`RtOrb::current`](crate::RtOrb::current) returns the one of
    /// an ORB.
    #[must_use]
    pub fn new(scheduling: Scheduling) -> Self {
        Self { scheduling }
    }

    /// The priority that the calling thread was given, by [`set_the_priority`](Self::set_the_priority) or as the thread
    /// of a pool that runs a request.
    ///
    /// # Errors
    /// INITIALIZE if it has none.
    #[allow(clippy::unused_self, reason = "the standard's attribute of an object")]
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        present().ok_or_else(|| {
            SystemException::initialize(0, CompletionStatus::No).with_detail("this thread has no priority of CORBA yet")
        })
    }

    /// Gives the calling thread this priority, and the native one that it is mapped to. A thread of a pool has its own again
    /// when its request ends.
    ///
    /// # Errors
    /// BAD_PARAM for a negative number; otherwise as [`Scheduling::apply`]. The priority is then unchanged.
    pub fn set_the_priority(&self, priority: i16) -> Result<(), SystemException> {
        let priority = Priority::new(priority)?;
        self.scheduling.apply(priority)?;
        IS_NATIVE_CHANGED.with(|is_changed| is_changed.set(true));
        replace(Some(priority));
        Ok(())
    }
}

/// The calling thread's priority of CORBA.
pub(crate) fn present() -> Option<Priority> {
    PRIORITY.with(Cell::get)
}

/// Whether [`RtCurrent::set_the_priority`] has changed the calling thread's native priority since the last call.
pub(crate) fn take_native_change() -> bool {
    IS_NATIVE_CHANGED.with(Cell::take)
}

/// Records the calling thread's priority of CORBA, without a change of the native one. Returns the one before.
pub(crate) fn replace(priority: Option<Priority>) -> Option<Priority> {
    PRIORITY.with(|present| present.replace(priority))
}
