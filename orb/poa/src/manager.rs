//! Adapter managers and their factory (CORBA 3.3 Part 1, 15.3.2 and 15.3.3).
//!
//! A manager is a valve in front of the adapters that have it. A request looks at the state while it enters its object (an atomic, under
//! the lock of the active object map); whoever changes the state passes through those locks once, and knows then that every
//! request either saw the new state or is in use and can be waited for.

use std::fmt;

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::Policy;
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU8, Ordering},
};

use crate::{
    PoaError,
    adapter::Adapter,
    error,
    hierarchy::Root,
    signal::{Signal, Ticket},
};

/// Requests that one manager holds, at most: more are answered with TRANSIENT (15.3.2.1).
const MAX_HELD: usize = 1024;

/// What a manager does with requests (15.3.2.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum State {
    /// They are queued until the state changes.
    Holding,
    /// They are run.
    Active,
    /// They are answered with TRANSIENT.
    Discarding,
    /// They are refused for ever; the end of every manager.
    Inactive,
}

/// Controls the requests of all adapters that have it. Cheap to clone.
#[derive(Clone)]
pub struct PoaManager(pub(crate) Arc<Manager>);

/// What all clones of a [`PoaManager`] share.
pub(crate) struct Manager {
    id: String,
    root: Weak<Root>,
    /// Changed under the lock only.
    state: AtomicU8,
    shared: Mutex<Shared>,
}

struct Shared {
    adapters: Vec<Weak<Adapter>>,
    /// Given when the state changes from holding to another, or an adapter is gone.
    held: Arc<Signal>,
}

/// What a request is told whose adapter is not active.
pub(crate) enum Refused {
    /// To wait.
    Held(Ticket),
    /// To look again: the state has changed.
    Again,
    No(SystemException),
}

impl Manager {
    pub(crate) fn new(root: Weak<Root>, id: String, state: State) -> Arc<Self> {
        let shared = Mutex::new(Shared { adapters: Vec::new(), held: Arc::default() });
        Arc::new(Self { id, root, state: AtomicU8::new(state as u8), shared })
    }

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Ordering::SeqCst) == State::Active as u8
    }

    pub(crate) fn is_of(&self, root: &Weak<Root>) -> bool {
        Weak::ptr_eq(&self.root, root)
    }

    fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Holding,
            1 => State::Active,
            2 => State::Discarding,
            _ => State::Inactive,
        }
    }

    pub(crate) fn attach(&self, adapter: &Arc<Adapter>) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|known| known.strong_count() > 0);
        shared.adapters.push(Arc::downgrade(adapter));
    }

    /// An adapter is gone. What was held for it is to find that out (15.3.9.4); what was held for others is held again.
    pub(crate) fn detach(&self, adapter: &Arc<Adapter>) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(adapter)));
        let held = std::mem::take(&mut shared.held);
        drop(shared);
        held.give();
    }

    /// What a request is told that found the manager not active.
    pub(crate) fn refuse(&self) -> Refused {
        let shared = self.shared.lock();
        match self.state() {
            State::Active => Refused::Again,
            State::Holding => match shared.held.ticket(MAX_HELD) {
                Some(ticket) => Refused::Held(ticket),
                None => {
                    drop(shared);
                    if let Some(orb) = self.root.upgrade().and_then(|root| root.orb().ok()) {
                        orb.statistics().refused_queue_full();
                    }
                    Refused::No(error::discarded("too many requests are held by the adapter's manager"))
                }
            },
            State::Discarding => Refused::No(discarding()),
            State::Inactive => Refused::No(inactive()),
        }
    }

    /// Whether a request would be let in, or held until it is.
    pub(crate) fn check_admits(&self) -> Result<(), SystemException> {
        match self.state() {
            State::Active | State::Holding => Ok(()),
            State::Discarding => Err(discarding()),
            State::Inactive => Err(inactive()),
        }
    }

    /// Changes the state, unless it is the last one; the adapters, none of whose requests has seen the old state and is not in use yet.
    fn enter(&self, new: State) -> Result<Vec<Arc<Adapter>>, PoaError> {
        let mut shared = self.shared.lock();
        let old = self.state();
        if old == State::Inactive && new != State::Inactive {
            return Err(PoaError::AdapterInactive);
        }
        self.state.store(new as u8, Ordering::SeqCst);
        let freed = (new != State::Holding).then(|| std::mem::take(&mut shared.held));
        let adapters: Vec<_> = shared.adapters.iter().filter_map(Weak::upgrade).collect();
        drop(shared);
        adapters.iter().for_each(|adapter| adapter.objects.barrier());
        if let Some(freed) = freed {
            freed.give();
        }
        if old != new
            && let Some(orb) = self.root.upgrade().and_then(|root| root.orb().ok())
        {
            orb.adapter_manager_state_changed(&self.id, new.into());
        }
        Ok(adapters)
    }

    /// BAD_INV_ORDER for waiting in a thread that would wait for itself (15.3.2.4).
    fn check_may_wait(&self, wait: bool) -> Result<(), PoaError> {
        self.root.upgrade().map_or(Ok(()), |root| root.check_may_wait(wait))
    }

    /// Waits for all requests that run, as long as the state stays as it is.
    fn await_requests(&self, adapters: &[Arc<Adapter>], state: State) {
        adapters.iter().for_each(|adapter| adapter.await_requests(|| self.state() == state));
    }

    /// The ORB ends: what is held never will be run.
    pub(crate) fn close_if_holding(&self) {
        if self.state() == State::Holding {
            let _ = self.enter(State::Inactive);
        }
    }
}

impl PoaManager {
    /// Requests are run from now on, and first those that were held (15.3.2.3).
    ///
    /// # Errors
    /// `AdapterInactive` if it is inactive.
    pub fn activate(&self) -> Result<(), PoaError> {
        let is_inactive = self.0.state() == State::Inactive;
        let adapters = if is_inactive { Vec::new() } else { self.0.adapters() };
        adapters.iter().for_each(|adapter| adapter.objects.settle());
        self.0.enter(State::Active).map(drop)
    }

    /// Requests are queued from now on. With `wait_for_completion` it returns when those that run have ended, or the state has
    /// changed again (15.3.2.4).
    ///
    /// # Errors
    /// `AdapterInactive` if it is inactive; BAD_INV_ORDER for waiting inside of an upcall of an adapter of the same ORB.
    pub fn hold_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change(State::Holding, wait_for_completion)
    }

    /// Requests are answered with TRANSIENT from now on, those that were held too. Waiting as in
    /// [`hold_requests`](Self::hold_requests) (15.3.2.5).
    ///
    /// # Errors
    /// `AdapterInactive` if it is inactive; BAD_INV_ORDER for waiting inside of an upcall of an adapter of the same ORB.
    pub fn discard_requests(&self, wait_for_completion: bool) -> Result<(), PoaError> {
        self.change(State::Discarding, wait_for_completion)
    }

    fn change(&self, state: State, wait: bool) -> Result<(), PoaError> {
        self.0.check_may_wait(wait)?;
        let adapters = self.0.enter(state)?;
        if wait {
            self.0.await_requests(&adapters, state);
        }
        Ok(())
    }

    /// Requests are refused from now on, for ever. With `etherealize_objects` the servant activators of its adapters are told that no
    /// object is active any more, of each when its last request has ended; with `wait_for_completion` it returns when that is
    /// done and no request runs. Doing it again is harmless (15.3.2.6).
    ///
    /// # Errors
    /// BAD_INV_ORDER for waiting inside of an upcall of an adapter of the same ORB.
    pub fn deactivate(&self, etherealize_objects: bool, wait_for_completion: bool) -> Result<(), PoaError> {
        self.0.check_may_wait(wait_for_completion)?;
        let is_first = self.0.state() != State::Inactive;
        let adapters = self.0.enter(State::Inactive)?;
        if is_first && etherealize_objects {
            adapters.iter().filter(|adapter| adapter.has_activator()).for_each(|adapter| adapter.deactivate_all(true));
        }
        if wait_for_completion {
            adapters.iter().for_each(Adapter::await_end);
        }
        Ok(())
    }

    /// What it does with requests now.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// What it is called within its ORB (15.3.2.8).
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }
}

impl Manager {
    fn adapters(&self) -> Vec<Arc<Adapter>> {
        self.shared.lock().adapters.iter().filter_map(Weak::upgrade).collect()
    }
}

impl PartialEq for PoaManager {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PoaManager {}

impl fmt::Debug for PoaManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaManager").field("id", &self.id()).field("state", &self.state()).finish_non_exhaustive()
    }
}

/// Makes managers, and knows those of its ORB (15.3.3).
#[derive(Clone)]
pub struct PoaManagerFactory(pub(crate) Arc<Root>);

/// The managers of one ORB.
#[derive(Default)]
pub(crate) struct Managers {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// In the order of making. Those that adapters were made with live as long as those adapters, others as long as the ORB.
    managers: Vec<(Weak<Manager>, Option<Arc<Manager>>)>,
    made: u64,
}

impl Managers {
    /// A manager; of this id, or of one made up for an adapter that was given none.
    pub(crate) fn create(&self, root: &Weak<Root>, id: Option<&str>, state: State) -> Result<Arc<Manager>, PoaError> {
        let mut known = self.known.lock();
        known.managers.retain(|(manager, _)| manager.strong_count() > 0);
        let is_known = |id: &str| {
            known.managers.iter().filter_map(|(manager, _)| manager.upgrade()).any(|manager| manager.id == id)
        };
        let mut made = known.made;
        let name = match id {
            Some(id) if is_known(id) => return Err(PoaError::ManagerAlreadyExists),
            Some(id) => id.to_owned(),
            None => loop {
                made += 1;
                let name = format!("POAManager{made}");
                if !is_known(&name) {
                    break name;
                }
            },
        };
        let manager = Manager::new(Weak::clone(root), name, state);
        known.made = made;
        known.managers.push((Arc::downgrade(&manager), id.map(|_| Arc::clone(&manager))));
        Ok(manager)
    }

    fn list(&self) -> Vec<PoaManager> {
        self.known.lock().managers.iter().filter_map(|(manager, _)| manager.upgrade()).map(PoaManager).collect()
    }

    /// How many requests are held.
    pub(crate) fn held(&self) -> usize {
        self.list().iter().map(|manager| manager.0.shared.lock().held.tickets()).sum()
    }

    /// The ORB ends: nothing that is held is kept any longer.
    pub(crate) fn close(&self) {
        self.list().iter().for_each(|manager| manager.0.close_if_holding());
    }
}

impl PoaManagerFactory {
    /// A manager of this id, in the holding state (15.3.3.1). There are no policies of managers yet, and those given are not looked at.
    ///
    /// # Errors
    /// `ManagerAlreadyExists`.
    pub fn create(&self, id: &str, policies: impl IntoIterator<Item = Policy>) -> Result<PoaManager, PoaError> {
        policies.into_iter().for_each(drop);
        self.0.managers.create(&Arc::downgrade(&self.0), Some(id), State::Holding).map(PoaManager)
    }

    /// All managers (15.3.3.2).
    #[must_use]
    pub fn list(&self) -> Vec<PoaManager> {
        self.0.managers.list()
    }

    /// The manager of this id (15.3.3.3).
    #[must_use]
    pub fn find(&self, id: &str) -> Option<PoaManager> {
        self.list().into_iter().find(|manager| manager.id() == id)
    }
}

impl fmt::Debug for PoaManagerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaManagerFactory").field("managers", &self.list()).finish()
    }
}

/// What requests are told while they are discarded.
fn discarding() -> SystemException {
    error::discarded("the adapter's manager discards requests")
}

/// What requests are told from then on.
fn inactive() -> SystemException {
    SystemException::obj_adapter(minor::UNKNOWN_ADAPTER_FAILED, CompletionStatus::No)
        .with_detail("the adapter's manager is inactive")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_giop::SystemExceptionKind;
    use spandrel_orb::Orb;

    use super::*;
    use crate::{Poa, hierarchy::ROOT_MANAGER};

    #[test]
    fn so_many_requests_are_held_and_no_more() {
        let orb = Orb::builder().build();
        let factory = Poa::root(&orb).unwrap().the_poa_manager_factory();
        let manager = factory.create("holding", []).unwrap();
        let mut held = Vec::new();
        for _ in 0..MAX_HELD {
            match manager.0.refuse() {
                Refused::Held(ticket) => held.push(ticket),
                _ => panic!("it holds"),
            }
        }
        let Refused::No(exception) = manager.0.refuse() else { panic!("too many are held") };
        assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED));
        held.pop();
        assert!(matches!(manager.0.refuse(), Refused::Held(_)), "one has left");
        manager.activate().unwrap();
        assert!(matches!(manager.0.refuse(), Refused::Again));
        orb.shutdown(true).unwrap();
    }

    #[test]
    fn managers_are_known_by_ids_that_nobody_else_has() {
        let orb = Orb::builder().build();
        let root = Poa::root(&orb).unwrap();
        let factory = root.the_poa_manager_factory();
        assert_eq!(factory.find(ROOT_MANAGER), Some(root.the_poa_manager()));
        let made = factory.create("POAManager1", []).unwrap();
        assert_eq!(made.state(), State::Holding);
        assert_eq!(factory.create("POAManager1", []), Err(PoaError::ManagerAlreadyExists));
        let child = root.create_poa("child", None, []).unwrap();
        let own = child.the_poa_manager();
        assert_ne!(own.id(), made.id());
        assert_eq!(factory.list().len(), 3);
        drop(made);
        assert!(factory.find("POAManager1").is_some(), "it was made by itself, and stays");
        let id = own.id().to_owned();
        drop((own, child.destroy(true, true), child));
        assert_eq!(factory.find(&id), None, "it was its adapter's");
        orb.shutdown(true).unwrap();
    }

    #[test]
    fn a_manager_of_another_orb_is_refused() {
        let [one, other] = [(); 2].map(|()| Orb::builder().build());
        let stranger = Poa::root(&other).unwrap().the_poa_manager();
        let refused = Poa::root(&one).unwrap().create_poa("child", Some(&stranger), []).unwrap_err();
        assert!(matches!(refused, PoaError::System(exception) if exception.kind() == SystemExceptionKind::BadParam));
        one.shutdown(true).unwrap();
        other.shutdown(true).unwrap();
    }
}
