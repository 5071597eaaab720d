//! Target of a request: an object key, a profile, or a whole reference (CORBA 3.3 Part 2, 9.4.2.1,
//! `TargetAddress`).

use std::{borrow::Cow, fmt};

use spandrel_cdr::{CdrError, Decode, Decoder, Encoder, GiopVersion, Ior, TaggedProfile};

use crate::{ior::write_ior, profile};

const KEY_ADDR: i16 = 0;
const PROFILE_ADDR: i16 = 1;
const REFERENCE_ADDR: i16 = 2;

const UNKNOWN_DISPOSITION: CdrError = CdrError::Malformed("an addressing disposition other than 0, 1 or 2");

/// The form of a request's target (`AddressingDisposition`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum AddressingDisposition {
    /// By the object key.
    #[default]
    Key = KEY_ADDR,
    /// By the profile that the client chose.
    Profile = PROFILE_ADDR,
    /// The whole reference, and the index of the profile that the client chose.
    Reference = REFERENCE_ADDR,
}

impl AddressingDisposition {
    /// Decodes the body of a reply with status NEEDS_ADDRESSING_MODE or LOC_NEEDS_ADDRESSING_MODE.
    ///
    /// # Errors
    /// [`CdrError::Truncated`]; [`CdrError::Malformed`] for a number other than 0, 1 or 2.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        match input.i16()? {
            KEY_ADDR => Ok(Self::Key),
            PROFILE_ADDR => Ok(Self::Profile),
            REFERENCE_ADDR => Ok(Self::Reference),
            _ => Err(UNKNOWN_DISPOSITION),
        }
    }

    /// Encodes the body of such a reply.
    pub fn encode(self, out: &mut Encoder<'_>) {
        out.i16(self as i16);
    }
}

impl fmt::Display for AddressingDisposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "object key",
            Self::Profile => "profile",
            Self::Reference => "reference",
        })
    }
}

/// The target of a request. Before GIOP 1.2 only a key can be encoded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Target<'m> {
    /// The object key alone.
    Key(&'m [u8]),
    /// The profile that the client chose.
    Profile(TaggedProfile),
    /// The whole reference, with the profile that the client chose (`ReferenceAddr`).
    Reference {
        /// The reference with all its profiles.
        ior: Ior,
        /// The index of the profile that the client chose.
        selected: u32,
    },
}

impl<'m> Target<'m> {
    /// The target with more than the object key, if required: the profile at `index` of the reference, or the
    /// whole reference.
    #[must_use]
    pub fn by(addressing: AddressingDisposition, ior: &Ior, index: usize) -> Option<Target<'static>> {
        match addressing {
            AddressingDisposition::Key => None,
            AddressingDisposition::Profile => ior.profiles.get(index).cloned().map(Target::Profile),
            AddressingDisposition::Reference => {
                let selected = u32::try_from(index).ok()?;
                Some(Target::Reference { ior: ior.clone(), selected })
            }
        }
    }

    /// The object key: as sent, or from the IIOP profile. `None` if there is no such profile or it is
    /// malformed.
    #[inline]
    #[must_use]
    pub fn object_key(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Key(key) => Some(Cow::Borrowed(key)),
            _ => self.profile_key().map(Cow::Borrowed),
        }
    }

    /// The object key of the profile that the client chose, if the client sent a profile.
    #[cold]
    fn profile_key(&self) -> Option<&[u8]> {
        match self {
            Self::Key(_) => None,
            Self::Profile(profile) => profile::object_key(profile),
            Self::Reference { ior, selected } => profile::object_key(ior.profiles.get(*selected as usize)?),
        }
    }

    #[inline]
    pub(crate) fn decode(input: &mut Decoder<'m>) -> Result<Self, CdrError> {
        if input.wire().version < GiopVersion::V1_2 {
            return input.octet_sequence().map(Self::Key);
        }
        match input.i16()? {
            KEY_ADDR => input.octet_sequence().map(Self::Key),
            disposition => Self::decode_profile(input, disposition),
        }
    }

    /// Decodes a target with more than the key.
    #[cold]
    fn decode_profile(input: &mut Decoder<'m>, disposition: i16) -> Result<Self, CdrError> {
        match disposition {
            PROFILE_ADDR => TaggedProfile::decode(input).map(Self::Profile),
            REFERENCE_ADDR => Ok(Self::Reference { selected: input.u32()?, ior: Ior::decode(input)? }),
            _ => Err(UNKNOWN_DISPOSITION),
        }
    }

    pub(crate) fn encode(&self, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        if out.wire().version < GiopVersion::V1_2 {
            let key = self.object_key().ok_or(CdrError::Malformed("a target without an object key before GIOP 1.2"))?;
            return out.octet_sequence(&key);
        }
        match self {
            Self::Key(key) => {
                out.i16(KEY_ADDR);
                out.octet_sequence(key)
            }
            Self::Profile(profile) => {
                out.i16(PROFILE_ADDR);
                out.u32(profile.tag);
                out.octet_sequence(&profile.data)
            }
            Self::Reference { ior, selected } => {
                out.i16(REFERENCE_ADDR);
                out.u32(*selected);
                write_ior(ior, out)
            }
        }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => f.write_str("key ")?,
            Self::Profile(profile) => write!(f, "profile {} with key ", profile.tag)?,
            Self::Reference { ior, selected } => write!(f, "profile {selected} of {:?} with key ", ior.type_id)?,
        }
        match self.object_key() {
            Some(key) => write!(f, "\"{}\"", key.escape_ascii()),
            None => f.write_str("unknown"),
        }
    }
}
