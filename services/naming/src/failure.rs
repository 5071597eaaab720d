//! The reasons why operations on names fail, as the exceptions of the specification.

use spandrel::services::cos_naming::naming_context::{
    AlreadyBound, BindError, CannotProceed, InvalidName, NotFound, NotFoundReason, RebindError,
};
use spandrel::services::cos_naming::{BindingType, Name, NameComponent, NamingContext};
use spandrel::{CompletionStatus, SystemException};

use crate::store::StoreError;

/// The reason why an operation failed.
pub(crate) enum Failure {
    NotFound(NotFoundReason, Name),
    CannotProceed(NamingContext, Name),
    InvalidName,
    AlreadyBound,
    System(SystemException),
}

impl Failure {
    /// The failure of the last step of a name.
    pub(crate) fn at(step: &NameComponent, error: &StoreError) -> Self {
        match error {
            StoreError::NotBound => Self::NotFound(NotFoundReason::MissingNode, vec![step.clone()]),
            StoreError::OtherType(BindingType::Ncontext) => {
                Self::NotFound(NotFoundReason::NotObject, vec![step.clone()])
            }
            StoreError::OtherType(_) => Self::NotFound(NotFoundReason::NotContext, vec![step.clone()]),
            StoreError::AlreadyBound => Self::AlreadyBound,
            error => system(error).into(),
        }
    }
}

/// The system exception of a failure of the store.
pub(crate) fn system(error: &StoreError) -> SystemException {
    let exception = match error {
        StoreError::NoContext(_) => SystemException::object_not_exist(0, CompletionStatus::No),
        StoreError::Root => SystemException::bad_inv_order(0, CompletionStatus::No),
        StoreError::Invalid(_) => SystemException::bad_param(0, CompletionStatus::No),
        StoreError::Uncertain(_) => SystemException::persist_store(0, CompletionStatus::Maybe),
        _ => SystemException::persist_store(0, CompletionStatus::No),
    };
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    exception.with_detail(move || text)
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// An exception that an operation does not raise: only another server that violates the specification sends it.
fn unexpected() -> SystemException {
    SystemException::unknown(0, CompletionStatus::Maybe)
}

impl From<Failure> for BindError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound(why, rest_of_name) => NotFound { why, rest_of_name }.into(),
            Failure::CannotProceed(context, rest_of_name) => CannotProceed { cxt: Some(context), rest_of_name }.into(),
            Failure::InvalidName => InvalidName {}.into(),
            Failure::AlreadyBound => AlreadyBound {}.into(),
            Failure::System(exception) => exception.into(),
        }
    }
}

impl From<Failure> for RebindError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound(why, rest_of_name) => NotFound { why, rest_of_name }.into(),
            Failure::CannotProceed(context, rest_of_name) => CannotProceed { cxt: Some(context), rest_of_name }.into(),
            Failure::InvalidName => InvalidName {}.into(),
            Failure::AlreadyBound => unexpected().into(),
            Failure::System(exception) => exception.into(),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NotFound(exception) => Self::NotFound(exception.why, exception.rest_of_name),
            BindError::CannotProceed(exception) => proceed_at(exception),
            BindError::InvalidName(_) => Self::InvalidName,
            BindError::AlreadyBound(_) => Self::AlreadyBound,
            BindError::System(exception) => Self::System(exception),
        }
    }
}

impl From<RebindError> for Failure {
    fn from(error: RebindError) -> Self {
        match error {
            RebindError::NotFound(exception) => Self::NotFound(exception.why, exception.rest_of_name),
            RebindError::CannotProceed(exception) => proceed_at(exception),
            RebindError::InvalidName(_) => Self::InvalidName,
            RebindError::System(exception) => Self::System(exception),
        }
    }
}

/// Another server's `CannotProceed`. Without a context, the caller's context takes its place.
fn proceed_at(exception: CannotProceed) -> Failure {
    match exception.cxt {
        Some(context) => Failure::CannotProceed(context, exception.rest_of_name),
        None => Failure::System(unexpected()),
    }
}
