//! How an adapter's references are made, which IOR interceptors may have a say in (CORBA 3.3 Part 1, 16.5).
//!
//! Adapters call what is here whether or not there are interceptors.

use spandrel_giop::SystemException;

use crate::interception::{self, Custom};
use crate::{AdapterDescription, AdapterState, ObjectRef, Operations, Orb, operation_index};

/// What interceptors have added to all references of an adapter. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Most often there is nothing.
    custom: Option<Custom>,
    /// What they offer to clients of our kind.
    operations: Option<&'static Operations>,
}

impl References {
    /// The same, for objects with these operations, which clients may name by their place in the table
    /// ([`OperationDemux::Active`](crate::OperationDemux)).
    #[must_use]
    pub fn offering(mut self, operations: &'static Operations) -> Self {
        self.operations = Some(operations);
        self
    }
}

impl Orb {
    /// An adapter is being made. Called once for each, with no lock held.
    ///
    /// # Errors
    /// OBJ_ADAPTER if an interceptor keeps it from being made (16.5.4.2).
    pub fn establish_components(&self, adapter: &dyn AdapterDescription) -> Result<References, SystemException> {
        Ok(References { custom: interception::establish(self, adapter)?, ..References::default() })
    }

    /// A manager of adapters has changed its state. Called with no lock held.
    pub fn adapter_manager_state_changed(&self, manager_id: &str, state: AdapterState) {
        interception::note_manager_state(self, manager_id, state);
    }

    /// Adapters of these names have changed their state otherwise: they are no more. Called with no lock held.
    pub fn adapter_state_changed(&self, adapter_names: &[Vec<String>], state: AdapterState) {
        interception::note_adapter_state(self, adapter_names, state);
    }

    /// A reference to an object of an adapter, as interceptors will have it; otherwise as [`make_reference`](Self::make_reference).
    ///
    /// # Errors
    /// As [`make_reference`](Self::make_reference), and those of a factory that an interceptor has put in place.
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
