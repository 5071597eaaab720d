//! The public interface of adapters: tree, manager, and servant managers (CORBA 3.3 Part 1, 15.3.9).
//!
//! Activation, deactivation and forwarding of objects are in `activation`.

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{Orb, Policy, PolicyType};
use spandrel_server::Servant;
use spandrel_sync::Arc;

use crate::{
    AdapterActivator, EtherealizeObjects, Poa, PoaError, PoaManager, PoaManagerFactory, ServantManager,
    WaitForCompletion, adapter::Root,
};

/// The handling of a child that does not exist: `activate_it` of IDL's `find_POA`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum IfMissing {
    /// The parent's adapter activator creates it, if there is one.
    Activate,
    /// It is an error.
    Fail,
}

impl Poa {
    /// The root adapter of an ORB, created by the first call. It has the standard policies, and implicit
    /// activation (15.3.9.1).
    ///
    /// An ORB with an adapter lives until it is shut down.
    ///
    /// # Errors
    /// OBJ_ADAPTER if another kind of adapter was installed in this ORB; OBJECT_NOT_EXIST once the root
    /// adapter has been destroyed.
    pub fn root(orb: &Orb) -> Result<Self, SystemException> {
        let installed = spandrel_server::install_adapter(orb, Root::new(orb.clone())).into_any();
        let root = installed.downcast::<Root>().map_err(|_| {
            SystemException::obj_adapter(0, CompletionStatus::No)
                .with_detail("another kind of object adapter is installed in this ORB")
        })?;
        let adapter = Arc::clone(root.root_adapter());
        adapter.check_exists()?;
        root.establish_root_references()?;
        Ok(Self { orb: orb.clone(), root, adapter })
    }

    /// The ORB for which the adapter serves objects.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// Creates a child (15.3.9.2). Without a manager it gets one of its own, in the holding state; missing
    /// policies have their defaults. [`child`](Self::child) has the policies as methods.
    ///
    /// # Errors
    /// `AdapterAlreadyExists`; `InvalidPolicy`; BAD_INV_ORDER while this adapter is being destroyed,
    /// BAD_PARAM for a name that is too long.
    pub fn create_poa(
        &self,
        name: &str,
        manager: Option<&PoaManager>,
        policies: impl IntoIterator<Item = Policy>,
    ) -> Result<Self, PoaError> {
        let explicit_policies = policies.into_iter().collect();
        let adapter = self.root.create(
            &self.adapter,
            name,
            manager.map(|manager| &manager.0),
            explicit_policies,
            Default::default(),
        )?;
        Ok(Self { adapter, ..self.clone() })
    }

    /// The child of this name, which the activator may create (15.3.9.3).
    ///
    /// # Errors
    /// `AdapterNonExistent`; OBJ_ADAPTER if the activator panicked.
    pub fn find_poa(&self, name: &str, if_missing: IfMissing) -> Result<Self, PoaError> {
        let adapter = self.root.find(&self.adapter, name, if_missing)?;
        Ok(Self { adapter, ..self.clone() })
    }

    /// Destroys the adapter and its descendants (15.3.9.4): they can no longer be found, and their objects
    /// are deactivated, each after its last request.
    ///
    /// A repeated call has no effect; the first call's `etherealize_objects` counts.
    ///
    /// # Errors
    /// BAD_INV_ORDER for waiting inside an upcall of an adapter of the same ORB.
    pub fn destroy(
        &self,
        etherealize_objects: EtherealizeObjects,
        wait_for_completion: WaitForCompletion,
    ) -> Result<(), PoaError> {
        self.root.destroy(&self.adapter, etherealize_objects, wait_for_completion)
    }

    /// The name among its siblings (15.3.9.6); that of the root adapter is `RootPOA`.
    #[must_use]
    pub fn the_name(&self) -> String {
        self.adapter.name().to_owned()
    }

    /// The policy of this type: the one given at creation, or the default of a standard policy.
    #[must_use]
    pub fn policy(&self, policy_type: PolicyType) -> Option<Policy> {
        self.adapter.policy(policy_type)
    }

    /// The parent; `None` for the root adapter (15.3.9.7).
    #[must_use]
    pub fn the_parent(&self) -> Option<Self> {
        let parent = Arc::clone(self.adapter.parent.as_ref()?);
        Some(Self { adapter: parent, ..self.clone() })
    }

    /// The child adapters that exist now, in no order (15.3.9.8).
    #[must_use]
    pub fn the_children(&self) -> Vec<Self> {
        let children_state = self.adapter.children_state.lock();
        children_state.children.values().map(|child| Self { adapter: Arc::clone(child), ..self.clone() }).collect()
    }

    /// The manager that holds, discards or passes on the adapter's requests (15.3.9.9).
    #[must_use]
    pub fn the_poa_manager(&self) -> PoaManager {
        PoaManager(Arc::clone(&self.adapter.manager))
    }

    /// The factory of the ORB's adapter managers (15.3.9.5).
    #[must_use]
    pub fn the_poa_manager_factory(&self) -> PoaManagerFactory {
        PoaManagerFactory(Arc::clone(&self.root))
    }

    /// The identifier within its ORB, the same in later processes for a persistent adapter (15.3.9.30).
    #[must_use]
    pub fn id(&self) -> Vec<u8> {
        self.adapter.prefix.clone()
    }

    /// The adapter activator, which creates children on demand (15.3.9.10).
    #[must_use]
    pub fn the_activator(&self) -> Option<Arc<dyn AdapterActivator>> {
        self.adapter.activator.lock().clone()
    }

    /// Sets or removes the activator, which creates missing children on demand (15.3.9.10).
    pub fn set_the_activator(&self, activator: Option<Arc<dyn AdapterActivator>>) {
        let old = std::mem::replace(&mut *self.adapter.activator.lock(), activator);
        drop(old);
    }

    /// The servant manager that finds servants for inactive objects; `None` until it is set (15.3.9.11).
    ///
    /// # Errors
    /// `WrongPolicy` without USE_SERVANT_MANAGER.
    pub fn servant_manager(&self) -> Result<Option<ServantManager>, PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.has_servant_manager(), "USE_SERVANT_MANAGER")?;
        Ok(self.adapter.servant_manager.read().clone())
    }

    /// Sets the servant manager, once (15.3.9.12).
    ///
    /// # Errors
    /// `WrongPolicy` without USE_SERVANT_MANAGER; BAD_INV_ORDER if it is set already; OBJ_ADAPTER for a
    /// locator with RETAIN, or an activator with NON_RETAIN.
    pub fn set_servant_manager(&self, manager: ServantManager) -> Result<(), PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.has_servant_manager(), "USE_SERVANT_MANAGER")?;
        if matches!(manager, ServantManager::Activator(_)) != self.adapter.policies.retains() {
            return Err(SystemException::obj_adapter(minor::NO_SERVANT_MANAGER, CompletionStatus::No)
                .with_detail("adapters that retain servants have servant activators, others servant locators")
                .into());
        }
        let mut manager_slot = self.adapter.servant_manager.write();
        if manager_slot.is_some() {
            drop(manager_slot);
            return Err(SystemException::bad_inv_order(minor::SERVANT_MANAGER_ALREADY_SET, CompletionStatus::No)
                .with_detail("the adapter has a servant manager already")
                .into());
        }
        *manager_slot = Some(manager);
        Ok(())
    }

    /// The servant of all objects that are not active (15.3.9.13).
    ///
    /// # Errors
    /// `WrongPolicy` without USE_DEFAULT_SERVANT; `NoServant` if none is set.
    pub fn servant(&self) -> Result<Arc<dyn Servant>, PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.has_default_servant(), "USE_DEFAULT_SERVANT")?;
        let servant = self.adapter.default_servant.read().clone();
        servant.ok_or_else(|| PoaError::NoServant { adapter: self.adapter.full_name_text() })
    }

    /// Sets the default servant, which serves all objects without a servant of their own (15.3.9.14).
    ///
    /// # Errors
    /// `WrongPolicy` without USE_DEFAULT_SERVANT.
    pub fn set_servant(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.has_default_servant(), "USE_DEFAULT_SERVANT")?;
        self.adapter.check_servant(&servant)?;
        let old = self.adapter.default_servant.write().replace(servant);
        drop(old);
        Ok(())
    }

    /// Makes the adapter serve all plain object keys that are no
    /// [alias](spandrel_orb::Orb::set_object_key_alias): the object id is the key itself, so that
    /// `corbaloc:…/Name` denotes the object with the id `Name`. OmniORB's `omniINSPOA` does the same.
    ///
    /// The adapter's policies decide about each key as about each id. With USE_DEFAULT_SERVANT, the
    /// [default servant](Self::set_servant) serves all keys that have no servant of their own; with
    /// USE_SERVANT_MANAGER, a servant manager finds their servants. [`Current::object_id`](crate::Current::object_id)
    /// is the key. Clients are forwarded to a reference of the adapter. Control characters do not begin plain keys.
    ///
    /// ```
    /// use spandrel_orb::Orb;
    /// use spandrel_poa::{IdAssignmentPolicy, IdUniquenessPolicy, Poa, RequestProcessingPolicy};
    ///
    /// let orb = Orb::builder().build()?;
    /// let policies = [
    ///     IdAssignmentPolicy::UserId.into(),
    ///     IdUniquenessPolicy::MultipleId.into(), // which a default servant requires
    ///     RequestProcessingPolicy::UseDefaultServant.into(),
    /// ];
    /// let plain_keys = Poa::root(&orb)?.create_poa("plain keys", None, policies)?;
    /// plain_keys.serve_plain_keys()?;
    /// // Then `set_servant`, and `activate` of its manager.
    /// # orb.shutdown()?;
    /// # Ok::<(), spandrel_poa::PoaError>(())
    /// ```
    ///
    /// The server begins to listen. Only one adapter of an ORB does this: the last one, until it is destroyed.
    ///
    /// # Errors
    /// `WrongPolicy` without USER_ID; INITIALIZE if the server cannot listen.
    pub fn serve_plain_keys(&self) -> Result<(), PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(!self.adapter.policies.assigns_ids(), "USER_ID")?;
        // The ORB keeps the search, and an adapter keeps its ORB.
        let adapter = Arc::downgrade(&self.adapter);
        self.orb.set_plain_key_lookup(Arc::new(move |key| {
            let adapter = adapter.upgrade().filter(|adapter| !adapter.is_destroyed())?;
            let object = Self::of(&adapter).ok()?.reference_of(key, "").ok()?;
            Some(object.ior().clone())
        }));
        self.orb.listen()?;
        Ok(())
    }
}
