//! One request in its adapter: queries while it runs, and the release of its servant.

use std::{
    cell::Ref,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind};
use spandrel_orb::{KeptUse, OperationDemux, Policy, PolicyType, Target};
use spandrel_server::{Servant, ServantUse};
use spandrel_sync::{Arc, Mutex, Weak, thread};

use crate::{
    ObjectId, Poa, ThreadPolicy,
    adapter::{Adapter, servants::drop_logged},
    frames::{Frame, FrameState, PolledFrame, innermost_frame, is_innermost},
    servant_in_use::{LocatedServant, ServantInUse, UseEnd},
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

    #[inline]
    fn parts(&self) -> (Ref<'_, Arc<dyn Servant>>, Ref<'_, dyn Target>) {
        Ref::map_split(self.state(), |state| {
            let servant = state.in_use.as_ref().and_then(ServantInUse::servant);
            let servant = servant.expect("the upcall has a servant, whose use has not ended");
            (servant, state as &dyn Target)
        })
    }

    /// Inside the frame: a servant manager that is called must not wait for the end of all upcalls either.
    fn end(&self) -> Result<(), SystemException> {
        self.end_use()
    }

    #[inline]
    fn release(&self) {
        if let Err(exception) = self.end_use() {
            tracing::debug!(%exception, "postinvoke raised an exception for a call that has failed");
        }
        self.leave();
    }
}

impl Frame {
    #[inline(always)]
    fn end_use(&self) -> Result<(), SystemException> {
        let Some(in_use) = self.take_use() else { return Ok(()) };
        let state = self.state();
        in_use.end(state.adapter.as_ref().expect("an upcall has an adapter"), &state.object_id)
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
            Self::Polled(servant) => Self::Polled(Weak::clone(servant)),
        }
    }

    /// Ends the use. The last user of an object completes its deactivation.
    ///
    /// # Errors
    /// The exception that a servant locator's `postinvoke` raised.
    #[inline(always)]
    pub(crate) fn end(self, adapter: &Arc<Adapter>, id: &[u8]) -> Result<(), SystemException> {
        match self {
            Self::Object(active) => {
                if let Some(active) = Arc::into_inner(active) {
                    adapter.complete_deactivation(id, active, true);
                }
                adapter.usage.notify_waiters();
                Ok(())
            }
            Self::Default(servant) => {
                drop_logged(servant);
                adapter.end_counted();
                Ok(())
            }
            Self::Located(located) => {
                let ended = Arc::into_inner(located).map_or(Ok(()), |located| located.end(adapter, id));
                adapter.end_counted();
                ended
            }
            Self::Polled(_) => Ok(()),
        }
    }

    /// Ends the use, and calls `then` once `postinvoke` has returned. If the request's upcall still runs, its
    /// thread calls both at its end.
    fn end_then(self, adapter: &Arc<Adapter>, id: &[u8], then: UseEnd) {
        if let Self::Located(located) = &self {
            *located.then.lock() = Some(then);
            let ended = self.end(adapter, id);
            debug_assert!(ended.is_ok(), "the result is passed on");
        } else {
            then(self.end(adapter, id));
        }
    }
}

impl LocatedServant {
    fn end(self, adapter: &Arc<Adapter>, id: &[u8]) -> Result<(), SystemException> {
        let Self { locator, servant, operation, cookie, then } = self;
        let then = then.into_inner();
        let Ok(poa) = Poa::of(adapter) else {
            drop_logged((locator, servant, cookie));
            then.into_iter().for_each(|then| then(Ok(())));
            return Ok(());
        };
        spandrel_sync::held::assert_none("a servant locator");
        let result = catch_unwind(AssertUnwindSafe(|| {
            locator.postinvoke(&ObjectId::from(id), &poa, &operation, cookie.into_inner(), servant)
        }));
        let ended = result.unwrap_or_else(|_| {
            tracing::error!(%operation, "a servant locator panicked in postinvoke");
            Err(SystemException::new(SystemExceptionKind::Unknown, 0, CompletionStatus::Yes)
                .with_detail(|| format!("the servant locator panicked in postinvoke of `{operation}`")))
        });
        match then {
            Some(then) => {
                then(ended);
                Ok(())
            }
            None => ended,
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

    fn keep_in_use(&self) -> Arc<dyn KeptUse> {
        let in_use = self.in_use.as_ref().map(|in_use| in_use.share(self.adapter()));
        Arc::new(DeferredUse {
            is_located: matches!(in_use, Some(ServantInUse::Located(_))),
            adapter: Arc::clone(self.adapter()),
            id: self.object_id.as_slice().into(),
            servant: in_use.as_ref().and_then(ServantInUse::servant).map(Arc::downgrade),
            in_use: Mutex::new(in_use),
        })
    }

    fn keep_later(&self) -> Option<fn() -> Arc<dyn KeptUse>> {
        Some(|| innermost_frame().expect("an upcall defers its request").state().keep_in_use())
    }
}

/// Keeps a servant in use for a request that is answered after its upcall.
struct DeferredUse {
    adapter: Arc<Adapter>,
    id: ObjectId,
    /// Whether the servant comes from a servant locator.
    is_located: bool,
    /// For the future of the request, which may go on when the use has ended.
    servant: Option<Weak<dyn Servant>>,
    /// `None` once the use has ended.
    in_use: Mutex<Option<ServantInUse>>,
}

impl KeptUse for DeferredUse {
    fn ends_before_reply(&self) -> bool {
        self.is_located
    }

    fn end(&self, then: UseEnd) {
        let in_use = self.in_use.lock().take();
        match in_use {
            Some(in_use) => self.end_use(in_use, then),
            None => then(Ok(())),
        }
    }

    fn poll_inside(&self, poll: &mut dyn FnMut()) {
        let servant = self.servant.as_ref().filter(|servant| !is_innermost(&self.adapter, &self.id, servant));
        // The upcall that defers the request has a frame.
        let _frame = servant.map(|servant| PolledFrame::enter(&self.adapter, &self.id, servant));
        poll();
    }
}

impl DeferredUse {
    fn end_use(&self, in_use: ServantInUse, then: UseEnd) {
        // Any thread may run this, but a servant manager may require the adapter's own.
        if self.adapter.servant_manager.read().is_none() {
            return in_use.end_then(&self.adapter, &self.id, then);
        }
        let (adapter, id) = (Arc::clone(&self.adapter), self.id.clone());
        run_under_thread_policy(&self.adapter, Box::new(move || in_use.end_then(&adapter, &id, then)));
    }
}

impl Drop for DeferredUse {
    fn drop(&mut self) {
        if let Some(in_use) = self.in_use.get_mut().take() {
            // An exception has no receiver.
            self.end_use(in_use, Box::new(drop));
        }
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
