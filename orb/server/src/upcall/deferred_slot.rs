//! The entry of a request among the deferred ones of its origin, and the time at which it is made.
//!
//! A request whose future is polled first in its upcall needs no entry if it is answered there: it is then cancelled,
//! charged and awaited as that of a synchronous servant. So it is *entered late*, in the same thread, once that poll has
//! left the future waiting, or if the future is still elsewhere when the executor returns. Its slot exists before.
//!
//! | event | slot without an entry | slot with an entry |
//! | --- | --- | --- |
//! | poll in the upcall | runs; if the future waits, the slot is entered | |
//! | poll in another thread | waits for the entry | runs |
//! | reply | is sent as from the upcall | ends the charge of the request |
//! | query for the cancellation | that of the running upcall | that of the entry |
//! | end | frees the memory | removes the entry, and ends the use of the servant |
//!
//! Executors that leave the first poll to other threads get futures with entries ([`SpawnScope`] finds out).

use std::{any::Any, cell::Cell, fmt, ops::Deref, sync::OnceLock, task::Waker};

use spandrel_message::MessageBlock;
use spandrel_orb::{
    KeptUse,
    internal::{cancellation::CancellationSource, request_deadlines::RequestDeadline},
};
use spandrel_sync::{Arc, Mutex, thread_local};
use spandrel_transport::{DecodedMemory, ReceiveBudget};

use super::{
    origin::{RequestKey, RequestOrigin, UnusedSource},
    request_memory,
};

/// Keeps the servant of the thread's innermost upcall in use.
pub(crate) type KeepInUse = fn() -> Arc<dyn KeptUse>;

/// A request's entry among the deferred ones of its origin. It is removed when it is dropped.
///
/// A request that is deferred again while it is answered keeps its entry, so that it counts once against the
/// limit.
#[derive(Debug, Default)]
pub(crate) struct DeferredSlot(Option<DeferredEntry>);

/// The memory of a deferred request that has ended, for another one.
#[derive(Default)]
pub(crate) struct UnusedMemory {
    /// The copy of its message.
    pub(crate) octets: Option<MessageBlock>,
    pub(crate) cancellation: Option<Arc<CancellationSource>>,
    /// Its entry among the deferred requests, without content.
    pub(crate) slot: Option<Arc<DeferredSlot>>,
    /// The request as its executor had it, without content.
    pub(crate) work: Option<Arc<dyn Any + Send + Sync>>,
}

impl UnusedMemory {
    pub(crate) const NONE: Self = Self { octets: None, cancellation: None, slot: None, work: None };
}

/// A deferred request of an origin.
pub(crate) struct DeferredEntry {
    pub(crate) origin: Arc<dyn RequestOrigin>,
    pub(crate) request_key: RequestKey,
    /// The octets that are charged when it is entered.
    pub(crate) octets: usize,
    /// The deadline of the request, if it has one.
    pub(crate) deadline: Option<RequestDeadline>,
    /// The memory of the decoded arguments, if it is charged.
    pub(crate) memory: Option<DecodedMemory<Arc<ReceiveBudget>>>,
    /// If it is entered late.
    keep_in_use: Option<KeepInUse>,
    /// Set by the thread of the upcall.
    entered: OnceLock<Entered>,
    /// The task that polls the future before the request is entered.
    waiting: Mutex<Option<Waker>>,
}

/// The part of a deferred request that its origin knows.
pub(crate) struct Entered {
    pub(crate) key: u64,
    pub(crate) cancellation: Arc<CancellationSource>,
    /// The use of the servant, if the request was entered late.
    pub(crate) kept_use: Option<Arc<dyn KeptUse>>,
}

impl DeferredEntry {
    pub(super) fn new(
        origin: Arc<dyn RequestOrigin>,
        request_key: RequestKey,
        octets: usize,
        deadline: Option<RequestDeadline>,
        memory: Option<DecodedMemory<Arc<ReceiveBudget>>>,
        keep_in_use: Option<KeepInUse>,
    ) -> Self {
        let (entered, waiting) = (OnceLock::new(), Mutex::new(None));
        Self { origin, request_key, octets, deadline, memory, keep_in_use, entered, waiting }
    }

    pub(super) fn set_entered(&self, entered: Entered) {
        if self.entered.set(entered).is_err() {
            unreachable!("only the thread of the upcall enters the request");
        }
    }

    /// The entry at the origin; `None` before it is made.
    pub(crate) fn entered(&self) -> Option<&Entered> {
        self.entered.get()
    }

    /// Enters the request late, in the thread of its upcall.
    pub(super) fn enter(&self) -> &Entered {
        if let Some(entered) = self.entered.get() {
            return entered;
        }
        let unused_source = UnusedSource { deadline: self.deadline.and_then(|deadline| deadline.answer), memory: None };
        let (key, cancellation) = self.origin.enter_admitted(self.request_key, self.octets, unused_source);
        let kept_use = self.keep_in_use.map(|keep_in_use| keep_in_use());
        self.set_entered(Entered { key, cancellation, kept_use });
        let waiting = self.waiting.lock().take();
        waiting.into_iter().for_each(Waker::wake);
        self.entered.get().expect("it was set")
    }

    /// The entry; if there is none yet, the task of this waker is woken when it is made.
    pub(super) fn poll_entered(&self, waker: &Waker) -> Option<&Entered> {
        if self.entered.get().is_none() {
            // The clone and the drop of a waker are code of the executor: both run outside of the lock.
            let before = self.waiting.lock().replace(waker.clone());
            drop(before);
        }
        // Checked afterwards: the thread that makes the entry takes the waker later.
        self.entered.get()
    }

    /// The state by which the request can be cancelled.
    pub(crate) fn cancellation(&self) -> Arc<CancellationSource> {
        if let Some(entered) = self.entered.get() {
            return Arc::clone(&entered.cancellation);
        }
        let deadline = self.deadline.and_then(|deadline| deadline.answer);
        let of_upcall = self.origin.cancellation_source(self.request_key, deadline);
        // In another thread than that of the upcall, the entry may have been made meanwhile.
        self.entered.get().map_or(of_upcall, |entered| Arc::clone(&entered.cancellation))
    }

    /// Whether the request was cancelled after it was entered.
    pub(super) fn is_cancelled(&self) -> bool {
        self.entered.get().is_some_and(|entered| entered.cancellation.is_cancelled())
    }
}

impl DeferredSlot {
    pub(super) fn new(entry: DeferredEntry) -> Self {
        Self(Some(entry))
    }

    /// Removes the entry. Returns the state by which the request could be cancelled, if there was an entry.
    pub(crate) fn leave(&mut self) -> Option<Arc<CancellationSource>> {
        let DeferredEntry { origin, entered, .. } = self.0.take()?;
        let Entered { key, cancellation, kept_use } = entered.into_inner()?;
        // In a forked copy, the entry belongs to the original process.
        if !origin.orb().is_copied() {
            cancellation.mark_answered();
            origin.leave_deferred(key);
        }
        if let Some(kept_use) = kept_use {
            // An exception has no receiver.
            kept_use.end(Box::new(drop));
        }
        Some(cancellation)
    }
}

impl Deref for DeferredSlot {
    type Target = DeferredEntry;

    fn deref(&self) -> &DeferredEntry {
        self.0.as_ref().expect("only the memory of a slot outlives its entry")
    }
}

impl Drop for DeferredSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for DeferredEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredEntry").field("request_key", &self.request_key).finish_non_exhaustive()
    }
}

/// The address of a slot, which tells the thread of its upcall from others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SlotAddress(usize);

impl SlotAddress {
    const NONE: Self = Self(0);

    pub(super) fn new(slot: &Arc<DeferredSlot>) -> Self {
        Self(Arc::as_ptr(slot).addr())
    }
}

thread_local! {
    /// The slot whose future this thread gives to the executor, until the thread polls it.
    static SPAWNING: Cell<SlotAddress> = const { Cell::new(SlotAddress::NONE) };
}

/// Whether this thread polls the future of this slot for the first time, inside of the upcall that gives it to the executor.
pub(super) fn begins_in_upcall(slot: SlotAddress) -> bool {
    SPAWNING.with(|spawning| {
        let begins = spawning.get() == slot;
        if begins {
            spawning.set(SlotAddress::NONE);
        }
        begins
    })
}

/// The time in which an upcall gives a future to the executor. At its end the request has an entry, or has ended.
pub(super) struct SpawnScope {
    slot: Option<Arc<DeferredSlot>>,
    address: SlotAddress,
    outer: SlotAddress,
}

impl SpawnScope {
    pub(super) fn enter(slot: Arc<DeferredSlot>) -> Self {
        let address = SlotAddress::new(&slot);
        let outer = SPAWNING.with(|spawning| spawning.replace(address));
        Self { slot: Some(slot), address, outer }
    }

    /// Whether this thread has polled the future.
    pub(super) fn was_polled(&self) -> bool {
        SPAWNING.with(Cell::get) != self.address
    }
}

impl Drop for SpawnScope {
    fn drop(&mut self) {
        SPAWNING.with(|spawning| spawning.set(self.outer));
        let Some(mut slot) = self.slot.take() else { return };
        if slot.entered().is_some() {
            return;
        }
        match Arc::get_mut(&mut slot) {
            Some(ended) => {
                ended.leave();
                request_memory::give_slot_to_thread(slot);
            }
            None => {
                slot.enter();
            }
        }
    }
}
