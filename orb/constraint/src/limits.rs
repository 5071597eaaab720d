//! Bounds of texts and evaluations.

/// The most that a text may require of the parser, and an evaluation of the processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The octets of a text in UTF-8 (default 65,536).
    pub length: usize,
    /// The parentheses that are open at once (default 64). Parser and evaluation use the stack in proportion to it.
    pub nesting: usize,
    /// The steps of one evaluation (default 1,000,000): one for each operator and operand, each element of a sequence,
    /// and each octet of compared and searched texts.
    pub steps: u64,
    /// The parts of a component name of the extended language (default 32): `$.a[1].b` has three.
    pub parts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { length: 65_536, nesting: 64, steps: 1_000_000, parts: 32 }
    }
}

/// A limit of [`Limits`] that was exceeded, with its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// The text has more octets than this.
    #[error("the text is longer than {0} octets (limit of length)")]
    Length(usize),
    /// Too many parentheses are open at once.
    #[error("more than {0} parentheses are open at once (limit of nesting)")]
    Nesting(usize),
    /// A component name has more parts than this.
    #[error("a component name has more than {0} parts (limit of parts)")]
    Parts(usize),
    /// The evaluation has taken this many steps without an end.
    #[error("the evaluation takes more than {0} steps (limit of steps)")]
    Steps(u64),
}
