//! Instructions executed by this program, where the machine counts them and the system permits access.

/// A running count of instructions in user mode, of the calling thread and those that it starts later.
#[derive(Debug)]
pub(crate) struct Instructions {
    #[cfg(target_os = "linux")]
    counter: crate::raw::counter::Counter,
}

impl Instructions {
    /// Starts counting; none if not available.
    pub(crate) fn start() -> Option<Self> {
        #[cfg(target_os = "linux")]
        return Some(Self { counter: crate::raw::counter::Counter::instructions().ok()? });
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The count so far.
    pub(crate) fn read(&self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return self.counter.read().ok();
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_counted_where_available() {
        let Some(counter) = Instructions::start() else { return };
        let before = counter.read().unwrap();
        std::hint::black_box((0..100_000u64).map(std::hint::black_box).sum::<u64>());
        assert!(counter.read().unwrap() >= before + 100_000);
    }
}
