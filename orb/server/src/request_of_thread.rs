//! The thread's record of the request that it runs, for [queries](crate::current).
//!
//! For a request from a connection, the thread writes a few numbers before it calls the servant, and a query
//! finds the connection by them. A deferred request has a [`CancellationSource`] from the beginning. That
//! source is available while the request is served ([`ServedScope`]).

use std::cell::{Cell, RefCell};

use spandrel_connection::UpcallNumber;
use spandrel_orb::{
    Orb,
    internal::{WeakOrb, cancellation::CancellationSource, upcalls},
};
use spandrel_sync::{Arc, thread_local};

/// A request of a connection that runs in this thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The address of its connection in memory; `NO_CONNECTION` if no connection's request runs.
    pub(super) connection: usize,
    pub(super) upcall: UpcallNumber,
    pub(super) request_id: u32,
    pub(super) is_one_way: bool,
}

impl Frame {
    const NONE: Self = Self { connection: NO_CONNECTION, upcall: UpcallNumber::NONE, request_id: 0, is_one_way: false };

    /// The frame of this thread. A [`ServedScope`] clears it, so a frame that exists is the innermost.
    pub(super) fn current() -> Option<Self> {
        Some(FRAME.with(FrameSlots::get)).filter(|frame| frame.connection != NO_CONNECTION)
    }
}

/// An address that no connection has.
const NO_CONNECTION: usize = 0;

/// The thread's storage for its frame. The other values are valid only while `connection` is not `NO_CONNECTION`.
struct FrameSlots {
    connection: Cell<usize>,
    upcall: Cell<UpcallNumber>,
    request_id: Cell<u32>,
    is_one_way: Cell<bool>,
}

impl FrameSlots {
    const fn new() -> Self {
        let (request_id, is_one_way) = (Cell::new(0), Cell::new(false));
        Self { connection: Cell::new(NO_CONNECTION), upcall: Cell::new(UpcallNumber::NONE), request_id, is_one_way }
    }

    #[inline]
    fn set(&self, frame: Frame) {
        self.connection.set(frame.connection);
        self.upcall.set(frame.upcall);
        self.request_id.set(frame.request_id);
        self.is_one_way.set(frame.is_one_way);
    }

    fn get(&self) -> Frame {
        Frame {
            connection: self.connection.get(),
            upcall: self.upcall.get(),
            request_id: self.request_id.get(),
            is_one_way: self.is_one_way.get(),
        }
    }
}

thread_local! {
    static FRAME: FrameSlots = const { FrameSlots::new() };
    /// The address of the ORB whose requests this thread runs.
    static PLACE: Cell<usize> = const { Cell::new(0) };
    /// The ORB at that address.
    static ORB: RefCell<Option<WeakOrb>> = const { RefCell::new(None) };
    /// The requests that this thread serves outside an upcall of a connection, innermost last.
    static SERVED: RefCell<Vec<Arc<CancellationSource>>> = const { RefCell::new(Vec::new()) };
}

/// The time in which a thread runs a request of a connection.
pub(super) struct FrameScope {
    /// The frame of the outer request. Boxed, because few requests run inside another.
    outer: Option<Box<Frame>>,
}

impl FrameScope {
    #[inline]
    pub(super) fn enter(orb: &Orb, frame: Frame) -> Self {
        record_orb(orb);
        let outer = if upcalls() == 0 { None } else { outer() };
        FRAME.with(|now| now.set(frame));
        Self { outer }
    }
}

impl Drop for FrameScope {
    #[inline]
    fn drop(&mut self) {
        FRAME.with(|now| match self.outer {
            None => now.connection.set(NO_CONNECTION),
            Some(ref outer) => now.set(**outer),
        });
    }
}

#[cold]
fn outer() -> Option<Box<Frame>> {
    Some(Box::new(FRAME.with(FrameSlots::get)))
}

/// Records the ORB whose requests this thread runs.
#[inline]
pub(super) fn record_orb(orb: &Orb) {
    // The weak reference keeps the memory, so that no other ORB gets the same address.
    if PLACE.with(Cell::get) != orb.instance() {
        record_other_orb(orb);
    }
}

/// Records the ORB of an object that this thread calls, unless the thread runs a connection's request.
pub(super) fn record_calling_orb(orb: &Orb) {
    // A running request is found through its own ORB, also after the call.
    if FRAME.with(|now| now.connection.get()) == NO_CONNECTION {
        record_orb(orb);
    }
}

#[cold]
fn record_other_orb(orb: &Orb) {
    PLACE.with(|place| place.set(orb.instance()));
    let before = ORB.with(|known| known.replace(Some(WeakOrb::of(orb))));
    drop(before);
}

/// The time in which a thread serves a request outside an upcall of a connection.
pub(super) struct ServedScope {
    outer: Frame,
    /// Whether the thread did not serve this request before.
    is_new: bool,
}

impl ServedScope {
    pub(super) fn enter(cancellation: &Arc<CancellationSource>) -> Self {
        let is_new = SERVED.with(|served| {
            let mut served = served.borrow_mut();
            let is_new = served.last().is_none_or(|innermost| !Arc::ptr_eq(innermost, cancellation));
            if is_new {
                served.push(Arc::clone(cancellation));
            }
            is_new
        });
        let outer = FRAME.with(FrameSlots::get);
        FRAME.with(|now| now.set(Frame::NONE));
        Self { outer, is_new }
    }
}

impl Drop for ServedScope {
    fn drop(&mut self) {
        let left = if self.is_new { SERVED.with(|served| served.borrow_mut().pop()) } else { None };
        FRAME.with(|now| now.set(self.outer));
        drop(left);
    }
}

/// The cancellation source of the innermost request that this thread serves outside an upcall of a
/// connection.
pub(super) fn served() -> Option<Arc<CancellationSource>> {
    SERVED.with(|served| served.borrow().last().cloned())
}

/// The ORB whose requests this thread runs.
pub(super) fn orb() -> Option<Orb> {
    ORB.with(|known| known.borrow().as_ref().and_then(WeakOrb::upgrade))
}
