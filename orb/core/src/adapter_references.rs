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
}

impl Orb {
    /// Calls the IOR interceptors for an adapter that is being made. Called once for each, with no lock held.
    ///
    /// # Errors
    /// OBJ_ADAPTER if an interceptor prevents its creation (16.5.4.2).
    pub fn establish_components(&self, adapter: &dyn AdapterDescription) -> Result<References, SystemException> {
        Ok(References { custom: interception::establish(self, adapter)?, ..References::default() })
    }

    /// Reports a new state of an adapter manager. Called with no lock held.
    pub fn adapter_manager_state_changed(&self, manager_id: &str, state: AdapterState) {
        interception::report_manager_state(self, manager_id, state);
    }

    /// Reports a new state of single adapters: they were destroyed. Called with no lock held.
    pub fn adapter_state_changed(&self, adapter_names: &[Vec<String>], state: AdapterState) {
        interception::report_adapter_state(self, adapter_names, state);
    }

    /// Makes a reference to an adapter's object with the additions of interceptors; otherwise the same as
    /// [`make_reference`](Self::make_reference).
    ///
    /// # Errors
    /// As [`make_reference`](Self::make_reference), and those of a factory of interceptors.
    pub fn make_reference_as(
        &self,
        references: &References,
        type_id: &str,
        object_id: &[u8],
        object_key: Vec<u8>,
    ) -> Result<ObjectRef, SystemException> {
        let offered = references.operations.and_then(operation_index::component);
        if let Some(custom) = &references.custom {
            return custom.make_reference(self, type_id, object_id, object_key, offered);
        }
        self.make_reference_with(type_id, object_key, offered.as_slice())
    }
}
