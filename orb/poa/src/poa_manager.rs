//! Managers and their factory: the public interface (CORBA 3.3 Part 1, 15.3.2 and 15.3.3).

use std::fmt;

use spandrel_orb::Policy;
use spandrel_sync::Arc;

use crate::{
    EtherealizeObjects, PoaError, State, WaitForCompletion, adapter::Root, frames::check_may_wait, manager::Manager,
};

/// Controls the requests of all adapters attached to it. Cheap to clone.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use spandrel::poa::{State, WaitForCompletion};
/// use spandrel::{Orb, Poa};
///
/// let orb = Orb::builder().build()?;
/// let manager = Poa::root(&orb)?.the_poa_manager();
/// manager.hold_requests(WaitForCompletion::Yes)?; // no request runs from here on
/// assert_eq!(manager.state(), State::Holding);
/// manager.activate()?;
/// orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
#[derive(Clone)]
pub struct PoaManager(pub(crate) Arc<Manager>);

impl PoaManager {
    /// Enters the active state: held requests run, and new ones too (15.3.2.3).
    ///
    /// # Errors
    /// `AdapterInactive` if the manager is inactive.
    pub fn activate(&self) -> Result<(), PoaError> {
        let is_inactive = self.0.state() == State::Inactive;
        let adapters = if is_inactive { Vec::new() } else { self.0.adapters() };
        adapters.iter().for_each(|adapter| adapter.settle());
        self.0.enter(State::Active).map(drop)
    }

    /// Enters the holding state: requests are queued. Complete means that the running requests have ended or the
    /// state has changed again (15.3.2.4).
    ///
    /// # Errors
    /// `AdapterInactive` if the manager is inactive; BAD_INV_ORDER for waiting inside an upcall of an adapter
    /// of the same ORB.
    pub fn hold_requests(&self, wait_for_completion: WaitForCompletion) -> Result<(), PoaError> {
        self.change(State::Holding, wait_for_completion)
    }

    /// Enters the discarding state: requests are answered with TRANSIENT, held ones too. Complete as in
    /// [`hold_requests`](Self::hold_requests) (15.3.2.5).
    ///
    /// # Errors
    /// `AdapterInactive` if the manager is inactive; BAD_INV_ORDER for waiting inside an upcall of an adapter
    /// of the same ORB.
    pub fn discard_requests(&self, wait_for_completion: WaitForCompletion) -> Result<(), PoaError> {
        self.change(State::Discarding, wait_for_completion)
    }

    fn change(&self, state: State, wait: WaitForCompletion) -> Result<(), PoaError> {
        check_may_wait(self.0.orb(), wait)?;
        let adapters = self.0.enter(state)?;
        if wait == WaitForCompletion::Yes {
            self.0.await_requests(&adapters, state);
        }
        Ok(())
    }

    /// Enters the inactive state: requests are rejected from now on. Complete means that no request runs, and
    /// that the objects are etherealized if that is requested. A repeated call has no effect (15.3.2.6).
    ///
    /// # Errors
    /// BAD_INV_ORDER for waiting inside an upcall of an adapter of the same ORB.
    pub fn deactivate(
        &self,
        etherealize_objects: EtherealizeObjects,
        wait_for_completion: WaitForCompletion,
    ) -> Result<(), PoaError> {
        check_may_wait(self.0.orb(), wait_for_completion)?;
        let is_first = self.0.state() != State::Inactive;
        let adapters = self.0.enter(State::Inactive)?;
        if is_first && etherealize_objects == EtherealizeObjects::Yes {
            adapters.iter().for_each(|adapter| Arc::clone(adapter).end_objects());
        }
        if wait_for_completion == WaitForCompletion::Yes {
            adapters.iter().for_each(|adapter| adapter.await_requests(&|| true));
        }
        Ok(())
    }

    /// The state at this moment; another thread may change it next.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// The id of the manager within its ORB (15.3.2.8).
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.id()
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

/// Creates managers, and lists those of its ORB (15.3.3).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } pub mod server { pub use spandrel_server::*; } }
/// use spandrel::poa::{State, WaitForCompletion};
/// use spandrel::{Orb, Poa};
///
/// let orb = Orb::builder().build()?;
/// let root = Poa::root(&orb)?;
/// let factory = root.the_poa_manager_factory();
/// let manager = factory.create("reports", [])?; // Several adapters are held and released together.
/// let [daily, weekly] = [root.create_poa("daily", Some(&manager), [])?, root.create_poa("weekly", Some(&manager), [])?];
/// manager.activate()?;
/// assert_eq!((daily.the_poa_manager().state(), weekly.the_poa_manager().state()), (State::Active, State::Active));
/// factory.find("reports").expect("it exists").hold_requests(WaitForCompletion::Yes)?;
/// # orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
#[derive(Clone)]
pub struct PoaManagerFactory(pub(crate) Arc<Root>);

impl PoaManagerFactory {
    /// Creates a manager with this id, in the holding state (15.3.3.1). The standard has no policies of
    /// managers yet; `policies` is ignored.
    ///
    /// # Errors
    /// `ManagerAlreadyExists`.
    pub fn create(&self, id: &str, policies: impl IntoIterator<Item = Policy>) -> Result<PoaManager, PoaError> {
        policies.into_iter().for_each(drop);
        self.0.managers.create(&self.0.orb, Some(id), State::Holding).map(PoaManager)
    }

    /// All managers of the ORB, that of the root adapter included (15.3.3.2).
    #[must_use]
    pub fn list(&self) -> Vec<PoaManager> {
        self.0.managers.list().into_iter().map(PoaManager).collect()
    }

    /// Finds a manager of this ORB by its id (15.3.3.3).
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_giop::SystemExceptionKind;
    use spandrel_orb::Orb;

    use super::*;
    use crate::{Poa, hierarchy::ROOT_MANAGER};

    #[test]
    fn managers_have_unique_ids() {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let factory = root.the_poa_manager_factory();
        assert_eq!(factory.find(ROOT_MANAGER), Some(root.the_poa_manager()));
        let first_manager = factory.create("POAManager1", []).unwrap();
        assert_eq!(first_manager.state(), State::Holding);
        let manager = "POAManager1".to_owned();
        assert_eq!(factory.create("POAManager1", []), Err(PoaError::ManagerAlreadyExists { manager }));
        let child = root.create_poa("child", None, []).unwrap();
        let own = child.the_poa_manager();
        assert_ne!(own.id(), first_manager.id());
        assert_eq!(factory.list().len(), 3);
        drop(first_manager);
        assert!(factory.find("POAManager1").is_some(), "an explicitly created manager stays");
        let id = own.id().to_owned();
        drop((own, child.destroy(EtherealizeObjects::Yes, WaitForCompletion::Yes), child));
        assert_eq!(factory.find(&id), None, "it ended with its adapter");
        orb.shutdown().unwrap();
    }

    #[test]
    fn a_manager_of_another_orb_is_rejected() {
        let [one, other] = [(); 2].map(|()| Orb::builder().build().unwrap());
        let stranger = Poa::root(&other).unwrap().the_poa_manager();
        let refused = Poa::root(&one).unwrap().create_poa("child", Some(&stranger), []).unwrap_err();
        assert!(matches!(refused, PoaError::System(exception) if exception.kind() == SystemExceptionKind::BadParam));
        one.shutdown().unwrap();
        other.shutdown().unwrap();
    }
}
