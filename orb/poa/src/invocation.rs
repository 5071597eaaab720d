//! One request in its adapter: what is asked about it while it runs, and what it gives back when it has been answered.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use spandrel_orb::{OperationDemux, Policy, PolicyType, Target};
use spandrel_sync::{Arc, Mutex, thread};

use crate::{
    ObjectId, Poa, ThreadPolicy,
    adapter::{Adapter, servants::let_go},
    frames::Frame,
    in_use::{InUse, Located},
};

/// The time in which a thread is inside of a request's frame, at the end of which what the request uses is given back.
pub(crate) struct Upcall(Rc<Frame>);

impl Upcall {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(Frame::enter())
    }

    #[inline]
    pub(crate) fn frame(&self) -> &Frame {
        &self.0
    }
}

impl Drop for Upcall {
    #[inline]
    fn drop(&mut self) {
        let in_use = self.0.in_use.take();
        // Ended inside of the frame: a servant manager that is told of it must not wait for all upcalls to end either.
        if let (Some(in_use), Some(adapter)) = (in_use, &*self.0.adapter.borrow()) {
            in_use.end(adapter, &self.0.object_id.borrow());
        }
        self.0.leave();
    }
}

impl InUse {
    /// The same once more: each is ended by itself.
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

    /// The request has been answered. Whoever learns that nobody else uses the object ends what was to end with that.
    #[inline]
    pub(crate) fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        match self {
            Self::Object(active) => {
                if let Some(active) = Arc::into_inner(active) {
                    adapter.object_ended(id, active, true);
                }
                adapter.usage.note_end();
            }
            Self::Default(servant) => {
                let_go(servant);
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

impl Located {
    fn end(self, adapter: &Arc<Adapter>, id: &[u8]) {
        let Ok(poa) = Poa::of(adapter) else { return let_go(self) };
        let Self { locator, servant, operation, cookie } = self;
        spandrel_sync::held::assert_none("a servant locator");
        let told = catch_unwind(AssertUnwindSafe(|| {
            locator.postinvoke(&ObjectId::from(id), &poa, &operation, cookie.into_inner(), servant);
        }));
        if told.is_err() {
            tracing::error!(%operation, "a servant locator panicked in postinvoke");
        }
    }
}

/// An upcall, as the core sees it.
pub(crate) struct Invocation<'c> {
    pub(crate) adapter: &'c Arc<Adapter>,
    pub(crate) id: &'c [u8],
    pub(crate) in_use: &'c InUse,
}

impl Target for Invocation<'_> {
    fn object_id(&self) -> &[u8] {
        self.id
    }

    fn adapter_id(&self) -> &[u8] {
        &self.adapter.prefix
    }

    fn adapter_name(&self) -> Vec<String> {
        self.adapter.full_name()
    }

    fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter.policy(policy_type)
    }

    fn operation_demux(&self) -> OperationDemux {
        self.adapter.operation_demux
    }

    fn keep_in_use(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(Detained {
            adapter: Arc::clone(self.adapter),
            id: self.id.into(),
            in_use: Mutex::new(Some(self.in_use.share(self.adapter))),
        })
    }
}

/// Keeps in use what a request uses that is answered after its upcall.
struct Detained {
    adapter: Arc<Adapter>,
    id: ObjectId,
    in_use: Mutex<Option<InUse>>,
}

impl Drop for Detained {
    fn drop(&mut self) {
        let Some(in_use) = self.in_use.lock().take() else { return };
        let (adapter, id) = (Arc::clone(&self.adapter), self.id.clone());
        // Any thread may be here; a servant manager may be told in the adapter's own only.
        if adapter.servant_manager.read().is_none() {
            return in_use.end(&adapter, &id);
        }
        let own = Arc::clone(&adapter);
        run_apart(&own, Box::new(move || in_use.end(&adapter, &id)));
    }
}

/// Something that is done by whoever drops it: those to whom it is given may end without having come to it.
struct Certain(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Certain {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|job| job());
    }
}

/// Runs something that may call servant managers, as the adapter's thread policy says.
fn run_apart(adapter: &Adapter, job: Box<dyn FnOnce() + Send>) {
    let job = Certain(Some(job));
    match adapter.policies.thread {
        ThreadPolicy::OrbCtrlModel => drop(job),
        ThreadPolicy::SingleThreadModel => {
            let turn = adapter.turn.clone();
            let thread = thread::Builder::new().name("spandrel-ethereal".into());
            let started = thread.spawn(move || {
                let _turn = turn.as_ref().map(|turn| turn.take());
                drop(job);
            });
            // Without a thread it was dropped, and so done here.
            drop(started);
        }
        ThreadPolicy::MainThreadModel => {
            if let Some(orb) = adapter.orb() {
                // Refused, it is dropped, and so done here.
                let _ = orb.run_in_main(Box::new(move || drop(job)));
            }
        }
    }
}
