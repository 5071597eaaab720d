//! Errors of operations on adapters and managers, and the system exceptions of both.

use std::{error::Error, fmt};

use spandrel_giop::{CompletionStatus, SystemException, minor};

/// The error of an operation on an adapter: one of the user exceptions of `PortableServer`, or a system
/// exception.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum PoaError {
    /// The parent already has a child of this name (15.3.9.2).
    AdapterAlreadyExists,
    /// There is no child of this name, and none could be created (15.3.9.3).
    AdapterNonExistent,
    /// A policy is not valid, or contradicts others.
    InvalidPolicy {
        /// Its index among the given policies.
        index: u16,
    },
    /// There is no default servant (15.3.9.11).
    NoServant,
    /// The object has a servant already.
    ObjectAlreadyActive,
    /// The object has no servant.
    ObjectNotActive,
    /// The servant serves another object, and the adapter has UNIQUE_ID.
    ServantAlreadyActive,
    /// The servant serves no object.
    ServantNotActive,
    /// Another adapter created the reference.
    WrongAdapter,
    /// The adapter's policies do not permit the operation.
    WrongPolicy,
    /// The manager is inactive, permanently (15.3.2).
    AdapterInactive,
    /// A manager of this id exists (15.3.3).
    ManagerAlreadyExists,
    /// A system exception.
    System(SystemException),
}
spandrel_error::debug_as_report!(PoaError);

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdapterAlreadyExists => "the adapter already has a child of this name",
            Self::AdapterNonExistent => "the adapter has no child of this name",
            Self::InvalidPolicy { index } => return write!(f, "policy {index} is invalid"),
            Self::NoServant => "the adapter has no default servant",
            Self::ObjectAlreadyActive => "the object is active already",
            Self::ObjectNotActive => "the object is not active",
            Self::ServantAlreadyActive => "the servant is active already",
            Self::ServantNotActive => "the servant is not active",
            Self::WrongAdapter => "the reference belongs to another adapter",
            Self::WrongPolicy => "the adapter's policies do not permit the operation",
            Self::AdapterInactive => "the manager is inactive",
            Self::ManagerAlreadyExists => "a manager of this id exists already",
            Self::System(exception) => return exception.fmt(f),
        })
    }
}

impl Error for PoaError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::System(exception) => Some(exception),
            _ => None,
        }
    }
}

impl From<SystemException> for PoaError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<PoaError> for SystemException {
    /// For operations that raise system exceptions only: the other errors become OBJ_ADAPTER with their text.
    fn from(error: PoaError) -> Self {
        match error {
            PoaError::System(exception) => exception,
            other => Self::obj_adapter(0, CompletionStatus::No).with_detail(|| other.to_string()),
        }
    }
}

/// The key is unknown, or its object has no servant and none can be supplied (15.2.6).
pub(crate) fn not_active() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No)
        .with_detail("no servant is active for the object key, and the adapter has no other way to find one")
}

/// The object's adapter does not exist and could not be created (15.3.4.1).
pub(crate) fn no_adapter() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("the adapter named in the object key does not exist, and no adapter activator created it")
}

/// The adapter of the called operation has been destroyed (15.3.9.4).
pub(crate) fn destroyed() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("the adapter has been destroyed")
}

/// The wait would never end, since the caller is part of the awaited work.
pub(crate) fn would_deadlock() -> SystemException {
    SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
        .with_detail("the operation cannot wait for itself inside an upcall of the same ORB")
}

/// Too many requests wait already.
pub(crate) fn discarded(why: &'static str) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(why)
}

/// An id that an adapter with SYSTEM_ID did not assign (15.3.9.17).
pub(crate) fn id_not_assigned() -> SystemException {
    SystemException::bad_param(minor::INVALID_OBJECT_ID, CompletionStatus::No)
        .with_detail("the adapter assigns its object ids itself, and did not assign this one")
}

/// All ids are in use.
pub(crate) fn no_more_ids() -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No).with_detail("all object ids are in use")
}
