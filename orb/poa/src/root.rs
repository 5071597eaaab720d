//! The root adapter.

use std::{any::Any, fmt};

use spandrel_giop::{CompletionStatus, IiopProfile, SystemException};
use spandrel_orb::{Located, ObjectAdapter, ObjectRef, Orb, Policy, PolicyType, Replied, Servant, ServerCall, Target};
use spandrel_sync::Arc;

use crate::{
    active_map::{Active, ActiveObjectMap, ObjectId},
    key::{self, Incarnation},
};

/// An object adapter: makes references to servants, and finds the servant of each request.
///
/// The root adapter accepts requests as soon as the first reference exists. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Poa {
    orb: Orb,
    adapter: Arc<RootAdapter>,
}

/// What the core dispatches to.
struct RootAdapter {
    incarnation: Incarnation,
    objects: ActiveObjectMap,
}

impl Poa {
    /// The root adapter of an ORB, made by the first call.
    ///
    /// # Errors
    /// OBJ_ADAPTER if another kind of adapter was installed in this ORB.
    pub fn root(orb: &Orb) -> Result<Self, SystemException> {
        let new = RootAdapter { incarnation: Incarnation::random(), objects: ActiveObjectMap::default() };
        let adapter = orb.install_adapter(Arc::new(new)).into_any().downcast().map_err(|_| {
            SystemException::obj_adapter(0, CompletionStatus::No)
                .with_detail("another kind of object adapter is installed in this ORB")
        })?;
        Ok(Self { orb: orb.clone(), adapter })
    }

    /// Activates a servant as a new object, which lives until it is deactivated or the ORB is shut down.
    ///
    /// The ORB begins to listen if it has not done so yet.
    ///
    /// # Errors
    /// INITIALIZE if it cannot listen, BAD_INV_ORDER after shutdown, NO_RESOURCES if all ids are taken.
    pub fn activate(&self, servant: impl Servant + 'static) -> Result<ObjectRef, SystemException> {
        self.activate_shared(Arc::new(servant))
    }

    /// Activates a servant that others share; each activation is an object of its own.
    ///
    /// # Errors
    /// As [`Poa::activate`].
    pub fn activate_shared(&self, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        self.orb.listen()?;
        let type_id = servant.repository_id().to_owned();
        let id = self.adapter.objects.insert(Active::Servant(servant)).ok_or_else(|| {
            SystemException::no_resources(0, CompletionStatus::No).with_detail("all object ids are taken")
        })?;
        self.orb.make_reference(&type_id, key::encode(self.adapter.incarnation, id))
    }

    /// Takes an object's servant away: further requests raise OBJECT_NOT_EXIST, those that run end in peace.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the reference is not to an active object of this adapter.
    pub fn deactivate(&self, object: &ObjectRef) -> Result<(), SystemException> {
        let id = self.id_of(object)?;
        // The servant is dropped here, outside of the map's lock: its destructor may use the adapter.
        self.adapter.objects.remove(id).map(drop).ok_or_else(not_active)
    }

    /// Moves an object: whoever calls it is told to call `target` instead (LOCATION_FORWARD).
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the reference is not to an active object of this adapter.
    pub fn forward(&self, object: &ObjectRef, target: ObjectRef) -> Result<(), SystemException> {
        let id = self.id_of(object)?;
        self.adapter.objects.replace(id, Active::Forward(target)).map(drop).ok_or_else(not_active)
    }

    /// How many objects are active.
    #[must_use]
    pub fn active_objects(&self) -> usize {
        self.adapter.objects.len()
    }

    fn id_of(&self, object: &ObjectRef) -> Result<ObjectId, SystemException> {
        let keys = object.ior().profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
        let mut ids = keys.filter_map(|profile| key::decode(self.adapter.incarnation, &profile.object_key));
        ids.next().ok_or_else(not_active)
    }
}

impl ObjectAdapter for RootAdapter {
    fn dispatch(&self, object_key: &[u8], _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match key::decode(self.incarnation, object_key).and_then(|id| self.objects.find(id)) {
            Some(Active::Servant(servant)) => call.run(&*servant, &RootTarget { object_id: &object_key[8..] }),
            Some(Active::Forward(target)) => call.forward(&target),
            None => Err(not_active()),
        }
    }

    fn locate(&self, object_key: &[u8]) -> Located {
        match key::decode(self.incarnation, object_key).and_then(|id| self.objects.find(id)) {
            Some(Active::Servant(_)) => Located::Here,
            Some(Active::Forward(target)) => Located::Forward(target.ior().clone()),
            None => Located::Unknown,
        }
    }

    fn close(&self) {
        drop(self.objects.clear());
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// An object of the root adapter.
struct RootTarget<'k> {
    object_id: &'k [u8],
}

impl Target for RootTarget<'_> {
    fn object_id(&self) -> &[u8] {
        self.object_id
    }

    fn adapter_id(&self) -> &[u8] {
        b"RootPOA"
    }

    fn adapter_name(&self) -> Vec<String> {
        vec!["RootPOA".to_owned()]
    }

    fn policy(&self, _policy_type: PolicyType) -> Option<Policy> {
        None
    }

    fn detain(&self) -> Box<dyn Any + Send + Sync> {
        // Nothing waits for an object of the root adapter to be no longer in use.
        Box::new(())
    }
}

impl fmt::Debug for RootAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootAdapter").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

fn not_active() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No).with_detail("no such object is active here")
}
