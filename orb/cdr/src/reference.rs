//! Object references on the wire (CORBA 3.3 Part 2, 7.6.2): plain ones, live ones from a binder, and nil
//! (`None`).

use std::{any::Any, sync::Arc};

use crate::{CdrError, Decode, Decoder, Encode, Encoder, FromBound, Ior, Reference, TaggedComponent, TaggedProfile};

impl<R: Reference> Encode for Option<R> {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode_reference(self.as_ref().map(Reference::ior), out)
    }
}

/// The encoding of all references.
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

/// The decoding of all references.
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
