//! Errors of received octets and of textual references, and the reaction of a connection: MessageError, and
//! its version.

use spandrel_cdr::{CdrError, GiopVersion};
use spandrel_error::excerpt;

use crate::MessageType;

/// The reason for which received octets are not a valid GIOP message.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GiopError {
    /// A datagram without exactly one whole one-way request of GIOP 1.2.
    #[error("the datagram is not a one-way request of GIOP 1.2")]
    NotADatagram,
    /// The stream is not at a message boundary, or the peer does not speak GIOP.
    #[error("expected `GIOP`, found {_0:02x?}{}", recognized_protocol(*_0))]
    BadMagic([u8; 4]),
    /// A protocol version that this ORB does not support.
    #[error("GIOP {0} is not supported")]
    UnsupportedVersion(GiopVersion),
    /// In GIOP 1.0 the seventh octet is a boolean (9.4.1).
    #[error("a GIOP 1.0 byte order must be 0 or 1, found {0}")]
    BadByteOrder(u8),
    /// A message type that does not exist in this version.
    #[error("GIOP {version} has no message type {value}")]
    UnknownMessageType {
        /// The version of the message.
        version: GiopVersion,
        /// The octet that was found.
        value: u8,
    },
    /// A message, or the sum of unfinished ones, above the limit of this side.
    #[error("a message of {len} octets exceeds the limit of {limit} (-ORBMaxMessageSize)")]
    TooLarge {
        /// Octets, message header included.
        len: usize,
        /// The limit in force.
        limit: usize,
    },
    /// Too many messages begun in fragments and not finished.
    #[error("more than {limit} messages wait for their last fragments")]
    TooManyUnfinished {
        /// The limit in force.
        limit: usize,
    },
    /// Octets of another length than their header announces.
    #[error("the header announces {announced} octets, but {found} were received")]
    LengthMismatch {
        /// Octets according to the header, itself included.
        announced: usize,
        /// Octets that were passed in.
        found: usize,
    },
    /// A fragmented message of a type that this version does not fragment (9.4.9).
    #[error("GIOP {version} does not fragment a {message_type}")]
    NotFragmentable {
        /// The version of the message.
        version: GiopVersion,
        /// The type of the fragmented message.
        message_type: MessageType,
    },
    /// A fragment that belongs to no unfinished message, or contradicts it.
    #[error("a fragment continues no unfinished message{}", of_request(*.0))]
    StrayFragment(Option<u32>),
    /// A message begun in fragments while another with the same request id is unfinished.
    #[error("a second message was begun before the fragments of the first ended{}", of_request(*.0))]
    Interleaved(Option<u32>),
    /// A valid message header with a malformed header or body after it.
    #[error("malformed {message}")]
    Body {
        /// The type of the message.
        message: MessageType,
        /// The reason why the body cannot be decoded.
        #[source]
        cause: CdrError,
    },
    /// A profile or component with malformed content.
    #[error("malformed {what}")]
    Profile {
        /// The name of the profile or component.
        what: &'static str,
        /// The reason why the content cannot be decoded.
        #[source]
        cause: CdrError,
    },
}
spandrel_error::debug_as_report!(GiopError);

/// The protocol that begins with these octets, if recognized.
fn recognized_protocol(magic: [u8; 4]) -> &'static str {
    match magic {
        // The content type of a TLS record (RFC 8446, 5.1) and the major version that all records have.
        [0x14..=0x17, 3, ..] => ": the peer speaks TLS",
        _ => "",
    }
}

fn of_request(id: Option<u32>) -> String {
    id.map(|id| format!(" (request {id})")).unwrap_or_default()
}

/// The reaction of a connection to a [`GiopError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reaction {
    /// Send MessageError, then close: the peer violated the protocol or speaks another (9.4.8).
    SendMessageError,
    /// Close: the message boundary in the stream is lost.
    CloseConnection,
    /// The connection is intact; reject the reference, not the peer.
    RefuseReference,
}

impl GiopError {
    /// The reaction of the connection that received the octets, for decisions in code; `Display` is for
    /// people.
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
    /// The version for the MessageError that answers this error, if the message named one. An unknown version
    /// is answered with the highest supported one (9.4.1).
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

/// The reason for which a text is not an object reference. Positions count octets from its start.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// Neither `IOR:` nor `corbaloc:`.
    #[error("`{}` is not the start of an object reference: expected `IOR:`, `corbaloc:`, `corbaname:` or `file://`", excerpt(.0))]
    UnknownScheme(String),
    /// The text after `IOR:` has an odd number of digits.
    #[error("the reference ends inside an octet: {0} hexadecimal digits are an odd number")]
    OddDigits(usize),
    /// A character of an `IOR:` that is no hexadecimal digit.
    #[error("`{}` at position {position} is not a hexadecimal digit", excerpt(.found.encode_utf8(&mut [0; 4])))]
    NotHex {
        /// Octets in front of it in the text.
        position: usize,
        /// The character in place of a hexadecimal digit.
        found: char,
    },
    /// Hexadecimal digits that do not decode to a reference.
    #[error("the octets of the reference cannot be decoded at octet {octet}")]
    Malformed {
        /// Offset of the octet at which decoding failed.
        octet: usize,
        /// The reason why the reference cannot be decoded.
        #[source]
        cause: CdrError,
    },
    /// A `corbaloc:` without an address.
    #[error("no address follows at position {0}")]
    NoAddress(usize),
    /// An address without a protocol in front.
    #[error(
        "the address `{}` at position {position} names no protocol: expected `:`, `iiop:`, `ssliop:` or `rir:`{}",
        excerpt(text),
        without_colon("", text)
    )]
    NoProtocol {
        /// Octets in front of the address in the text.
        position: usize,
        /// The address, without its comma.
        text: String,
    },
    /// A version that is not `major.minor`, or a major version other than 1.
    #[error("`{}` at position {position} is not a protocol version such as 1.2", excerpt(text))]
    BadVersion {
        /// Octets in front of the version in the text.
        position: usize,
        /// The text before the `@`.
        text: String,
    },
    /// A host that is empty in brackets, or an IPv6 address without them.
    #[error("`{}` at position {position} is not a host: an IPv6 address stands in brackets", excerpt(text))]
    BadHost {
        /// Octets in front of the host in the text.
        position: usize,
        /// The text found there.
        text: String,
    },
    /// A port that is not a number from 0 to 65,535.
    #[error("`{}` at position {position} is not a port number", excerpt(text))]
    BadPort {
        /// Octets in front of the port in the text.
        position: usize,
        /// The text found there.
        text: String,
    },
    /// `rir:` with an address or beside other addresses (7.6.10.2).
    #[error("`rir:` at position {0} must stand alone")]
    RirNotAlone(usize),
    /// A `%` that two hexadecimal digits do not follow.
    #[error("`%` at position {0} must be followed by two hexadecimal digits")]
    BadEscape(usize),
    /// A reference without an address for an IIOP profile.
    #[error("`{}` has no address for an IIOP profile: `corbaloc:` names addresses of `iiop` and `ssliop`{}", excerpt(.0), without_colon("corbaloc:", .0))]
    NoProfile(String),
}
spandrel_error::debug_as_report!(ReferenceError);

/// `; did you mean …?` with this start, for an address that would be one of IIOP with the colon in front that stands for
/// its protocol, such as `host` or `host:2809`.
fn without_colon(start: &str, text: &str) -> String {
    let address = text.strip_prefix(start).unwrap_or(text);
    let (host, port) = match address.split_once(':') {
        Some((host, rest)) => (host, rest.split(['/', ',']).next()),
        None => (address, None),
    };
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let is_host = !host.is_empty() && host.chars().all(is_letter);
    if !is_host || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return String::new();
    }
    format!("; did you mean `{start}:{}`?", excerpt(address))
}

/// Characters of a text with an unknown scheme that its error shows.
const SHOWN_CHARACTERS: usize = 16;

impl ReferenceError {
    pub(crate) fn unknown_scheme(text: &str) -> Self {
        let mut shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self::UnknownScheme(shown)
    }
}
