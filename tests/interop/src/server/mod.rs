//! The servants: one for each interface, and the hub that returns their references.

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

/// Activates all servants and returns the hub's stringified reference.
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
/// For `-ORB…` options that are unknown or have an invalid value.
pub fn orb(arguments: impl IntoIterator<Item = String>) -> Result<Orb, InitError> {
    Ok(crate::builder().take_args(&mut arguments.into_iter().collect())?.build()?)
}
