//! Native scheduling of threads: the class, and what replaces it without rights.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, Ordering}; // for the log alone

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::{Arc, Priority as ThreadPriority, SpawnError, set_current_priority, thread};

use crate::{NativePriority, Priority, PriorityMapping};

/// The native scheduling class of threads that have a priority of CORBA.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SchedulingClass {
    /// Real-time: a thread runs until it waits or a more urgent one is ready (`SCHED_FIFO`, priorities 1 to 99).
    Fifo,
    /// Real-time: threads of one priority take turns (`SCHED_RR`, priorities 1 to 99).
    RoundRobin,
    /// Ordinary threads with nice values (`SCHED_OTHER`, native priorities -19 to 20). A more urgent thread gets a
    /// greater share of the processor, and does not preempt the others.
    Other,
    /// Native priorities stay as they are. Priorities order requests alone.
    Unchanged,
}

impl SchedulingClass {
    /// The native priorities of the class, from the least urgent to the most urgent.
    #[must_use]
    pub const fn range(self) -> RangeInclusive<NativePriority> {
        match self {
            Self::Fifo | Self::RoundRobin => 1..=99,
            Self::Other => -19..=20,
            Self::Unchanged => 0..=0,
        }
    }

    /// The form in which a thread takes a native priority; `None` outside the range, and if nothing is changed.
    #[must_use]
    pub fn thread_priority(self, native: NativePriority) -> Option<ThreadPriority> {
        if !self.range().contains(&native) {
            return None;
        }
        #[cfg(target_os = "linux")]
        return match self {
            Self::Fifo => u8::try_from(native).ok().map(ThreadPriority::Fifo),
            Self::RoundRobin => u8::try_from(native).ok().map(ThreadPriority::RoundRobin),
            Self::Other => i8::try_from(-native).ok().map(ThreadPriority::Nice),
            Self::Unchanged => None,
        };
        #[cfg(not(target_os = "linux"))]
        return None;
    }

    /// The native priority of the calling thread, if it has this class.
    fn native_of_thread(self) -> Option<NativePriority> {
        if self == Self::Unchanged {
            return Some(0);
        }
        #[cfg(target_os = "linux")]
        return match (self, spandrel_sync::current_priority().ok()?) {
            (Self::Fifo, ThreadPriority::Fifo(native)) | (Self::RoundRobin, ThreadPriority::RoundRobin(native)) => {
                Some(native.into())
            }
            (Self::Other, ThreadPriority::Nice(nice)) => Some(-NativePriority::from(nice)),
            _ => None,
        };
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Whether a thread of this process may have the most and the least urgent priority of the class.
    fn is_permitted(self) -> bool {
        let range = self.range();
        let (Some(most), Some(least)) = (self.thread_priority(*range.end()), self.thread_priority(*range.start()))
        else {
            return self == Self::Unchanged;
        };
        // In a thread of its own, which ends afterwards. The second change back up needs the right as well.
        let attempt = move || [least, most].into_iter().try_for_each(set_current_priority);
        thread::Builder::new().name("rt-probe".to_owned()).spawn(attempt).is_ok_and(|probe| {
            let result: Option<Result<(), SpawnError>> = probe.join().ok();
            matches!(result, Some(Ok(())))
        })
    }
}

impl fmt::Display for SchedulingClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "SCHED_FIFO",
            Self::RoundRobin => "SCHED_RR",
            Self::Other => "SCHED_OTHER with nice values",
            Self::Unchanged => "native priorities unchanged",
        })
    }
}

/// The classes whose replacement was logged, as bits.
static LOGGED: AtomicU8 = AtomicU8::new(0);

/// The scheduling class in force, with the mapping of priorities to it.
#[derive(Clone, Debug)]
pub struct Scheduling {
    requested: SchedulingClass,
    class: SchedulingClass,
    mapping: Arc<dyn PriorityMapping>,
}

impl Scheduling {
    /// The requested class, or the best one that this process has rights for: after a real-time class
    /// [`Other`](SchedulingClass::Other), then [`Unchanged`](SchedulingClass::Unchanged). A replacement is logged once in a
    /// process for each class.
    #[must_use]
    pub fn new(requested: SchedulingClass, mapping: Arc<dyn PriorityMapping>) -> Self {
        let order = [requested, SchedulingClass::Other];
        let class = order.into_iter().find(|class| class.is_permitted()).unwrap_or(SchedulingClass::Unchanged);
        let bit = 1 << requested as u8;
        if class != requested && LOGGED.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            tracing::warn!(
                "real-time scheduling: {requested} is not permitted here (CAP_SYS_NICE, or the limits RLIMIT_RTPRIO and \
                 RLIMIT_NICE); used instead: {class}"
            );
        }
        Self { requested, class, mapping }
    }

    /// The class by which threads are scheduled: the requested one, or the best that the process has rights
    /// for.
    #[must_use]
    pub fn class(&self) -> SchedulingClass {
        self.class
    }

    /// The class that was asked for, with or without rights for it.
    #[must_use]
    pub fn requested(&self) -> SchedulingClass {
        self.requested
    }

    /// The native priority for one of CORBA, by the mapping.
    ///
    /// # Errors
    /// DATA_CONVERSION with the standard's minor code 2 if the mapping has none, or one outside the range of the class.
    pub fn to_native(&self, priority: Priority) -> Result<NativePriority, SystemException> {
        let range = self.class.range();
        if self.class == SchedulingClass::Unchanged {
            return Ok(*range.start());
        }
        let native = self.mapping.to_native(priority, &range).filter(|native| range.contains(native));
        native.ok_or_else(|| {
            SystemException::data_conversion(minor::PRIORITY_MAPPING, CompletionStatus::No).with_detail(|| {
                format!("{:?} has no native priority of {} for the priority {priority}", self.mapping, self.class)
            })
        })
    }

    /// The CORBA priority for a native one, by the mapping.
    ///
    /// # Errors
    /// As [`to_native`](Self::to_native).
    pub fn to_corba(&self, native: NativePriority) -> Result<Priority, SystemException> {
        self.mapping.to_corba(native, &self.class.range()).ok_or_else(|| {
            SystemException::data_conversion(minor::PRIORITY_MAPPING, CompletionStatus::No)
                .with_detail(|| format!("{:?} has no priority for the native priority {native}", self.mapping))
        })
    }

    /// The priority of CORBA that the calling thread's native priority stands for: that of calls by threads which
    /// [`RtCurrent`](crate::RtCurrent) gave none.
    ///
    /// # Errors
    /// As [`to_corba`](Self::to_corba); also for a thread of another scheduling class.
    pub fn implied_priority(&self) -> Result<Priority, SystemException> {
        let native = self.class.native_of_thread().ok_or_else(|| {
            SystemException::data_conversion(minor::PRIORITY_MAPPING, CompletionStatus::No).with_detail(|| {
                format!("the thread has no priority of CORBA, and no native one of the class {}", self.class)
            })
        })?;
        self.to_corba(native)
    }

    /// Gives the calling thread the native priority of a priority of CORBA.
    ///
    /// # Errors
    /// As [`to_native`](Self::to_native); NO_PERMISSION or INTERNAL if the operating system refuses.
    pub fn apply(&self, priority: Priority) -> Result<(), SystemException> {
        let native = self.to_native(priority)?;
        self.apply_native(native)
    }

    pub(crate) fn apply_native(&self, native: NativePriority) -> Result<(), SystemException> {
        let Some(priority) = self.class.thread_priority(native) else {
            return Ok(());
        };
        set_current_priority(priority).map_err(|error| {
            let exception = match error {
                SpawnError::NotPermitted { .. } => SystemException::no_permission(0, CompletionStatus::No),
                _ => SystemException::internal(0, CompletionStatus::No),
            };
            exception.with_source(error)
        })
    }
}
