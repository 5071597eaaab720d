//! The modules of a stream at one time. A change of the stream makes a new one, and messages on their way keep theirs.

use spandrel_sync::Arc;

use crate::QueueStrategy;
use crate::module::ModuleCore;

/// The modules from the head (index 0) to the tail.
pub(crate) struct Topology<L: QueueStrategy> {
    pub(crate) modules: Vec<Arc<ModuleCore<L>>>,
}

impl<L: QueueStrategy> Topology<L> {
    /// The index of the module.
    pub(crate) fn position_of(&self, module: &Arc<ModuleCore<L>>) -> Option<usize> {
        self.modules.iter().position(|other| Arc::ptr_eq(other, module))
    }

    /// The index of the module that has this place now.
    pub(crate) fn position_of_slot(&self, slot: u64) -> Option<usize> {
        self.modules.iter().position(|module| module.slot_id() == slot)
    }

    /// The index of the module of this name.
    pub(crate) fn position_of_name(&self, name: &str) -> Option<usize> {
        self.modules.iter().position(|module| module.name == name)
    }
}
