//! Random types, generated anew for each marshaling engine, and what the engines make of octets.
//!
//! The build script makes the IDL and has it compiled. Here a type is what can be tried with it whatever its Rust form is:
//! octets are read and written again. The tests make the values, and know what the octets should be.
#![forbid(unsafe_code)]

use std::fmt::Debug;

use spandrel::Orb;
use spandrel_cdr::{Any, Decode, Decoder, Encode, Encoder, Joint, TypeCode, Typed, Wire, walk};

/// What fills the place before a value.
pub const FILLER: u8 = 0xee;

macro_rules! contenders {
    ($($engine:ident)*) => {$(
        #[allow(missing_docs, missing_debug_implementations, unreachable_pub, dead_code, reason = "random types say nothing")]
        mod $engine {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($engine), "/random.rs"));
        }
    )*};
}

contenders!(compiled interpretive adaptive padded mixed);

/// A random type.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its scoped name in IDL.
    pub name: &'static str,
    /// What was generated for it.
    pub contenders: [Contender; 5],
}

/// Octets, and where in the input the value ended; `None` if they were refused.
pub type Outcome = Option<(Vec<u8>, usize)>;

/// Octets with a value at `start`.
#[derive(Clone, Copy, Debug)]
pub struct Input<'o> {
    /// Alignment counts from the first one.
    pub octets: &'o [u8],
    /// Where the value begins.
    pub start: usize,
    /// How they are read, and written again.
    pub wire: Wire,
    /// Who makes references.
    pub orb: &'o Orb,
    /// Where the fragments of a GIOP 1.1 message were joined.
    pub joints: &'o [Joint],
}

/// The Rust code that one engine has for a type.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// The engine.
    pub engine: &'static str,
    /// The type code in generated code.
    pub type_code: fn() -> TypeCode,
    /// Reads a value and writes it in the same place.
    pub recode: fn(Input<'_>) -> Outcome,
    /// Reads a sequence of the type as servants are lent it, and writes it in the same place.
    pub relend: fn(Input<'_>) -> Outcome,
    /// Reads a value, puts it into an `any`, takes it out of it, and writes it in the same place.
    pub through_any: fn(Input<'_>) -> Outcome,
}

impl Contender {
    fn new<T: Encode + Decode + Typed + Debug>(engine: &'static str, type_code: fn() -> TypeCode) -> Self {
        Self { engine, type_code, recode: recode::<T>, relend: relend::<T>, through_any: through_any::<T> }
    }
}

/// All of them.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    Vec::from(include!(concat!(env!("OUT_DIR"), "/subjects.rs")))
}

fn recode<T: Encode + Decode>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let value = T::decode(&mut from).ok()?;
    Some((input.written(&value)?, from.position()))
}

fn relend<T: Encode + Decode>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let values = T::lend(&mut from).ok()?;
    Some((input.written(&*values)?, from.position()))
}

fn through_any<T: Encode + Decode + Typed>(input: Input<'_>) -> Outcome {
    let mut from = input.decoder();
    let value = T::decode(&mut from).ok()?;
    let any = Any::new(&value).ok()?;
    // Behind something, in the other order: the any has to write it anew.
    let sent = input.written(&any)?;
    let received = Any::decode(&mut Input { octets: &sent, joints: &[], ..input }.decoder()).ok()?;
    let value: T = received.extract().ok()?;
    Some((input.written(&value)?, from.position()))
}

impl<'o> Input<'o> {
    /// Octets that came in one piece.
    #[must_use]
    pub fn new(octets: &'o [u8], start: usize, wire: Wire, orb: &'o Orb) -> Self {
        Self { octets, start, wire, orb, joints: &[] }
    }

    /// At the value.
    #[must_use]
    pub fn decoder(&self) -> Decoder<'o> {
        let from = Decoder::new(self.octets, self.wire).with_binder(self.orb);
        if self.joints.is_empty() { from.at(self.start) } else { from.with_joints(self.joints).at(self.start) }
    }

    /// The octets of an any's value in the same place, by the walker.
    #[must_use]
    pub fn copied(&self, any: &Any) -> Option<Vec<u8>> {
        let mut out = Encoder::new(self.wire);
        out.octets(&[FILLER; 16][..self.start]);
        walk::copy(any.type_code(), &mut any.value(), &mut out).ok()?;
        Some(out.to_vec())
    }

    /// The octets of a value in the same place.
    pub fn written<T: Encode + ?Sized>(&self, value: &T) -> Option<Vec<u8>> {
        let mut out = Encoder::new(self.wire);
        out.octets(&[FILLER; 16][..self.start]);
        value.encode(&mut out).ok()?;
        Some(out.to_vec())
    }
}
