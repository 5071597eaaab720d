//! Deactivation of objects (CORBA 3.3 Part 1, 15.3.6.2 and 15.3.9.20): after the last request, the servant
//! activator etherealizes the object.
//!
//! The thread that ends the last request calls the activator. Without a running request a thread of the
//! adapter's own does, since `deactivate_object` returns at once. Until then the id has no object and cannot
//! be activated: an activation waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_sync::{Arc, atomic::Ordering, thread};

use crate::{
    EtherealizeObjects, ObjectId, Poa, PoaError, ServantManager, ThreadPolicy,
    adapter::{Adapter, servants::drop_logged},
    etherealization_queue::DeactivatedObject,
    frames::EnteredFrame,
    objects::{ActiveObject, Binding, Deactivation},
};

impl Adapter {
    /// Deactivates an object on behalf of the application.
    pub(crate) fn deactivate(self: &Arc<Self>, id: &ObjectId) -> Result<(), PoaError> {
        let deactivation = Deactivation { etherealize: EtherealizeObjects::Yes, is_cleanup: false };
        if self.begin_deactivation(id, deactivation) { Ok(()) } else { Err(self.object_not_active(id)) }
    }

    /// Begins the deactivation of an object; returns false if it is not active.
    fn begin_deactivation(self: &Arc<Self>, id: &[u8], deactivation: Deactivation) -> bool {
        // Counted before it can end.
        self.usage.begin_ending();
        let Some(active) = self.objects.deactivate(id, deactivation) else {
            self.usage.ended();
            return false;
        };
        if let Some(active) = Arc::into_inner(active) {
            self.complete_deactivation(id, active, false);
        }
        true
    }

    /// Deactivates all objects, since the adapter or its manager ends.
    pub(crate) fn deactivate_all(self: &Arc<Self>, etherealize: EtherealizeObjects) {
        let deactivation = Deactivation { etherealize, is_cleanup: true };
        for id in self.objects.ids() {
            self.begin_deactivation(&id, deactivation);
        }
    }

    /// Deactivates an object that became active while the adapter was being destroyed.
    pub(crate) fn deactivate_late(self: &Arc<Self>, id: &[u8]) {
        let at_end = self.etherealizes_at_end.load(Ordering::SeqCst);
        let etherealize = if at_end { EtherealizeObjects::Yes } else { EtherealizeObjects::No };
        self.begin_deactivation(id, Deactivation { etherealize, is_cleanup: true });
    }

    /// Completes the deactivation of an unused object. `is_request`: the caller is its last request.
    pub(crate) fn complete_deactivation(self: &Arc<Self>, id: &[u8], active: ActiveObject, is_request: bool) {
        // Otherwise the object has a new servant, and the old one is only released.
        let Some(deactivation) = self.objects.deactivation(id, &active) else { return };
        let Binding::Servant(servant) = active.binding else { return self.end_deactivation(id) };
        if deactivation.etherealize == EtherealizeObjects::No || !self.has_activator() {
            self.objects.release_servant(&servant);
            drop_logged(servant);
            return self.end_deactivation(id);
        }
        let object = DeactivatedObject { id: id.into(), servant, deactivation };
        if is_request {
            self.etherealize(object);
        } else {
            self.etherealize_on_own_thread(object);
        }
    }

    fn end_deactivation(&self, id: &[u8]) {
        self.objects.end_deactivation(id);
        self.usage.ended();
        self.release_if_destroyed();
    }

    /// Etherealizes the remaining objects when the ORB ends and its main thread has had its time.
    pub(crate) fn etherealize_pending(self: &Arc<Self>) {
        if self.policies.thread == ThreadPolicy::MainThreadModel {
            self.etherealize_all();
        }
    }

    fn etherealize_on_own_thread(self: &Arc<Self>, object: DeactivatedObject) {
        let is_cleanup = object.deactivation.is_cleanup;
        if !self.etherealization_queue.push(object) {
            return;
        }
        if self.policies.thread == ThreadPolicy::MainThreadModel {
            return self.etherealize_on_main_thread(is_cleanup);
        }
        let adapter = Arc::clone(self);
        let started = thread::Builder::new().name("spandrel-ethereal".into()).spawn(move || adapter.etherealize_all());
        if let Err(error) = started {
            tracing::error!(%error, "cannot start a thread to call a servant activator; calling it in the current thread");
            self.etherealize_all();
        }
    }

    /// Calls the servant activator on the main thread, as servants of this adapter are called. The main
    /// thread itself may be the one that waits for this.
    fn etherealize_on_main_thread(self: &Arc<Self>, is_cleanup: bool) {
        let adapter = Arc::clone(self);
        let orb = if is_cleanup { None } else { self.orb() };
        let accepted = orb.map(|orb| orb.run_in_main(Box::new(move || adapter.etherealize_all())));
        if !matches!(accepted, Some(Ok(()))) {
            self.etherealize_all();
        }
    }

    fn etherealize_all(self: &Arc<Self>) {
        while let Some(object) = self.etherealization_queue.next() {
            // As in a request, so that the thread policy covers servants and servant managers.
            let _guard = self.serial_lock.as_ref().map(|serial_lock| serial_lock.acquire_blocking());
            let entered = EnteredFrame::new();
            entered.frame().set_adapter(Some(Arc::clone(self)));
            entered.frame().set_object(&self.key(&object.id));
            self.etherealize(object);
        }
    }

    fn etherealize(self: &Arc<Self>, object: DeactivatedObject) {
        let DeactivatedObject { id, servant, deactivation } = object;
        let manager = self.servant_manager.read().clone();
        if let (Some(ServantManager::Activator(activator)), Ok(poa)) = (manager, Poa::of(self)) {
            let remaining = self.objects.release_servant(&servant);
            spandrel_sync::held::assert_none("a servant activator");
            let result = catch_unwind(AssertUnwindSafe(|| {
                activator.etherealize(&id, &poa, servant, deactivation.is_cleanup, remaining);
            }));
            if result.is_err() {
                tracing::error!(adapter = ?self.path, "a servant activator panicked in etherealize");
            }
        }
        self.end_deactivation(&id);
    }
}
