//! The making of an adapter's references, in which IOR interceptors take part (CORBA 3.3 Part 1, 16.5).
//!
//! Adapters call these functions with and without interceptors.

use spandrel_giop::SystemException;

use crate::interception::{self, ReferenceCustomization};
use crate::{AdapterDescription, AdapterState, ObjectRef, Operations, Orb, operation_index};

/// The additions of interceptors to all references of an adapter. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// `None` in most cases.
    custom: Option<ReferenceCustomization>,
    /// The operation table that is offered to Spandrel clients.
    operations: Option<&'static Operations>,
}

impl References {
    /// Offers an operation table to clients, which may name operations by their index in it
    /// ([`OperationDemux::Active`](crate::OperationDemux)).
    #[must_use]
    pub fn offering(mut self, operations: &'static Operations) -> Self {
        self.operations = Some(operations);
        self
    }

    /// Calls the IOR interceptors for an adapter that is being made. Called once for each, with no lock held.
    ///
    /// # Errors
    /// OBJ_ADAPTER if an interceptor prevents its creation (16.5.4.2).
    pub fn establish_components(orb: &Orb, adapter: &dyn AdapterDescription) -> Result<Self, SystemException> {
        Ok(Self { custom: interception::establish(orb, adapter)?, ..Self::default() })
    }

    /// Makes a reference to an object of the adapter, with the additions of interceptors. The ORB begins to
    /// listen with its first reference.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen on an endpoint; BAD_INV_ORDER after shutdown; those of a factory of
    /// interceptors.
    pub fn make(
        &self,
        orb: &Orb,
        type_id: &str,
        object_id: &[u8],
        object_key: Vec<u8>,
    ) -> Result<ObjectRef, SystemException> {
        let offered = self.operations.and_then(operation_index::component);
        if let Some(custom) = &self.custom {
            return custom.make_reference(orb, type_id, object_id, object_key, offered);
        }
        orb.make_reference_with(type_id, object_key, offered.as_slice())
    }
}

/// Reports a new state of an adapter manager to IOR interceptors. Called with no lock held.
pub fn adapter_manager_state_changed(orb: &Orb, manager_id: &str, state: AdapterState) {
    interception::report_manager_state(orb, manager_id, state);
}

/// Reports a new state of single adapters: they were destroyed. Called with no lock held.
pub fn adapter_state_changed(orb: &Orb, adapter_names: &[Vec<String>], state: AdapterState) {
    interception::report_adapter_state(orb, adapter_names, state);
}
