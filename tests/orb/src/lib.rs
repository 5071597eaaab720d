//! A server and its servant, for tests of the ORB over real sockets.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "test support")]

use std::{
    collections::HashSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use spandrel::{CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException};

pub mod recorder;
pub mod support;

spandrel::include_idl!("probe");
spandrel::include_idl!("naming");

use probe::{Refused, Relay, RelayServant, Target, TargetServant, TargetSkeleton, target::RefuseError};

/// What the tests' server does.
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

    /// Waits until so many calls are held.
    pub fn await_held(&self, calls: usize) {
        let gates = self.gates.lock().unwrap();
        drop(self.changed.wait_while(gates, |gates| gates.held < calls).unwrap());
    }

    /// Waits until no call is held.
    pub fn await_released(&self) {
        let gates = self.gates.lock().unwrap();
        drop(self.changed.wait_while(gates, |gates| gates.held > 0).unwrap());
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
        panic!("as asked")
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
        let refused = self.orb.shutdown(true).is_err();
        self.orb.shutdown(false)?;
        Ok(refused)
    }
}

/// Calls others.
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

/// A server on loopback, ended when dropped.
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
        // No test of ours holds a lock of `spandrel::net::sync` itself.
        spandrel::net::sync::held::watch();
        let orb = arranged(builder).build();
        let poa = Poa::root(&orb).unwrap();
        let probe = Arc::new(Probe::new(&orb));
        let object = poa.activate(TargetSkeleton::new(Arc::clone(&probe))).unwrap();
        Self { orb, poa, object, probe }
    }

    /// The reference as text, for another ORB.
    pub fn ior(&self) -> String {
        self.object.to_string()
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.orb.listen().unwrap()[0].1
    }

    /// The target, as a client with an ORB of its own sees it.
    pub fn client(&self) -> Target {
        self.client_with(Orb::builder())
    }

    pub fn client_with(&self, builder: OrbBuilder) -> Target {
        Target::narrow(&builder.build().string_to_object(&self.ior()).unwrap()).unwrap()
    }
}

/// The suites `pooled` and `fixed` are other suites over servers whose connections have no thread of their own; in the latter there are as
/// few threads as there can be.
pub fn arranged(builder: OrbBuilder) -> OrbBuilder {
    let suite = std::env::current_exe().unwrap();
    let suite = suite.file_stem().unwrap_or_default().to_string_lossy();
    match &*suite {
        name if name.starts_with("pooled") => builder.threaded_connections(0),
        name if name.starts_with("fixed") => builder.threaded_connections(0).pool_threads(1),
        _ => builder,
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}
