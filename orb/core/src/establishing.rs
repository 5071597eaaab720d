//! How an adapter's references are made, which IOR interceptors may have a say in (CORBA 3.3 Part 1, 16.5).
//!
//! Adapters call what is here whether or not there are interceptors.

use spandrel_giop::SystemException;

#[cfg(feature = "interceptors")]
use crate::interception::Custom;
use crate::{ObjectRef, Operations, Orb, Policy, PolicyType, operation_index};

/// What an adapter does with requests (`PortableInterceptor::AdapterState`, 16.5.5).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum AdapterState {
    /// They wait.
    Holding = 0,
    /// They are run.
    Active = 1,
    /// They are refused for now.
    Discarding = 2,
    /// They are refused for ever.
    Inactive = 3,
    /// There is no adapter any more.
    NonExistent = 4,
}

/// What an adapter that is being made says of itself.
pub trait AdapterDescription {
    /// The names of the adapters from the root to itself.
    fn adapter_name(&self) -> Vec<String>;

    /// What its manager is called.
    fn manager_id(&self) -> &str;

    /// What it does with requests now.
    fn state(&self) -> AdapterState;

    /// Its policy of this type, if it has one.
    fn policy(&self, policy_type: PolicyType) -> Option<Policy>;
}

/// What interceptors have added to all references of an adapter. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Most often there is nothing.
    #[cfg(feature = "interceptors")]
    custom: Option<Custom>,
    /// What they offer to clients of our kind.
    operations: Option<&'static Operations>,
}

impl References {
    #[cfg(feature = "interceptors")]
    pub(crate) fn new(custom: Option<Custom>) -> Self {
        Self { custom, ..Self::default() }
    }

    /// The same, for objects with these operations, which clients may name by their place in the table
    /// ([`OperationDemux::Active`](crate::OperationDemux)).
    #[must_use]
    pub fn offering(mut self, operations: &'static Operations) -> Self {
        self.operations = Some(operations);
        self
    }
}

impl Orb {
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
        #[cfg(feature = "interceptors")]
        if let Some(custom) = &references.custom {
            return custom.make_reference(self, type_id, object_id, object_key, offered);
        }
        #[cfg(not(feature = "interceptors"))]
        let _ = object_id;
        self.make_reference_with(type_id, object_key, offered.as_slice())
    }
}

/// What adapters tell of themselves where nobody listens.
#[cfg(not(feature = "interceptors"))]
impl Orb {
    /// An adapter is being made. Called once for each, with no lock held.
    ///
    /// # Errors
    /// None without the feature `interceptors`.
    pub fn establish_components(&self, _adapter: &dyn AdapterDescription) -> Result<References, SystemException> {
        Ok(References::default())
    }

    /// A manager of adapters has changed its state. Called with no lock held.
    pub fn adapter_manager_state_changed(&self, _manager_id: &str, _state: AdapterState) {}

    /// Adapters of these names have changed their state otherwise: they are no more. Called with no lock held.
    pub fn adapter_state_changed(&self, _adapter_names: &[Vec<String>], _state: AdapterState) {}
}
