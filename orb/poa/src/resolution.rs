//! Resolution of requests to upcalls.
//!
//! A request may have to wait: for a holding manager, for an adapter or a servant that is being created or
//! destroyed, or for the lock of a single-threaded adapter. The server then resolves it again from its key, as
//! if it had just arrived (CORBA 3.3 Part 1, 15.3.9.4 requires that). A place in the queue of the lock is the
//! request's reservation.
//!
//! Each kind of wait has its limit where it begins: `manager`, `servant_lookup`, `adapter_lookup`,
//! `serial_lock`, and `main_thread` of `spandrel-orb`.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use spandrel_orb::{BidirectionalPolicy, Located, SystemException};
use spandrel_server::{Entry, LastTarget, ObjectAdapter, Placed, Reservation, Resolution, Upcall};
use spandrel_sync::{Arc, time::Deadline};

use crate::{
    EtherealizeObjects, WaitForCompletion,
    adapter::{Adapter, Root},
    adapter_lookup::AdapterLookup,
    error,
    frames::{EnteredFrame, Frame},
    key,
    objects::Binding,
    policies::ServantThreads,
    serial_lock::{LockAttempt, QueuedLock, SerialGuard},
    servant_in_use::ServantInUse,
    servant_lookup::ServantLookup,
    waiting::Ticket,
};

/// The time that the ORB's shutdown waits for servant activators.
const ETHEREALIZATION_TIMEOUT: Duration = Duration::from_secs(2);

impl Root {
    /// The short path: an active object that any thread may call, of the adapter that the frame remembers.
    #[inline(always)]
    fn resolve_active(&self, key: &[u8], last: Option<&dyn LastTarget>) -> Option<Upcall> {
        let entered = EnteredFrame::new();
        let frame = entered.frame();
        if !self.has_adapter_of(frame, key) {
            return None;
        }
        frame.set_object(key);
        let state = frame.state();
        let adapter = state.adapter.as_ref()?;
        let active = adapter.find_active(&state.object_id, last)?;
        if matches!(active.binding, Binding::Forward(_)) {
            // The other way finds it again.
            let ended = ServantInUse::Object(active).end(adapter, &state.object_id);
            debug_assert!(ended.is_ok(), "an active object has no `postinvoke`");
            return None;
        }
        drop(state);
        let frame = entered.into_frame();
        frame.begin_use(ServantInUse::Object(active), None);
        Some(Upcall::new(frame))
    }

    /// Finds the servant of a request.
    #[inline(never)]
    fn resolve_request(
        &self,
        key: &[u8],
        operation: &str,
        last: &dyn LastTarget,
        mut reservation: Option<Reservation>,
    ) -> Result<Resolution, SystemException> {
        // Given back after the frame was left.
        let mut turn: Option<SerialGuard>;
        let entered = EnteredFrame::new();
        let frame = entered.frame();
        loop {
            match self.find_adapter(frame, key)? {
                None => {}
                Some(AdapterLookup::Wait(ticket)) => return Ok(wait_for_event(ticket)),
                Some(AdapterLookup::Found(_) | AdapterLookup::Retry) => continue,
            }
            frame.set_object(key);
            let state = frame.state();
            let adapter = state.adapter.as_ref().expect("find_adapter put it there");
            match (adapter.policies.servant_threads, &adapter.serial_lock) {
                (ServantThreads::Main, _) if !self.orb.get()?.is_main_thread() => {
                    return Ok(Resolution::MainThread);
                }
                (ServantThreads::Executor, _)
                    if !reservation.as_ref().is_some_and(|reservation| reservation.is::<Placed>()) =>
                {
                    return Ok(adapter.hand_over());
                }
                (ServantThreads::OneAtATime, Some(serial_lock)) => {
                    let queued = reservation.take().and_then(|reservation| reservation.downcast::<QueuedLock>().ok());
                    let reserved = queued.filter(|queued| queued.is_of(serial_lock));
                    turn = match reserved
                        .map_or_else(|| serial_lock.try_acquire(), |queued| LockAttempt::Acquired(queued.acquire()))
                    {
                        LockAttempt::Acquired(serial_lock) => Some(serial_lock),
                        LockAttempt::Queued(queued) => {
                            adapter.watch_wait(|orb, limit| {
                                serial_lock.watch_queued(orb, limit, &adapter.full_name_text());
                            });
                            let reserve = async { Some(Box::new(queued.ready().await) as Reservation) };
                            return Ok(Resolution::Wait(Box::pin(reserve)));
                        }
                        LockAttempt::QueueFull => {
                            return Err(error::discarded("too many requests wait for the adapter's thread"));
                        }
                    };
                }
                _ => turn = None,
            }
            let lookup = adapter.enter(&state.object_id, operation, Some(last))?;
            drop(state);
            match lookup {
                ServantLookup::Found(in_use) => return Ok(begin_upcall(entered, in_use, turn)),
                ServantLookup::Forward(forwarding) => return Ok(forwarding.resolution()),
                ServantLookup::Wait(ticket) => return Ok(wait_for_event(ticket)),
                ServantLookup::Retry => {}
            }
        }
    }

    /// Finds the servant of a call that does not marshal, if that takes neither a wait nor a call to the
    /// application.
    fn resolve_direct(&self, key: &[u8]) -> Result<Resolution, SystemException> {
        let entered = EnteredFrame::new();
        let frame = entered.frame();
        if !self.has_adapter_of(frame, key) {
            frame.set_adapter(None);
            if key::parse(self.incarnation, key).is_none() {
                // A key of another kind of adapter, or a plain one.
                return Ok(Resolution::Marshal);
            }
            let AdapterLookup::Found(adapter) = self.search(key)? else { return Ok(Resolution::Marshal) };
            frame.set_adapter(Some(adapter));
        }
        frame.set_object(key);
        let state = frame.state();
        let in_use = state.adapter.as_ref().and_then(|adapter| adapter.enter_direct(&state.object_id));
        drop(state);
        let Some(in_use) = in_use else { return Ok(Resolution::Marshal) };
        match begin_upcall(entered, in_use, None) {
            Resolution::Serve(upcall) => Ok(Resolution::Serve(upcall)),
            // The ordinary call follows the forwarding.
            _ => Ok(Resolution::Marshal),
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
        frame.set_adapter(None);
        match self.search(key)? {
            AdapterLookup::Found(adapter) => {
                frame.set_adapter(Some(adapter));
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }

    /// Whether the servant of an object says that it does not exist (`_non_existent`): a default servant, or one of an
    /// active object. False if that would take a wait, the adapter's own thread, or a servant manager.
    fn is_unknown_to_servant(&self, adapter: &Arc<Adapter>, key: &[u8]) -> bool {
        let entered = EnteredFrame::new();
        let frame = entered.frame();
        frame.set_adapter(Some(Arc::clone(adapter)));
        frame.set_object(key);
        let state = frame.state();
        let in_use = adapter.enter_active(&state.object_id).or_else(|| adapter.enter_default(&state.object_id));
        drop(state);
        let Some(in_use) = in_use else { return false };
        let Resolution::Serve(upcall) = begin_upcall(entered, in_use, None) else { return false };
        let answer = catch_unwind(AssertUnwindSafe(|| upcall.servant().non_existent()));
        answer.unwrap_or_else(|_| {
            tracing::error!("a servant panicked in `_non_existent` for a LocateRequest");
            false
        })
    }

    /// Whether the frame still holds the adapter of this key.
    #[inline]
    fn has_adapter_of(&self, frame: &Frame, key: &[u8]) -> bool {
        frame.state().adapter.as_ref().is_some_and(|adapter| {
            adapter.has_key(key) && std::ptr::eq(adapter.root.as_ptr(), self) && !adapter.is_destroyed()
        })
    }
}

/// The upcall of a servant in use, or the forwarding that the object has instead of a servant.
fn begin_upcall(entered: EnteredFrame, in_use: ServantInUse, turn: Option<SerialGuard>) -> Resolution {
    let (forwarding, is_located) = match &in_use {
        ServantInUse::Object(active) => match &active.binding {
            Binding::Servant(_) => (None, false),
            Binding::Forward(forwarding) => (Some(forwarding.clone()), false),
        },
        ServantInUse::Default(_) | ServantInUse::Polled(_) => (None, false),
        ServantInUse::Located(_) => (None, true),
    };
    let frame = entered.into_frame();
    frame.begin_use(in_use, turn);
    let upcall = Upcall::new(frame);
    match forwarding {
        // `postinvoke` is part of the request (15.3.7.2).
        None if is_located => Resolution::Serve(upcall.ending_before_reply()),
        None => Resolution::Serve(upcall),
        Some(forwarding) => {
            drop(upcall);
            forwarding.resolution()
        }
    }
}

fn wait_for_event(ticket: Ticket) -> Resolution {
    Resolution::Wait(Box::pin(async {
        ticket.await;
        None
    }))
}

impl ObjectAdapter for Root {
    fn resolve(&self, object_key: &[u8], operation: &str, entry: Entry<'_>) -> Result<Resolution, SystemException> {
        let last = match &entry {
            Entry::Request { last, .. } => Some(*last),
            Entry::Direct => None,
        };
        if let Some(upcall) = self.resolve_active(object_key, last) {
            return Ok(Resolution::Serve(upcall));
        }
        match entry {
            Entry::Request { last, reservation } => self.resolve_request(object_key, operation, last, reservation),
            Entry::Direct => self.resolve_direct(object_key),
        }
    }

    fn bidirectional_policy(&self, object_key: &[u8]) -> Option<BidirectionalPolicy> {
        self.find_existing(object_key).ok()??.policy(BidirectionalPolicy::POLICY_TYPE)?.value().copied()
    }

    fn locate(&self, object_key: &[u8]) -> Result<Located, SystemException> {
        // A request would have the adapter or object created.
        let Some(adapter) = self.find_existing(object_key)? else { return Ok(Located::Here) };
        if !adapter.is_open() {
            adapter.check_admits()?;
        }
        Ok(match adapter.has(&object_key[adapter.prefix.len()..]) {
            Some(None) if self.is_unknown_to_servant(&adapter, object_key) => Located::Unknown,
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
        let destroyed = self.destroy(self.root_adapter(), EtherealizeObjects::Yes, WaitForCompletion::No);
        debug_assert!(destroyed.is_ok(), "destruction without waiting cannot fail");
        // Adapters with servant activators only, all at once.
        let deadline = Deadline::after(ETHEREALIZATION_TIMEOUT);
        for adapter in all.iter().filter(|adapter| adapter.has_activator()) {
            adapter.usage.await_quiet(deadline);
        }
        all.iter().for_each(Adapter::etherealize_pending);
        self.orb.release();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use spandrel_orb::Orb;
    use spandrel_server::{HandedOverRequest, Placement, RequestExecutor, RequestToPlace, Servant};
    use spandrel_sync::thread;

    use super::*;
    use crate::{ExecutorPolicy, Poa, ThreadPolicy, WaitForCompletion};

    struct Plain;

    impl Servant for Plain {
        fn repository_id(&self) -> &str {
            "IDL:Plain:1.0"
        }

        fn is_a(&self, _: &str) -> bool {
            false
        }
    }

    /// No connection, and so no prediction.
    struct Unpredicted;

    impl LastTarget for Unpredicted {
        fn predicted_target(&self) -> Option<u64> {
            None
        }

        fn record_target(&self, _: u64) {}
    }

    /// An adapter with this thread policy, and the keys of two of its objects.
    fn adapter(thread_policy: ThreadPolicy) -> (Orb, Poa, [Vec<u8>; 2]) {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let poa = root.create_poa("child", None, [thread_policy.into()]).unwrap();
        poa.the_poa_manager().activate().unwrap();
        let keys = [(); 2].map(|()| {
            let id = poa.activate_object(Arc::new(Plain)).unwrap();
            poa.adapter.key(&id)
        });
        (orb, poa, keys)
    }

    fn resolve(poa: &Poa, key: &[u8], reservation: Option<Reservation>) -> Result<Resolution, SystemException> {
        poa.root.resolve(key, "run", Entry::Request { last: &Unpredicted, reservation })
    }

    /// Takes all requests, and would drop them.
    #[derive(Debug)]
    struct AllRequests;

    impl RequestExecutor for AllRequests {
        fn choose_thread(&self, _: &RequestToPlace<'_>) -> Result<Placement, SystemException> {
            Ok(Placement::HandOver { level: 0, reply_packets: None })
        }

        fn submit(&self, request: HandedOverRequest) {
            drop(request);
        }
    }

    #[test]
    fn an_adapter_with_an_executor_runs_a_request_only_where_that_has_placed_it() {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let executor = || ExecutorPolicy(Arc::new(AllRequests));
        let poa = root.child("child").policy(executor()).create().unwrap();
        let key = poa.adapter.key(&poa.activate_object(Arc::new(Plain)).unwrap());
        let Ok(Resolution::Executor { object_id_at, .. }) = resolve(&poa, &key, None) else { panic!("it has one") };
        assert_eq!(&key[..object_id_at], &*poa.adapter.prefix);
        assert!(matches!(poa.root.resolve(&key, "run", Entry::Direct), Ok(Resolution::Marshal)));
        assert!(matches!(resolve(&poa, &key, Some(Box::new(Placed))), Ok(Resolution::Serve(_))));
        let clash = root.child("clash").single_thread().policy(executor()).create().unwrap_err();
        assert_eq!(
            clash.to_string(),
            "cannot create the adapter `RootPOA/clash`: the policy `ExecutorPolicy(AllRequests)` contradicts \
             `SingleThreadModel`: the threads of an executor require ORB_CTRL_MODEL"
        );
        orb.shutdown().unwrap();
    }

    #[test]
    fn a_dropped_upcall_ends_its_use_and_then_its_turn_also_by_a_panic() {
        let (_orb, poa, [first, second]) = adapter(ThreadPolicy::SingleThreadModel);
        for panics in [false, true] {
            let Ok(Resolution::Serve(upcall)) = resolve(&poa, &first, None) else { panic!("the adapter is free") };
            assert!(!upcall.ends_before_reply());
            assert_eq!(upcall.servant().repository_id(), "IDL:Plain:1.0");
            assert_eq!(upcall.target().object_id(), &first[poa.adapter.prefix.len()..]);
            let (waiting_poa, key) = (poa.clone(), second.clone());
            let waiting = thread::spawn(move || match resolve(&waiting_poa, &key, None) {
                Ok(Resolution::Wait(wait)) => wait,
                other => panic!("another thread is in the adapter: {other:?}"),
            });
            let mut wait = waiting.join().unwrap();
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(wait.as_mut().poll(&mut context).is_pending());
            assert_eq!(poa.adapter.objects.in_use().len(), 1);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let _upcall = upcall;
                assert!(!panics, "the servant panics");
            }));
            assert_eq!(ended.is_err(), panics);
            assert_eq!(poa.adapter.objects.in_use().len(), 0);
            let std::task::Poll::Ready(reservation) = wait.as_mut().poll(&mut context) else {
                panic!("the turn was given back")
            };
            assert!(reservation.is_some());
            // The reservation is of this request: other threads still wait.
            let (other_poa, key) = (poa.clone(), first.clone());
            thread::spawn(move || assert!(matches!(resolve(&other_poa, &key, None), Ok(Resolution::Wait(_)))))
                .join()
                .unwrap();
            assert!(matches!(resolve(&poa, &second, reservation), Ok(Resolution::Serve(_))));
            assert_eq!(poa.adapter.objects.in_use().len(), 0);
        }
    }

    #[test]
    fn a_direct_call_never_waits() {
        let (_orb, poa, [key, _]) = adapter(ThreadPolicy::OrbCtrlModel);
        let direct = || poa.root.resolve(&key, "run", Entry::Direct);
        assert!(matches!(direct(), Ok(Resolution::Serve(_))));
        poa.the_poa_manager().hold_requests(WaitForCompletion::No).unwrap();
        assert!(matches!(direct(), Ok(Resolution::Marshal)));
        assert!(matches!(resolve(&poa, &key, None), Ok(Resolution::Wait(_))));
        poa.the_poa_manager().activate().unwrap();
        assert!(matches!(direct(), Ok(Resolution::Serve(_))));
        for thread_policy in [ThreadPolicy::SingleThreadModel, ThreadPolicy::MainThreadModel] {
            let (_orb, poa, [key, _]) = adapter(thread_policy);
            assert!(matches!(poa.root.resolve(&key, "run", Entry::Direct), Ok(Resolution::Marshal)));
        }
        let (orb, main_poa, [key, _]) = adapter(ThreadPolicy::MainThreadModel);
        assert!(matches!(resolve(&main_poa, &key, None), Ok(Resolution::MainThread)));
        orb.perform_work().unwrap();
        assert!(matches!(resolve(&main_poa, &key, None), Ok(Resolution::Serve(_))));
    }
}
