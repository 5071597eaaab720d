//! The end of an object's activation (CORBA 3.3 Part 1, 15.3.6.2 and 15.3.9.20): after its last request, the servant activator is told.
//!
//! The thread that ends the last request tells it. Where there is none, because no request runs, a thread of the adapter's does, since
//! `deactivate_object` returns at once. Until that is done the id stands for nothing and cannot be activated: whoever wants to waits.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::Servant;
use spandrel_sync::{Arc, Mutex, atomic::Ordering, thread};

use crate::{
    ObjectId, Poa, ServantManager, ThreadPolicy,
    adapter::Adapter,
    frames::Entered,
    objects::{Active, Behind, Ending},
    servants::let_go,
};

/// What a thread of the adapter's own is to do.
#[derive(Default)]
pub(crate) struct Etherealizer(Mutex<Work>);

#[derive(Default)]
struct Work {
    left: VecDeque<Ended>,
    has_thread: bool,
}

/// Something that is done by whoever drops it: those to whom it is given may end without having come to it.
struct Certain(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Certain {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|job| job());
    }
}

/// An object that is no longer active.
struct Ended {
    id: ObjectId,
    servant: Arc<dyn Servant>,
    ending: Ending,
}

impl Adapter {
    /// Begins to deactivate an object; false if it is not active.
    pub(crate) fn begin_deactivation(self: &Arc<Self>, id: &[u8], ending: Ending) -> bool {
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

    /// Runs something that may call servant managers, as the thread policy says.
    pub(crate) fn run_apart(self: &Arc<Self>, job: Box<dyn FnOnce() + Send>) {
        let job = Certain(Some(job));
        match self.policies.thread {
            ThreadPolicy::OrbCtrlModel => drop(job),
            ThreadPolicy::SingleThreadModel => {
                let turn = self.turn.clone();
                let thread = thread::Builder::new().name("spandrel-ethereal".into());
                let started = thread.spawn(move || {
                    let _turn = turn.as_ref().map(|turn| turn.take());
                    drop(job);
                });
                // Without a thread it was dropped, and so done here.
                drop(started);
            }
            ThreadPolicy::MainThreadModel => {
                if let Some(orb) = self.orb() {
                    // Refused, it is dropped, and so done here.
                    let _ = orb.run_in_main(Box::new(move || drop(job)));
                }
            }
        }
    }

    /// The ORB ends, and its main thread has had its time: what that has not done is done here.
    pub(crate) fn etherealize_left(self: &Arc<Self>) {
        if self.policies.thread == ThreadPolicy::MainThreadModel {
            self.etherealize_all();
        }
    }

    /// Lets the application's objects go once the adapter is gone and nothing needs them any more: the adapter itself may be remembered
    /// for a while.
    pub(crate) fn let_go_if_over(&self) {
        if !self.is_gone() || !self.usage.is_quiet() {
            return;
        }
        // Each taken under its lock, and dropped outside of it.
        let manager = self.servant_manager.write().take();
        let default = self.default_servant.write().take();
        let activator = self.activator.lock().take();
        drop((manager, default, activator));
    }

    fn etherealize_elsewhere(self: &Arc<Self>, ended: Ended) {
        let is_cleanup = ended.ending.is_cleanup;
        let mut work = self.etherealizer.0.lock();
        work.left.push_back(ended);
        if std::mem::replace(&mut work.has_thread, true) {
            return;
        }
        drop(work);
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
        loop {
            let mut work = self.etherealizer.0.lock();
            let Some(ended) = work.left.pop_front() else {
                work.has_thread = false;
                return;
            };
            drop(work);
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
