//! A server and its servant for tests of the ORB over real sockets.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

use std::{
    collections::HashSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, OrbBuilder, Poa, SystemException, options::Concurrency};

pub mod pipelined;
pub mod recorder;
pub mod scripted;
pub mod support;
#[cfg(target_os = "linux")]
pub mod system_calls;
pub mod wiretap;

spandrel::include_idl!("probe");
spandrel::include_idl!("naming");
spandrel::include_idl!("access");
spandrel::include_idl!("corba");

use support::TEST_TIMEOUT;

use probe::{Refused, Relay, RelayServant, Target, TargetServant, TargetSkeleton, target::RefuseError};

/// Begins to listen, with the root adapter and no objects.
///
/// # Errors
/// As [`Orb::listen`].
pub fn listen(orb: &Orb) -> Result<Vec<(String, u16)>, SystemException> {
    Poa::root(orb)?;
    orb.listen()
}

/// The servant of the test server.
pub struct Probe {
    orb: Orb,
    count: AtomicU32,
    gates: Mutex<Gates>,
    changed: Condvar,
}

#[derive(Default)]
struct Gates {
    open: HashSet<u32>,
    held: usize,
}

impl Probe {
    pub fn new(orb: &Orb) -> Self {
        Self { orb: orb.clone(), count: AtomicU32::new(0), gates: Mutex::default(), changed: Condvar::new() }
    }

    pub fn open(&self, gate: u32) {
        self.gates.lock().unwrap().open.insert(gate);
        self.changed.notify_all();
    }

    /// Closes a gate again.
    pub fn close(&self, gate: u32) {
        self.gates.lock().unwrap().open.remove(&gate);
    }

    /// Waits until `calls` calls are held.
    ///
    /// # Panics
    /// If they are not within [`TEST_TIMEOUT`].
    #[track_caller]
    pub fn await_held(&self, calls: usize) {
        self.await_gates("the calls to be held", |gates| gates.held >= calls);
    }

    #[track_caller]
    fn await_gates(&self, what: &str, is_met: impl Fn(&Gates) -> bool) {
        let gates = self.gates.lock().unwrap();
        let (gates, waited) = self.changed.wait_timeout_while(gates, TEST_TIMEOUT, |gates| !is_met(gates)).unwrap();
        let held = gates.held;
        // Unlocked before a panic, so that held calls can still be released.
        drop(gates);
        assert!(!waited.timed_out(), "timed out waiting for {what}; {held} are held");
    }

    /// Number of one-way requests counted so far.
    pub fn counted(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until no call is held.
    ///
    /// # Panics
    /// If a call is still held after [`TEST_TIMEOUT`].
    #[track_caller]
    pub fn await_released(&self) {
        self.await_gates("all calls to be released", |gates| gates.held == 0);
    }
}

impl TargetServant for Probe {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn echo(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn echo_octets(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn echo_doubles(&self, data: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(data.to_vec())
    }

    fn refuse(&self, code: i32) -> Result<(), RefuseError> {
        match code {
            0 => Ok(()),
            code => Err(Refused { why: format!("because of {code}"), code }.into()),
        }
    }

    fn fail(&self, minor: u32) -> Result<(), SystemException> {
        Err(SystemException::bad_param(minor, CompletionStatus::No))
    }

    fn panic(&self) -> Result<(), SystemException> {
        panic!("intended")
    }

    fn note(&self, data: &[u8]) -> Result<(), SystemException> {
        assert!(data.iter().all(|octet| *octet == 7));
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn count(&self) -> Result<u32, SystemException> {
        Ok(self.count.load(Ordering::SeqCst))
    }

    fn hold(&self, gate: u32) -> Result<(), SystemException> {
        let mut gates = self.gates.lock().unwrap();
        gates.held += 1;
        self.changed.notify_all();
        let mut gates = self.changed.wait_while(gates, |gates| !gates.open.contains(&gate)).unwrap();
        gates.held -= 1;
        self.changed.notify_all();
        Ok(())
    }

    fn release(&self, gate: u32) -> Result<(), SystemException> {
        self.open(gate);
        Ok(())
    }

    fn same(&self, other: Option<&Target>) -> Result<Option<Target>, SystemException> {
        Ok(other.cloned())
    }

    fn call_back(&self, other: Option<&Target>) -> Result<(), SystemException> {
        other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.ping()
    }

    fn stop(&self) -> Result<bool, SystemException> {
        let refused = self.orb.shutdown().is_err();
        self.orb.begin_shutdown()?;
        Ok(refused)
    }
}

/// The servant of `Relay`: calls other objects within its upcalls.
pub struct Repeater;

impl RelayServant for Repeater {
    fn recurse(&self, other: Option<&Relay>, back: Option<&Relay>, depth: i32) -> Result<i32, SystemException> {
        let (Some(other), 1..) = (other, depth) else { return Ok(0) };
        Ok(other.recurse(back, Some(other), depth - 1)? + 1)
    }

    fn hold(&self, other: Option<&Target>, gate: u32) -> Result<(), SystemException> {
        other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?.hold(gate)
    }
}

/// A server on the loopback address; dropping it shuts the ORB down.
pub struct Server {
    pub orb: Orb,
    pub poa: Poa,
    pub object: ObjectRef,
    pub probe: Arc<Probe>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(Orb::builder())
    }

    pub fn with(builder: OrbBuilder) -> Self {
        // No test holds a lock of `spandrel::net::sync` itself.
        spandrel::net::sync::held::enable_checks();
        let orb = configured_servers(builder).build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        let probe = Arc::new(Probe::new(&orb));
        let object = poa.activate(TargetSkeleton::new(Arc::clone(&probe))).unwrap();
        Self { orb, poa, object, probe }
    }

    /// The reference as text, for another ORB.
    pub fn ior(&self) -> String {
        self.object.to_string()
    }

    /// The port of the first listening endpoint.
    pub fn port(&self) -> u16 {
        self.orb.listen().unwrap()[0].1
    }

    /// The target as seen by a client with its own ORB.
    pub fn client(&self) -> Target {
        self.client_with(Orb::builder())
    }

    pub fn client_with(&self, builder: OrbBuilder) -> Target {
        Target::narrow(&builder.build().unwrap().string_to_object(&self.ior()).unwrap()).unwrap()
    }
}

/// The environment variable that selects how the servers of a test program work; [`configured_servers`] has
/// its values.
pub const SERVERS: &str = "SPANDREL_TEST_SERVERS";

/// Applies the environment variable [`SERVERS`]: another concurrency strategy, or another transport beside
/// IIOP. The tests named after its values run other tests with it.
///
/// # Panics
/// If the variable has an unknown value.
pub fn configured_servers(builder: OrbBuilder) -> OrbBuilder {
    match std::env::var(SERVERS).as_deref() {
        Err(_) => builder,
        Ok("pooled") => builder.concurrency(Concurrency::LeaderFollowers { threads: None }),
        Ok("fixed") => builder.concurrency(Concurrency::LeaderFollowers { threads: Some(1) }),
        Ok("queued") => builder.concurrency(Concurrency::ThreadPool { threads: 80, queue: 64 }),
        Ok("reactive") => builder.concurrency(Concurrency::Reactive).reply_batching(true),
        Ok("over_uds") => listen_beside_iiop(builder, "uds"),
        Ok("over_shm") => listen_beside_iiop(builder, "shm"),
        Ok(other) => panic!("{SERVERS}={other}"),
    }
}

/// Listens with this transport beside IIOP.
pub fn listen_beside_iiop(builder: OrbBuilder, scheme: &str) -> OrbBuilder {
    builder.listen(Endpoint::new("", 0)).listen(Endpoint::of(scheme, ""))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}
