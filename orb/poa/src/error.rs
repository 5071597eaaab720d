//! What operations of adapters and their managers are refused with, and the system exceptions of both.

use std::{error::Error, fmt};

use spandrel_giop::{CompletionStatus, SystemException, minor};

/// Why an operation of an adapter was refused: the user exceptions of `PortableServer`, or a system exception.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PoaError {
    /// The parent has a child of this name (15.3.9.2).
    AdapterAlreadyExists,
    /// There is no child of this name, and none could be made (15.3.9.3).
    AdapterNonExistent,
    /// A policy is not valid, or contradicts others.
    InvalidPolicy {
        /// Its place among those given.
        index: u16,
    },
    /// There is no default servant (15.3.9.11).
    NoServant,
    /// The object has a servant already.
    ObjectAlreadyActive,
    /// The object has no servant.
    ObjectNotActive,
    /// The servant stands behind another object, and may not stand behind two.
    ServantAlreadyActive,
    /// The servant stands behind no object.
    ServantNotActive,
    /// The reference is not one of this adapter's.
    WrongAdapter,
    /// The adapter has other policies than the operation needs.
    WrongPolicy,
    /// The manager is inactive, and nothing else any more (15.3.2).
    AdapterInactive,
    /// There is a manager of this id (15.3.3).
    ManagerAlreadyExists,
    /// A system exception.
    System(SystemException),
}

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdapterAlreadyExists => "the adapter has a child of this name",
            Self::AdapterNonExistent => "the adapter has no child of this name",
            Self::InvalidPolicy { index } => return write!(f, "policy {index} is invalid"),
            Self::NoServant => "the adapter has no default servant",
            Self::ObjectAlreadyActive => "the object is active already",
            Self::ObjectNotActive => "the object is not active",
            Self::ServantAlreadyActive => "the servant is active already",
            Self::ServantNotActive => "the servant is not active",
            Self::WrongAdapter => "the reference is another adapter's",
            Self::WrongPolicy => "the adapter's policies do not allow it",
            Self::AdapterInactive => "the manager is inactive",
            Self::ManagerAlreadyExists => "there is a manager of this id",
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
    /// For operations that may raise system exceptions only: OBJ_ADAPTER that says the rest.
    fn from(error: PoaError) -> Self {
        match error {
            PoaError::System(exception) => exception,
            other => Self::obj_adapter(0, CompletionStatus::No).with_detail(|| other.to_string()),
        }
    }
}

/// Nobody has this key, or the object has no servant and none can be had (15.2.6).
pub(crate) fn not_active() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No).with_detail("no such object is active here")
}

/// The object's adapter does not exist and could not be made (15.3.4.1).
pub(crate) fn no_adapter() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("the object's adapter does not exist")
}

/// The adapter whose operation was called has been destroyed (15.3.9.4).
pub(crate) fn destroyed() -> SystemException {
    SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No)
        .with_detail("the adapter has been destroyed")
}

/// Waiting would never end, since the caller is what would be waited for.
pub(crate) fn would_deadlock() -> SystemException {
    SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
        .with_detail("inside of an upcall of the same ORB this would wait for itself")
}

/// There are too many that wait already.
pub(crate) fn discarded(why: &'static str) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(why)
}

/// An id that an adapter that makes its ids has not made (15.3.9.17).
pub(crate) fn not_made_here() -> SystemException {
    SystemException::bad_param(minor::INVALID_OBJECT_ID, CompletionStatus::No)
        .with_detail("the adapter makes its object ids itself, and has not made this one")
}

/// All ids are taken.
pub(crate) fn no_more_ids() -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No).with_detail("all object ids are taken")
}
