//! What managers ask of their adapters, and whoever destroys one: that all see a change, and that what runs is waited for.

use spandrel_orb::Orb;
use spandrel_sync::Arc;

use crate::{adapter::Adapter, manager::Managed};

impl Managed for Adapter {
    fn barrier(&self) {
        self.objects.barrier();
    }

    fn settle(&self) {
        self.objects.settle();
    }

    fn await_requests(&self, goes_on: &dyn Fn() -> bool) {
        loop {
            self.await_that(|| self.usage.is_quiet() || !goes_on());
            // Looked for now: what an activator was asked for until a moment ago is among them.
            let used = self.objects.in_use();
            if used.is_empty() || !goes_on() {
                return;
            }
            // One count is the map's own; none is left of what has been deactivated meanwhile.
            self.await_that(|| used.iter().all(|active| active.strong_count() <= 1) || !goes_on());
        }
    }

    fn end_objects(self: Arc<Self>) {
        if self.has_activator() {
            self.deactivate_all(true);
        }
    }
}

impl Adapter {
    /// Waits for all requests that run, and all etherealizations.
    pub(crate) fn await_end(self: &Arc<Self>) {
        self.await_requests(&|| true);
    }

    /// Waits until this is so. The main thread does meanwhile what may be waited for, since nobody else does.
    fn await_that(&self, is_so: impl Fn() -> bool) {
        if let Some(orb) = self.orb().filter(Orb::is_main_thread) {
            while !is_so() && orb.perform_work().is_ok() {
                if !orb.work_pending().unwrap_or(false) {
                    self.usage.await_shortly(&is_so);
                }
            }
        }
        self.usage.await_that(is_so);
    }
}
