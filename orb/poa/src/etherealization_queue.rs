//! Deactivated objects that wait for their servant activator.
//!
//! This is only their queue: `deactivation` fills it, and calls the activator.

use std::collections::VecDeque;

use spandrel_server::Servant;
use spandrel_sync::{Arc, Mutex};

use crate::{ObjectId, objects::Deactivation};

/// The work of a thread of the adapter's own.
#[derive(Default)]
pub(crate) struct EtherealizationQueue(Mutex<Work>);

#[derive(Default)]
struct Work {
    pending: VecDeque<DeactivatedObject>,
    has_thread: bool,
}

/// An object whose servant is to be etherealized.
pub(crate) struct DeactivatedObject {
    pub(crate) id: ObjectId,
    pub(crate) servant: Arc<dyn Servant>,
    pub(crate) deactivation: Deactivation,
}

impl EtherealizationQueue {
    /// Adds an object. Returns true if a thread has to be started for it.
    pub(crate) fn push(&self, object: DeactivatedObject) -> bool {
        let mut work = self.0.lock();
        work.pending.push_back(object);
        !std::mem::replace(&mut work.has_thread, true)
    }

    /// The first object. After `None` the thread must end.
    pub(crate) fn next(&self) -> Option<DeactivatedObject> {
        let mut work = self.0.lock();
        let next = work.pending.pop_front();
        work.has_thread &= next.is_some();
        next
    }
}
