//! Scripted servant managers that record their upcalls.

use std::{
    fmt,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use spandrel::{
    Poa, SystemException,
    poa::{
        Cookie, IdAssignmentPolicy, Incarnation, ObjectId, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantManager, ServantRetentionPolicy,
    },
    policy::Policy,
    server::Servant,
};

use crate::support::{eventually, named_servant, same_servant};

/// An upcall to a servant manager.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ManagerUpcall {
    /// `incarnate` for this object.
    Incarnate(ObjectId),
    /// `etherealize` of this object.
    Etherealize {
        /// The object.
        id: ObjectId,
        /// The argument of this name.
        cleanup_in_progress: bool,
        /// The argument of this name.
        remaining_activations: bool,
    },
    /// `preinvoke` for a request: object id, operation and calling thread.
    Preinvoke(ObjectId, String, ThreadId),
    /// `postinvoke` after a request; also the index of the `preinvoke` whose cookie and servant it received.
    Postinvoke(ObjectId, String, ThreadId, Option<usize>),
}

/// `etherealize` with neither argument true.
#[must_use]
pub fn etherealized(id: &str) -> ManagerUpcall {
    ManagerUpcall::Etherealize { id: id.into(), cleanup_in_progress: false, remaining_activations: false }
}

type Find = dyn Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync;
type Leave = dyn Fn(&ObjectId, &Poa) + Send + Sync;

/// A servant manager of either kind that runs closures.
pub struct ScriptedManager {
    find: Box<Find>,
    leave: Box<Leave>,
    upcalls: Mutex<Vec<ManagerUpcall>>,
}

impl fmt::Debug for ScriptedManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedManager").field("upcalls", &self.upcalls).finish_non_exhaustive()
    }
}

impl ScriptedManager {
    /// A manager whose servants are named after their objects.
    #[must_use]
    pub fn with_named_servants() -> Arc<Self> {
        Self::with_finder(|id, _| Ok(named_servant(&String::from_utf8_lossy(id))))
    }

    /// A manager that finds servants with `find`.
    #[must_use]
    pub fn with_finder(
        find: impl Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::new(find, |_, _| {})
    }

    /// A manager that finds servants with `find`, and runs `leave` in `etherealize` or `postinvoke`.
    #[must_use]
    pub fn new(
        find: impl Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync + 'static,
        leave: impl Fn(&ObjectId, &Poa) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { find: Box::new(find), leave: Box::new(leave), upcalls: Mutex::default() })
    }

    /// The manager as a servant activator (RETAIN).
    #[must_use]
    pub fn activator(self: &Arc<Self>) -> ServantManager {
        ServantManager::Activator(Arc::<Self>::clone(self))
    }

    /// The manager as a servant locator (NON_RETAIN).
    #[must_use]
    pub fn locator(self: &Arc<Self>) -> ServantManager {
        ServantManager::Locator(Arc::<Self>::clone(self))
    }

    /// All upcalls so far.
    ///
    /// # Panics
    /// If a test panicked while it held the lock.
    #[must_use]
    pub fn upcalls(&self) -> Vec<ManagerUpcall> {
        self.upcalls.lock().unwrap().clone()
    }

    /// Waits for `count` upcalls; returns all upcalls so far.
    #[track_caller]
    pub fn await_upcalls(&self, count: usize) -> Vec<ManagerUpcall> {
        eventually(|| self.upcalls().len() >= count);
        self.upcalls()
    }

    /// Records an upcall; returns its index.
    fn record(&self, upcall: ManagerUpcall) -> usize {
        let mut all = self.upcalls.lock().unwrap();
        all.push(upcall);
        all.len() - 1
    }
}

impl ServantActivator for ScriptedManager {
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.record(ManagerUpcall::Incarnate(oid.clone()));
        (self.find)(oid, adapter)
    }

    fn etherealize(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        _: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        self.record(ManagerUpcall::Etherealize { id: oid.clone(), cleanup_in_progress, remaining_activations });
        (self.leave)(oid, adapter);
    }
}

impl ServantLocator for ScriptedManager {
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        let cookie = self.record(ManagerUpcall::Preinvoke(oid.clone(), operation.to_owned(), thread::current().id()));
        let servant = (self.find)(oid, adapter)?;
        Ok((Arc::clone(&servant), Box::new((cookie, servant))))
    }

    fn postinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
        cookie: Cookie,
        servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        let received = cookie.downcast_ref::<(usize, Arc<dyn Servant>)>();
        let cookie = received.filter(|(_, found)| same_servant(found, &servant)).map(|(index, _)| *index);
        self.record(ManagerUpcall::Postinvoke(oid.clone(), operation.to_owned(), thread::current().id(), cookie));
        (self.leave)(oid, adapter);
        Ok(())
    }
}

/// Policies of an adapter with a servant activator and user-assigned ids.
#[must_use]
pub fn activating() -> [Policy; 2] {
    [RequestProcessingPolicy::UseServantManager.into(), IdAssignmentPolicy::UserId.into()]
}

/// Policies of an adapter with a servant locator and user-assigned ids.
#[must_use]
pub fn locating() -> [Policy; 3] {
    [
        RequestProcessingPolicy::UseServantManager.into(),
        ServantRetentionPolicy::NonRetain.into(),
        IdAssignmentPolicy::UserId.into(),
    ]
}
