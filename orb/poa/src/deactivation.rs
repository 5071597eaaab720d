//! The end of an object's activation (CORBA 3.3 Part 1, 15.3.6.2 and 15.3.9.20): after its last request, the servant activator is told.
//!
//! The thread that ends the last request tells it. Where there is none, because no request runs, a thread of the adapter's does, since
//! `deactivate_object` returns at once. Until that is done the id stands for nothing and cannot be activated: whoever wants to waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_sync::{Arc, atomic::Ordering, thread};

use crate::{
    ObjectId, Poa, PoaError, ServantManager, ThreadPolicy,
    adapter::{Adapter, servants::let_go},
    etherealizer::Ended,
    frames::Entered,
    objects::{Active, Behind, Ending},
};

impl Adapter {
    /// Deactivates an object for the application.
    pub(crate) fn deactivate(self: &Arc<Self>, id: &ObjectId) -> Result<(), PoaError> {
        let ending = Ending { etherealize: true, is_cleanup: false };
        if self.begin_deactivation(id, ending) { Ok(()) } else { Err(PoaError::ObjectNotActive) }
    }

    /// Begins to deactivate an object; false if it is not active.
    fn begin_deactivation(self: &Arc<Self>, id: &[u8], ending: Ending) -> bool {
        // Counted before it can end.
        self.usage.begin_ending();
        let Some(active) = self.objects.deactivate(id, ending) else {
            self.usage.ended();
            return false;
        };
        if let Some(active) = Arc::into_inner(active) {
            self.object_ended(id, active, false);
        }
        true
    }

    /// Deactivates all objects, since the adapter or its manager ends.
    pub(crate) fn deactivate_all(self: &Arc<Self>, etherealize: bool) {
        let ending = Ending { etherealize, is_cleanup: true };
        for id in self.objects.ids() {
            self.begin_deactivation(&id, ending);
        }
    }

    /// Deactivates an object that became active while the adapter ended.
    pub(crate) fn deactivate_late(self: &Arc<Self>, id: &[u8]) {
        let etherealize = self.etherealizes_at_end.load(Ordering::SeqCst);
        self.begin_deactivation(id, Ending { etherealize, is_cleanup: true });
    }

    /// Nobody uses any longer what stood behind an object. `is_request`: the caller was the last request.
    pub(crate) fn object_ended(self: &Arc<Self>, id: &[u8], active: Active, is_request: bool) {
        // Otherwise something else stands there, and what did before is let go.
        let Some(ending) = self.objects.ending(id, &active) else { return };
        let Behind::Servant(servant) = active.behind else { return self.end_deactivation(id) };
        if !ending.etherealize || !self.has_activator() {
            self.objects.let_go(&servant);
            let_go(servant);
            return self.end_deactivation(id);
        }
        let ended = Ended { id: id.into(), servant, ending };
        if is_request {
            self.etherealize(ended);
        } else {
            self.etherealize_elsewhere(ended);
        }
    }

    fn end_deactivation(&self, id: &[u8]) {
        self.objects.end_deactivation(id);
        self.usage.ended();
        self.let_go_if_over();
    }

    /// The ORB ends, and its main thread has had its time: what that has not done is done here.
    pub(crate) fn etherealize_left(self: &Arc<Self>) {
        if self.policies.thread == ThreadPolicy::MainThreadModel {
            self.etherealize_all();
        }
    }

    fn etherealize_elsewhere(self: &Arc<Self>, ended: Ended) {
        let is_cleanup = ended.ending.is_cleanup;
        if !self.etherealizer.push(ended) {
            return;
        }
        if self.policies.thread == ThreadPolicy::MainThreadModel {
            return self.etherealize_in_main(is_cleanup);
        }
        let adapter = Arc::clone(self);
        let started = thread::Builder::new().name("spandrel-ethereal".into()).spawn(move || adapter.etherealize_all());
        if let Err(error) = started {
            tracing::error!(%error, "no thread to tell a servant activator in; doing it here");
            self.etherealize_all();
        }
    }

    /// As servants of this adapter are called; but whoever ends the adapter may be the main thread, and wait for this.
    fn etherealize_in_main(self: &Arc<Self>, is_cleanup: bool) {
        let adapter = Arc::clone(self);
        let orb = if is_cleanup { None } else { self.orb() };
        let accepted = orb.map(|orb| orb.run_in_main(Box::new(move || adapter.etherealize_all())));
        if !matches!(accepted, Some(Ok(()))) {
            self.etherealize_all();
        }
    }

    fn etherealize_all(self: &Arc<Self>) {
        while let Some(ended) = self.etherealizer.next() {
            // As a request would, so that servants and servant managers are called by one thread at a time if that is the policy.
            let _turn = self.turn.as_ref().map(|turn| turn.take());
            let entered = Entered::new();
            *entered.frame().adapter.borrow_mut() = Some(Arc::clone(self));
            entered.frame().set_object_id(&ended.id);
            self.etherealize(ended);
        }
    }

    fn etherealize(self: &Arc<Self>, ended: Ended) {
        let Ended { id, servant, ending } = ended;
        let manager = self.servant_manager.read().clone();
        if let (Some(ServantManager::Activator(activator)), Ok(poa)) = (manager, Poa::of(self)) {
            let remaining = self.objects.let_go(&servant);
            spandrel_sync::held::assert_none("a servant activator");
            let told = catch_unwind(AssertUnwindSafe(|| {
                activator.etherealize(&id, &poa, servant, ending.is_cleanup, remaining);
            }));
            if told.is_err() {
                tracing::error!(adapter = ?self.path, "a servant activator panicked in etherealize");
            }
        }
        self.end_deactivation(&id);
    }
}
