//! A type with both engines switches from one to the other. A test program of its own, because the limit is
//! global.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};

use spandrel_cdr::{
    CdrError, Decode, Decoder, Encode, Encoder, Wire,
    engine::{Adaptive, Compiled},
    interpret, switch_after,
};

static COMPILED_USES: AtomicU32 = AtomicU32::new(0);

macro_rules! point {
    ($name:ident) => {
        #[derive(Clone, Debug, PartialEq)]
        #[repr(C)]
        struct $name {
            x: i16,
            y: f64,
        }

        impl Compiled for $name {
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                COMPILED_USES.fetch_add(1, Ordering::Relaxed);
                out.i16(self.x);
                out.f64(self.y);
                Ok(())
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                COMPILED_USES.fetch_add(1, Ordering::Relaxed);
                Ok(Self { x: input.i16()?, y: input.f64()? })
            }
        }
        interpret!(adaptive struct $name { x: i16, y: f64 });
    };
}

point!(Often);
point!(Seldom);

/// Encodes and decodes one value and one sequence: four uses.
fn use_four_times<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: T) {
    let values = vec![value.clone(); 3];
    let mut out = Encoder::new(Wire::default());
    value.encode(&mut out).unwrap();
    values.encode(&mut out).unwrap();
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, Wire::default());
    assert_eq!(T::decode(&mut input).unwrap(), value);
    assert_eq!(Vec::<T>::decode(&mut input).unwrap(), values);
    let mut reference = Encoder::new(Wire::default());
    for nth in 0..4 {
        if nth == 1 {
            reference.u32(3);
        }
        reference.i16(1);
        reference.f64(2.5);
    }
    assert_eq!(octets, reference.to_vec());
}

#[test]
fn a_type_switches_to_compiled_code_after_the_limit_of_uses() {
    switch_after(8);
    for _ in 0..2 {
        use_four_times(Often { x: 1, y: 2.5 });
        assert!(!Often::switch().is_compiled());
    }
    assert_eq!(COMPILED_USES.load(Ordering::Relaxed), 0);
    use_four_times(Often { x: 1, y: 2.5 });
    assert!(Often::switch().is_compiled());
    // The first use only created the switch: three values, one, three.
    assert_eq!(COMPILED_USES.load(Ordering::Relaxed), 7);
    assert!(!Seldom::switch().is_compiled(), "each type has its own count");

    switch_after(0);
    use_four_times(Seldom { x: 1, y: 2.5 });
    assert!(Seldom::switch().is_compiled());
}
