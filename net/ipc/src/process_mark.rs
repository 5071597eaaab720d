//! Telling a process from its copies, which inherit its memory and its handles, and none of its threads.

#[cfg(unix)]
use crate::sys::copies;

/// Says in which process it was made, at the price of reading a number: no system call is made.
///
/// A copy of a process (`fork`) has what the original had, without being its owner: what the copy writes to a connection is mixed with
/// what the original writes, and a lock that another thread of the original held stays locked. Whoever keeps such things keeps a mark
/// with them, and leaves them alone where it is not [`here`](Self::is_here).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessMark {
    #[cfg(unix)]
    copies: u32,
}

impl ProcessMark {
    /// The mark of this process.
    #[must_use]
    pub fn here() -> Self {
        Self {
            #[cfg(unix)]
            copies: copies::copies(),
        }
    }

    /// True in the process where it was made; false in its copies. (`vfork` makes no copy of the memory, and is not noticed.)
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
    fn a_process_knows_itself() {
        let mark = ProcessMark::here();
        assert!(mark.is_here());
        assert_eq!(mark, ProcessMark::here());
    }
}
