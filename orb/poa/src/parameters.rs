//! The parameters that operations of adapters and of their managers have in common (CORBA 3.3 Part 1, 15.3.2, 15.3.9).

/// Whether an operation returns only when all that it begins is complete: `wait_for_completion` in IDL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum WaitForCompletion {
    /// It returns when all is complete. Inside an upcall of the same ORB, this is BAD_INV_ORDER.
    Yes,
    /// It returns at once.
    No,
}

/// Whether servant activators etherealize the objects that are deactivated: `etherealize_objects` in IDL.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EtherealizeObjects {
    /// Each object is etherealized after its last request.
    Yes,
    /// No servant activator is called.
    No,
}
