//! Who finds the servants: a locator, an activator, and whoever makes adapters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use spandrel::poa::{
    AdapterActivator, Cookie, Incarnation, ObjectId, Poa, RequestProcessingPolicy, Servant, ServantActivator,
    ServantLocator, ServantRetentionPolicy,
};
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use super::server::OneTarget;
use crate::features_idl::TargetSkeleton;

/// What both kinds of servant manager do with a name.
fn find(oid: &ObjectId, plain: &ObjectRef) -> Result<Arc<dyn Servant>, Incarnation> {
    match oid.as_bytes() {
        b"moved" => Err(Incarnation::ForwardRequest(plain.clone())),
        b"gone" => Err(SystemException::object_not_exist(0, CompletionStatus::No).into()),
        name => Ok(Arc::new(TargetSkeleton::new(OneTarget::named(String::from_utf8_lossy(name))))),
    }
}

/// Finds a servant for each request.
pub(super) struct Locator {
    pub(super) plain: ObjectRef,
}

impl ServantLocator for Locator {
    fn preinvoke(&self, oid: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        Ok((find(oid, &self.plain)?, Box::new(())))
    }

    fn postinvoke(&self, _: &ObjectId, _: &Poa, _: &str, _: Cookie, _: Arc<dyn Servant>) {}
}

/// Finds a servant for the first request, and counts.
pub(super) struct Activator {
    pub(super) plain: ObjectRef,
    pub(super) made: Arc<Mutex<HashMap<String, u32>>>,
}

impl ServantActivator for Activator {
    fn incarnate(&self, oid: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        let name = String::from_utf8_lossy(oid.as_bytes()).into_owned();
        *self.made.lock().expect("nothing panics while it is held").entry(name).or_default() += 1;
        find(oid, &self.plain)
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

/// Makes the adapter `adapted`, with a locator.
pub(super) struct Maker {
    pub(super) plain: ObjectRef,
}

impl AdapterActivator for Maker {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> bool {
        let made = || {
            let poa = parent.create_poa(name, Some(&parent.the_poa_manager()), adapted_policies())?;
            poa.set_servant_manager(spandrel::poa::ServantManager::Locator(Arc::new(Locator {
                plain: self.plain.clone(),
            })))
        };
        name == "adapted" && made().is_ok()
    }
}

/// Of the adapter that is made when it is needed.
pub(super) fn adapted_policies() -> Vec<spandrel::Policy> {
    vec![
        spandrel::poa::IdAssignmentPolicy::UserId.into(),
        spandrel::poa::LifespanPolicy::Persistent.into(),
        ServantRetentionPolicy::NonRetain.into(),
        RequestProcessingPolicy::UseServantManager.into(),
    ]
}
