//! Random types with generated code for each marshaling engine, and the outcome of the engines for given
//! octets.
//!
//! The build script generates and compiles the IDL. Here a type is reduced to operations that do not depend
//! on its Rust form: octets are decoded and encoded again. The tests generate the values and the expected
//! octets.
#![forbid(unsafe_code)]

use std::fmt::Debug;

use spandrel::Orb;
use spandrel_cdr::{Any, Decode, Decoder, Encode, Encoder, Joint, TypeCode, Typed, Wire, walk};

/// The octet before a value.
pub const FILLER: u8 = 0xee;

macro_rules! variants {
    ($($engine:ident)*) => {$(
        #[allow(missing_docs, missing_debug_implementations, unreachable_pub, dead_code, reason = "generated from random types")]
        mod $engine {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($engine), "/random.rs"));
        }
    )*};
}

variants!(compiled interpretive adaptive padded mixed);

/// A randomly generated IDL type, with the forms of its code under test.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its scoped name in IDL.
    pub name: &'static str,
    /// The generated code.
    pub variants: [Variant; 5],
}

/// Encoded octets, and the end of the value in the input; `None` if decoding failed.
pub type Outcome = Option<(Vec<u8>, usize)>;

/// Octets with a value at `start`.
#[derive(Clone, Copy, Debug)]
pub struct Input<'o> {
    /// The message; alignment counts from its first octet.
    pub octets: &'o [u8],
    /// The offset of the value.
    pub start: usize,
    /// The byte order, version and code sets.
    pub wire: Wire,
    /// The ORB that creates references.
    pub orb: &'o Orb,
    /// The positions at which the fragments of a GIOP 1.1 message were joined.
    pub joints: &'o [Joint],
}

/// The generated code of one engine for a type.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The engine.
    pub engine: &'static str,
    /// The type code in the generated code.
    pub type_code: fn() -> TypeCode,
    /// Decodes a value and encodes it at the same offset.
    pub reencode: fn(Input<'_>) -> Outcome,
    /// Decodes a sequence of the type in borrowed form, as servants receive it, and encodes it at the same
    /// offset.
    pub reencode_borrowed: fn(Input<'_>) -> Outcome,
    /// Decodes a value, inserts it into an `any`, extracts it, and encodes it at the same offset.
    pub through_any: fn(Input<'_>) -> Outcome,
}

impl Variant {
    fn new<T: Encode + Decode + Typed + Debug>(engine: &'static str, type_code: fn() -> TypeCode) -> Self {
        Self {
            engine,
            type_code,
            reencode: reencode::<T>,
            reencode_borrowed: reencode_borrowed::<T>,
            through_any: through_any::<T>,
        }
    }
}

/// All random types.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    Vec::from(include!(concat!(env!("OUT_DIR"), "/subjects.rs")))
}

fn reencode<T: Encode + Decode>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let value = T::decode(&mut from).ok()?;
    Some((input.encode(&value)?, from.position()))
}

fn reencode_borrowed<T: Encode + Decode>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let values = T::lend(&mut from).ok()?;
    Some((input.encode(&*values)?, from.position()))
}

fn through_any<T: Encode + Decode + Typed>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let value = T::decode(&mut from).ok()?;
    let any = Any::new(&value).ok()?;
    // At another offset, so that the any encodes the value again.
    let sent = input.encode(&any)?;
    let received = Any::decode(&mut Input { octets: &sent, joints: &[], ..input }.decoder()).ok()?;
    let value: T = received.extract().ok()?;
    Some((input.encode(&value)?, from.position()))
}

impl<'o> Input<'o> {
    /// Octets of a message without fragments.
    #[must_use]
    pub fn new(octets: &'o [u8], start: usize, wire: Wire, orb: &'o Orb) -> Self {
        Self { octets, start, wire, orb, joints: &[] }
    }

    /// A decoder at the value.
    #[must_use]
    pub fn decoder(&self) -> Decoder<'o> {
        let from = Decoder::new(self.octets, self.wire).with_binder(self.orb);
        if self.joints.is_empty() { from.at(self.start) } else { from.with_joints(self.joints).at(self.start) }
    }

    /// The octets of an any's value at the same offset, copied by the walker.
    #[must_use]
    pub fn copy(&self, any: &Any) -> Option<Vec<u8>> {
        let mut out = Encoder::new(self.wire);
        out.octets(&[FILLER; 16][..self.start]);
        walk::copy(any.type_code(), &mut any.value(), &mut out).ok()?;
        Some(out.to_vec())
    }

    /// The octets of a value at the same offset.
    pub fn encode<T: Encode + ?Sized>(&self, value: &T) -> Option<Vec<u8>> {
        let mut out = Encoder::new(self.wire);
        out.octets(&[FILLER; 16][..self.start]);
        value.encode(&mut out).ok()?;
        Some(out.to_vec())
    }
}
