//! The servants: one for each interface, and the hub that leads to them.

use spandrel::{InitError, Orb, Poa, SystemException};

pub use hub::HubServer;
pub(crate) use hub::all_constants;
pub(crate) use objects::OneNode;

mod bulk;
mod errors;
mod hub;
mod objects;
mod records;
mod rotate;

use crate::idl::Mismatch;
use crate::values::{self, Value};

/// Activates everything and returns the hub's reference as a string.
///
/// # Errors
/// If the ORB cannot listen.
pub fn activate(orb: &Orb) -> Result<String, SystemException> {
    let poa = Poa::root(orb)?;
    let hub = HubServer::activate(orb, &poa)?;
    Ok(orb.object_to_string(&hub))
}

/// The ORB of a program in the suite.
///
/// # Errors
/// For `-ORB…` options that are unknown or whose value cannot be read.
pub fn orb(arguments: impl IntoIterator<Item = String>) -> Result<Orb, InitError> {
    Ok(crate::builder().take_args(&mut arguments.into_iter().collect())?.build()?)
}

/// Refuses a value that is not the one that was agreed upon.
fn check<T: Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<(), Mismatch> {
    values::check(what, seen, seed, role).map_err(|what| Mismatch { what })
}
