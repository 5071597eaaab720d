//! A server and a client in one process, joined by a socket, and servants whose upcalls can be held.

use std::sync::{Arc, Condvar, Mutex};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, Policy, Servant, SystemException, SystemExceptionKind,
    poa::{IdUniquenessPolicy, PoaError, RequestProcessingPolicy, ServantRetentionPolicy},
};

use crate::idl::conformance::{Subject, SubjectServant, SubjectSkeleton};

pub use spandrel_test_support::{PATIENCE, eventually, in_background};

/// A server with its root adapter, and a client that reaches it by a socket only.
#[derive(Debug)]
pub struct Pair {
    /// The server.
    pub server: Orb,
    /// Its root adapter.
    pub root: Poa,
    /// The client.
    pub client: Orb,
}

impl Pair {
    /// Both, with the defaults.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn new() -> Self {
        let server = Orb::builder().build().unwrap();
        let root = Poa::root(&server).expect("there is a root adapter");
        Self { server, root, client: Orb::builder().build().unwrap() }
    }

    /// The server's reference as the client has it.
    #[must_use]
    pub fn seen(&self, object: &ObjectRef) -> Subject {
        Subject::unchecked_narrow(&self.client.reference(object.ior().clone()))
    }

    /// Both ways to the object: by the socket, and from within the server's own process.
    #[must_use]
    pub fn ways(&self, object: &ObjectRef) -> [Subject; 2] {
        [self.seen(object), Subject::unchecked_narrow(object)]
    }

    /// A child of the root adapter that shares its manager, which is active.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn adapter(&self, name: &str, policies: impl IntoIterator<Item = Policy>) -> Poa {
        self.root.create_poa(name, Some(&self.root.the_poa_manager()), policies).expect("these policies fit")
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        _ = self.client.shutdown(false);
        _ = self.server.shutdown(false);
    }
}

/// A servant with a name.
#[must_use]
pub fn named(name: &str) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(Named { name: name.to_owned(), gate: Gate::open() }))
}

/// A servant whose `wait` ends when the gate is opened.
#[must_use]
pub fn gated(name: &str, gate: &Gate) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(Named { name: name.to_owned(), gate: gate.clone() }))
}

/// A servant whose `name` is whatever this returns.
#[must_use]
pub fn acting(act: impl Fn() -> String + Send + Sync + 'static) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(Acting(act)))
}

struct Acting<F>(F);

impl<F: Fn() -> String + Send + Sync + 'static> SubjectServant for Acting<F> {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.0())
    }

    fn wait(&self) -> Result<String, SystemException> {
        Ok(self.0())
    }

    fn note(&self) -> Result<(), SystemException> {
        self.0();
        Ok(())
    }
}

struct Named {
    name: String,
    gate: Gate,
}

impl SubjectServant for Named {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }

    fn wait(&self) -> Result<String, SystemException> {
        self.gate.pass();
        Ok(self.name.clone())
    }

    fn note(&self) -> Result<(), SystemException> {
        self.gate.pass();
        Ok(())
    }
}

/// Holds whoever comes until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<Passing>, Condvar)>);

#[derive(Debug, Default)]
struct Passing {
    is_open: bool,
    arrived: usize,
}

impl Gate {
    /// One that holds nobody.
    #[must_use]
    pub fn open() -> Self {
        let gate = Self::default();
        gate.release();
        gate
    }

    /// Lets all through, now and later.
    ///
    /// # Panics
    /// If a holder panicked.
    pub fn release(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    /// Waits until it is open.
    ///
    /// # Panics
    /// If it is not opened in time.
    pub fn pass(&self) {
        let mut passing = self.0.0.lock().unwrap();
        passing.arrived += 1;
        self.0.1.notify_all();
        self.until(passing, |passing| passing.is_open);
    }

    /// Waits until so many have come, whether or not they went through.
    ///
    /// # Panics
    /// If they do not come in time.
    pub fn await_arrivals(&self, count: usize) {
        self.until(self.0.0.lock().unwrap(), |passing| passing.arrived >= count);
    }

    fn until(&self, passing: std::sync::MutexGuard<'_, Passing>, is_so: impl Fn(&Passing) -> bool) {
        let waited = self.0.1.wait_timeout_while(passing, PATIENCE, |passing| !is_so(passing)).unwrap();
        assert!(!waited.1.timed_out(), "nothing happened at the gate");
    }
}

/// What the operation of an adapter refused to do.
///
/// # Panics
/// If it did it.
#[track_caller]
#[must_use]
pub fn refused<T>(result: Result<T, PoaError>) -> PoaError {
    match result {
        Ok(_) => panic!("it should have been refused"),
        Err(error) => error,
    }
}

/// What the system exception that an adapter raised is judged by.
///
/// # Panics
/// If it raised none.
#[track_caller]
#[must_use]
pub fn raised<T>(result: Result<T, PoaError>) -> (SystemExceptionKind, u32, CompletionStatus) {
    match refused(result) {
        PoaError::System(exception) => judged(&exception),
        other => panic!("{other:?} is no system exception"),
    }
}

/// Whether these are one servant.
#[must_use]
pub fn same(one: &Arc<dyn Servant>, other: &Arc<dyn Servant>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// What makes an adapter ask a default servant, and not remember any others.
#[must_use]
pub fn default_servant_only() -> [Policy; 3] {
    [
        ServantRetentionPolicy::NonRetain.into(),
        RequestProcessingPolicy::UseDefaultServant.into(),
        IdUniquenessPolicy::MultipleId.into(),
    ]
}

/// What an exception is judged by.
#[must_use]
pub fn judged(error: &SystemException) -> (SystemExceptionKind, u32, CompletionStatus) {
    (error.kind(), error.minor(), error.completed())
}
