//! Why octets or text from elsewhere were not accepted, and what a connection does about it.

use spandrel_cdr::{CdrError, GiopVersion};

use crate::MessageType;

/// Why octets from the peer were not accepted as a GIOP message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GiopError {
    /// A datagram holds something else than one whole request of GIOP 1.2 that nobody answers.
    #[error("the datagram is no request without an answer")]
    NotADatagram,
    /// The stream is not at a message boundary, or the peer does not speak GIOP.
    #[error("expected `GIOP`, found {_0:02x?}{}", known(*_0))]
    BadMagic([u8; 4]),
    /// A protocol version that this ORB does not speak.
    #[error("GIOP {0} is not supported")]
    UnsupportedVersion(GiopVersion),
    /// In GIOP 1.0 the seventh octet is a boolean (9.4.1).
    #[error("a GIOP 1.0 byte order must be 0 or 1, found {0}")]
    BadByteOrder(u8),
    /// No message of this type exists in this version.
    #[error("GIOP {version} has no message type {value}")]
    UnknownMessageType {
        /// The version of the message.
        version: GiopVersion,
        /// The octet that was found.
        value: u8,
    },
    /// A message, or the sum of unfinished ones, is longer than this side accepts.
    #[error("{len} octets of message exceed the limit of {limit}")]
    TooLarge {
        /// Octets, message header included.
        len: usize,
        /// The limit in force.
        limit: usize,
    },
    /// Too many messages were begun in fragments and not finished.
    #[error("more than {limit} messages are unfinished")]
    TooManyUnfinished {
        /// The limit in force.
        limit: usize,
    },
    /// The octets handed over are not as long as their header says.
    #[error("the header announces {announced} octets, {found} are there")]
    LengthMismatch {
        /// Octets according to the header, itself included.
        announced: usize,
        /// Octets that were handed over.
        found: usize,
    },
    /// A message of this type cannot be sent in fragments in this version (9.4.9).
    #[error("GIOP {version} sends no {message_type} in fragments")]
    NotFragmentable {
        /// The version of the message.
        version: GiopVersion,
        /// Its type.
        message_type: MessageType,
    },
    /// A fragment belongs to no unfinished message, or contradicts it.
    #[error("a fragment continues no unfinished message{}", of_request(*.0))]
    StrayFragment(Option<u32>),
    /// A message was begun in fragments while another with the same request id is unfinished.
    #[error("a second message was begun before the fragments of the first ended{}", of_request(*.0))]
    Interleaved(Option<u32>),
    /// The message header was sound and what follows was not.
    #[error("malformed {message}")]
    Body {
        /// The type of the message.
        message: MessageType,
        /// What was wrong.
        #[source]
        cause: CdrError,
    },
    /// A profile or component whose content cannot be read.
    #[error("malformed {what}")]
    Profile {
        /// What it should have been.
        what: &'static str,
        /// What was wrong.
        #[source]
        cause: CdrError,
    },
}

/// What else begins so.
fn known(magic: [u8; 4]) -> &'static str {
    match magic {
        // A record's type (RFC 8446, 5.1) and the major version that all have.
        [0x14..=0x17, 3, ..] => ": the peer speaks TLS",
        _ => "",
    }
}

fn of_request(id: Option<u32>) -> String {
    id.map(|id| format!(" (request {id})")).unwrap_or_default()
}

/// What a connection does about a [`GiopError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reaction {
    /// Send MessageError, then close: the peer broke the protocol or speaks another (9.4.8).
    SendMessageError,
    /// Close: this side has lost its place in the stream.
    CloseConnection,
    /// The connection is sound; refuse the reference, not the peer.
    RefuseReference,
}

impl GiopError {
    /// Code decides on this; people read `Display`.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        match self {
            Self::LengthMismatch { .. } => Reaction::CloseConnection,
            Self::Profile { .. } => Reaction::RefuseReference,
            _ => Reaction::SendMessageError,
        }
    }
}

impl GiopError {
    /// The version of the MessageError that answers it, if the message said one: its own, and the highest that we speak where that is
    /// unknown here (9.4.1).
    #[must_use]
    pub fn answer_version(&self) -> Option<GiopVersion> {
        match self {
            Self::UnsupportedVersion(_) => Some(GiopVersion::V1_2),
            Self::UnknownMessageType { version, .. } | Self::NotFragmentable { version, .. } => Some(*version),
            Self::BadByteOrder(_) => Some(GiopVersion::V1_0),
            _ => None,
        }
    }
}

/// Why a text is not an object reference. Positions count octets from its start.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// Neither `IOR:` nor `corbaloc:`.
    #[error("`{0}` is not the start of an object reference: expected `IOR:` or `corbaloc:`")]
    UnknownScheme(String),
    /// The text after `IOR:` has an odd number of digits.
    #[error("the reference ends inside an octet: {0} hexadecimal digits are an odd number")]
    OddDigits(usize),
    /// A character of an `IOR:` that is no hexadecimal digit.
    #[error("`{found}` at position {position} is not a hexadecimal digit")]
    NotHex {
        /// Where it stands.
        position: usize,
        /// The character.
        found: char,
    },
    /// The digits are sound, what they say is not a reference.
    #[error("the octets of the reference are malformed at octet {octet}")]
    Malformed {
        /// How far they could be read.
        octet: usize,
        /// What was wrong there.
        #[source]
        cause: CdrError,
    },
    /// A `corbaloc:` without an address.
    #[error("no address follows at position {0}")]
    NoAddress(usize),
    /// An address without a protocol in front.
    #[error("the address `{text}` at position {position} names no protocol: expected `:`, `iiop:` or `rir:`")]
    NoProtocol {
        /// Where it stands.
        position: usize,
        /// The address.
        text: String,
    },
    /// A version that is not `major.minor`, or a major version other than 1.
    #[error("`{text}` at position {position} is not a protocol version such as 1.2")]
    BadVersion {
        /// Where it stands.
        position: usize,
        /// What stands before the `@`.
        text: String,
    },
    /// A host that is empty in brackets, or an IPv6 address without them.
    #[error("`{text}` at position {position} is not a host: an IPv6 address stands in brackets")]
    BadHost {
        /// Where it stands.
        position: usize,
        /// What was found.
        text: String,
    },
    /// A port that is not a number from 0 to 65,535.
    #[error("`{text}` at position {position} is not a port number")]
    BadPort {
        /// Where it stands.
        position: usize,
        /// What was found.
        text: String,
    },
    /// `rir:` with an address or beside other addresses (7.6.10.2).
    #[error("`rir:` at position {0} must stand alone")]
    RirNotAlone(usize),
    /// A `%` that two hexadecimal digits do not follow.
    #[error("`%` at position {0} must be followed by two hexadecimal digits")]
    BadEscape(usize),
    /// A reference without an address that a profile could say.
    #[error("`{0}` has no address that an IIOP profile can say")]
    NoProfile(String),
}
