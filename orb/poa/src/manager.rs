//! What stands in front of adapters: their managers' states, and the requests that these hold (CORBA 3.3 Part 1, 15.3.2).
//!
//! A manager is a valve in front of the adapters that have it. A request looks at the state while it enters its object (an atomic, under
//! the lock of the active object map); whoever changes the state passes through those locks once, and knows then that every
//! request either saw the new state or is in use and can be waited for. Of an adapter it knows only what it asks of it: [`Managed`].

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::AdapterState;
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU8, Ordering},
};

use crate::{
    PoaError, error,
    live_orb::LiveOrb,
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

/// What has a manager, as the manager knows it: an adapter.
pub(crate) trait Managed: Send + Sync {
    /// Returns once each request that looked at the state before is in use, or was refused.
    fn barrier(&self);
    /// Requests are about to be let pass: the configuration is complete for now.
    fn settle(&self);
    /// Waits for all requests that run, and all etherealizations, as long as this holds.
    fn await_requests(&self, goes_on: &dyn Fn() -> bool);
    /// Deactivates all objects, if there is a servant activator to be told of it.
    fn end_objects(self: Arc<Self>);
}

/// A valve that requests pass, are held by, or are refused by.
pub(crate) struct Manager {
    id: String,
    orb: Arc<LiveOrb>,
    /// Changed under the lock only.
    state: AtomicU8,
    shared: Mutex<Shared>,
}

struct Shared {
    adapters: Vec<Weak<dyn Managed>>,
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
    fn new(orb: Arc<LiveOrb>, id: String, state: State) -> Arc<Self> {
        let shared = Mutex::new(Shared { adapters: Vec::new(), held: Arc::default() });
        Arc::new(Self { id, orb, state: AtomicU8::new(state as u8), shared })
    }

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Ordering::SeqCst) == State::Active as u8
    }

    pub(crate) fn is_of(&self, orb: &Arc<LiveOrb>) -> bool {
        Arc::ptr_eq(&self.orb, orb)
    }

    pub(crate) fn orb(&self) -> &Arc<LiveOrb> {
        &self.orb
    }

    /// What it is called within its ORB (15.3.2.8).
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What it does with requests now.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Holding,
            1 => State::Active,
            2 => State::Discarding,
            _ => State::Inactive,
        }
    }

    pub(crate) fn attach(&self, adapter: Weak<dyn Managed>) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|known| known.strong_count() > 0);
        shared.adapters.push(adapter);
    }

    /// An adapter is gone. What was held for it is to find that out (15.3.9.4); what was held for others is held again.
    pub(crate) fn detach(&self, adapter: &dyn Managed) {
        let mut shared = self.shared.lock();
        shared.adapters.retain(|known| !std::ptr::addr_eq(known.as_ptr(), adapter));
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
                    if let Ok(orb) = self.orb.get() {
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
    pub(crate) fn enter(&self, new: State) -> Result<Vec<Arc<dyn Managed>>, PoaError> {
        let mut shared = self.shared.lock();
        let old = self.state();
        if old == State::Inactive && new != State::Inactive {
            return Err(PoaError::AdapterInactive);
        }
        self.state.store(new as u8, Ordering::SeqCst);
        let freed = (new != State::Holding).then(|| std::mem::take(&mut shared.held));
        let adapters: Vec<_> = shared.adapters.iter().filter_map(Weak::upgrade).collect();
        drop(shared);
        adapters.iter().for_each(|adapter| adapter.barrier());
        if let Some(freed) = freed {
            freed.give();
        }
        if old != new
            && let Ok(orb) = self.orb.get()
        {
            orb.adapter_manager_state_changed(&self.id, new.into());
        }
        Ok(adapters)
    }

    pub(crate) fn adapters(&self) -> Vec<Arc<dyn Managed>> {
        self.shared.lock().adapters.iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for all requests that run, as long as the state stays as it is.
    pub(crate) fn await_requests(&self, adapters: &[Arc<dyn Managed>], state: State) {
        adapters.iter().for_each(|adapter| adapter.await_requests(&|| self.state() == state));
    }

    /// The ORB ends: what is held never will be run.
    pub(crate) fn close_if_holding(&self) {
        if self.state() == State::Holding {
            let _ = self.enter(State::Inactive);
        }
    }
}

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
    pub(crate) fn create(&self, orb: &Arc<LiveOrb>, id: Option<&str>, state: State) -> Result<Arc<Manager>, PoaError> {
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
        let manager = Manager::new(Arc::clone(orb), name, state);
        known.made = made;
        known.managers.push((Arc::downgrade(&manager), id.map(|_| Arc::clone(&manager))));
        Ok(manager)
    }

    pub(crate) fn list(&self) -> Vec<Arc<Manager>> {
        self.known.lock().managers.iter().filter_map(|(manager, _)| manager.upgrade()).collect()
    }

    /// How many requests are held.
    pub(crate) fn held(&self) -> usize {
        self.list().iter().map(|manager| manager.shared.lock().held.tickets()).sum()
    }

    /// The ORB ends: nothing that is held is kept any longer.
    pub(crate) fn close(&self) {
        self.list().iter().for_each(|manager| manager.close_if_holding());
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

    #[test]
    fn so_many_requests_are_held_and_no_more() {
        let orb = Orb::builder().build().unwrap();
        let live = Arc::new(LiveOrb::new(orb.clone()));
        let manager = Managers::default().create(&live, Some("holding"), State::Holding).unwrap();
        let mut held = Vec::new();
        for _ in 0..MAX_HELD {
            match manager.refuse() {
                Refused::Held(ticket) => held.push(ticket),
                _ => panic!("it holds"),
            }
        }
        let Refused::No(exception) = manager.refuse() else { panic!("too many are held") };
        assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED));
        held.pop();
        assert!(matches!(manager.refuse(), Refused::Held(_)), "one has left");
        manager.enter(State::Active).unwrap();
        assert!(matches!(manager.refuse(), Refused::Again));
        orb.shutdown(true).unwrap();
    }
}
