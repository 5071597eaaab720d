//! Interoperable object references as plain values (CORBA 3.3 Part 2, 7.6.2).
//!
//! What a profile says belongs to `spandrel-giop`, and what a reference can do to `spandrel-orb`, which binds one as it
//! is decoded through [`Binder`]: there is no global ORB to ask.

use std::{any::Any, sync::Arc};

use crate::{CdrError, Decode, Decoder, Encode, Encoder, TypeCode, ValueFactory};

/// An object reference: what type the object was said to have, and where it may be reached. Nil has neither.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Ior {
    /// The repository id of the most derived interface known to whoever made the reference; may be empty.
    pub type_id: String,
    /// The ways to reach the object, in order of preference.
    pub profiles: Vec<TaggedProfile>,
}

impl Ior {
    /// True for the reference to no object.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty() && self.type_id.is_empty()
    }
}

/// One way to reach an object: a protocol's tag and an encapsulation that only this protocol reads.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedProfile {
    /// The protocol's profile id: 0 is IIOP, 1 is multiple components.
    pub tag: u32,
    /// The encapsulation's octets.
    pub data: Vec<u8>,
}

/// A named piece of a profile: policies, code sets, other addresses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct TaggedComponent {
    /// The component's id.
    pub tag: u32,
    /// Its octets, most often an encapsulation.
    pub data: Vec<u8>,
}

/// Makes live references from plain ones; implemented by the ORB.
pub trait Binder: Send + Sync {
    /// A reference that can be invoked, in the form that the ORB's reference type downcasts.
    ///
    /// # Errors
    /// A reference that this ORB cannot use at all.
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError>;

    /// The same binder, to be kept by what is decoded later than the message: an [`Any`](crate::Any).
    fn share(&self) -> Arc<dyn Binder>;

    /// What is registered to make received values of the type with this id.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        let _ = repository_id;
        None
    }

    /// The type code of the value type with this id, where it is known. A value of a type that its position does not declare is read
    /// by it where there is no Rust type: within an [`Any`](crate::Any).
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }
}

/// A live reference, as generated code holds one; nil is `Option::None` of it.
pub trait Reference {
    /// The plain form, which goes on the wire.
    fn ior(&self) -> &Ior;
}

/// A [`Reference`] that can be made from what a [`Binder`] returns.
pub trait FromBound: Reference + Clone {
    /// The typed form of a bound reference.
    ///
    /// # Errors
    /// [`CdrError::Unbound`] if another ORB's binder made it.
    fn from_bound(bound: Arc<dyn Any + Send + Sync>) -> Result<Self, CdrError>;
}

impl<R: Reference + ?Sized> Reference for &R {
    fn ior(&self) -> &Ior {
        (**self).ior()
    }
}

impl<R: Reference> Encode for Option<R> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode_reference(self.as_ref().map(Reference::ior), out)
    }
}

/// One for all references.
fn encode_reference<'a>(ior: Option<&'a Ior>, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    match ior {
        Some(ior) => ior.encode(out),
        None => {
            out.short_str("")?;
            out.len(0)
        }
    }
}

impl<R: FromBound> Decode for Option<R> {
    const MIN_OCTETS: usize = Ior::MIN_OCTETS;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        decode_reference(input)?.map(R::from_bound).transpose()
    }
}

/// One for all references.
fn decode_reference(input: &mut Decoder<'_>) -> Result<Option<Arc<dyn Any + Send + Sync>>, CdrError> {
    let ior = Ior::decode(input)?;
    if ior.is_nil() {
        return Ok(None);
    }
    input.binder().ok_or(CdrError::Unbound)?.bind(ior).map(Some)
}

impl Encode for Ior {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.str(&self.type_id)?;
        self.profiles.encode(out)
    }
}

impl Decode for Ior {
    const MIN_OCTETS: usize = 8;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { type_id: String::decode(input)?, profiles: Vec::decode(input)? })
    }
}

macro_rules! tagged {
    ($type:ty) => {
        impl Encode for $type {
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                out.u32(self.tag);
                self.data.encode(out)
            }
        }

        impl Decode for $type {
            const MIN_OCTETS: usize = 8;

            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                Ok(Self { tag: input.u32()?, data: Vec::decode(input)? })
            }
        }
    };
}

tagged!(TaggedProfile);
tagged!(TaggedComponent);
