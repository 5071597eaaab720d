//! A servant locator, a servant activator and an adapter activator.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel::{
    Poa,
    poa::{
        AdapterActivator, Cookie, Incarnation, ObjectId, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantRetentionPolicy,
    },
    server::Servant,
};

use super::target::NamedTarget;
use crate::features_idl::TargetSkeleton;

/// The servant for an object id, for both kinds of servant manager.
fn find_servant(oid: &ObjectId, plain: &ObjectRef) -> Result<Arc<dyn Servant>, Incarnation> {
    match oid.as_bytes() {
        b"moved" => Err(Incarnation::ForwardRequest(plain.clone())),
        b"gone" => Err(SystemException::object_not_exist(0, CompletionStatus::No).into()),
        name => Ok(Arc::new(TargetSkeleton::new(NamedTarget::new(String::from_utf8_lossy(name))))),
    }
}

/// Supplies a servant for each request.
pub(super) struct Locator {
    pub(super) plain: ObjectRef,
}

impl ServantLocator for Locator {
    fn preinvoke(&self, oid: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        Ok((find_servant(oid, &self.plain)?, Box::new(())))
    }
}

/// Supplies a servant for the first request, and counts the incarnations.
pub(super) struct Activator {
    pub(super) plain: ObjectRef,
    pub(super) incarnation_counts: Arc<Mutex<HashMap<String, u32>>>,
}

impl ServantActivator for Activator {
    fn incarnate(&self, oid: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        let name = String::from_utf8_lossy(oid.as_bytes()).into_owned();
        *self.incarnation_counts.lock().expect("no thread panics with the lock held").entry(name).or_default() += 1;
        find_servant(oid, &self.plain)
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

/// Creates the adapter `adapted`, with a locator.
pub(super) struct AdapterCreator {
    pub(super) plain: ObjectRef,
}

impl AdapterActivator for AdapterCreator {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        let create = || {
            let poa = parent.create_poa(name, Some(&parent.the_poa_manager()), adapted_policies())?;
            poa.set_servant_manager(spandrel::poa::ServantManager::Locator(Arc::new(Locator {
                plain: self.plain.clone(),
            })))
        };
        name == "adapted" && create().is_ok()
    }
}

/// The policies of the adapter `adapted`.
pub(super) fn adapted_policies() -> Vec<spandrel::policy::Policy> {
    vec![
        spandrel::poa::IdAssignmentPolicy::UserId.into(),
        spandrel::poa::LifespanPolicy::Persistent.into(),
        ServantRetentionPolicy::NonRetain.into(),
        RequestProcessingPolicy::UseServantManager.into(),
    ]
}
