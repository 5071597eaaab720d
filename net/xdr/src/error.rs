//! The reasons for which values are not encoded and octets not decoded.

/// The reason for which a value was not encoded, or octets were not decoded.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XdrError {
    /// The input ends inside a value.
    #[error("the input ends inside a value: {needed} octets are needed, {remaining} remain")]
    End {
        /// The octets of the value, or the fewest that it may have.
        needed: usize,
        /// The octets that remain.
        remaining: usize,
    },
    /// There are octets behind the value.
    #[error("{0} octets follow the value")]
    Trailing(usize),
    /// A length is greater than the maximum of its type.
    #[error("length {len} exceeds the maximum {max}")]
    TooLong {
        /// The length in the input or of the value.
        len: usize,
        /// The maximum that the type declares.
        max: u32,
    },
    /// Residual octets are not zero.
    #[error("residual octets are not zero")]
    Padding,
    /// A bool is neither 0 nor 1.
    #[error("invalid bool {0}")]
    Bool(u32),
    /// An enum has no constant of this value.
    #[error("invalid value {value} for enum {name}")]
    Enum {
        /// The name of the enum.
        name: &'static str,
        /// The value without a constant.
        value: i32,
    },
    /// A union has no arm for this discriminant, or its default arm has the discriminant of another arm.
    #[error("invalid discriminant {discriminant} for union {name}")]
    Discriminant {
        /// The name of the union.
        name: &'static str,
        /// The discriminant, as text.
        discriminant: String,
    },
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// Values nest more deeply than [`Settings::depth`](crate::Settings::depth).
    #[error("values nest deeper than {0} levels")]
    TooDeep(usize),
    /// The value would take more memory than [`Settings::memory_factor`](crate::Settings::memory_factor) and
    /// [`SMALLEST_MEMORY`](crate::SMALLEST_MEMORY) allow.
    #[error("the value takes more memory than {0} octets, the limit for this input")]
    TooLarge(usize),
}

spandrel_error::debug_as_report!(XdrError);
