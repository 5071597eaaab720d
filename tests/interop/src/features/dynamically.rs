//! A servant with a dynamic skeleton.

use spandrel::SystemException;
use spandrel::poa::Poa;

use super::server::OneTarget;
use crate::features_idl::{Target, TargetSkeleton};

/// Activates it.
///
/// # Errors
/// If the ORB cannot listen.
pub(super) fn activate(root: &Poa) -> Result<Target, SystemException> {
    Ok(Target::unchecked_narrow(&root.activate(TargetSkeleton::new(OneTarget::named("dynamic")))?))
}
