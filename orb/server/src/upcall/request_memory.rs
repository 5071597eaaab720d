//! The memory of requests that an executor has run, which later ones use again: in the steady state, a request that is
//! handed over allocates nothing.

use std::fmt;

use spandrel_message::MessageBlock;
use spandrel_orb::internal::cancellation::CancellationSource;
use spandrel_sync::{Arc, Guarded, PriorityInheritanceMutex};

use super::received_request::UnusedMemory;

/// Memory for the requests of an executor, reserved when it is created. Requests beyond it allocate their own.
pub struct RequestMemory {
    /// The last one to come back is the first one to be used. Threads of all priorities take the lock, for one step.
    unused: Guarded<Vec<UnusedMemory>, PriorityInheritanceMutex>,
    requests: usize,
}

/// The octets of a request for which there is memory at first. It grows with the requests that use it.
const RESERVED_OCTETS: usize = 1024;

impl RequestMemory {
    /// Memory for that many requests at the same time.
    #[must_use]
    pub fn reserve(requests: usize) -> Arc<Self> {
        let reserved = || UnusedMemory {
            octets: Some(MessageBlock::copied_into(None, &[0; RESERVED_OCTETS])),
            cancellation: Some(CancellationSource::never()),
            slot: Some(Arc::default()),
            work: None,
        };
        Arc::new(Self { unused: Guarded::new((0..requests).map(|_| reserved()).collect()), requests })
    }

    pub(crate) fn take(&self) -> UnusedMemory {
        self.unused.lock().pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&self, memory: UnusedMemory) {
        let mut unused = self.unused.lock();
        if unused.len() < self.requests {
            unused.push(memory);
            return;
        }
        drop(unused);
        drop(memory); // without the lock
    }
}

impl fmt::Debug for RequestMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestMemory").field("requests", &self.requests).finish_non_exhaustive()
    }
}
