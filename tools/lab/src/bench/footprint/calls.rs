//! Two-way calls of appendix C's operations by each engine, and their marshaling alone.
//!
//! Client and server are two ORBs of this process with the same engine's stubs and skeletons; whatever is called gives back what it
//! was given. The engines take turns within a round.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::{Char, Orb, Poa, SystemException};
use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder, Wire};

use super::results::Call;
use super::settings::{Engine, Settings};
use crate::LabError;
use crate::placement::on_core;
use crate::progress::Progress;

/// Characters of each string.
const TEXT: &str = "a string of thirty-two characters";
/// Elements of each sequence.
const ELEMENTS: usize = 10;

/// An operation of appendix C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A primitive.
    Short,
    /// A string without bound.
    String,
    /// A struct of fixed size.
    FixedStruct,
    /// A sequence of strings.
    StrSeq,
    /// A struct of two strings and such a sequence.
    VarStruct,
    /// A struct with such a struct.
    NestedStruct,
    /// A sequence of such structs.
    StructSeq,
}

impl Operation {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 7] = [
        Self::Short,
        Self::String,
        Self::FixedStruct,
        Self::StrSeq,
        Self::VarStruct,
        Self::NestedStruct,
        Self::StructSeq,
    ];

    /// Its name in IDL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "test_short",
            Self::String => "test_unbounded_string",
            Self::FixedStruct => "test_fixed_struct",
            Self::StrSeq => "test_strseq",
            Self::VarStruct => "test_var_struct",
            Self::NestedStruct => "test_nested_struct",
            Self::StructSeq => "test_struct_sequence",
        }
    }
}

/// A client of one engine.
trait Client {
    /// Calls once.
    fn call(&self, operation: Operation) -> Result<(), SystemException>;
    /// Writes and reads what one call sends and what it gets back.
    fn marshal(&self, operation: Operation, scratch: &mut Vec<u8>) -> Result<(), CdrError>;
}

/// Has the compiler believe that somebody looks at it.
fn keep<T>(value: T) {
    _ = black_box(value);
}

/// Writes values and reads them back, as a call's two ends do.
fn pass<T: Encode + Decode>(values: &[&T], scratch: &mut Vec<u8>) -> Result<(), CdrError> {
    let mut out = Encoder::reusing(std::mem::take(scratch), Wire::default());
    for value in values {
        black_box(*value).encode(&mut out)?;
    }
    let octets = out.contiguous().ok_or(CdrError::Malformed("a long value was lent"))?;
    let mut input = Decoder::new(black_box(octets), Wire::default());
    for _ in values {
        black_box(T::decode(&mut input)?);
    }
    *scratch = out.into_scratch();
    Ok(())
}

/// The interface by one engine: the generated code, a servant, and a client.
macro_rules! engine {
    ($(#[$doc:meta])* $module:ident $path:literal) => {
        $(#[$doc])*
        mod $module {
            use super::*;

            mod idl {
                include!(concat!(env!("OUT_DIR"), $path));
            }

            use idl::param_test::{FixedStruct, NestedStruct, VarStruct};
            use idl::{ParamTest, ParamTestServant, ParamTestSkeleton};

            struct Servant;

            macro_rules! same {
                ($operation:ident $given:ty => $owned:ty) => {
                    fn $operation(&self, s1: $given, _: &mut $owned) -> Result<($owned, $owned), SystemException> {
                        Ok((s1.to_owned(), s1.to_owned()))
                    }
                };
            }

            impl ParamTestServant for Servant {
                fn test_short(&self, s1: i16, _: &mut i16) -> Result<(i16, i16), SystemException> {
                    Ok((s1, s1))
                }
                same!(test_unbounded_string &str => String);
                same!(test_fixed_struct &FixedStruct => FixedStruct);
                same!(test_strseq &[String] => Vec<String>);
                same!(test_var_struct &VarStruct => VarStruct);
                same!(test_nested_struct &NestedStruct => NestedStruct);
                same!(test_struct_sequence &[VarStruct] => Vec<VarStruct>);
            }

            pub(super) struct Caller {
                object: ParamTest,
                strings: Vec<String>,
                fixed: FixedStruct,
                var: VarStruct,
                nested: NestedStruct,
                structs: Vec<VarStruct>,
            }

            impl Caller {
                pub(super) fn new(poa: &Poa, server: &Orb, client: &Orb) -> Result<Self, SystemException> {
                    let object = poa.activate(ParamTestSkeleton::new(Arc::new(Servant)))?;
                    let object = client.string_to_object(&server.object_to_string(&object))?;
                    let strings = vec![TEXT.to_owned(); ELEMENTS];
                    let var = VarStruct { dummy1: TEXT.to_owned(), dummy2: TEXT.to_owned(), seq: strings.clone() };
                    Ok(Self {
                        object: ParamTest::narrow(&object)?,
                        strings,
                        fixed: FixedStruct { l: 1, c: Char(b'c'), s: 2, o: 3, f: 4.0, b: true, d: 5.0 },
                        nested: NestedStruct { vs: var.clone() },
                        structs: vec![var.clone(); ELEMENTS],
                        var,
                    })
                }
            }

            impl Client for Caller {
                fn call(&self, operation: Operation) -> Result<(), SystemException> {
                    match operation {
                        Operation::Short => self.object.test_short(1, &mut 2).map(keep),
                        Operation::String => {
                            let mut s2 = TEXT.to_owned();
                            self.object.test_unbounded_string(TEXT, &mut s2).map(keep)
                        }
                        Operation::FixedStruct => {
                            let mut s2 = self.fixed.clone();
                            self.object.test_fixed_struct(&self.fixed, &mut s2).map(keep)
                        }
                        Operation::StrSeq => {
                            let mut s2 = self.strings.clone();
                            self.object.test_strseq(&self.strings, &mut s2).map(keep)
                        }
                        Operation::VarStruct => {
                            let mut s2 = self.var.clone();
                            self.object.test_var_struct(&self.var, &mut s2).map(keep)
                        }
                        Operation::NestedStruct => {
                            let mut s2 = self.nested.clone();
                            self.object.test_nested_struct(&self.nested, &mut s2).map(keep)
                        }
                        Operation::StructSeq => {
                            let mut s2 = self.structs.clone();
                            self.object.test_struct_sequence(&self.structs, &mut s2).map(keep)
                        }
                    }
                }

                /// Two values go, three come back.
                fn marshal(&self, operation: Operation, scratch: &mut Vec<u8>) -> Result<(), CdrError> {
                    match operation {
                        Operation::Short => pass(&[&1i16, &2, &1, &2, &1], scratch),
                        Operation::String => {
                            let text = &self.var.dummy1;
                            pass(&[text; 5], scratch)
                        }
                        Operation::FixedStruct => pass(&[&self.fixed; 5], scratch),
                        Operation::StrSeq => pass(&[&self.strings; 5], scratch),
                        Operation::VarStruct => pass(&[&self.var; 5], scratch),
                        Operation::NestedStruct => pass(&[&self.nested; 5], scratch),
                        Operation::StructSeq => pass(&[&self.structs; 5], scratch),
                    }
                }
            }
        }
    };
}

engine! {
    /// Straight-line code.
    compiled "/param_test.rs"
}
engine! {
    /// Tables.
    interpretive "/interpretive/param_test.rs"
}
engine! {
    /// Tables at first.
    adaptive "/adaptive/param_test.rs"
}

/// Runs all rounds.
pub(super) fn measure(settings: &Settings) -> Result<Vec<Call>, LabError> {
    on_core(settings.core, || rounds(settings))?
}

fn failed(cause: SystemException) -> LabError {
    LabError::Call { action: "call an operation of Param_Test".to_owned(), cause }
}

fn rounds(settings: &Settings) -> Result<Vec<Call>, LabError> {
    let (server, orb) = (Orb::builder().build().map_err(failed)?, Orb::builder().build().map_err(failed)?);
    let poa = Poa::root(&server).map_err(failed)?;
    let clients: [(Engine, Box<dyn Client>); 3] = [
        (Engine::Compiled, Box::new(compiled::Caller::new(&poa, &server, &orb).map_err(failed)?)),
        (Engine::Interpretive, Box::new(interpretive::Caller::new(&poa, &server, &orb).map_err(failed)?)),
        (Engine::Adaptive, Box::new(adaptive::Caller::new(&poa, &server, &orb).map_err(failed)?)),
    ];
    let mut progress = Progress::begin(u64::from(settings.rounds) * Operation::ALL.len() as u64);
    let mut calls = Vec::new();
    for round in 0..settings.rounds {
        for operation in Operation::ALL {
            progress.at(operation.name());
            let mut order: Vec<&(Engine, Box<dyn Client>)> = clients.iter().collect();
            order.rotate_left(round as usize % clients.len());
            for (engine, client) in order {
                let two_way = nanos(settings.calls, || client.call(operation)).map_err(failed)?;
                let scratch = &mut Vec::new();
                let marshaling = nanos(settings.calls, || client.marshal(operation, scratch))
                    .map_err(|error| LabError::Settings(format!("{}: {error}", operation.name())))?;
                let operation = operation.name().to_owned();
                calls.push(Call { operation, engine: *engine, round, two_way, marshaling });
            }
            progress.step(operation.name(), "called");
        }
    }
    progress.finish();
    drop(clients);
    orb.shutdown(true).map_err(failed)?;
    server.shutdown(true).map_err(failed)?;
    Ok(calls)
}

/// Nanoseconds of one of so many, after a tenth as many.
fn nanos<E>(times: u32, mut once: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    (0..times.div_ceil(10)).try_for_each(|_| once())?;
    let start = Instant::now();
    (0..times).try_for_each(|_| once())?;
    let taken: Duration = start.elapsed();
    Ok(taken.as_nanos() as f64 / f64::from(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_every_engine_gives_back_what_it_was_given() {
        let settings = Settings { parts: Vec::new(), rounds: 2, calls: 3, core: None };
        let calls = measure(&settings).unwrap();
        assert_eq!(calls.len(), 2 * 7 * 3);
        assert!(calls.iter().all(|call| call.two_way > 0.0 && call.marshaling > 0.0));
    }
}
