//! The optimisation ladder of paper 001, chapter 5: a naive interpreter, and the same one after each step.
//!
//! The naive one works like SunSoft's IIOP engine: it walks a description of the type, calls a visitor for
//! every primitive, and recomputes sizes and alignments. Each rung is the same interpreter with one more
//! optimisation, switched on by a constant, so that the changes of a rung are visible in place. Values lie in
//! memory in the layout of C (see [`Node`]), and the CDR octets of all rungs are the same.

mod description;
mod interpreter;
mod probe;
#[cfg(target_os = "linux")]
mod reader;
mod stream;

pub(crate) use description::Node;
use interpreter::Interpreter;
pub(crate) use probe::Calls;
use probe::{Counting, Silent};
#[cfg(target_os = "linux")]
pub(crate) use reader::{RungReader, RungWriter};
use stream::{Stream, inlining};

use crate::LabError;

/// A rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    /// Section 5.3.2: the original engine.
    Original,
    /// Section 5.3.3, its first attempt: the functions of primitives are declared with `#[inline]` only.
    SimpleInlining,
    /// Section 5.3.3: primitives are read and written in line, and byte swapping is out of line.
    Inlined,
    /// Section 5.3.4: sizes and alignments are precomputed, and one function replaces the visitors.
    Precomputed,
    /// Section 5.3.5, receivers: small functions for each kind of type, rare cases out of line.
    SplitDecoding,
    /// Section 5.3.5, senders: the same for writing.
    SplitEncoding,
}

impl Rung {
    pub(crate) const ALL: [Self; 6] = [
        Self::Original,
        Self::SimpleInlining,
        Self::Inlined,
        Self::Precomputed,
        Self::SplitDecoding,
        Self::SplitEncoding,
    ];

    /// The name that options and tables use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::SimpleInlining => "simple-inlining",
            Self::Inlined => "inlined",
            Self::Precomputed => "precomputed",
            Self::SplitDecoding => "split-decoding",
            Self::SplitEncoding => "split-encoding",
        }
    }
}

/// Dispatches a call to the interpreter of `rung`.
macro_rules! on_rung {
    ($rung:expr, $probe:ty, $method:ident ( $($argument:expr),* )) => {
        match $rung {
            Rung::Original => Interpreter::<$probe, { inlining::CALLED }, false, false, false>::$method($($argument),*),
            Rung::SimpleInlining => Interpreter::<$probe, { inlining::HINTED }, false, false, false>::$method($($argument),*),
            Rung::Inlined => Interpreter::<$probe, { inlining::FORCED }, false, false, false>::$method($($argument),*),
            Rung::Precomputed => Interpreter::<$probe, { inlining::FORCED }, true, false, false>::$method($($argument),*),
            Rung::SplitDecoding => Interpreter::<$probe, { inlining::FORCED }, true, true, false>::$method($($argument),*),
            Rung::SplitEncoding => Interpreter::<$probe, { inlining::FORCED }, true, true, true>::$method($($argument),*),
        }
    };
}

/// Writes a sequence whose elements lie in `memory`, into `octets`, which is cleared first.
pub(crate) fn encode(rung: Rung, sequence: &Node, memory: &[u8], octets: &mut Vec<u8>) {
    let mut stream = Stream::writing(std::mem::take(octets));
    on_rung!(rung, Silent, encode(sequence, memory, &mut stream, &mut Silent));
    *octets = stream.into_octets();
}

/// Reads a sequence, and returns its elements in memory layout. Frees what the visitors of the original would
/// free.
///
/// # Errors
/// Octets that are not such a sequence.
pub(crate) fn decode(rung: Rung, sequence: &Node, octets: &[u8]) -> Result<Vec<u8>, LabError> {
    on_rung!(rung, Silent, decode(sequence, octets, &mut Silent))
        .ok_or_else(|| LabError::Settings("the octets of a sequence ended before it did".to_owned()))
}

/// The number of calls of each method to write and to read a sequence.
pub(crate) fn calls(rung: Rung, sequence: &Node, memory: &[u8]) -> (Calls, Calls) {
    let (mut writing, mut reading) = (Counting::default(), Counting::default());
    let mut stream = Stream::writing(Vec::new());
    on_rung!(rung, Counting, encode(sequence, memory, &mut stream, &mut writing));
    let octets = stream.into_octets();
    let read = on_rung!(rung, Counting, decode(sequence, &octets, &mut reading));
    debug_assert!(read.is_some(), "a rung reads its own output");
    (writing.into_calls(), reading.into_calls())
}
