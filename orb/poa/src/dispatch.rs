//! Dispatch of requests to upcalls.
//!
//! A request may have to wait: for a holding manager, for an adapter or a servant that is being created or
//! destroyed, or for the lock of a single-threaded adapter. It is deferred, and then dispatched again from
//! its key, as if it had just arrived (CORBA 3.3 Part 1, 15.3.9.4 requires that).

use std::{any::Any, time::Duration};

use spandrel_orb::{BidirectionalPolicy, Located, SystemException};
use spandrel_server::{ObjectAdapter, Replied, Servant, ServerCall};
use spandrel_sync::{Arc, Mutex, Weak, time::Instant};

use crate::{
    ThreadPolicy,
    adapter::{Adapter, Root},
    adapter_lookup::AdapterLookup,
    error,
    frames::Frame,
    invocation::{Invocation, Upcall},
    key,
    objects::Binding,
    serial_lock::{LockAttempt, QueuedLock, SerialGuard},
    servant_in_use::ServantInUse,
    servant_lookup::ServantLookup,
    signal::Ticket,
};

/// The time that the ORB's shutdown waits for servant activators.
const ETHEREALIZATION_TIMEOUT: Duration = Duration::from_secs(2);

impl Root {
    /// Runs a request, or defers it. `queued`: the place in the queue of the serial lock that it has waited
    /// with.
    pub(crate) fn serve(
        &self,
        key: &[u8],
        call: ServerCall<'_>,
        mut queued: Option<QueuedLock>,
    ) -> Result<Replied, SystemException> {
        // Dropped after everything at the end of the frame.
        let mut _guard: Option<SerialGuard> = None;
        let upcall = Upcall::new();
        let frame = upcall.frame();
        loop {
            match self.find_adapter(frame, key)? {
                None => {}
                Some(AdapterLookup::Wait(ticket)) => return self.defer(key, call, wait_for_signal(ticket)),
                Some(AdapterLookup::Found(_) | AdapterLookup::Retry) => continue,
            }
            let adapter = frame.adapter.borrow();
            let adapter = adapter.as_ref().expect("find_adapter put it there");
            let id = &key[adapter.prefix.len()..];
            frame.set_object_id(id);
            match (adapter.policies.thread, &adapter.serial_lock) {
                (ThreadPolicy::MainThreadModel, _) if !self.orb.get()?.is_main_thread() => {
                    return self.defer_to_main_thread(key, call);
                }
                (ThreadPolicy::SingleThreadModel, Some(serial_lock)) => {
                    let reserved = queued.take().filter(|queued| queued.is_of(serial_lock));
                    _guard = match reserved
                        .map_or_else(|| serial_lock.try_acquire(), |queued| LockAttempt::Acquired(queued.acquire()))
                    {
                        LockAttempt::Acquired(serial_lock) => Some(serial_lock),
                        LockAttempt::Queued(queued) => {
                            return self.defer(key, call, async { Some(queued.ready().await) });
                        }
                        LockAttempt::QueueFull => {
                            return Err(error::discarded("too many requests wait for the adapter's thread"));
                        }
                    };
                }
                _ => _guard = None,
            }
            match adapter.enter(id, call.operation(), Some(&call))? {
                ServantLookup::Found(in_use) => {
                    let in_use = frame.in_use.replace(Some(in_use));
                    debug_assert!(in_use.is_none(), "the frame is free");
                    return run(adapter, id, frame, call);
                }
                ServantLookup::Forward(forwarding) => return forwarding.answer(call),
                ServantLookup::Wait(ticket) => return self.defer(key, call, wait_for_signal(ticket)),
                ServantLookup::Retry => {}
            }
        }
    }

    /// Puts the adapter of this key into the frame, or returns the reason for which the request has to wait
    /// or start again.
    #[inline]
    pub(crate) fn find_adapter(&self, frame: &Frame, key: &[u8]) -> Result<Option<AdapterLookup>, SystemException> {
        if self.has_adapter_of(frame, key) {
            return Ok(None);
        }
        // Cleared first: calls to the application meanwhile are not inside that adapter.
        frame.adapter.take();
        match self.search(key)? {
            AdapterLookup::Found(adapter) => {
                *frame.adapter.borrow_mut() = Some(adapter);
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    /// Whether the frame still holds the adapter of this key.
    #[inline]
    fn has_adapter_of(&self, frame: &Frame, key: &[u8]) -> bool {
        let adapter = frame.adapter.borrow();
        adapter.as_ref().is_some_and(|adapter| {
            adapter.has_key(key) && std::ptr::eq(adapter.root.as_ptr(), self) && !adapter.is_destroyed()
        })
    }

    /// Defers a request until the awaited event, then dispatches it again.
    fn defer(
        &self,
        key: &[u8],
        call: ServerCall<'_>,
        wait: impl Future<Output = Option<QueuedLock>> + Send + 'static,
    ) -> Result<Replied, SystemException> {
        let (root, key) = (Weak::clone(&self.weak_self), key.to_vec());
        call.spawn(move |deferred| async move {
            let queued = wait.await;
            let outcome = deferred.answer(|call| match root.upgrade() {
                Some(root) => root.serve(&key, call, queued),
                None => Err(error::no_adapter()),
            });
            deferred.end(outcome);
        })
    }

    /// Runs a request on the main thread.
    fn defer_to_main_thread(&self, key: &[u8], call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let orb = self.orb.get()?;
        let (root, key) = (Weak::clone(&self.weak_self), key.to_vec());
        let (deferred, replied) = call.defer()?;
        // Shared, so that the request can be rejected if the job is.
        let deferred = Arc::new(Mutex::new(Some(deferred)));
        let job = Arc::clone(&deferred);
        let refused = orb.run_in_main(Box::new(move || {
            let Some(deferred) = job.lock().take() else { return };
            let outcome = deferred.answer(|call| match root.upgrade() {
                Some(root) => root.serve(&key, call, None),
                None => Err(error::no_adapter()),
            });
            deferred.end(outcome);
        }));
        if let Err(exception) = refused {
            let rejected = deferred.lock().take();
            rejected.into_iter().for_each(|deferred| deferred.end(Err(exception.clone())));
        }
        Ok(replied)
    }
}

async fn wait_for_signal(ticket: Ticket) -> Option<QueuedLock> {
    ticket.await;
    None
}

/// Runs the upcall for which the frame is prepared.
#[inline]
fn run(adapter: &Arc<Adapter>, id: &[u8], frame: &Frame, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    let in_use = frame.in_use.borrow();
    let in_use = in_use.as_ref().expect("the caller has set it");
    match in_use {
        ServantInUse::Object(active) => match &active.binding {
            Binding::Servant(servant) => call.run(&**servant, &Invocation { adapter, id, in_use }),
            Binding::Forward(forwarding) => forwarding.answer(call),
        },
        ServantInUse::Default(servant) => call.run(&**servant, &Invocation { adapter, id, in_use }),
        ServantInUse::Located(located) => call.run(&*located.servant, &Invocation { adapter, id, in_use }),
    }
}

impl ObjectAdapter for Root {
    fn dispatch(&self, object_key: &[u8], _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        self.serve(object_key, call, None)
    }

    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        self.find_existing(object_key).ok()??.policy(BidirectionalPolicy::POLICY_TYPE)?.value().copied()
    }

    fn enter(
        &self,
        object_key: &[u8],
        _operation: &str,
        upcall: &mut dyn FnMut(&Arc<dyn Servant>),
    ) -> Result<bool, SystemException> {
        let entered = Upcall::new();
        let frame = entered.frame();
        if !self.has_adapter_of(frame, object_key) {
            frame.adapter.take();
            if key::parse(self.incarnation, object_key).is_none() {
                // A key of another kind of adapter, or a plain one.
                return Ok(false);
            }
            let AdapterLookup::Found(adapter) = self.search(object_key)? else { return Ok(false) };
            *frame.adapter.borrow_mut() = Some(adapter);
        }
        let adapter = frame.adapter.borrow();
        let adapter = adapter.as_ref().expect("find_adapter put it there");
        let id = &object_key[adapter.prefix.len()..];
        let Some(in_use) = adapter.enter_active(id) else { return Ok(false) };
        frame.set_object_id(id);
        *frame.in_use.borrow_mut() = Some(in_use);
        let in_use = frame.in_use.borrow();
        let Some(servant) = in_use.as_ref().and_then(ServantInUse::servant) else { return Ok(false) };
        upcall(servant);
        Ok(true)
    }

    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException> {
        // A request would have the adapter or object created.
        let Some(adapter) = self.find_existing(object_key)? else { return Ok(Located::Here) };
        if !adapter.is_open() {
            adapter.check_admits()?;
        }
        Ok(match adapter.has(&object_key[adapter.prefix.len()..]) {
            Some(None) => Located::Here,
            Some(Some(forwarding)) => forwarding.located(),
            None => Located::Unknown,
        })
    }

    fn held(&self) -> usize {
        self.managers.held()
    }

    fn begin_close(&self) {
        self.managers.close();
    }

    fn close(&self) {
        let mut all = Vec::new();
        Self::collect_descendants(self.root_adapter(), &mut all);
        let destroyed = self.destroy(self.root_adapter(), true, false);
        debug_assert!(destroyed.is_ok(), "destruction without waiting cannot fail");
        // Adapters with servant activators only, all at once.
        let start = Instant::now();
        for adapter in all.iter().filter(|adapter| adapter.has_activator()) {
            adapter
                .usage
                .await_quiet(ETHEREALIZATION_TIMEOUT.saturating_sub(Instant::now().saturating_duration_since(start)));
        }
        all.iter().for_each(Adapter::etherealize_pending);
        self.orb.release();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
