//! One request in its adapter: queries while it runs, and the release of its servant after the reply.

use std::{
    any::Any,
    cell::Ref,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::{OperationDemux, Policy, PolicyType, Servant, ServantUse, SystemException, Target};
use spandrel_sync::{Arc, Mutex, thread};

use crate::{
    ObjectId, Poa, ThreadPolicy,
    adapter::{Adapter, servants::drop_logged},
    frames::{Frame, FrameState},
    servant_in_use::{LocatedServant, ServantInUse},
};

impl ServantUse for Frame {
    #[inline]
    fn servant(&self) -> Ref<'_, Arc<dyn Servant>> {
        Ref::map(self.state(), |state| {
            let servant = state.in_use.as_ref().and_then(ServantInUse::servant);
            servant.expect("the upcall has a servant, whose use has not ended")
        })
    }

    #[inline]
    fn target(&self) -> Ref<'_, dyn Target> {
        Ref::map(self.state(), |state| state as &dyn Target)
    }

    /// Inside the frame: a servant manager that is called must not wait for the end of all upcalls either.
    #[inline]
    fn end(&self) -> Result<(), SystemException> {
        let in_use = self.take_use();
        let state = self.state();
        if let (Some(in_use), Some(adapter)) = (in_use, &state.adapter) {
            in_use.end(adapter, &state.object_id);
        }
        Ok(())
    }

    #[inline]
    fn release(&self) {
        let _ = self.end();
        self.leave();
    }
}

impl ServantInUse {
    /// The same use once more; each is ended separately.
    fn share(&self, adapter: &Adapter) -> Self {
        match self {
            Self::Object(active) => Self::Object(Arc::clone(active)),
            Self::Default(servant) => {
                adapter.usage.start_another();
                Self::Default(Arc::clone(servant))
            }
            Self::Located(located) => {
                adapter.usage.start_another();
                Self::Located(Arc::clone(located))
            }
        }
    }

    /// Ends the use after the reply. The last user of an object completes its deactivation.
    #[inline]
    pub(crate) fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        match self {
            Self::Object(active) => {
                if let Some(active) = Arc::into_inner(active) {
                    adapter.complete_deactivation(id, active, true);
                }
                adapter.usage.notify_waiters();
            }
            Self::Default(servant) => {
                drop_logged(servant);
                adapter.end_counted();
            }
            Self::Located(located) => {
                if let Some(located) = Arc::into_inner(located) {
                    located.end(adapter, id);
                }
                adapter.end_counted();
            }
        }
    }
}

impl LocatedServant {
    fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        let Ok(poa) = Poa::of(adapter) else { return drop_logged(self) };
        let Self { locator, servant, operation, cookie } = self;
        spandrel_sync::held::assert_none("a servant locator");
        let result = catch_unwind(AssertUnwindSafe(|| {
            locator.postinvoke(&ObjectId::from(id), &poa, &operation, cookie.into_inner(), servant);
        }));
        if result.is_err() {
            tracing::error!(%operation, "a servant locator panicked in postinvoke");
        }
    }
}

impl FrameState {
    fn adapter(&self) -> &Arc<Adapter> {
        self.adapter.as_ref().expect("an upcall has an adapter")
    }
}

impl Target for FrameState {
    fn object_id(&self) -> &[u8] {
        &self.object_id
    }

    fn adapter_id(&self) -> &[u8] {
        &self.adapter().prefix
    }

    fn adapter_name(&self) -> Vec<String> {
        self.adapter().full_name()
    }

    fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter().policy(policy_type)
    }

    fn operation_demux(&self) -> OperationDemux {
        self.adapter().operation_demux
    }

    fn keep_in_use(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(DeferredUse {
            adapter: Arc::clone(self.adapter()),
            id: self.object_id.as_slice().into(),
            in_use: Mutex::new(self.in_use.as_ref().map(|in_use| in_use.share(self.adapter()))),
        })
    }
}

/// Keeps a servant in use for a request that is answered after its upcall.
struct DeferredUse {
    adapter: Arc<Adapter>,
    id: ObjectId,
    in_use: Mutex<Option<ServantInUse>>,
}

impl Drop for DeferredUse {
    fn drop(&mut self) {
        let Some(in_use) = self.in_use.lock().take() else { return };
        let (adapter, id) = (Arc::clone(&self.adapter), self.id.clone());
        // Any thread may run this, but a servant manager may require the adapter's own.
        if adapter.servant_manager.read().is_none() {
            return in_use.end(&adapter, &id);
        }
        let own = Arc::clone(&adapter);
        run_under_thread_policy(&own, Box::new(move || in_use.end(&adapter, &id)));
    }
}

/// A function that runs when it is dropped, since its receivers may end without a call.
struct RunOnDrop(Option<Box<dyn FnOnce() + Send>>);

impl Drop for RunOnDrop {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|job| job());
    }
}

/// Runs a job that may call servant managers, in accordance with the adapter's thread policy.
fn run_under_thread_policy(adapter: &Adapter, job: Box<dyn FnOnce() + Send>) {
    let job = RunOnDrop(Some(job));
    match adapter.policies.thread {
        ThreadPolicy::OrbCtrlModel => drop(job),
        ThreadPolicy::SingleThreadModel => {
            let serial_lock = adapter.serial_lock.clone();
            let thread = thread::Builder::new().name("spandrel-ethereal".into());
            let started = thread.spawn(move || {
                let _guard = serial_lock.as_ref().map(|serial_lock| serial_lock.acquire_blocking());
                drop(job);
            });
            // Without a thread it was dropped, and so has run here.
            drop(started);
        }
        ThreadPolicy::MainThreadModel => {
            if let Some(orb) = adapter.orb() {
                // Rejected, it is dropped, and so runs here.
                let _ = orb.run_in_main(Box::new(move || drop(job)));
            }
        }
    }
}
