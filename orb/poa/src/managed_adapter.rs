//! Adapters as seen by their managers, and by threads that destroy them: visibility of state changes, and the
//! wait for running requests.

use spandrel_orb::Orb;
use spandrel_sync::Arc;

use crate::{EtherealizeObjects, adapter::Adapter, manager::ManagedAdapter};

impl ManagedAdapter for Adapter {
    fn barrier(&self) {
        self.objects.barrier();
    }

    fn settle(&self) {
        self.objects.settle();
    }

    fn await_requests(&self, keep_waiting: &dyn Fn() -> bool) {
        loop {
            self.await_condition(|| self.usage.is_quiet() || !keep_waiting());
            // Collected now: an object incarnated until a moment ago is among them.
            let used = self.objects.in_use();
            if used.is_empty() || !keep_waiting() {
                return;
            }
            // One count is the map's own; none is left of objects that have been deactivated meanwhile.
            self.await_condition(|| used.iter().all(|active| active.strong_count() <= 1) || !keep_waiting());
        }
    }

    fn end_objects(self: Arc<Self>) {
        if self.has_activator() {
            self.deactivate_all(EtherealizeObjects::Yes);
        }
    }
}

impl Adapter {
    /// Waits for all running requests and etherealizations.
    pub(crate) fn await_end(self: &Arc<Self>) {
        self.await_requests(&|| true);
    }

    /// Waits for a condition. The main thread runs its own jobs meanwhile, since no other thread does.
    fn await_condition(&self, condition: impl Fn() -> bool) {
        if let Some(orb) = self.orb().filter(Orb::is_main_thread) {
            while !condition() && orb.perform_work().is_ok() {
                if !orb.work_pending().unwrap_or(false) {
                    self.usage.await_briefly(&condition);
                }
            }
        }
        self.usage.await_condition(condition);
    }
}
