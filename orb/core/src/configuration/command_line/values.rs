//! The errors of options, and the parsers of their values.

use std::{str::FromStr, time::Duration};

use spandrel_error::closest;
use spandrel_giop::SystemException;
use spandrel_transport::{EndpointError, OptionError};

use super::OrbOption;

/// The beginning of each option.
const PREFIX: &str = "-ORB";

/// The reason why no ORB was created from arguments, with the option at fault.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The option is unknown, or belongs to a protocol that the program does not have.
    #[error("`{0}` is not an ORB option{hint}", hint = unknown_option_hint(.0))]
    UnknownOption(String),
    /// The option is unknown, and similar to one of a protocol of the program.
    #[error("`{option}` is not an ORB option: did you mean `{similar}`?")]
    MisspeltOption {
        /// The option as it was spelled.
        option: String,
        /// The option of the protocol.
        similar: String,
    },
    /// The option is the last argument and needs a value.
    #[error("`{0}` needs a value")]
    MissingValue(String),
    /// The option does not accept the value.
    #[error("invalid value `{value}` for `{option}`: expected {expected}")]
    BadValue {
        /// The option as it was spelled.
        option: String,
        /// The value as the command line has it.
        value: String,
        /// A description of the values that it takes.
        expected: &'static str,
    },
    /// The ORB could not be created with these options, for example because its metrics endpoint is in use.
    #[error(transparent)]
    Refused(#[from] SystemException),
    /// The protocol that defines the option rejected the value.
    #[error("invalid value `{value}` for `{option}`")]
    RefusedValue {
        /// The option as it was spelled.
        option: String,
        /// The value as the command line has it.
        value: String,
        /// The reason, as the protocol states it.
        #[source]
        reason: OptionError,
    },
    /// The site that `-ORBSite` names does not exist, or its file is invalid.
    #[cfg(feature = "site")]
    #[error(transparent)]
    Site(#[from] crate::SiteError),
    /// The text of an endpoint has an unknown scheme or option, or no address.
    #[error(transparent)]
    BadEndpoint(#[from] EndpointError),
}
spandrel_error::debug_as_report!(InitError);

/// The value with this name, if there is one.
pub(super) fn named<T: Copy, const N: usize>(all: [T; N], name: fn(T) -> &'static str, text: &str) -> Option<T> {
    all.into_iter().find(|value| name(*value) == text)
}

/// The remedy for an unknown option.
fn unknown_option_hint(option: &str) -> String {
    if option.starts_with("-ORBSSL") {
        let hint =
            " of this program: those of TLS are in docs/security.md, and need `OrbBuilder::protocol` with `Ssliop`";
        return hint.to_owned();
    }
    let names = OrbOption::tables().iter().copied().flatten().flat_map(|row| row.names).copied();
    match similar_option(option, names) {
        Some(similar) => format!(": did you mean `{similar}`?"),
        None => ": docs/options.md lists the options".to_owned(),
    }
}

/// The name that is probably meant by an unknown option, if any is near enough.
pub(super) fn similar_option(option: &str, names: impl Iterator<Item = &'static str>) -> Option<String> {
    // All names begin alike, so what follows is compared.
    let rests = names.filter_map(|name| name.strip_prefix(PREFIX));
    closest(option.strip_prefix(PREFIX)?, rests).map(|rest| format!("{PREFIX}{rest}"))
}

/// Parses `yes` or `no`.
pub(super) fn yes_or_no(text: &str) -> Result<bool, &'static str> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no"),
    }
}

/// Parses a number that is not negative.
pub(super) fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "a number")
}

/// Parses a number, or `off` for none.
pub(super) fn number_or_off(text: &str) -> Result<Option<usize>, &'static str> {
    if text == "off" { Ok(None) } else { text.parse().map(Some).map_err(|_| "a number or off") }
}

/// Parses a number of octets, without a unit.
pub(super) fn octets<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "a number of octets")
}

/// Parses a time-out in milliseconds. Zero is invalid, since every call would fail.
pub(super) fn milliseconds(text: &str) -> Result<Duration, &'static str> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.map(Duration::from_millis).ok_or("milliseconds")
}

/// Parses a time-out in milliseconds, or `off` for none.
pub(super) fn milliseconds_or_off(text: &str) -> Result<Option<Duration>, &'static str> {
    if text == "off" { Ok(None) } else { milliseconds(text).map(Some).map_err(|_| "milliseconds or off") }
}
