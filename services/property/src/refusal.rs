//! The reasons why operations on one property fail, as the exceptions of the specification.

use spandrel::services::cos_property_service::{
    ConflictingProperty, ExceptionReason, FixedProperty, InvalidPropertyName, MultipleExceptions,
    MultipleExceptionsError, PropertyException, PropertyNotFound, ReadOnlyProperty, UnsupportedMode,
    UnsupportedProperty, UnsupportedTypeCode, property_set, property_set_def,
};
use spandrel::{CompletionStatus, SystemException};

/// The reason why an operation on a property failed.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    Property(ExceptionReason),
    /// The whole request fails, and nothing is changed.
    System(SystemException),
}

impl From<ExceptionReason> for Refusal {
    fn from(reason: ExceptionReason) -> Self {
        Self::Property(reason)
    }
}

impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Converts the reasons that an operation raises. The others are those of other operations.
macro_rules! exceptions {
    ($($error:ty: $($reason:ident),*;)*) => {$(
        impl From<Refusal> for $error {
            fn from(refusal: Refusal) -> Self {
                match refusal {
                    $(Refusal::Property(ExceptionReason::$reason) => $reason {}.into(),)*
                    Refusal::Property(_) => SystemException::unknown(0, CompletionStatus::Maybe).into(),
                    Refusal::System(exception) => exception.into(),
                }
            }
        }
    )*};
}

exceptions! {
    property_set::DefinePropertyError:
        InvalidPropertyName, ConflictingProperty, UnsupportedTypeCode, UnsupportedProperty, ReadOnlyProperty;
    property_set_def::DefinePropertyWithModeError: InvalidPropertyName, ConflictingProperty, UnsupportedTypeCode,
        UnsupportedProperty, UnsupportedMode, ReadOnlyProperty;
    property_set::GetPropertyValueError: PropertyNotFound, InvalidPropertyName;
    property_set::DeletePropertyError: PropertyNotFound, InvalidPropertyName, FixedProperty;
    property_set::IsPropertyDefinedError: InvalidPropertyName;
    property_set_def::SetPropertyModeError: InvalidPropertyName, PropertyNotFound, UnsupportedMode;
}

/// The failures of a request with several properties, in the order of the request.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<PropertyException>);

impl Failures {
    /// Adds the outcome for one property.
    ///
    /// # Errors
    /// A system exception, which ends the request.
    pub(crate) fn add(&mut self, name: &str, outcome: Result<(), Refusal>) -> Result<(), Refusal> {
        match outcome {
            Ok(()) => {}
            Err(Refusal::Property(reason)) => {
                self.0.push(PropertyException { reason, failing_property_name: name.to_owned() });
            }
            Err(system) => return Err(system),
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `MultipleExceptions`, unless nothing failed.
    pub(crate) fn result(self) -> Result<(), MultipleExceptionsError> {
        if self.is_empty() { Ok(()) } else { Err(MultipleExceptions { exceptions: self.0 }.into()) }
    }
}

/// The exception of a request with several properties that failed as a whole.
pub(crate) fn whole_request(refusal: Refusal) -> SystemException {
    match refusal {
        Refusal::System(exception) => exception,
        Refusal::Property(_) => SystemException::unknown(0, CompletionStatus::Maybe),
    }
}
