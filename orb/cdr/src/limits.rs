//! Limits on received values that programs may set. Fixed limits stand with the code that enforces them: the
//! parts of a type code and their nesting in `type_coding/read.rs`, the height of a type code in
//! `type_code/build.rs`, and the octets of values that are read twice in `value_type/chunk.rs`.

/// Bounds that a decoder enforces on received values.
///
/// ```
/// # mod cdr { pub use spandrel_cdr::*; }
/// use cdr::{ByteOrder, CdrError, Limits, OctetForm, from_octets, to_octets}; // of spandrel
///
/// let nested = vec![vec![vec![1_i32]]];
/// let form = OctetForm::bare(ByteOrder::Little);
/// let octets = to_octets(&nested, &form)?;
/// let strict = form.limits(Limits { nesting: 2, ..Limits::default() });
/// assert_eq!(from_octets::<Vec<Vec<Vec<i32>>>>(&octets, &strict), Err(CdrError::TooDeep { limit: 2 }));
/// # Ok::<(), CdrError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Maximum nesting of constructed values and encapsulations (default 64).
    pub nesting: u16,
    /// Maximum nesting of values, each in the state of another, encoded or decoded (default 256): a list of
    /// values is as deep as it is long.
    pub value_nesting: u16,
    /// Maximum number of values in a message (default 262,144): the smallest takes four octets on the wire,
    /// and some hundred in memory.
    pub values: u32,
    /// The memory that decoded values may take beyond the octets of their message: this multiple of its length
    /// (default 32), and 1 MiB.
    pub decoded_factor: u32,
}

impl Limits {
    /// The memory that decoded values may take beyond the `octets` of their message.
    #[inline]
    #[must_use]
    pub fn decoded_memory(&self, octets: usize) -> usize {
        octets.saturating_mul(self.decoded_factor as usize).saturating_add(1 << 20)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { nesting: 64, value_nesting: 256, values: 1 << 18, decoded_factor: 32 }
    }
}
