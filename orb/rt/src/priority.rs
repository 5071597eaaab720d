//! Priorities of CORBA, which all hosts understand alike, and of the operating system.

use std::fmt;

use spandrel_giop::{CompletionStatus, SystemException};

/// A priority of the operating system (`RTCORBA::NativePriority`). A greater number is more urgent: for `SCHED_OTHER`
/// it is the nice value with the opposite sign.
pub type NativePriority = i16;

/// A priority of Real-time CORBA (`RTCORBA::Priority`), from 0 to 32767. A greater number is more urgent.
///
/// ```
/// use spandrel_rt::Priority;
///
/// assert_eq!(Priority::new(100)?.get(), 100);
/// assert!(Priority::new(-1).is_err()); // BAD_PARAM
/// # Ok::<(), spandrel_giop::SystemException>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Priority(i16);

impl Priority {
    /// The least urgent priority (`RTCORBA::minPriority`).
    pub const MIN: Self = Self(0);
    /// The most urgent priority (`RTCORBA::maxPriority`).
    pub const MAX: Self = Self(i16::MAX);

    /// The priority with this number.
    ///
    /// # Errors
    /// BAD_PARAM for a negative number.
    pub fn new(number: i16) -> Result<Self, SystemException> {
        Self::from_number(number).ok_or_else(|| {
            SystemException::bad_param(0, CompletionStatus::No)
                .with_detail(|| format!("priority {number} is not between 0 and {}", i16::MAX))
        })
    }

    /// The priority with this number; `None` for a negative one.
    #[must_use]
    pub const fn from_number(number: i16) -> Option<Self> {
        if number < 0 { None } else { Some(Self(number)) }
    }

    /// The number of the priority.
    #[must_use]
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
