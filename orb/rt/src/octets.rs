//! Encapsulations with values of Real-time CORBA, and the errors of their decoding.

use spandrel_cdr::{ByteOrder, CdrError, Decoder, Encoder, GiopVersion, Wire};

use crate::Priority;

fn wire() -> Wire {
    Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2)
}

/// Received octets that are no value of Real-time CORBA.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The octets do not have the form that the standard gives this value.
    #[error("malformed {name}")]
    Octets {
        /// The name of the value.
        name: &'static str,
        /// The position and kind of the malformation.
        #[source]
        cause: CdrError,
    },
    /// The octets have the right form, and the value is not permitted.
    #[error("invalid {name}: {reason}")]
    Value {
        /// The name of the value.
        name: &'static str,
        /// The rule that it breaks.
        reason: String,
    },
}
spandrel_error::debug_as_report!(DecodeError);

impl DecodeError {
    pub(crate) fn value(name: &'static str, reason: String) -> Self {
        Self::Value { name, reason }
    }
}

/// An encapsulation in this machine's byte order, which its first octet says.
pub(crate) fn encapsulation() -> Encoder<'static> {
    let mut out = Encoder::new(wire());
    out.u8(ByteOrder::NATIVE.flag());
    out
}

/// Decodes the value `name`, which is an encapsulation.
pub(crate) fn decode<T>(
    name: &'static str,
    data: &[u8],
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
) -> Result<T, DecodeError> {
    Decoder::of_encapsulation(data, wire())
        .and_then(|mut input| read(&mut input))
        .map_err(|cause| DecodeError::Octets { name, cause })
}

pub(crate) fn priority(name: &'static str, number: i16) -> Result<Priority, DecodeError> {
    Priority::from_number(number).ok_or_else(|| DecodeError::value(name, format!("the priority {number} is negative")))
}
