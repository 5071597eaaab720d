//! The states of managers, and the requests that they hold (CORBA 3.3 Part 1, 15.3.2).
//!
//! A manager controls the requests of its adapters. A request reads the state while it enters its object (an
//! atomic, under the lock of the active object map). A state change then acquires each of those locks once:
//! after that every request has either seen the new state or is in use and can be waited for. The manager
//! knows its adapters only through the trait [`ManagedAdapter`].
//!
//! Waiting itself, of all requests of adapters, is in `waiting` (`Ticket`). Requests also wait in
//! `servant_lookup`, `adapter_lookup` and `serial_lock`, and for the main thread in `main_thread` of the core.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{AdapterState, Orb, internal::adapter_references::adapter_manager_state_changed};
use spandrel_server::{LongWaitWatch, WaitingRequests};
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, AtomicU8, Ordering},
    time::Instant,
};

use crate::{
    PoaError, error,
    orb_handle::OrbHandle,
    waiting::{Event, Ticket},
};

/// Maximum number of requests that one manager holds: more are answered with TRANSIENT (15.3.2.1).
const MAX_HELD: usize = 1024;

/// The treatment of requests by all adapters of a manager (15.3.2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum State {
    /// Requests are queued until the state changes.
    Holding,
    /// Requests are dispatched to servants.
    Active,
    /// Requests are answered with TRANSIENT.
    Discarding,
    /// Requests are rejected; the final state.
    Inactive,
}

impl From<State> for AdapterState {
    fn from(state: State) -> Self {
        match state {
            State::Holding => Self::Holding,
            State::Active => Self::Active,
            State::Discarding => Self::Discarding,
            State::Inactive => Self::Inactive,
        }
    }
}

/// An adapter, as its manager sees it.
pub(crate) trait ManagedAdapter: Send + Sync {
    /// Returns once each request that read the state before is in use or was rejected.
    fn barrier(&self);
    /// Optimizes tables before requests are admitted: the configuration is complete for now.
    fn settle(&self);
    /// Waits for all running requests and etherealizations, as long as `keep_waiting` returns true.
    fn await_requests(&self, keep_waiting: &dyn Fn() -> bool);
    /// Deactivates all objects, if a servant activator has to be called for them.
    fn end_objects(self: Arc<Self>);
}

/// Admits, holds or rejects the requests of its adapters.
pub(crate) struct Manager {
    id: String,
    orb: Arc<OrbHandle>,
    /// Written under the lock only.
    state: AtomicU8,
    shared: Mutex<Shared>,
    /// Whether the log says that an object was activated while the manager was holding.
    has_noted_holding: AtomicBool,
    long_wait: LongWaitWatch,
}

struct Shared {
    adapters: Vec<Weak<dyn ManagedAdapter>>,
    /// Set when the state leaves holding, or an adapter is destroyed.
    held: Arc<Event>,
}

/// The decision on a request whose adapter is not active.
pub(crate) enum Admission {
    /// The request waits for a change of the state.
    Held(Ticket),
    /// The state has changed: look again.
    Retry,
    Rejected(SystemException),
}

impl Manager {
    fn new(orb: Arc<OrbHandle>, id: String, state: State) -> Arc<Self> {
        let shared = Mutex::new(Shared { adapters: Vec::new(), held: Arc::default() });
        let (has_noted_holding, long_wait) = (AtomicBool::new(false), LongWaitWatch::default());
        Arc::new(Self { id, orb, state: AtomicU8::new(state as u8), shared, has_noted_holding, long_wait })
    }

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Ordering::SeqCst) == State::Active as u8
    }

    pub(crate) fn belongs_to(&self, orb: &Arc<OrbHandle>) -> bool {
        Arc::ptr_eq(&self.orb, orb)
    }

    pub(crate) fn orb(&self) -> &Arc<OrbHandle> {
        &self.orb
    }

    /// The id of the manager within its ORB (15.3.2.8).
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The state at this moment; another thread may change it next.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Holding,
            1 => State::Active,
            2 => State::Discarding,
            _ => State::Inactive,
        }
    }

    pub(crate) fn attach(&self, adapter: Weak<dyn ManagedAdapter>) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|registered| registered.strong_count() > 0);
        shared.adapters.push(adapter);
    }

    /// Detaches a destroyed adapter. Held requests start again (15.3.9.4); those for other adapters are held
    /// again.
    pub(crate) fn detach(&self, adapter: &dyn ManagedAdapter) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|registered| !std::ptr::addr_eq(registered.as_ptr(), adapter));
        let held = std::mem::take(&mut shared.held);
        drop(shared);
        held.set();
    }

    /// The decision on a request that found the manager not active.
    pub(crate) fn hold_or_reject(&self) -> Admission {
        let shared = self.shared.lock();
        match self.state() {
            State::Active => Admission::Retry,
            State::Holding => match shared.held.ticket(MAX_HELD) {
                Some(ticket) => Admission::Held(ticket),
                None => {
                    drop(shared);
                    if let Ok(orb) = self.orb.get() {
                        orb.statistics().refused_queue_full();
                    }
                    Admission::Rejected(error::discarded("too many requests are held by the adapter's manager"))
                }
            },
            State::Discarding => Admission::Rejected(discarding()),
            State::Inactive => Admission::Rejected(inactive()),
        }
    }

    /// Has a warning logged if the request that is now held for this adapter waits for `limit`.
    pub(crate) fn watch_held(self: &Arc<Self>, orb: &Orb, limit: Duration, adapter: &str) {
        self.long_wait
            .request_waits(orb, limit, || HeldRequests { manager: Arc::downgrade(self), adapter: adapter.to_owned() });
    }

    /// Notes in the log, once, that requests for an object that was just activated wait for the manager.
    pub(crate) fn note_activation(&self, adapter: &str) {
        if self.state() == State::Holding && !self.has_noted_holding.swap(true, Ordering::Relaxed) {
            tracing::info!(
                adapter,
                manager = self.id,
                "an object is active whose manager is in the holding state: requests wait until \
                 `poa.the_poa_manager().activate()`"
            );
        }
    }

    /// The exception for new requests, if the manager neither admits nor holds them.
    pub(crate) fn check_admits(&self) -> Result<(), SystemException> {
        match self.state() {
            State::Active | State::Holding => Ok(()),
            State::Discarding => Err(discarding()),
            State::Inactive => Err(inactive()),
        }
    }

    /// Changes the state, unless it is inactive. Returns the adapters: each of their requests has seen the
    /// new state or is in use.
    pub(crate) fn enter(&self, new: State) -> Result<Vec<Arc<dyn ManagedAdapter>>, PoaError> {
        let mut shared = self.shared.lock();
        let old = self.state();
        if old == State::Inactive && new != State::Inactive {
            return Err(PoaError::AdapterInactive { manager: self.id.clone() });
        }
        self.state.store(new as u8, Ordering::SeqCst);
        let freed = (new != State::Holding).then(|| std::mem::take(&mut shared.held));
        let adapters: Vec<_> = shared.adapters.iter().filter_map(Weak::upgrade).collect();
        drop(shared);
        adapters.iter().for_each(|adapter| adapter.barrier());
        if let Some(freed) = freed {
            freed.set();
        }
        if old != new
            && let Ok(orb) = self.orb.get()
        {
            adapter_manager_state_changed(&orb, &self.id, new.into());
        }
        Ok(adapters)
    }

    pub(crate) fn adapters(&self) -> Vec<Arc<dyn ManagedAdapter>> {
        self.shared.lock().adapters.iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for all running requests, as long as the state stays unchanged.
    pub(crate) fn await_requests(&self, adapters: &[Arc<dyn ManagedAdapter>], state: State) {
        adapters.iter().for_each(|adapter| adapter.await_requests(&|| self.state() == state));
    }

    /// At the end of the ORB: held requests will never run.
    pub(crate) fn close_if_holding(&self) {
        if self.state() == State::Holding {
            let _ = self.enter(State::Inactive);
        }
    }
}

/// The requests that a manager holds.
struct HeldRequests {
    manager: Weak<Manager>,
    /// The name of the adapter of the first of them.
    adapter: String,
}

impl WaitingRequests for HeldRequests {
    fn waiting_since(&self) -> Option<Instant> {
        let manager = self.manager.upgrade()?;
        let held = Arc::clone(&manager.shared.lock().held);
        held.waiting_since()
    }

    fn warn(&self, waited: Duration) {
        let Some(manager) = self.manager.upgrade() else { return };
        let requests = manager.shared.lock().held.tickets();
        tracing::warn!(
            adapter = self.adapter,
            manager = manager.id,
            requests,
            ?waited,
            "requests wait for an adapter whose manager is in the holding state: they run after \
             `poa.the_poa_manager().activate()`"
        );
    }
}

/// The managers of one ORB.
#[derive(Default)]
pub(crate) struct Managers {
    list: Mutex<ManagerList>,
}

#[derive(Default)]
struct ManagerList {
    /// In the order of creation. A manager made for an adapter lives as long as the adapter, others as long
    /// as the ORB.
    managers: Vec<(Weak<Manager>, Option<Arc<Manager>>)>,
    created: u64,
}

impl Managers {
    /// Creates a manager, with this id or with a generated one for an adapter without a given manager.
    pub(crate) fn create(
        &self,
        orb: &Arc<OrbHandle>,
        id: Option<&str>,
        state: State,
    ) -> Result<Arc<Manager>, PoaError> {
        let mut list = self.list.lock();
        list.managers.retain(|(manager, _)| manager.strong_count() > 0);
        let is_known = |id: &str| {
            list.managers.iter().filter_map(|(manager, _)| manager.upgrade()).any(|manager| manager.id == id)
        };
        let mut number = list.created;
        let name = match id {
            Some(id) if is_known(id) => {
                return Err(PoaError::ManagerAlreadyExists { manager: id.to_owned() });
            }
            Some(id) => id.to_owned(),
            None => loop {
                number += 1;
                let name = format!("POAManager{number}");
                if !is_known(&name) {
                    break name;
                }
            },
        };
        let manager = Manager::new(Arc::clone(orb), name, state);
        list.created = number;
        list.managers.push((Arc::downgrade(&manager), id.map(|_| Arc::clone(&manager))));
        Ok(manager)
    }

    pub(crate) fn list(&self) -> Vec<Arc<Manager>> {
        self.list.lock().managers.iter().filter_map(|(manager, _)| manager.upgrade()).collect()
    }

    /// Number of held requests.
    pub(crate) fn held(&self) -> usize {
        self.list().iter().map(|manager| manager.shared.lock().held.tickets()).sum()
    }

    /// At the end of the ORB: releases all held requests.
    pub(crate) fn close(&self) {
        self.list().iter().for_each(|manager| manager.close_if_holding());
    }
}

/// The exception in the discarding state.
fn discarding() -> SystemException {
    error::discarded("the adapter's manager discards requests")
}

/// The exception in the inactive state.
fn inactive() -> SystemException {
    SystemException::obj_adapter(minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No)
        .with_detail("the adapter's manager is inactive")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_giop::SystemExceptionKind;
    use spandrel_orb::Orb;

    use super::*;

    #[test]
    fn requests_are_held_up_to_the_limit() {
        let orb = Orb::builder().build().unwrap();
        let live = Arc::new(OrbHandle::new(orb.clone()));
        let manager = Managers::default().create(&live, Some("holding"), State::Holding).unwrap();
        let mut held = Vec::new();
        for _ in 0..MAX_HELD {
            match manager.hold_or_reject() {
                Admission::Held(ticket) => held.push(ticket),
                _ => panic!("the manager is holding"),
            }
        }
        let Admission::Rejected(exception) = manager.hold_or_reject() else { panic!("the limit is reached") };
        assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED));
        held.pop();
        assert!(matches!(manager.hold_or_reject(), Admission::Held(_)), "one ticket was dropped");
        manager.enter(State::Active).unwrap();
        assert!(matches!(manager.hold_or_reject(), Admission::Retry));
        orb.shutdown().unwrap();
    }
}
