//! The comparison of interfaces: of a new service type with its supertypes, and of exported objects.
#![expect(clippy::result_large_err, reason = "the errors are those of the generated servant")]

use std::time::Duration;

use spandrel::services::cos_trading_repos::service_type_repository::{AddTypeError, InterfaceTypeMismatch};
use spandrel::services::repository::inherits;
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use crate::trader::Trader;

/// The name of the interface repository as an initial reference.
const REPOSITORY: &str = "InterfaceRepository";

/// The time limit of a call that asks an object or the interface repository.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Whether an object has an interface. One that cannot be asked is believed.
pub(crate) fn implements(object: &ObjectRef, interface: &str) -> bool {
    let is_known = !interface.starts_with("IDL:") || object.type_id() == interface;
    is_known || object.with_timeout(Some(TIMEOUT)).is_a(interface).unwrap_or(true)
}

impl Trader {
    /// Checks that the interface of a new service type inherits from those of its supertypes: by the interface repository
    /// of the ORB's initial reference. Without one, the interfaces are believed. So is an interface that the repository
    /// does not have, and a service type without an interface.
    pub(crate) fn require_interface(
        &self,
        name: &str,
        interface: &str,
        bases: &[(String, String)],
    ) -> Result<(), AddTypeError> {
        let differs = |(_, base): &&(String, String)| !base.is_empty() && base != interface && !interface.is_empty();
        let mut others = bases.iter().filter(differs).peekable();
        let Some((first, _)) = others.peek() else { return Ok(()) };
        if !self.orb.has_initial_reference(REPOSITORY) {
            tracing::warn!(
                service_type = name,
                supertype = first,
                "the interfaces of a service type and its supertype are not compared: there is no interface repository \
                 (-ORBInitRef InterfaceRepository=URL)"
            );
            return Ok(());
        }
        let unavailable = |error: SystemException| {
            SystemException::transient(0, CompletionStatus::No)
                .with_detail("the interface repository cannot compare the interfaces")
                .with_source(error)
        };
        let repository = self.orb.resolve_initial_references(REPOSITORY).map_err(unavailable)?;
        for (base_service, base_if) in others {
            match inherits(&repository, interface, base_if, TIMEOUT).map_err(unavailable)? {
                Some(true) => {}
                Some(false) => {
                    return Err(InterfaceTypeMismatch {
                        base_service: base_service.clone(),
                        base_if: base_if.clone(),
                        derived_service: name.to_owned(),
                        derived_if: interface.to_owned(),
                    }
                    .into());
                }
                None => {
                    tracing::warn!(
                        service_type = name,
                        interface,
                        "the interface repository does not have the interface"
                    );
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
