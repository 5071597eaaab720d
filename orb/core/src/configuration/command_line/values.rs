//! Errors, results and values that the parsers of options share.

use std::time::Duration;

use spandrel_giop::SystemException;
use spandrel_transport::{EndpointError, OptionError};

use crate::OrbBuilder;

/// The reason why an ORB was not created.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The option is unknown, or belongs to a protocol that the program does not have.
    #[error("`{0}` is not an ORB option{hint}", hint = unknown_option_hint(.0))]
    UnknownOption(String),
    /// The option is the last argument and needs a value.
    #[error("`{0}` needs a value")]
    MissingValue(String),
    /// The option does not accept the value.
    #[error("invalid value `{value}` for `{option}`: expected {expected}")]
    BadValue {
        /// The option.
        option: String,
        /// The given value.
        value: String,
        /// The expected value.
        expected: &'static str,
    },
    /// The ORB could not be created with these options, for example because its metrics endpoint is in use.
    #[error(transparent)]
    Refused(#[from] SystemException),
    /// The protocol that defines the option rejected the value.
    #[error("invalid value `{value}` for `{option}`")]
    RefusedValue {
        /// The option.
        option: String,
        /// The given value.
        value: String,
        /// The reason.
        #[source]
        reason: OptionError,
    },
    /// The endpoint is malformed.
    #[error(transparent)]
    BadEndpoint(#[from] EndpointError),
}
spandrel_error::debug_as_report!(InitError);

/// The remedy for an unknown option.
fn unknown_option_hint(option: &str) -> &'static str {
    if option.starts_with("-ORBSSL") {
        " of this program: those of TLS are in docs/security.md, and need `OrbBuilder::protocol` with `Ssliop`"
    } else {
        ": docs/options.md lists the options"
    }
}

/// Creates the error for an invalid value from a description of the expected one.
pub(super) type InvalidValue<'b> = &'b dyn Fn(&'static str) -> InitError;

/// The builder after an option was applied, or unchanged if the option is unknown to it.
pub(super) enum Parsed {
    Known(Box<OrbBuilder>),
    Unknown(Box<OrbBuilder>),
}

impl Parsed {
    pub(super) fn or_else(self, parse: impl FnOnce(OrbBuilder) -> Result<Self, InitError>) -> Result<Self, InitError> {
        match self {
            Self::Known(_) => Ok(self),
            Self::Unknown(builder) => parse(*builder),
        }
    }
}

pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Parses a time-out in milliseconds, or `off` for none.
pub(super) fn or_off(text: &str) -> Option<Option<Duration>> {
    if text == "off" { Some(None) } else { milliseconds(text).map(Some) }
}

/// Parses a time-out in milliseconds. Zero is invalid, since every call would fail.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis)
}
