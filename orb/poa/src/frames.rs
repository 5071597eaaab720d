//! Which upcalls a thread is inside of.
//!
//! A thread has a stack of frames, which it keeps when they are left: a frame remembers its adapter, so that the next request for the
//! same one finds it without a lock or a count. While a frame is in use it owns what the request uses.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use spandrel_orb::Servant;
use spandrel_sync::{Arc, thread_local};

use crate::{PoaError, adapter::Adapter, error, in_use::InUse, live_orb::LiveOrb};

/// Octets that a frame keeps for object ids; longer ones are peers' and no threads' for ever.
const KEPT_OCTETS: usize = 1024;

thread_local! {
    static FRAMES: Frames = const { Frames { frames: RefCell::new(Vec::new()), depth: Cell::new(0) } };
}

struct Frames {
    frames: RefCell<Vec<Rc<Frame>>>,
    depth: Cell<usize>,
}

/// What one upcall is about.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) adapter: RefCell<Option<Arc<Adapter>>>,
    pub(crate) object_id: RefCell<Vec<u8>>,
    /// Nothing before the servant is found, nor after the upcall. Given back by whoever put it there.
    pub(crate) in_use: RefCell<Option<InUse>>,
}

impl Frame {
    /// Enters a frame that may have another request's adapter in it still. It is the topmost one of its thread until it is [left](Self::leave).
    #[inline]
    pub(crate) fn enter() -> Rc<Self> {
        FRAMES.with(|stack| {
            let (mut frames, depth) = (stack.frames.borrow_mut(), stack.depth.get());
            if depth == frames.len() {
                frames.push(Rc::default());
            }
            stack.depth.set(depth + 1);
            Rc::clone(&frames[depth])
        })
    }

    #[inline]
    pub(crate) fn set_object_id(&self, id: &[u8]) {
        let mut known = self.object_id.borrow_mut();
        known.clear();
        known.extend_from_slice(id);
    }

    /// Leaves the topmost frame, which this is. What it has in use was given back.
    #[inline]
    pub(crate) fn leave(&self) {
        if self.object_id.borrow().capacity() > KEPT_OCTETS {
            self.object_id.take();
        }
        FRAMES.with(|stack| stack.depth.set(stack.depth.get() - 1));
    }
}

/// The time in which a thread is inside of a frame that has nothing in use.
pub(crate) struct Entered(Rc<Frame>);

impl Entered {
    pub(crate) fn new() -> Self {
        Self(Frame::enter())
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.0
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// BAD_INV_ORDER for waiting in a thread that would wait for itself: inside of an upcall, or in the future of a request.
pub(crate) fn check_may_wait(orb: &Arc<LiveOrb>, wait: bool) -> Result<(), PoaError> {
    if wait && (is_inside(orb) || orb.get().is_ok_and(|orb| orb.is_polling_here())) {
        return Err(error::would_deadlock().into());
    }
    Ok(())
}

/// Whether this thread is inside of any upcall of this ORB's adapters.
fn is_inside(orb: &Arc<LiveOrb>) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        frames[..stack.depth.get()]
            .iter()
            .any(|frame| frame.adapter.borrow().as_ref().is_some_and(|adapter| adapter.manager.is_of(orb)))
    })
}

/// Whether this thread is inside of an upcall of this object.
pub(crate) fn is_inside_of(adapter: &Arc<Adapter>, id: &[u8]) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        frames[..stack.depth.get()].iter().any(|frame| {
            frame.adapter.borrow().as_ref().is_some_and(|other| Arc::ptr_eq(other, adapter))
                && *frame.object_id.borrow() == id
        })
    })
}

/// The request that this thread runs is for this object: what asks whether a servant runs for it. Nothing outside of upcalls.
pub(crate) fn innermost<T>(show: impl FnOnce(&Arc<Adapter>, &[u8], &Arc<dyn Servant>) -> T) -> Option<T> {
    // The frame is taken out of the stack, so that what is shown may enter others.
    let frame = FRAMES.with(|stack| {
        let top = stack.depth.get().checked_sub(1)?;
        Some(Rc::clone(&stack.frames.borrow()[top]))
    });
    let frame = frame?;
    let (adapter, in_use) = (frame.adapter.borrow(), frame.in_use.borrow());
    let servant = in_use.as_ref().and_then(InUse::servant)?;
    Some(show(adapter.as_ref()?, &frame.object_id.borrow(), servant))
}
