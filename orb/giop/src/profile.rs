//! IIOP profiles: the part of a reference with the address and key of an object.
//!
//! A profile is plain data; this module decodes, encodes and prints it. Connections belong to
//! `spandrel-orb`.
//!
//! Layout, inside a CDR encapsulation (CORBA 3.3 Part 2, 9.7.2):
//! `octet major, minor | string host | ushort port | octets object_key | components (1.1 and later)`

use std::fmt;

use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Encoder, GiopVersion, TaggedComponent, TaggedProfile, Wire};
use spandrel_error::excerpt;

use crate::{
    GiopError,
    component::{ComponentDisplay, TAG_COMPLETE_OBJECT_KEY},
};

/// The tag of a profile with the TCP address and the key of an object (IIOP).
pub const TAG_INTERNET_IOP: u32 = 0;
/// The tag of a profile that consists of components only.
pub const TAG_MULTIPLE_COMPONENTS: u32 = 1;

/// The IIOP address and key of an object.
///
/// ```
/// # mod types { pub use spandrel_giop::*; pub use spandrel_cdr::Ior; }
/// use types::{IiopProfile, ObjectUrl}; // of spandrel
///
/// /// The addresses of a reference.
/// fn addresses(reference: &str) -> Result<Vec<(String, u16)>, Box<dyn std::error::Error>> {
///     let ior = match reference.parse()? {
///         ObjectUrl::Ior(ior) => ior,
///         ObjectUrl::Corbaloc(corbaloc) => corbaloc.to_ior()?,
///     };
///     let profiles = ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).transpose());
///     profiles.map(|profile| profile.map(|profile| (profile.host, profile.port)).map_err(Into::into)).collect()
/// }
/// assert_eq!(addresses("corbaloc::bank.example:2809/Account")?, [("bank.example".to_owned(), 2809)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct IiopProfile {
    /// The highest protocol version that the server supports there.
    pub version: GiopVersion,
    /// A host name or an IP address in its text form (IPv6 without brackets).
    pub host: String,
    /// The TCP port; 0 if only a component has the address.
    pub port: u16,
    /// The key that the server has given the object. Clients send it and do not read it.
    pub object_key: Vec<u8>,
    /// Code sets, other addresses and the like; none in IIOP 1.0.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// Decodes a profile; `None` if it is not IIOP, or of a major version other than 1.
    ///
    /// Octets after the last known member are ignored, as 9.7.2 requires for future minor versions.
    ///
    /// # Errors
    /// [`GiopError::Profile`].
    pub fn decode(profile: &TaggedProfile) -> Result<Option<Self>, GiopError> {
        let read = |cause| GiopError::Profile { what: "IIOP profile", cause };
        let Some((version, mut input)) = open(profile).map_err(read)? else { return Ok(None) };
        Self::read(version, &mut input).map(Some).map_err(read)
    }

    fn read(version: GiopVersion, input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let host = input.str()?.into_owned();
        let port = input.u16()?;
        let object_key = input.octet_sequence()?.to_vec();
        let components = if version > GiopVersion::V1_0 { Vec::decode(input)? } else { Vec::new() };
        Ok(Self { version, host, port, object_key, components })
    }

    /// Encodes the profile in this machine's byte order. Components are omitted in version 1.0.
    ///
    /// # Errors
    /// A host that cannot be encoded in CDR.
    pub fn encode(&self) -> Result<TaggedProfile, CdrError> {
        let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, self.version));
        out.octets(&[ByteOrder::NATIVE.flag(), self.version.major, self.version.minor]);
        out.short_str(&self.host)?;
        out.u16(self.port);
        out.octet_sequence(&self.object_key)?;
        if self.version > GiopVersion::V1_0 {
            out.len(self.components.len())?;
            for component in &self.components {
                out.u32(component.tag);
                out.octet_sequence(&component.data)?;
            }
        }
        Ok(TaggedProfile { tag: TAG_INTERNET_IOP, data: out.to_vec() })
    }

    /// The content of the first component with this tag.
    #[must_use]
    pub fn component(&self, tag: u32) -> Option<&[u8]> {
        self.components.iter().find(|component| component.tag == tag).map(|component| component.data.as_slice())
    }
}

/// The version, and a decoder at the host, if the profile is IIOP 1.x.
fn open(profile: &TaggedProfile) -> Result<Option<(GiopVersion, Decoder<'_>)>, CdrError> {
    if profile.tag != TAG_INTERNET_IOP {
        return Ok(None);
    }
    let mut input = Decoder::of_encapsulation(&profile.data, Wire::new(ByteOrder::Big, GiopVersion::V1_0))?;
    let version = GiopVersion { major: input.u8()?, minor: input.u8()? };
    Ok((version.major == 1).then_some((version, input)))
}

/// The object key of an IIOP profile, found without decoding the rest, or that of a profile that consists of
/// components only.
pub(crate) fn object_key(profile: &TaggedProfile) -> Option<&[u8]> {
    if profile.tag == TAG_MULTIPLE_COMPONENTS {
        return complete_key(&profile.data).ok()?;
    }
    let (_, mut input) = open(profile).ok()??;
    input.latin1().ok()?;
    input.u16().ok()?;
    input.octet_sequence().ok()
}

/// The content of TAG_COMPLETE_OBJECT_KEY: the octets of the key.
fn complete_key(components: &[u8]) -> Result<Option<&[u8]>, CdrError> {
    let mut input = Decoder::of_encapsulation(components, Wire::new(ByteOrder::Big, GiopVersion::V1_1))?;
    for _ in 0..input.sequence_len(8)? {
        let (tag, data) = (input.u32()?, input.octet_sequence()?);
        if tag == TAG_COMPLETE_OBJECT_KEY {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

impl fmt::Display for IiopProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = excerpt(&self.host);
        let host = if self.host.contains(':') { format!("[{host}]") } else { host.to_string() };
        write!(f, "IIOP {} {host}:{} key \"{}\"", self.version, self.port, self.object_key.escape_ascii())?;
        self.components.iter().try_for_each(|component| write!(f, ", {}", ComponentDisplay(component)))
    }
}
