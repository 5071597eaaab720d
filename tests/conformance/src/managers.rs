//! Servant managers that do what a test says, and write down what they were asked.

use std::{
    fmt,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use spandrel::{
    Poa, Policy, Servant,
    poa::{
        Cookie, IdAssignmentPolicy, Incarnation, ObjectId, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantManager, ServantRetentionPolicy,
    },
};

use crate::support::{eventually, named, same};

/// What was asked of a servant manager.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Asked {
    /// For the servant of this object.
    Incarnate(ObjectId),
    /// To let go of the servant of this object.
    Etherealize {
        /// The object.
        id: ObjectId,
        /// What the argument of this name was.
        cleanup_in_progress: bool,
        /// What the argument of this name was.
        remaining_activations: bool,
    },
    /// For the servant of a request.
    Preinvoke(ObjectId, String, ThreadId),
    /// To let go of the servant of a request, with the cookie of what was asked at this place, if it is the servant of then.
    Postinvoke(ObjectId, String, ThreadId, Option<usize>),
}

/// `etherealize` with neither argument true.
#[must_use]
pub fn etherealized(id: &str) -> Asked {
    Asked::Etherealize { id: id.into(), cleanup_in_progress: false, remaining_activations: false }
}

type Find = dyn Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync;
type Leave = dyn Fn(&ObjectId, &Poa) + Send + Sync;

/// A servant manager of either kind.
pub struct Scripted {
    find: Box<Find>,
    leave: Box<Leave>,
    asked: Mutex<Vec<Asked>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Scripted {
    /// One whose servants are named after their objects.
    #[must_use]
    pub fn naming() -> Arc<Self> {
        Self::finding(|id, _| Ok(named(&String::from_utf8_lossy(id))))
    }

    /// One that finds servants so.
    #[must_use]
    pub fn finding(
        find: impl Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::new(find, |_, _| {})
    }

    /// One that finds servants so, and lets them go so.
    #[must_use]
    pub fn new(
        find: impl Fn(&ObjectId, &Poa) -> Result<Arc<dyn Servant>, Incarnation> + Send + Sync + 'static,
        leave: impl Fn(&ObjectId, &Poa) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { find: Box::new(find), leave: Box::new(leave), asked: Mutex::default() })
    }

    /// As an adapter takes it that retains servants.
    #[must_use]
    pub fn activator(self: &Arc<Self>) -> ServantManager {
        ServantManager::Activator(Arc::<Self>::clone(self))
    }

    /// As an adapter takes it that does not.
    #[must_use]
    pub fn locator(self: &Arc<Self>) -> ServantManager {
        ServantManager::Locator(Arc::<Self>::clone(self))
    }

    /// All that was asked so far.
    ///
    /// # Panics
    /// If a test panicked meanwhile.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until so much was asked.
    #[track_caller]
    pub fn await_asked(&self, count: usize) -> Vec<Asked> {
        eventually(|| self.asked().len() >= count);
        self.asked()
    }

    /// Writes this down, and says how much was written before.
    fn note(&self, asked: Asked) -> usize {
        let mut all = self.asked.lock().unwrap();
        all.push(asked);
        all.len() - 1
    }
}

impl ServantActivator for Scripted {
    fn incarnate(&self, oid: &ObjectId, adapter: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        self.note(Asked::Incarnate(oid.clone()));
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
        self.note(Asked::Etherealize { id: oid.clone(), cleanup_in_progress, remaining_activations });
        (self.leave)(oid, adapter);
    }
}

impl ServantLocator for Scripted {
    fn preinvoke(
        &self,
        oid: &ObjectId,
        adapter: &Poa,
        operation: &str,
    ) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        let cookie = self.note(Asked::Preinvoke(oid.clone(), operation.to_owned(), thread::current().id()));
        let servant = (self.find)(oid, adapter)?;
        Ok((Arc::clone(&servant), Box::new((cookie, servant))))
    }

    fn postinvoke(&self, oid: &ObjectId, adapter: &Poa, operation: &str, cookie: Cookie, servant: Arc<dyn Servant>) {
        let given = cookie.downcast_ref::<(usize, Arc<dyn Servant>)>();
        let cookie = given.filter(|(_, found)| same(found, &servant)).map(|(place, _)| *place);
        self.note(Asked::Postinvoke(oid.clone(), operation.to_owned(), thread::current().id(), cookie));
        (self.leave)(oid, adapter);
    }
}

/// An adapter's policies that have it ask a servant activator, for ids of the application's.
#[must_use]
pub fn activating() -> [Policy; 2] {
    [RequestProcessingPolicy::UseServantManager.into(), IdAssignmentPolicy::UserId.into()]
}

/// An adapter's policies that have it ask a servant locator, for ids of the application's.
#[must_use]
pub fn locating() -> [Policy; 3] {
    [
        RequestProcessingPolicy::UseServantManager.into(),
        ServantRetentionPolicy::NonRetain.into(),
        IdAssignmentPolicy::UserId.into(),
    ]
}
