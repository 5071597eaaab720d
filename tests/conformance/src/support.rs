//! A server and a client in one process, connected by a socket, and servants whose upcalls can be blocked.

use std::sync::{Arc, Condvar, Mutex};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind,
    poa::{IdUniquenessPolicy, PoaError, RequestProcessingPolicy, ServantRetentionPolicy},
    policy::Policy,
    server::Servant,
};

use crate::idl::conformance::{Subject, SubjectServant, SubjectSkeleton};

pub use spandrel_test_support::{TEST_TIMEOUT, eventually, in_background};

/// A server with its root adapter, and a client that reaches it only by a socket.
#[derive(Debug)]
pub struct Pair {
    /// The ORB whose objects are called.
    pub server: Orb,
    /// The root adapter of `server`, parent of the adapters that tests create.
    pub root: Poa,
    /// The ORB that calls, in the same process.
    pub client: Orb,
}

impl Pair {
    /// Both, with default options.
    ///
    /// # Panics
    /// If an ORB cannot be created.
    #[must_use]
    pub fn new() -> Self {
        let server = Orb::builder().build().unwrap();
        let root = Poa::root(&server).expect("there is a root adapter");
        Self { server, root, client: Orb::builder().build().unwrap() }
    }

    /// The client's reference to an object of the server.
    #[must_use]
    pub fn as_client(&self, object: &ObjectRef) -> Subject {
        Subject::unchecked_narrow(&self.client.reference(object.ior().clone()))
    }

    /// Two references to the object: the client's, and the server's own (collocated).
    #[must_use]
    pub fn remote_and_local(&self, object: &ObjectRef) -> [Subject; 2] {
        [self.as_client(object), Subject::unchecked_narrow(object)]
    }

    /// A child of the root adapter with the root's manager, which is active.
    ///
    /// # Panics
    /// If the policies conflict, or the name is taken.
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
        _ = self.client.begin_shutdown();
        _ = self.server.begin_shutdown();
    }
}

/// A servant with this name.
#[must_use]
pub fn named_servant(name: &str) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(NamedSubject { name: name.to_owned(), gate: Gate::open() }))
}

/// A servant whose `wait` returns when the gate is open.
#[must_use]
pub fn gated_servant(name: &str, gate: &Gate) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(NamedSubject { name: name.to_owned(), gate: gate.clone() }))
}

/// A servant whose operations run this closure and return its result.
#[must_use]
pub fn closure_servant(act: impl Fn() -> String + Send + Sync + 'static) -> Arc<dyn Servant> {
    Arc::new(SubjectSkeleton::new(ClosureSubject(act)))
}

struct ClosureSubject<F>(F);

impl<F: Fn() -> String + Send + Sync + 'static> SubjectServant for ClosureSubject<F> {
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

struct NamedSubject {
    name: String,
    gate: Gate,
}

impl SubjectServant for NamedSubject {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }

    fn wait(&self) -> Result<String, SystemException> {
        self.gate.wait_until_open();
        Ok(self.name.clone())
    }

    fn note(&self) -> Result<(), SystemException> {
        self.gate.wait_until_open();
        Ok(())
    }
}

/// Blocks threads until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    is_open: bool,
    arrived: usize,
}

impl Gate {
    /// Creates a gate that lets every upcall pass.
    #[must_use]
    pub fn open() -> Self {
        let gate = Self::default();
        gate.release();
        gate
    }

    /// Opens the gate for good.
    ///
    /// # Panics
    /// If a thread panicked while it held the lock.
    pub fn release(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open.
    ///
    /// # Panics
    /// If it is not opened within [`TEST_TIMEOUT`].
    pub fn wait_until_open(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.arrived += 1;
        self.0.1.notify_all();
        self.wait_until(state, |state| state.is_open);
    }

    /// Waits until `count` threads have arrived, whether or not they have passed.
    ///
    /// # Panics
    /// If fewer arrive within [`TEST_TIMEOUT`].
    pub fn await_arrivals(&self, count: usize) {
        self.wait_until(self.0.0.lock().unwrap(), |state| state.arrived >= count);
    }

    fn wait_until(&self, state: std::sync::MutexGuard<'_, GateState>, condition: impl Fn(&GateState) -> bool) {
        let waited = self.0.1.wait_timeout_while(state, TEST_TIMEOUT, |state| !condition(state)).unwrap();
        assert!(!waited.1.timed_out(), "timed out waiting at the gate");
    }
}

/// The error of an adapter's operation that must fail.
///
/// # Panics
/// If the operation succeeded.
#[track_caller]
#[must_use]
pub fn expect_refusal<T>(result: Result<T, PoaError>) -> PoaError {
    match result {
        Ok(_) => panic!("the operation succeeded"),
        Err(error) => error,
    }
}

/// Kind, minor code and completion status of the system exception that an adapter's operation raised.
///
/// # Panics
/// If it raised no system exception.
#[track_caller]
#[must_use]
pub fn expect_exception<T>(result: Result<T, PoaError>) -> (SystemExceptionKind, u32, CompletionStatus) {
    match expect_refusal(result) {
        PoaError::System(exception) => kind_minor_completion(&exception),
        other => panic!("{other:?} is no system exception"),
    }
}

/// Whether both are the same servant.
#[must_use]
pub fn same_servant(one: &Arc<dyn Servant>, other: &Arc<dyn Servant>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Policies of an adapter with a default servant only.
#[must_use]
pub fn default_servant_only() -> [Policy; 3] {
    [
        ServantRetentionPolicy::NonRetain.into(),
        RequestProcessingPolicy::UseDefaultServant.into(),
        IdUniquenessPolicy::MultipleId.into(),
    ]
}

/// Kind, minor code and completion status of an exception.
#[must_use]
pub fn kind_minor_completion(error: &SystemException) -> (SystemExceptionKind, u32, CompletionStatus) {
    (error.kind(), error.minor(), error.completed())
}
