//! The stack of upcalls in each thread.
//!
//! A thread keeps its frames when they are left: a frame remembers its adapter, so that the next request for
//! the same one finds it without a lock or a reference count. A frame in use owns the servant of its request.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use spandrel_server::Servant;
use spandrel_sync::{Arc, thread_local};

use crate::{PoaError, adapter::Adapter, error, orb_handle::OrbHandle, servant_in_use::ServantInUse};

/// Octets for object ids that a frame retains; the memory of longer ones is freed.
const RETAINED_OCTETS: usize = 1024;

thread_local! {
    static FRAMES: Frames = const { Frames { frames: RefCell::new(Vec::new()), depth: Cell::new(0) } };
}

struct Frames {
    frames: RefCell<Vec<Rc<Frame>>>,
    depth: Cell<usize>,
}

/// The state of one upcall.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) adapter: RefCell<Option<Arc<Adapter>>>,
    pub(crate) object_id: RefCell<Vec<u8>>,
    /// `None` before the servant is found and after the upcall. Released by the code that set it.
    pub(crate) in_use: RefCell<Option<ServantInUse>>,
}

impl Frame {
    /// Enters a frame, which may still hold the adapter of an earlier request. It is the topmost one of its
    /// thread until it is [left](Self::leave).
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

    /// Leaves this frame, the topmost one. Its servant must have been released.
    #[inline]
    pub(crate) fn leave(&self) {
        if self.object_id.borrow().capacity() > RETAINED_OCTETS {
            self.object_id.take();
        }
        FRAMES.with(|stack| stack.depth.set(stack.depth.get() - 1));
    }
}

/// Guard of an entered frame without a servant.
pub(crate) struct EnteredFrame(Rc<Frame>);

impl EnteredFrame {
    pub(crate) fn new() -> Self {
        Self(Frame::enter())
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.0
    }
}

impl Drop for EnteredFrame {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// BAD_INV_ORDER for a wait in a thread that would wait for itself: inside an upcall, or in the future of a
/// request.
pub(crate) fn check_may_wait(orb: &Arc<OrbHandle>, wait: bool) -> Result<(), PoaError> {
    if wait && (is_inside(orb) || orb.get().is_ok_and(|orb| orb.is_polling_here())) {
        return Err(error::would_deadlock().into());
    }
    Ok(())
}

/// Whether this thread is inside an upcall of this ORB's adapters.
fn is_inside(orb: &Arc<OrbHandle>) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        frames[..stack.depth.get()]
            .iter()
            .any(|frame| frame.adapter.borrow().as_ref().is_some_and(|adapter| adapter.manager.belongs_to(orb)))
    })
}

/// Whether this thread is inside an upcall of this object.
pub(crate) fn is_inside_of(adapter: &Arc<Adapter>, id: &[u8]) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        frames[..stack.depth.get()].iter().any(|frame| {
            frame.adapter.borrow().as_ref().is_some_and(|other| Arc::ptr_eq(other, adapter))
                && *frame.object_id.borrow() == id
        })
    })
}

/// Calls `show` for the innermost upcall of this thread. `None` outside upcalls.
pub(crate) fn innermost<T>(show: impl FnOnce(&Arc<Adapter>, &[u8], &Arc<dyn Servant>) -> T) -> Option<T> {
    // The frame is taken out of the stack, so that `show` may enter others.
    let frame = FRAMES.with(|stack| {
        let top = stack.depth.get().checked_sub(1)?;
        Some(Rc::clone(&stack.frames.borrow()[top]))
    });
    let frame = frame?;
    let (adapter, in_use) = (frame.adapter.borrow(), frame.in_use.borrow());
    let servant = in_use.as_ref().and_then(ServantInUse::servant)?;
    Some(show(adapter.as_ref()?, &frame.object_id.borrow(), servant))
}
