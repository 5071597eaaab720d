//! Distinguishes a process from its forked children, which inherit its memory and its handles, and none of
//! its threads.

#[cfg(unix)]
use crate::sys::copies;

/// Identifies the process in which it was created, for the price of one load: no system call is made.
///
/// The child of a `fork` inherits resources without owning them: its output on a connection would mix with
/// that of the parent, and a lock held by another thread of the parent stays locked. The owner of such a
/// resource keeps a mark with it, and leaves it alone where it is not [`here`](Self::is_here).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessMark {
    #[cfg(unix)]
    copies: u32,
}

impl ProcessMark {
    /// A mark of the process that calls this. Forked children see that it is not theirs.
    #[must_use]
    pub fn here() -> Self {
        Self {
            #[cfg(unix)]
            copies: copies::copies(),
        }
    }

    /// True in the process where it was created; false in forked children. (`vfork` does not copy the memory,
    /// and is not detected.)
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        #[cfg(unix)]
        return self.copies == copies::counted();
        #[cfg(not(unix))]
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_valid_in_its_process() {
        let mark = ProcessMark::here();
        assert!(mark.is_here());
        assert_eq!(mark, ProcessMark::here());
    }
}
