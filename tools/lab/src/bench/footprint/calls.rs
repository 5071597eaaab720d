//! Two-way calls of appendix C's operations by each engine, and their marshaling alone.
//!
//! Client and server are two ORBs of this process with the same engine's stubs and skeletons; each operation
//! copies its `in` parameter to all its results (paper 001, 7.3.4). Marshaling is timed with the code of
//! stubs and skeletons, in the order of table 7.4: a client marshals two values (`in`, `inout`) and
//! demarshals three (`inout`, `out`, result), and a server the other way round. The engines alternate within
//! a round.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::{Orb, Poa, SystemException, types::Char};
use spandrel_cdr::engine::{self, Value};
use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder, Wire};

use super::results::Call;
use super::settings::{Engine, Settings};
use crate::LabError;
use crate::placement::on_core;
use crate::progress::Progress;

/// Elements of each sequence (paper 001, 7.3.3).
const ELEMENTS: usize = 9;

/// Each string: 128 characters (7.3.3).
fn text() -> String {
    "sixteen letters.".repeat(8)
}

/// An operation of appendix C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An operation with a primitive parameter.
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
    /// All operations, in the paper's order.
    pub const ALL: [Self; 7] = [
        Self::Short,
        Self::String,
        Self::FixedStruct,
        Self::StrSeq,
        Self::VarStruct,
        Self::NestedStruct,
        Self::StructSeq,
    ];

    /// The name of the operation in IDL, which results use, too.
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

/// A part of the marshaling of a call: a row of table 7.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A stub writes a request.
    ClientMarshals,
    /// A skeleton reads it.
    ServerDemarshals,
    /// A skeleton writes a reply.
    ServerMarshals,
    /// A stub reads it.
    ClientDemarshals,
}

impl Step {
    /// All steps, in the order in which a call passes them.
    pub const ALL: [Self; 4] =
        [Self::ClientMarshals, Self::ServerDemarshals, Self::ServerMarshals, Self::ClientDemarshals];

    /// The side and its step, as in the paper.
    #[must_use]
    pub fn name(self) -> [&'static str; 2] {
        match self {
            Self::ClientMarshals => ["client", "marshal"],
            Self::ServerDemarshals => ["server", "demarshal"],
            Self::ServerMarshals => ["server", "marshal"],
            Self::ClientDemarshals => ["client", "demarshal"],
        }
    }

    /// The number of values of the operation's type in this step.
    #[must_use]
    pub fn values(self) -> usize {
        match self {
            Self::ClientMarshals | Self::ServerDemarshals => 2,
            Self::ServerMarshals | Self::ClientDemarshals => 3,
        }
    }
}

/// A client of one engine.
trait Client {
    /// Makes one call and waits for its reply.
    fn call(&self, operation: Operation) -> Result<(), SystemException>;
    /// Makes one step of a call's marshaling.
    fn step(&self, operation: Operation, step: Step, message: &mut Message) -> Result<(), CdrError>;
}

/// Keeps the compiler from removing the value.
fn keep<T>(value: T) {
    _ = black_box(value);
}

/// A buffer that one step writes and another reads.
#[derive(Default)]
struct Message {
    scratch: Vec<u8>,
    /// The octets to read.
    octets: Vec<u8>,
    /// Whether the written octets are kept for a later read.
    is_kept: bool,
}

impl Message {
    /// The message that this step reads.
    fn before(client: &dyn Client, operation: Operation, step: Step) -> Result<Self, CdrError> {
        let mut message = Self { is_kept: true, ..Self::default() };
        match step {
            Step::ServerDemarshals => client.step(operation, Step::ClientMarshals, &mut message)?,
            Step::ClientDemarshals => client.step(operation, Step::ServerMarshals, &mut message)?,
            Step::ClientMarshals | Step::ServerMarshals => {}
        }
        message.is_kept = false;
        Ok(message)
    }

    fn write<'a>(&mut self, encode: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>) -> Result<(), CdrError> {
        let mut out = Encoder::reusing(std::mem::take(&mut self.scratch), Wire::default());
        encode(&mut out)?;
        if self.is_kept {
            self.octets = out.to_vec();
        }
        self.scratch = black_box(out).into_scratch();
        Ok(())
    }

    fn read<'m>(&'m self, decode: impl FnOnce(&mut Decoder<'m>) -> Result<(), CdrError>) -> Result<(), CdrError> {
        decode(&mut Decoder::new(black_box(&self.octets), Wire::default()))
    }
}

/// One step, with the code of the generated stubs and skeletons of a form of engine.
///
/// An `in` parameter has its own form: `$given` is its type in stubs, `$taken` its type in skeletons, both in
/// straight-line code; `$value` and `$argument` are the same with tables.
macro_rules! exchange {
    (straight, $step:ident, $message:ident, $owned:expr => $type:ty, $given:expr, $taken:expr, $value:expr, $argument:ty) => {
        match $step {
            Step::ClientMarshals => $message.write(|out| {
                Encode::encode(black_box($given), out)?;
                Encode::encode(black_box($owned), out)
            }),
            Step::ServerDemarshals => $message.read(|input| {
                let first = $taken(input)?;
                let second: $type = Decode::decode(input)?;
                keep((&first, &second));
                Ok(())
            }),
            Step::ServerMarshals => $message.write(|out| {
                Encode::encode(black_box($owned), out)?;
                Encode::encode(black_box($owned), out)?;
                Encode::encode(black_box($owned), out)
            }),
            Step::ClientDemarshals => $message.read(|input| {
                let results: ($type, $type, $type) =
                    (Decode::decode(input)?, Decode::decode(input)?, Decode::decode(input)?);
                keep(&results);
                Ok(())
            }),
        }
    };
    (tables, $step:ident, $message:ident, $owned:expr => $type:ty, $given:expr, $taken:expr, $value:expr, $argument:ty) => {
        match $step {
            Step::ClientMarshals => $message.write(|out| {
                let values = [$value(black_box($given)), Value::of(black_box($owned))];
                values.iter().try_for_each(|value| value.encode(out))
            }),
            Step::ServerDemarshals => $message.read(|input| {
                let serve = |arguments: &mut ($argument, $type)| keep(&*arguments);
                engine::upcall(serve, |upcall| upcall.run(input))
            }),
            Step::ServerMarshals => $message.write(|out| {
                let values = [(); 3].map(|()| Value::of(black_box($owned)));
                values.iter().try_for_each(|value| value.encode(out))
            }),
            Step::ClientDemarshals => $message.read(|input| {
                let results: ($type, $type, $type) = engine::receive(|place| place.fill(input))?;
                keep(&results);
                Ok::<(), CdrError>(())
            }),
        }
    };
}

/// The interface by one engine: the generated code, a servant, and a client.
macro_rules! engine {
    ($(#[$doc:meta])* $module:ident $form:ident $path:literal) => {
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
                    fn $operation(&self, s1: $given, s2: &mut $owned) -> Result<($owned, $owned), SystemException> {
                        *s2 = s1.to_owned();
                        Ok((s1.to_owned(), s1.to_owned()))
                    }
                };
            }

            impl ParamTestServant for Servant {
                fn test_short(&self, s1: i16, s2: &mut i16) -> Result<(i16, i16), SystemException> {
                    *s2 = s1;
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
                short: i16,
                text: String,
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
                    let strings = vec![text(); ELEMENTS];
                    let var = VarStruct { dummy1: text(), dummy2: text(), seq: strings.clone() };
                    Ok(Self {
                        object: ParamTest::narrow(&object)?,
                        short: 1,
                        text: text(),
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
                        Operation::Short => self.object.test_short(self.short, &mut 2).map(keep),
                        Operation::String => {
                            let mut s2 = self.text.clone();
                            self.object.test_unbounded_string(&self.text, &mut s2).map(keep)
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

                fn step(&self, operation: Operation, step: Step, message: &mut Message) -> Result<(), CdrError> {
                    match operation {
                        Operation::Short => exchange!(
                            $form, step, message, &self.short => i16,
                            &self.short, <i16 as Decode>::decode, Value::of, i16
                        ),
                        Operation::String => exchange!(
                            $form, step, message, &self.text => String,
                            self.text.as_str(), Decoder::str, Value::text, Cow<'_, str>
                        ),
                        Operation::FixedStruct => exchange!(
                            $form, step, message, &self.fixed => FixedStruct,
                            &self.fixed, <FixedStruct as Decode>::decode, Value::of, FixedStruct
                        ),
                        Operation::StrSeq => exchange!(
                            $form, step, message, &self.strings => Vec<String>,
                            self.strings.as_slice(), <String as Decode>::lend, Value::sequence, Vec<String>
                        ),
                        Operation::VarStruct => exchange!(
                            $form, step, message, &self.var => VarStruct,
                            &self.var, <VarStruct as Decode>::decode, Value::of, VarStruct
                        ),
                        Operation::NestedStruct => exchange!(
                            $form, step, message, &self.nested => NestedStruct,
                            &self.nested, <NestedStruct as Decode>::decode, Value::of, NestedStruct
                        ),
                        Operation::StructSeq => exchange!(
                            $form, step, message, &self.structs => Vec<VarStruct>,
                            self.structs.as_slice(), <VarStruct as Decode>::lend, Value::sequence, Vec<VarStruct>
                        ),
                    }
                }
            }
        }
    };
}

engine! {
    /// Straight-line code for each type.
    compiled straight "/param_test.rs"
}
engine! {
    /// Tables that an interpreter reads.
    interpretive tables "/interpretive/param_test.rs"
}
engine! {
    /// Tables at first, straight-line code after the switch.
    adaptive straight "/adaptive/param_test.rs"
}

/// Measures all operations and engines in turn, round by round.
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
                let mut marshaling = [0.0; 4];
                for (step, taken) in Step::ALL.into_iter().zip(&mut marshaling) {
                    let timed = Message::before(&**client, operation, step)
                        .and_then(|mut message| nanos(settings.calls, || client.step(operation, step, &mut message)));
                    *taken = timed.map_err(|error| LabError::Settings(format!("{}: {error}", operation.name())))?;
                }
                let operation = operation.name().to_owned();
                calls.push(Call { operation, engine: *engine, round, two_way, marshaling });
            }
            progress.step(operation.name(), "called");
        }
    }
    progress.finish();
    drop(clients);
    orb.shutdown().map_err(failed)?;
    server.shutdown().map_err(failed)?;
    Ok(calls)
}

/// Nanoseconds of one repetition out of `times`, after a tenth as many for warm-up.
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
    fn every_operation_of_every_engine_is_called_and_marshaled_in_each_role() {
        let settings = Settings { parts: Vec::new(), rounds: 2, calls: 3, core: None };
        let calls = measure(&settings).unwrap();
        assert_eq!(calls.len(), 2 * 7 * 3);
        assert!(calls.iter().all(|call| call.two_way > 0.0 && call.marshaling.iter().all(|step| *step > 0.0)));
    }

    /// The octets of CDR for strings of 128 characters and sequences of 9 elements (7.3.3), in the numbers of
    /// values of table 7.4.
    #[test]
    fn requests_and_replies_have_the_parameters_of_the_paper() {
        const STRING: usize = 4 + 129 + 3; // with its length, its NUL, and padding before the next length
        const STRSEQ: usize = 4 + 9 * STRING;
        const VAR_STRUCT: usize = 2 * STRING + STRSEQ;
        let (server, orb) = (Orb::builder().build().unwrap(), Orb::builder().build().unwrap());
        let poa = Poa::root(&server).unwrap();
        let clients: [Box<dyn Client>; 3] = [
            Box::new(compiled::Caller::new(&poa, &server, &orb).unwrap()),
            Box::new(interpretive::Caller::new(&poa, &server, &orb).unwrap()),
            Box::new(adaptive::Caller::new(&poa, &server, &orb).unwrap()),
        ];
        for client in &clients {
            for (operation, value, padding) in [
                (Operation::Short, 2, 0),
                (Operation::String, STRING, 3),
                (Operation::FixedStruct, 32, 0),
                (Operation::StrSeq, STRSEQ, 3),
                (Operation::VarStruct, VAR_STRUCT, 3),
                (Operation::NestedStruct, VAR_STRUCT, 3),
                (Operation::StructSeq, 4 + 9 * VAR_STRUCT, 3),
            ] {
                for step in [Step::ServerDemarshals, Step::ClientDemarshals] {
                    let message = Message::before(&**client, operation, step).unwrap();
                    let expected = step.values() * value - padding;
                    assert_eq!(message.octets.len(), expected, "{operation:?} {step:?}: nothing is padded at the end");
                }
            }
        }
        drop(clients);
        orb.shutdown().unwrap();
        server.shutdown().unwrap();
    }
}
