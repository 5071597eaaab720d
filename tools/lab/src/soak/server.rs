//! The process that serves the soak's calls.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException, types::Any};

use super::data;
use crate::LabError;
use crate::mechanism::generated::soak::soak::target::RefuseError;
use crate::mechanism::generated::soak::soak::{Look, Record, Refused, Target, TargetServant, TargetSkeleton, Variant};

/// The maximum number of unfinished streams of one-ways: far more than there are clients.
const MAX_STREAMS: usize = 4096;

/// Serves until standard input ends; prints the reference of its object.
///
/// # Errors
/// If it cannot be served.
pub fn serve(options: &[String]) -> Result<(), LabError> {
    let orb = super::orb(options)?;
    let reference = activate(&orb).map_err(LabError::call("activate the servant"))?;
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", orb.object_to_string(&reference)).and_then(|()| out.flush());
    drop(out);
    written.map_err(LabError::io("speak to the parent"))?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(LabError::io("listen to the parent"))?;
    orb.shutdown().map_err(LabError::call("shut the server down"))
}

/// Activates an object, also for call-backs.
pub(super) fn activate(orb: &Orb) -> Result<ObjectRef, SystemException> {
    let poa = Poa::root(orb)?;
    let servant = SoakServant { poa: poa.clone(), own: OnceLock::new(), streams: Mutex::default() };
    poa.activate(TargetSkeleton::new(servant))
}

struct SoakServant {
    poa: Poa,
    /// Its own reference, if another object created it.
    own: OnceLock<ObjectRef>,
    /// The number of octets received by one-ways, and their checksum, by stream.
    streams: Mutex<HashMap<u32, (u64, u64)>>,
}

impl TargetServant for SoakServant {
    fn echo_octets(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn echo_records(&self, data: &[Record], other: &mut Variant) -> Result<(Vec<Record>, u32), SystemException> {
        // The answer differs from the argument, so that an accidental echo is not taken for it.
        if let Variant::Number { value, .. } = other {
            *value = -*value;
        }
        Ok((data.to_vec(), data.len() as u32))
    }

    fn echo_any(&self, value: &Any) -> Result<Any, SystemException> {
        Ok(value.clone())
    }

    fn refuse(&self, reason: &str, code: u32) -> Result<(), RefuseError> {
        Err(Refused { reason: reason.to_owned(), code }.into())
    }

    fn fail(&self, code: u32) -> Result<(), SystemException> {
        Err(SystemException::no_permission(code, CompletionStatus::Yes))
    }

    fn note(&self, stream: u32, data: &[u8]) -> Result<(), SystemException> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() >= MAX_STREAMS && !streams.contains_key(&stream) {
            return Err(SystemException::no_resources(0, CompletionStatus::No));
        }
        let noted = streams.entry(stream).or_default();
        *noted = (noted.0 + data.len() as u64, noted.1 + data::sum(data));
        Ok(())
    }

    fn noted(&self, stream: u32, expected: u64) -> Result<(u64, u64), SystemException> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = streams.get(&stream).copied().unwrap_or_default();
        if noted.0 >= expected {
            streams.remove(&stream);
        }
        Ok(noted)
    }

    fn another(&self) -> Result<Option<Target>, SystemException> {
        let servant = Arc::new(Self { poa: self.poa.clone(), own: OnceLock::new(), streams: Mutex::default() });
        let object = self.poa.activate(TargetSkeleton::new(Arc::clone(&servant)))?;
        _ = servant.own.set(object.clone());
        Ok(Some(Target::unchecked_narrow(&object)))
    }

    fn leave(&self) -> Result<(), SystemException> {
        self.own.get().map_or(Ok(()), |own| self.poa.deactivate(own))
    }

    fn call_back(&self, caller: Option<&Target>, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        let nil = || SystemException::inv_objref(0, CompletionStatus::Yes);
        caller.ok_or_else(nil)?.echo_octets(data)
    }

    fn look_around(&self) -> Result<Look, SystemException> {
        Ok(crate::machine::Look::now(self.poa.active_objects() as u64).into())
    }
}

impl From<crate::machine::Look> for Look {
    fn from(look: crate::machine::Look) -> Self {
        let crate::machine::Look { resident, descriptors, threads, objects } = look;
        Self { resident, descriptors, threads, objects }
    }
}

impl From<Look> for crate::machine::Look {
    fn from(look: Look) -> Self {
        let Look { resident, descriptors, threads, objects } = look;
        Self { resident, descriptors, threads, objects }
    }
}
