//! Tagged components with a known meaning (CORBA 3.3 Part 2, 7.6.6): ORB type, code sets, other addresses.

use std::fmt;

use spandrel_cdr::{
    ByteOrder, CdrError, CharSet, Decode, Decoder, Encoder, GiopVersion, TaggedComponent, WcharSet, Wire,
};
use spandrel_error::excerpt;

use crate::{
    GiopError, ids,
    local_address::{LocalAddress, TAG_OMNIORB_UNIX_TRANS, UnixTransport},
};

/// The type of the ORB that made the reference.
pub const TAG_ORB_TYPE: u32 = 0;
/// The code sets that the server knows.
pub const TAG_CODE_SETS: u32 = 1;
/// Policies that travel with the reference.
pub const TAG_POLICIES: u32 = 2;
/// One more address of the same server.
pub const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;
/// A port for TLS.
pub const TAG_SSL_SEC_TRANS: u32 = 20;

/// The whole key of the object, for profiles that consist of components only.
pub const TAG_COMPLETE_OBJECT_KEY: u32 = 5;

/// The native code set of a server and its conversion code sets.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct CodeSets {
    /// OSF code set registry number of the native code set.
    pub native: u32,
    /// Registry numbers of the conversion code sets.
    pub conversion: Vec<u32>,
}

impl CodeSets {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { native: input.u32()?, conversion: Vec::decode(input)? })
    }
}

/// The server's port for TLS, at the host of the profile (CORBA Security Service 1.8, `SSLIOP::SSL`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SslSecTrans {
    /// The supported options: a sum of the constants here and others of `Security::AssociationOptions`.
    pub supports: u16,
    /// The options that a client must use, of the same constants.
    pub requires: u16,
    /// The TCP port for TLS connections.
    pub port: u16,
}

impl SslSecTrans {
    /// Messages may go unprotected.
    pub const NO_PROTECTION: u16 = 1;
    /// Integrity, confidentiality, and detection of replay and misordering.
    pub const PROTECTED: u16 = 2 | 4 | 8 | 16;
    /// The server authenticates itself.
    pub const ESTABLISH_TRUST_IN_TARGET: u16 = 32;
    /// The client authenticates itself.
    pub const ESTABLISH_TRUST_IN_CLIENT: u16 = 64;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { supports: input.u16()?, requires: input.u16()?, port: input.u16()? })
    }
}

impl fmt::Display for SslSecTrans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS at port {}", self.port)?;
        let knows_client = |options: u16| options & Self::ESTABLISH_TRUST_IN_CLIENT != 0;
        match (knows_client(self.requires), knows_client(self.supports)) {
            (true, _) => f.write_str(", clients must authenticate"),
            (false, true) => f.write_str(", clients may authenticate"),
            (false, false) => Ok(()),
        }
    }
}

/// A component whose content has been read.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Component {
    /// The type of the ORB that made the reference, by its registered number.
    OrbType(u32),
    /// The code sets that the server knows.
    CodeSets {
        /// For `char` and `string`.
        char_data: CodeSets,
        /// For `wchar` and `wstring`.
        wchar_data: CodeSets,
    },
    /// One more address of the same server.
    AlternateIiopAddress {
        /// A host name or address.
        host: String,
        /// The TCP port of the other address.
        port: u16,
    },
    /// The server's port for TLS.
    SslSecTrans(SslSecTrans),
    /// Policies of the object that concern its clients (CORBA 3.3 Part 1, 17.3).
    Policies(Vec<PolicyValue>),
    /// TAG_COMPLETE_OBJECT_KEY: the object key, for profiles without a field for it.
    CompleteObjectKey(Vec<u8>),
}

/// A policy as it travels in a reference (`Messaging::PolicyValue`).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PolicyValue {
    /// The number of the policy's type, from the OMG's registry (`CORBA::PolicyType`).
    pub policy_type: u32,
    /// The value, in the form of its type; most often an encapsulation.
    pub data: Vec<u8>,
}

impl Component {
    /// Decodes a component; `None` if its tag has no typed form here.
    ///
    /// # Errors
    /// [`GiopError::Profile`].
    pub fn decode(component: &TaggedComponent) -> Result<Option<Self>, GiopError> {
        let read = match component.tag {
            // The octets are the key itself.
            TAG_COMPLETE_OBJECT_KEY => return Ok(Some(Self::CompleteObjectKey(component.data.clone()))),
            TAG_POLICIES => Self::policies,
            TAG_ORB_TYPE => Self::orb_type,
            TAG_CODE_SETS => Self::code_sets,
            TAG_ALTERNATE_IIOP_ADDRESS => Self::alternate_address,
            TAG_SSL_SEC_TRANS => Self::ssl_sec_trans,
            _ => return Ok(None),
        };
        let name = tag_name(component.tag).unwrap_or("tagged component");
        Decoder::of_encapsulation(&component.data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))
            .and_then(|mut input| read(&mut input))
            .map(Some)
            // Malformed policies are ignored: the reference can be called without them.
            .or_else(|cause| if component.tag == TAG_POLICIES { Ok(None) } else { Err(cause) })
            .map_err(|cause| GiopError::Profile { what: name, cause })
    }

    /// Reads the number of the ORB that made the reference; `None` for another component.
    ///
    /// # Errors
    /// [`GiopError::Profile`] for malformed content.
    pub fn read_orb_type(component: &TaggedComponent) -> Result<Option<u32>, GiopError> {
        read(component, TAG_ORB_TYPE, |input| input.u32())
    }

    /// Reads the server's code sets for `char` and `wchar`; `None` for another component.
    ///
    /// # Errors
    /// [`GiopError::Profile`] for malformed content.
    pub fn read_code_sets(component: &TaggedComponent) -> Result<Option<(CodeSets, CodeSets)>, GiopError> {
        read(component, TAG_CODE_SETS, |input| Ok((CodeSets::decode(input)?, CodeSets::decode(input)?)))
    }

    /// Reads the host and port of another address of the server; `None` for another component.
    ///
    /// # Errors
    /// [`GiopError::Profile`] for malformed content.
    pub fn read_alternate_address(component: &TaggedComponent) -> Result<Option<(String, u16)>, GiopError> {
        read(component, TAG_ALTERNATE_IIOP_ADDRESS, |input| Ok((input.str()?.into_owned(), input.u16()?)))
    }

    fn orb_type(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.u32().map(Self::OrbType)
    }

    fn code_sets(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self::CodeSets { char_data: CodeSets::decode(input)?, wchar_data: CodeSets::decode(input)? })
    }

    fn policies(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let len = input.sequence_len(8)?;
        let one = |input: &mut Decoder<'_>| {
            Ok(PolicyValue { policy_type: input.u32()?, data: input.octet_sequence()?.to_vec() })
        };
        (0..len).map(|_| one(input)).collect::<Result<_, _>>().map(Self::Policies)
    }

    fn ssl_sec_trans(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        SslSecTrans::decode(input).map(Self::SslSecTrans)
    }

    fn alternate_address(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self::AlternateIiopAddress { host: input.str()?.into_owned(), port: input.u16()? })
    }

    /// Writes the component in this machine's byte order.
    ///
    /// # Errors
    /// A host that cannot be encoded in CDR.
    pub fn encode(&self) -> Result<TaggedComponent, CdrError> {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_0));
        out.u8(ByteOrder::NATIVE.flag());
        let tag = match self {
            Self::OrbType(orb) => {
                out.u32(*orb);
                TAG_ORB_TYPE
            }
            Self::CodeSets { char_data, wchar_data } => {
                for sets in [char_data, wchar_data] {
                    out.u32(sets.native);
                    out.len(sets.conversion.len())?;
                    sets.conversion.iter().for_each(|set| out.u32(*set));
                }
                TAG_CODE_SETS
            }
            Self::AlternateIiopAddress { host, port } => {
                out.short_str(host)?;
                out.u16(*port);
                TAG_ALTERNATE_IIOP_ADDRESS
            }
            Self::Policies(policies) => {
                out.len(policies.len())?;
                for policy in policies {
                    out.u32(policy.policy_type);
                    out.octet_sequence(&policy.data)?;
                }
                TAG_POLICIES
            }
            Self::CompleteObjectKey(key) => {
                return Ok(TaggedComponent { tag: TAG_COMPLETE_OBJECT_KEY, data: key.clone() });
            }
            Self::SslSecTrans(ssl) => {
                [ssl.supports, ssl.requires, ssl.port].into_iter().for_each(|number| out.u16(number));
                TAG_SSL_SEC_TRANS
            }
        };
        Ok(TaggedComponent { tag, data: out.to_vec() })
    }
}

/// Decodes a component with this tag; `None` for another tag.
fn read<T>(
    component: &TaggedComponent,
    tag: u32,
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, CdrError>,
) -> Result<Option<T>, GiopError> {
    if component.tag != tag {
        return Ok(None);
    }
    let opened = Decoder::of_encapsulation(&component.data, Wire::new(ByteOrder::Big, GiopVersion::V1_0));
    let content = opened.and_then(|mut input| read(&mut input));
    content.map(Some).map_err(|cause| GiopError::Profile { what: tag_name(tag).unwrap_or("tagged component"), cause })
}

/// The name of a component's tag: the standard's (CORBA 3.3 Part 2, 7.6.6.1 and its registry), Spandrel's or
/// omniORB's.
#[must_use]
pub fn tag_name(tag: u32) -> Option<&'static str> {
    Some(match tag {
        TAG_ORB_TYPE => "TAG_ORB_TYPE",
        TAG_CODE_SETS => "TAG_CODE_SETS",
        TAG_POLICIES => "TAG_POLICIES",
        TAG_ALTERNATE_IIOP_ADDRESS => "TAG_ALTERNATE_IIOP_ADDRESS",
        TAG_COMPLETE_OBJECT_KEY => "TAG_COMPLETE_OBJECT_KEY",
        6 => "TAG_ENDPOINT_ID_POSITION",
        12 => "TAG_LOCATION_POLICY",
        13 => "TAG_ASSOCIATION_OPTIONS",
        14 => "TAG_SEC_NAME",
        TAG_SSL_SEC_TRANS => "TAG_SSL_SEC_TRANS",
        22 => "TAG_GENERIC_SEC_MECH",
        25 => "TAG_JAVA_CODEBASE",
        33 => "TAG_CSI_SEC_MECH_LIST",
        34 => "TAG_NULL_TAG",
        36 => "TAG_TLS_SEC_TRANS",
        ids::TAG_OPERATION_INDEX => "TAG_OPERATION_INDEX",
        0x4154_5401 => "TAG_OMNIORB_BIDIR",
        ids::TAG_LOCAL_ADDRESS => "TAG_LOCAL_ADDRESS",
        ids::TAG_DATAGRAM_ADDRESS => "TAG_DATAGRAM_ADDRESS",
        TAG_OMNIORB_UNIX_TRANS => "TAG_OMNIORB_UNIX_TRANS",
        0x4154_5403 => "TAG_OMNIORB_PERSISTENT_ID",
        0x4154_5404 => "TAG_OMNIORB_RESTRICTED_CONNECTION",
        _ => return None,
    })
}

/// The name of an ORB in `TAG_ORB_TYPE`, if known.
#[must_use]
pub fn orb_type_name(orb_type: u32) -> Option<&'static str> {
    Some(match orb_type {
        ids::ORB_TYPE => "Spandrel",
        0x4154_5400 => "omniORB",
        0x5441_4f00 => "TAO",
        0x4a41_4300 => "JacORB",
        _ => return None,
    })
}

/// The name of a code set in the OSF registry, if known here.
#[must_use]
pub fn code_set_name(code_set: u32) -> Option<&'static str> {
    let wide = WcharSet::from_number(code_set).filter(|set| *set != WcharSet::Unknown);
    CharSet::from_number(code_set).map(CharSet::name).or_else(|| wide.map(WcharSet::name))
}

/// Prints a code set: its name, if known, and its number.
#[derive(Clone, Copy, Debug)]
pub struct CodeSetName(
    /// The number in the OSF registry.
    pub u32,
);

impl fmt::Display for CodeSetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match code_set_name(self.0) {
            Some(name) => write!(f, "{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Display for CodeSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut write_set = |prefix: &str, set: u32| match code_set_name(set) {
            Some(name) => write!(f, "{prefix}{name}"),
            None => write!(f, "{prefix}{set:#010x}"),
        };
        write_set("", self.native)?;
        self.conversion.iter().try_for_each(|set| write_set(" or ", *set))
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrbType(orb) => match orb_type_name(*orb) {
                Some(name) => write!(f, "ORB type {name}"),
                None => write!(f, "ORB type {orb:#010x}"),
            },
            Self::CodeSets { char_data, wchar_data } => write!(f, "code sets char {char_data}; wchar {wchar_data}"),
            Self::Policies(policies) => {
                f.write_str("policies of types")?;
                policies.iter().try_for_each(|policy| write!(f, " {}", policy.policy_type))
            }
            Self::CompleteObjectKey(key) => write!(f, "key \"{}\"", key.escape_ascii()),
            Self::AlternateIiopAddress { host, port } if host.contains(':') => {
                write!(f, "also at [{}]:{port}", excerpt(host))
            }
            Self::AlternateIiopAddress { host, port } => write!(f, "also at {}:{port}", excerpt(host)),
            Self::SslSecTrans(ssl) => write!(f, "{ssl}"),
        }
    }
}

/// Prints any component: its content if it can be decoded, otherwise its tag and length.
#[derive(Clone, Copy, Debug)]
pub struct ComponentDisplay<'a>(pub &'a TaggedComponent);

impl fmt::Display for ComponentDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaggedComponent { tag, data } = self.0;
        if let Ok(Some(address)) = LocalAddress::decode(self.0) {
            return address.fmt(f);
        }
        if let Ok(Some(address)) = UnixTransport::decode(self.0) {
            return address.fmt(f);
        }
        match (Component::decode(self.0), tag_name(*tag)) {
            (Ok(Some(component)), _) => component.fmt(f),
            (Err(_), Some(name)) => write!(f, "malformed {name} of {} octets", data.len()),
            (_, Some(name)) => write!(f, "{name} of {} octets", data.len()),
            (_, None) => write!(f, "component {tag:#x} of {} octets", data.len()),
        }
    }
}
