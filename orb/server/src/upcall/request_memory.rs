//! The memory of requests that have ended, which later ones use again.
//!
//! Each executor has memory for the requests that it runs: in the steady state, a request that is handed over allocates
//! nothing. Each thread has that of one request, for those whose futures it begins: asynchronous servants that need not wait
//! use it again and again.

use std::{cell::Cell, fmt};

use spandrel_message::MessageBlock;
use spandrel_orb::internal::cancellation::CancellationSource;
use spandrel_sync::{Arc, Guarded, PriorityInheritanceMutex, thread_local};

use super::deferred_slot::{DeferredSlot, UnusedMemory};

thread_local! {
    static OF_THREAD: Cell<UnusedMemory> = const { Cell::new(UnusedMemory::NONE) };
}

/// Takes the memory that was given to this thread.
pub(crate) fn take_of_thread() -> UnusedMemory {
    OF_THREAD.with(Cell::take)
}

/// Gives memory to this thread, in place of the one that it has.
pub(crate) fn give_to_thread(memory: UnusedMemory) {
    // The waker of a task that goes on, and the timer, end with their source.
    let cancellation = memory.cancellation.filter(|source| !source.has_waiters());
    let before = OF_THREAD.with(|of_thread| of_thread.replace(UnusedMemory { cancellation, ..memory }));
    drop(before);
}

/// Gives the memory of a slot to this thread, in addition to that which it has.
pub(super) fn give_slot_to_thread(slot: Arc<DeferredSlot>) {
    let before = OF_THREAD.with(|of_thread| {
        let mut memory = of_thread.take();
        let before = memory.slot.replace(slot);
        of_thread.set(memory);
        before
    });
    drop(before);
}

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
