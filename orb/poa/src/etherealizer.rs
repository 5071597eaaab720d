//! Objects that are no longer active, and whose servant activator has not been told yet.

use std::collections::VecDeque;

use spandrel_orb::Servant;
use spandrel_sync::{Arc, Mutex};

use crate::{ObjectId, objects::Ending};

/// What a thread of the adapter's own is to do.
#[derive(Default)]
pub(crate) struct Etherealizer(Mutex<Work>);

#[derive(Default)]
struct Work {
    left: VecDeque<Ended>,
    has_thread: bool,
}

/// An object that is no longer active.
pub(crate) struct Ended {
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) ending: Ending,
}

impl Etherealizer {
    /// One more. True if there is no thread yet that takes them, and one is needed.
    pub(crate) fn push(&self, ended: Ended) -> bool {
        let mut work = self.0.lock();
        work.left.push_back(ended);
        !std::mem::replace(&mut work.has_thread, true)
    }

    /// The first. A thread that is told that there is none does not come again.
    pub(crate) fn next(&self) -> Option<Ended> {
        let mut work = self.0.lock();
        let next = work.left.pop_front();
        work.has_thread &= next.is_some();
        next
    }
}
