//! Activation, deactivation and forwarding of objects by the application, and the mappings between references,
//! ids and servants (CORBA 3.3 Part 1, 15.3.9.15 to 15.3.9.29). Activation on demand, by a servant activator,
//! is in `servant_lookup`.

use spandrel_cdr::{Ior, TaggedProfile};
use spandrel_giop::{IiopProfile, SystemException};
use spandrel_orb::{Interface, ObjectRef, OperationDemux};
use spandrel_server::{Servant, ServedAsyncBy, ServedBy, dedicated_addresses, dedicated_hosts};
use spandrel_sync::Arc;

use crate::{
    ObjectId, Poa, PoaError, error, frames,
    objects::{ActivationOutcome, ActivationRefusal, Binding, Forwarding},
};

impl Poa {
    /// Activates a servant as a new object, with an id assigned by the adapter (15.3.9.15).
    ///
    /// # Errors
    /// `WrongPolicy` without SYSTEM_ID and RETAIN; `ServantAlreadyActive` if the adapter has UNIQUE_ID and
    /// the servant is active; NO_RESOURCES if all ids are in use.
    pub fn activate_object(&self, servant: Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        self.adapter.check_exists()?;
        let policies = &self.adapter.policies;
        self.adapter.require(policies.assigns_ids() && policies.retains(), "SYSTEM_ID and RETAIN")?;
        self.adapter.check_servant(&servant)?;
        let activated = self.adapter.objects.activate(Binding::Servant(servant));
        let id = activated.map_err(|refusal| self.adapter.activation_error(&[], refusal))?;
        self.adapter.note_activation();
        Ok(id)
    }

    /// Activates the object with this id (15.3.9.16). Waits for the end of its previous activation, if
    /// necessary.
    ///
    /// # Errors
    /// `WrongPolicy` without RETAIN; `ObjectAlreadyActive`; `ServantAlreadyActive` if the adapter has
    /// UNIQUE_ID and the servant is active; BAD_PARAM if the adapter has SYSTEM_ID and did not assign the id;
    /// BAD_INV_ORDER inside a request on the object itself, which has to end first.
    pub fn activate_object_with_id(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.retains(), "RETAIN")?;
        self.adapter.check_servant(&servant)?;
        loop {
            match self.adapter.objects.activate_at(id, Binding::Servant(Arc::clone(&servant))) {
                ActivationOutcome::Done => {
                    self.adapter.note_activation();
                    return Ok(());
                }
                ActivationOutcome::Rejected(refusal) => return Err(self.adapter.activation_error(id, refusal)),
                ActivationOutcome::Wait(_) if frames::is_inside_of(&self.adapter, id) => {
                    return Err(error::would_deadlock().into());
                }
                ActivationOutcome::Wait(finished) => finished.wait(),
            }
        }
    }

    /// Begins an object's deactivation and returns at once (15.3.9.17). The deactivation is complete when its
    /// last request has been answered and a servant activator has etherealized it.
    ///
    /// # Errors
    /// `WrongPolicy` without RETAIN; `ObjectNotActive`.
    pub fn deactivate_object(&self, id: &ObjectId) -> Result<(), PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.retains(), "RETAIN")?;
        self.adapter.deactivate(id)
    }

    /// Creates a reference with a new id, for an object that need not have a servant yet (15.3.9.18).
    /// `interface` is its repository id.
    ///
    /// # Errors
    /// `WrongPolicy` without SYSTEM_ID; INITIALIZE if the ORB cannot listen.
    pub fn create_reference(&self, interface: &str) -> Result<ObjectRef, PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.assigns_ids(), "SYSTEM_ID")?;
        let id = self.adapter.objects.make_id().expect("the adapter has SYSTEM_ID");
        self.reference_of(&id, interface)
    }

    /// Creates a reference with this id, for an object that need not have a servant yet (15.3.9.19).
    ///
    /// # Errors
    /// BAD_PARAM if the adapter has SYSTEM_ID and did not assign the id; INITIALIZE if the ORB cannot listen.
    pub fn create_reference_with_id(&self, id: &ObjectId, interface: &str) -> Result<ObjectRef, PoaError> {
        self.adapter.check_exists()?;
        if !self.adapter.objects.is_assigned(id) {
            return Err(error::id_not_assigned(&self.adapter.path, id).into());
        }
        self.reference_of(id, interface)
    }

    /// The id of a servant's object (15.3.9.20); implicit activation may create a new one.
    ///
    /// # Errors
    /// `WrongPolicy` unless the adapter has a default servant, or RETAIN with UNIQUE_ID or implicit
    /// activation; `ServantNotActive`.
    pub fn servant_to_id(&self, servant: &Arc<dyn Servant>) -> Result<ObjectId, PoaError> {
        self.adapter.check_exists()?;
        let policies = &self.adapter.policies;
        self.adapter.require(
            policies.has_default_servant() || self.knows_servants(),
            "USE_DEFAULT_SERVANT, or RETAIN with UNIQUE_ID or IMPLICIT_ACTIVATION",
        )?;
        let active_id = self.id_of_servant(servant)?;
        let is_default = || self.servant().is_ok_and(|default| Arc::ptr_eq(&default, servant));
        active_id
            .or_else(|| if policies.has_default_servant() && is_default() { self.id_in_upcall(servant) } else { None })
            .ok_or_else(|| self.servant_not_active(servant))
    }

    /// A reference to a servant's object (15.3.9.21); implicit activation creates one if necessary. Inside a
    /// request on the servant, the reference is to the request's object.
    ///
    /// # Errors
    /// `WrongPolicy` unless the adapter has RETAIN with UNIQUE_ID or implicit activation, or the call is
    /// inside a request on the servant; `ServantNotActive`.
    pub fn servant_to_reference(&self, servant: &Arc<dyn Servant>) -> Result<ObjectRef, PoaError> {
        self.adapter.check_exists()?;
        let current = self.id_in_upcall(servant);
        self.adapter
            .require(current.is_some() || self.knows_servants(), "RETAIN with UNIQUE_ID or IMPLICIT_ACTIVATION")?;
        let active_id = if self.knows_servants() { self.id_of_servant(servant)? } else { None };
        let id = active_id.or(current).ok_or_else(|| self.servant_not_active(servant))?;
        self.reference_of(&id, servant.repository_id())
    }

    fn servant_not_active(&self, servant: &Arc<dyn Servant>) -> PoaError {
        PoaError::ServantNotActive {
            adapter: self.adapter.full_name_text(),
            interface: servant.repository_id().to_owned(),
        }
    }

    /// Whether servants map to objects (15.3.9.20).
    fn knows_servants(&self) -> bool {
        let policies = &self.adapter.policies;
        policies.retains() && (policies.is_unique() || policies.is_implicit())
    }

    /// The one object of a servant, or a new one.
    fn id_of_servant(&self, servant: &Arc<dyn Servant>) -> Result<Option<ObjectId>, PoaError> {
        let policies = &self.adapter.policies;
        loop {
            if policies.retains()
                && policies.is_unique()
                && let Some(id) = self.adapter.objects.id_of(servant)
            {
                return Ok(Some(id));
            }
            if !policies.is_implicit() {
                return Ok(None);
            }
            self.adapter.check_servant(servant)?;
            match self.adapter.objects.activate(Binding::Servant(Arc::clone(servant))) {
                // Another thread activated it first.
                Err(ActivationRefusal::ServantActive(_)) => {}
                other => return other.map(Some).map_err(|refusal| self.adapter.activation_error(&[], refusal)),
            }
        }
    }

    /// The object of the request of this adapter on this servant in this thread.
    fn id_in_upcall(&self, servant: &Arc<dyn Servant>) -> Option<ObjectId> {
        let current = frames::innermost(|adapter, id, running| {
            let is_it = Arc::ptr_eq(adapter, &self.adapter) && Arc::ptr_eq(running, servant);
            is_it.then(|| id.into())
        });
        current.flatten()
    }

    /// The servant of a reference's object, or the default servant (15.3.9.22).
    ///
    /// # Errors
    /// `WrongAdapter`; `WrongPolicy` without RETAIN or a default servant; `ObjectNotActive`.
    pub fn reference_to_servant(&self, reference: &ObjectRef) -> Result<Arc<dyn Servant>, PoaError> {
        self.adapter.check_exists()?;
        self.require_servants()?;
        let id = self.id_in(reference)?;
        self.id_to_servant(&id)
    }

    /// The id in a reference that this adapter created; the object need not be active (15.3.9.23).
    ///
    /// # Errors
    /// `WrongAdapter`.
    pub fn reference_to_id(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        self.adapter.check_exists()?;
        self.id_in(reference)
    }

    /// The id in an object key of this adapter; the object need not be active. `None` for other keys.
    #[must_use]
    pub fn key_to_id(&self, key: &[u8]) -> Option<ObjectId> {
        key.strip_prefix(&*self.adapter.prefix).map(ObjectId::from)
    }

    /// The servant of the object with this id, or the default servant (15.3.9.24).
    ///
    /// # Errors
    /// `WrongPolicy` without RETAIN or a default servant; `ObjectNotActive`.
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Arc<dyn Servant>, PoaError> {
        self.adapter.check_exists()?;
        self.require_servants()?;
        let own = if self.adapter.policies.retains() { self.adapter.objects.find(id) } else { None };
        match own {
            Some(Binding::Servant(servant)) => Ok(servant),
            Some(Binding::Forward(_)) => Err(self.adapter.object_not_active(id)),
            None => self.adapter.default_servant.read().clone().ok_or_else(|| self.adapter.object_not_active(id)),
        }
    }

    /// Checks whether objects have servants between requests.
    fn require_servants(&self) -> Result<(), PoaError> {
        let policies = &self.adapter.policies;
        self.adapter.require(policies.retains() || policies.has_default_servant(), "RETAIN or USE_DEFAULT_SERVANT")
    }

    /// The reference to an active object, of the type that its servant states (15.3.9.25).
    ///
    /// # Errors
    /// `WrongPolicy` without RETAIN; `ObjectNotActive`; INITIALIZE if the ORB cannot listen.
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<ObjectRef, PoaError> {
        self.adapter.check_exists()?;
        self.adapter.require(self.adapter.policies.retains(), "RETAIN")?;
        match self.adapter.objects.find(id).ok_or_else(|| self.adapter.object_not_active(id))? {
            Binding::Servant(servant) => self.reference_of(id, servant.repository_id()),
            Binding::Forward(Forwarding { target, .. }) => self.reference_of(id, target.type_id()),
        }
    }

    pub(crate) fn reference_of(&self, id: &[u8], interface: &str) -> Result<ObjectRef, PoaError> {
        let mut references = self.adapter.references.get().cloned().unwrap_or_default();
        if self.adapter.operation_demux == OperationDemux::Active
            && let Some(Binding::Servant(servant)) = self.adapter.objects.find(id)
        {
            references = references.offering(servant.operations());
        }
        if let Some(executor) = &self.adapter.executor {
            references = references.with_components(executor.reference_components(id));
            let dedicated = executor.endpoint(id).and_then(|number| dedicated_addresses(&self.orb, number));
            references = references.with_addresses(executor.reference_addresses(&self.orb, dedicated)?);
        }
        Ok(references.make(&self.orb, interface, id, self.adapter.key(id))?)
    }

    /// The object id in a reference, if this adapter created the reference.
    fn id_in(&self, reference: &ObjectRef) -> Result<ObjectId, PoaError> {
        let tagged_profiles = &reference.ior().profiles;
        let profiles =
            tagged_profiles.iter().filter_map(|tagged| Some((tagged, IiopProfile::decode(tagged).ok().flatten()?)));
        let is_persistent = self.adapter.policies.is_persistent();
        // Adapters of the same name in other servers have equal keys; transient ones differ by their random
        // incarnations.
        let mut here = if is_persistent { self.orb.listen()? } else { Vec::new() };
        if self.adapter.executor.is_some() {
            here.extend(dedicated_hosts(&self.orb));
        }
        // References by way of the implementation repository have its addresses, and the name of this server.
        let repository = if is_persistent { self.orb.implementation_repository_prefix() } else { None };
        // A profile without a port may have an address of this ORB in its components, and no host in common with it.
        let has_own_address = |tagged: &TaggedProfile| {
            let profile = Ior { type_id: String::new(), profiles: vec![tagged.clone()] };
            self.adapter.executor.is_some() && self.orb.own_object_key(&profile).is_some()
        };
        let mut ids = profiles.filter_map(|(tagged, profile)| {
            let by_name = repository.as_ref().and_then(|prefix| profile.object_key.strip_prefix(&**prefix));
            let is_here = by_name.is_some()
                || !is_persistent
                || here.contains(&(profile.host, profile.port))
                || profile.port == 0 && has_own_address(tagged);
            let key = by_name.unwrap_or(&profile.object_key);
            key.strip_prefix(&*self.adapter.prefix).filter(|_| is_here).map(ObjectId::from)
        });
        ids.next().ok_or_else(|| PoaError::WrongAdapter {
            adapter: self.adapter.full_name_text(),
            interface: reference.type_id().to_owned(),
        })
    }
}

/// Shorthand operations beyond the standard.
impl Poa {
    /// Activates a servant as a new object. It stays active until it is deactivated or the ORB is shut down.
    ///
    /// The ORB begins to listen if it has not done so yet.
    ///
    /// # Errors
    /// INITIALIZE if it cannot listen, BAD_INV_ORDER after shutdown, and as
    /// [`activate_object`](Self::activate_object).
    pub fn activate(&self, servant: impl Servant + 'static) -> Result<ObjectRef, SystemException> {
        self.activate_shared(Arc::new(servant))
    }

    /// Activates a servant that is shared with its owner.
    ///
    /// # Errors
    /// As [`activate`](Self::activate); OBJ_ADAPTER if it is active already and the adapter has UNIQUE_ID.
    pub fn activate_shared(&self, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        self.orb.listen()?;
        let interface = servant.repository_id().to_owned();
        let id = self.activate_object(servant)?;
        Ok(self.reference_of(&id, &interface)?)
    }

    /// Activates a servant as a new object of an interface, as [`activate`](Self::activate) does with the servant's
    /// skeleton. The type of the result names the interface; a servant in an `Arc` is shared with its owner.
    ///
    /// ```
    /// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod server { pub use spandrel_server::*; } }
    /// use spandrel::server::ServedBy;
    /// use spandrel::{Poa, SystemException};
    ///
    /// fn serve_shared<Account: ServedBy<S>, S: Send + Sync + 'static>(
    ///     root: &Poa,
    ///     account: S,
    /// ) -> Result<Account, SystemException> {
    ///     root.serve(account) // in a program: let account: Account = root.serve(Savings::default())?;
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`activate`](Self::activate).
    pub fn serve<I: ServedBy<S>, S: Send + Sync + 'static>(&self, servant: S) -> Result<I, SystemException> {
        Ok(self.activate_shared(I::skeleton(servant))?.unchecked_narrow())
    }

    /// Activates an asynchronous servant as a new object of an interface: as [`serve`](Self::serve).
    ///
    /// # Errors
    /// As [`activate`](Self::activate).
    pub fn serve_async<I: ServedAsyncBy<S>, S>(&self, servant: S) -> Result<I, SystemException> {
        Ok(self.activate_shared(I::async_skeleton(servant))?.unchecked_narrow())
    }

    /// Activates a servant as the object of an interface with this id.
    ///
    /// # Errors
    /// As [`activate_object_with_id`](Self::activate_object_with_id); INITIALIZE if the ORB cannot listen.
    pub fn serve_with_id<I: ServedBy<S>, S: Send + Sync + 'static>(
        &self,
        id: impl Into<ObjectId>,
        servant: S,
    ) -> Result<I, PoaError> {
        self.activate_with_id(&id.into(), I::skeleton(servant))
    }

    /// Activates an asynchronous servant as the object of an interface with this id.
    ///
    /// # Errors
    /// As [`serve_with_id`](Self::serve_with_id).
    pub fn serve_async_with_id<I: ServedAsyncBy<S>, S>(
        &self,
        id: impl Into<ObjectId>,
        servant: S,
    ) -> Result<I, PoaError> {
        self.activate_with_id(&id.into(), I::async_skeleton(servant))
    }

    fn activate_with_id<I: Interface>(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<I, PoaError> {
        self.orb.listen()?;
        self.activate_object_with_id(id, servant)?;
        Ok(self.reference_of(id, I::REPOSITORY_ID)?.unchecked_narrow())
    }

    /// A typed reference to the object with this id, which need not have a servant yet: as
    /// [`create_reference_with_id`](Self::create_reference_with_id).
    ///
    /// ```
    /// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_poa::Poa; pub mod poa { pub use spandrel_poa::*; } }
    /// # mod types { pub use spandrel_orb::Interface; }
    /// use spandrel::poa::PoaError;
    /// use spandrel::{ObjectRef, Poa};
    /// use types::Interface; // of spandrel
    ///
    /// fn account_of<Account: Interface>(accounts: &Poa, name: &str) -> Result<Account, PoaError> {
    ///     accounts.reference(name) // or, with a type of generated code: accounts.reference::<Account>(name)
    /// }
    /// ```
    ///
    /// # Errors
    /// BAD_PARAM if the adapter has SYSTEM_ID and did not assign the id; INITIALIZE if the ORB cannot listen.
    pub fn reference<I: Interface>(&self, id: impl Into<ObjectId>) -> Result<I, PoaError> {
        Ok(self.create_reference_with_id(&id.into(), I::REPOSITORY_ID)?.unchecked_narrow())
    }

    /// Deactivates an object: further requests raise OBJECT_NOT_EXIST, running ones complete.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the reference is not to an active object of this adapter.
    pub fn deactivate(&self, object: &ObjectRef) -> Result<(), SystemException> {
        let ended = self.id_in(object).and_then(|id| self.adapter.deactivate(&id));
        ended.map_err(not_active)
    }

    /// Forwards requests for an object to `target` (LOCATION_FORWARD).
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the reference is not to an active object of this adapter.
    pub fn forward(&self, object: &ObjectRef, target: ObjectRef) -> Result<(), SystemException> {
        self.forward_as(object, Forwarding { target, is_permanent: false })
    }

    /// Forwards requests for an object permanently: clients need not return to the original reference
    /// (LOCATION_FORWARD_PERM). Clients of GIOP 1.0 and 1.1 receive LOCATION_FORWARD, since they know no
    /// other.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn forward_permanently(&self, object: &ObjectRef, target: ObjectRef) -> Result<(), SystemException> {
        self.forward_as(object, Forwarding { target, is_permanent: true })
    }

    fn forward_as(&self, object: &ObjectRef, forwarding: Forwarding) -> Result<(), SystemException> {
        let id = self.id_in(object).map_err(not_active)?;
        let replaced = self.adapter.objects.replace(&id, Binding::Forward(forwarding));
        replaced.map(drop).ok_or_else(|| not_active(self.adapter.object_not_active(&id)))
    }

    /// The number of objects in the adapter's active object map.
    #[must_use]
    pub fn active_objects(&self) -> usize {
        self.adapter.objects.len()
    }
}

/// OBJECT_NOT_EXIST with the text of this error.
fn not_active(error: PoaError) -> SystemException {
    error::not_active().with_detail(|| error.to_string())
}

#[cfg(all(test, not(shuttle), not(windows)))] // the tests for Windows run without a compiler
mod tests {
    /// The compiler names the remedy.
    #[test]
    fn a_servant_without_its_skeleton_does_not_compile() {
        trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
    }
}
