//! The stack of upcalls in each thread.
//!
//! A thread keeps its frames when they are left: a frame remembers its adapter, so that the next request for
//! the same one finds it without a lock or a reference count. A frame in use owns the servant of its request.

use std::{
    cell::{Cell, Ref, RefCell},
    rc::Rc,
};

use spandrel_server::Servant;
use spandrel_sync::{Arc, Weak, thread_local};

use crate::{
    PoaError, WaitForCompletion, adapter::Adapter, error, orb_handle::OrbHandle, serial_lock::SerialGuard,
    servant_in_use::ServantInUse,
};

/// Octets for object ids that a frame retains; the memory of longer ones is freed.
const RETAINED_OCTETS: usize = 1024;

thread_local! {
    static FRAMES: Frames = const { Frames { frames: RefCell::new(Vec::new()), depth: Cell::new(0) } };
}

struct Frames {
    frames: RefCell<Vec<Rc<Frame>>>,
    depth: Cell<usize>,
}

/// One upcall of a thread, and its turn in a single-threaded adapter.
#[derive(Default)]
pub(crate) struct Frame {
    state: RefCell<FrameState>,
    /// Set for requests to adapters with SINGLE_THREAD_MODEL.
    turn: Cell<Option<SerialGuard>>,
}

/// The state of one upcall.
#[derive(Default)]
pub(crate) struct FrameState {
    pub(crate) adapter: Option<Arc<Adapter>>,
    pub(crate) object_id: Vec<u8>,
    /// `None` before the servant is found and after its use. Released by the code that set it.
    pub(crate) in_use: Option<ServantInUse>,
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
    pub(crate) fn state(&self) -> Ref<'_, FrameState> {
        self.state.borrow()
    }

    /// Puts an adapter into the frame, or removes the one of an earlier request.
    pub(crate) fn set_adapter(&self, adapter: Option<Arc<Adapter>>) {
        let before = std::mem::replace(&mut self.state.borrow_mut().adapter, adapter);
        drop(before);
    }

    /// Records the object: the part of the key behind that of the frame's adapter.
    #[inline]
    pub(crate) fn set_object(&self, object_key: &[u8]) {
        let FrameState { adapter, object_id, .. } = &mut *self.state.borrow_mut();
        let adapter = adapter.as_ref().expect("the caller has found the adapter");
        object_id.clear();
        object_id.extend_from_slice(&object_key[adapter.prefix.len()..]);
    }

    fn set_id(&self, id: &[u8]) {
        let object_id = &mut self.state.borrow_mut().object_id;
        object_id.clear();
        object_id.extend_from_slice(id);
    }

    /// Puts the servant into the frame, and the thread's turn.
    #[inline(always)]
    pub(crate) fn begin_use(&self, in_use: ServantInUse, turn: Option<SerialGuard>) {
        let before = self.state.borrow_mut().in_use.replace(in_use);
        debug_assert!(before.is_none(), "the frame is free");
        if turn.is_some() {
            self.turn.set(turn);
        }
    }

    /// Takes the servant out of the frame.
    #[inline]
    pub(crate) fn take_use(&self) -> Option<ServantInUse> {
        self.state.borrow_mut().in_use.take()
    }

    /// Leaves this frame, the topmost one, and gives back the thread's turn. The servant must have been
    /// released.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        let mut state = self.state.borrow_mut();
        if state.object_id.capacity() > RETAINED_OCTETS {
            state.object_id = Vec::new();
        }
        drop(state);
        FRAMES.with(|stack| stack.depth.set(stack.depth.get() - 1));
        drop(self.turn.take());
    }
}

/// Guard of an entered frame without a servant. Empty once the frame belongs to an upcall.
pub(crate) struct EnteredFrame(Option<Rc<Frame>>);

impl EnteredFrame {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(Some(Frame::enter()))
    }

    #[inline]
    pub(crate) fn frame(&self) -> &Frame {
        self.0.as_ref().expect("no upcall has the frame")
    }

    /// The frame, for an upcall that leaves it.
    #[inline]
    pub(crate) fn into_frame(mut self) -> Rc<Frame> {
        self.0.take().expect("no upcall has the frame")
    }
}

impl Drop for EnteredFrame {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(frame) = &self.0 {
            frame.leave();
        }
    }
}

/// The frame of a request whose future this thread polls.
pub(crate) struct PolledFrame(Rc<Frame>);

impl PolledFrame {
    pub(crate) fn enter(adapter: &Arc<Adapter>, id: &[u8], servant: &Weak<dyn Servant>) -> Self {
        let frame = Frame::enter();
        frame.set_adapter(Some(Arc::clone(adapter)));
        frame.set_id(id);
        frame.begin_use(ServantInUse::Polled(Weak::clone(servant)), None);
        Self(frame)
    }
}

impl Drop for PolledFrame {
    fn drop(&mut self) {
        drop(self.0.take_use());
        self.0.set_adapter(None); // the thread may belong to an executor that outlives the ORB
        self.0.leave();
    }
}

/// BAD_INV_ORDER for a wait in a thread that would wait for itself: inside an upcall, or in the future of a
/// request.
pub(crate) fn check_may_wait(orb: &Arc<OrbHandle>, wait: WaitForCompletion) -> Result<(), PoaError> {
    if wait == WaitForCompletion::Yes && (is_inside(orb) || orb.get().is_ok_and(|orb| orb.is_polling_here())) {
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
            .any(|frame| frame.state().adapter.as_ref().is_some_and(|adapter| adapter.manager.belongs_to(orb)))
    })
}

/// Whether this thread is inside an upcall of this object.
pub(crate) fn is_inside_of(adapter: &Arc<Adapter>, id: &[u8]) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        frames[..stack.depth.get()].iter().any(|frame| {
            let state = frame.state();
            state.adapter.as_ref().is_some_and(|other| Arc::ptr_eq(other, adapter)) && state.object_id == id
        })
    })
}

/// Whether the innermost upcall of this thread is one of this object, and its servant is this one.
pub(crate) fn is_innermost(adapter: &Arc<Adapter>, id: &[u8], servant: &Weak<dyn Servant>) -> bool {
    FRAMES.with(|stack| {
        let frames = stack.frames.borrow();
        let Some(top) = stack.depth.get().checked_sub(1) else { return false };
        let state = frames[top].state();
        let is_servant = |of_frame: &Arc<dyn Servant>| std::ptr::addr_eq(Arc::as_ptr(of_frame), servant.as_ptr());
        state.adapter.as_ref().is_some_and(|other| Arc::ptr_eq(other, adapter))
            && state.object_id == id
            && state.in_use.as_ref().and_then(ServantInUse::servant).is_some_and(is_servant)
    })
}

/// The frame of the innermost upcall of this thread. It is taken out of the stack, so that others may be entered.
pub(crate) fn innermost_frame() -> Option<Rc<Frame>> {
    FRAMES.with(|stack| {
        let top = stack.depth.get().checked_sub(1)?;
        Some(Rc::clone(&stack.frames.borrow()[top]))
    })
}

/// Calls `show` for the innermost upcall of this thread. `None` outside upcalls.
pub(crate) fn innermost<T>(show: impl FnOnce(&Arc<Adapter>, &[u8], &Arc<dyn Servant>) -> T) -> Option<T> {
    let frame = innermost_frame()?;
    let state = frame.state();
    let polled;
    let servant = match state.in_use.as_ref()? {
        ServantInUse::Polled(servant) => {
            polled = servant.upgrade()?;
            &polled
        }
        in_use => in_use.servant()?,
    };
    Some(show(state.adapter.as_ref()?, &state.object_id, servant))
}
