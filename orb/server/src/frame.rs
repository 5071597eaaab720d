//! Which request a thread runs, as it writes that down for those who [ask](super::current).
//!
//! For a request from a connection that is three numbers, written before its servant is called; whoever asks finds the connection by them. Requests that are
//! answered later have a [`CancellationSource`] from the beginning, which is at hand while they are served ([`ServedScope`]).

use std::cell::{Cell, RefCell};

use spandrel_orb::{Orb, cancellation::CancellationSource, orb::WeakOrb, upcalls::upcalls};
use spandrel_sync::{Arc, thread_local};

/// A request that runs in this thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where its connection lies; nowhere if no connection's request runs.
    pub(super) connection: usize,
    /// Its upcall.
    pub(super) turn: u64,
    pub(super) request_id: u32,
    pub(super) is_one_way: bool,
}

impl Frame {
    const NONE: Self = Self { connection: NOWHERE, turn: 0, request_id: 0, is_one_way: false };

    /// That of this thread. Serving clears it, so that one that is there is the innermost.
    pub(super) fn current() -> Option<Self> {
        Some(FRAME.with(FrameSlots::get)).filter(|frame| frame.connection != NOWHERE)
    }
}

/// Where no connection lies.
const NOWHERE: usize = 0;

/// Where a thread writes it down. Nothing of it counts while its connection lies nowhere.
struct FrameSlots {
    connection: Cell<usize>,
    turn: Cell<u64>,
    request_id: Cell<u32>,
    is_one_way: Cell<bool>,
}

impl FrameSlots {
    const fn new() -> Self {
        let (request_id, is_one_way) = (Cell::new(0), Cell::new(false));
        Self { connection: Cell::new(NOWHERE), turn: Cell::new(0), request_id, is_one_way }
    }

    #[inline]
    fn set(&self, frame: Frame) {
        self.connection.set(frame.connection);
        self.turn.set(frame.turn);
        self.request_id.set(frame.request_id);
        self.is_one_way.set(frame.is_one_way);
    }

    fn get(&self) -> Frame {
        Frame {
            connection: self.connection.get(),
            turn: self.turn.get(),
            request_id: self.request_id.get(),
            is_one_way: self.is_one_way.get(),
        }
    }
}

thread_local! {
    static FRAME: FrameSlots = const { FrameSlots::new() };
    /// Where the ORB lies whose requests this thread runs.
    static PLACE: Cell<usize> = const { Cell::new(0) };
    /// That ORB.
    static ORB: RefCell<Option<WeakOrb>> = const { RefCell::new(None) };
    /// The requests that are served here although their upcalls have returned, innermost last.
    static SERVED: RefCell<Vec<Arc<CancellationSource>>> = const { RefCell::new(Vec::new()) };
}

/// The time in which a thread runs a request of a connection.
pub(super) struct FrameScope {
    /// Elsewhere, since few requests run inside of another.
    outer: Option<Box<Frame>>,
}

impl FrameScope {
    #[inline]
    pub(super) fn enter(orb: &Orb, frame: Frame) -> Self {
        note_orb(orb);
        let outer = if upcalls() == 0 { None } else { outer() };
        FRAME.with(|now| now.set(frame));
        Self { outer }
    }
}

impl Drop for FrameScope {
    #[inline]
    fn drop(&mut self) {
        FRAME.with(|now| match self.outer {
            None => now.connection.set(NOWHERE),
            Some(ref outer) => now.set(**outer),
        });
    }
}

#[cold]
fn outer() -> Option<Box<Frame>> {
    Some(Box::new(FRAME.with(FrameSlots::get)))
}

/// This thread runs requests to that ORB.
#[inline]
pub(super) fn note_orb(orb: &Orb) {
    // It keeps the place, so that no other ORB comes to lie there.
    if PLACE.with(Cell::get) != orb.instance() {
        note_other_orb(orb);
    }
}

/// This thread, which may run a request already, calls an object of that ORB.
pub(super) fn note_calling_orb(orb: &Orb) {
    // A request that runs is found by its own ORB, also after the call.
    if FRAME.with(|now| now.connection.get()) == NOWHERE {
        note_orb(orb);
    }
}

#[cold]
fn note_other_orb(orb: &Orb) {
    PLACE.with(|place| place.set(orb.instance()));
    let before = ORB.with(|known| known.replace(Some(WeakOrb::of(orb))));
    drop(before);
}

/// The time in which a thread serves a request whose upcall has returned.
pub(super) struct ServedScope {
    outer: Frame,
}

impl ServedScope {
    pub(super) fn enter(cancellation: &Arc<CancellationSource>) -> Self {
        SERVED.with(|served| served.borrow_mut().push(Arc::clone(cancellation)));
        let outer = FRAME.with(FrameSlots::get);
        FRAME.with(|now| now.set(Frame::NONE));
        Self { outer }
    }
}

impl Drop for ServedScope {
    fn drop(&mut self) {
        let left = SERVED.with(|served| served.borrow_mut().pop());
        FRAME.with(|now| now.set(self.outer));
        drop(left);
    }
}

/// What may cancel the innermost request that is served here although its upcall has returned.
pub(super) fn served() -> Option<Arc<CancellationSource>> {
    SERVED.with(|served| served.borrow().last().cloned())
}

/// The ORB whose requests this thread runs.
pub(super) fn orb() -> Option<Orb> {
    ORB.with(|known| known.borrow().as_ref().and_then(WeakOrb::upgrade))
}
