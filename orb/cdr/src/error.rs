//! Why a value could not be written, or octets not be read as the value that they should be.

/// A value that has no CDR form, or octets that are not the CDR form of what was expected.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The input ended inside a value.
    #[error("{needed} more octets were expected, {remaining} remain")]
    Truncated {
        /// Octets that the value needs, its alignment included.
        needed: usize,
        /// Octets that are left.
        remaining: usize,
    },
    /// A length says more than the rest of the input could hold.
    #[error("a length of {len} cannot fit in the {remaining} octets that remain")]
    LengthBeyondInput {
        /// The announced number of elements or octets.
        len: usize,
        /// Octets that are left.
        remaining: usize,
    },
    /// A bounded string or sequence is longer than its IDL type allows.
    #[error("{len} elements exceed the bound of {bound}")]
    OverBound {
        /// The number of elements.
        len: usize,
        /// The bound in the IDL type.
        bound: usize,
    },
    /// More elements or octets than an `unsigned long` can count.
    #[error("{len} elements are more than a CDR length can say")]
    TooLong {
        /// The number of elements.
        len: usize,
    },
    /// A boolean that is neither 0 nor 1 (9.3.1.5).
    #[error("a boolean must be 0 or 1, found {0}")]
    BadBoolean(u8),
    /// A number that names no enumerator.
    #[error("{value} is no enumerator of {name}")]
    BadEnum {
        /// The Rust name of the enum.
        name: &'static str,
        /// What was found.
        value: u32,
    },
    /// A union to be written whose discriminator selects another branch than the one that it has.
    #[error("the discriminator of a {name} does not select the branch that it has")]
    BadDiscriminator {
        /// The Rust name of the union.
        name: &'static str,
    },
    /// The last octet of a string is not NUL (9.3.2.7).
    #[error("a string does not end with NUL")]
    UnterminatedString,
    /// A string that was read contains NUL before its end.
    #[error("a string contains NUL before its end")]
    StrayNul,
    /// A string to be written contains NUL, which would end it there.
    #[error("a string contains NUL, which CDR cannot say")]
    NulInString,
    /// A character that the code set in use cannot say.
    #[error("the character {character:?} (U+{:04X}) does not exist in {code_set}, in which text travels here", u32::from(*.character))]
    NotRepresentable {
        /// The first such character.
        character: char,
        /// The name of the transmission code set.
        code_set: &'static str,
    },
    /// A `char` that is more than one octet in the code set in use, or none.
    #[error("the char {character:?} (U+{:04X}) is not one octet in {code_set}, in which it would travel here", u32::from(*.character))]
    NotOneOctet {
        /// The character.
        character: char,
        /// The name of the transmission code set.
        code_set: &'static str,
    },
    /// A `char` that was read is a character which ISO 8859-1 does not have, and thus no [`Char`](crate::Char).
    #[error("the char {character:?} (U+{:04X}) does not exist in ISO 8859-1, in which a char is held here", u32::from(*.character))]
    CharBeyondLatin1 {
        /// The character.
        character: char,
    },
    /// Text that was read is not well formed in the transmission code set.
    #[error("a string is not {0}")]
    NotText(&'static str),
    /// GIOP 1.0 has no wide characters (9.3.1.6).
    #[error("GIOP 1.0 has no wide characters")]
    WideInGiop10,
    /// GIOP 1.1 has wide characters of two octets only (9.3.1.6).
    #[error("GIOP 1.1 has wide characters of two octets only, which {0} has not")]
    WideInGiop11(&'static str),
    /// Wide characters where no code set was agreed on for them (7.10.2.7).
    #[error("no transmission code set was agreed on for wide characters")]
    NoWcharSet,
    /// Octets that are not the packed decimal number that they should be (9.3.2.8).
    #[error("a fixed-point number is malformed: {0}")]
    BadFixed(&'static str),
    /// A number with more digits before or after the point than its IDL type has.
    #[error("the number does not fit fixed<{digits},{scale}>")]
    FixedOverflow {
        /// All digits of the type.
        digits: u16,
        /// Those after the point.
        scale: u16,
    },
    /// Constructed values or encapsulations nest deeper than the limit.
    #[error("values nest deeper than the limit of {limit}")]
    TooDeep {
        /// The limit in force.
        limit: u16,
    },
    /// A reference arrived where nothing is there to bind it to.
    #[error("an object reference cannot be bound here")]
    Unbound,
    /// No factory makes values of this type, nor of a base that it may be truncated to.
    #[error("no factory is registered for values of type {repository_id}")]
    UnknownValue {
        /// The repository id of the value's most derived type.
        repository_id: Box<str>,
    },
    /// A value arrived where its type cannot be.
    #[error("a value of type {found} arrived where a {expected} should be")]
    WrongValue {
        /// The repository id of the type that should be there.
        expected: &'static str,
        /// The repository id of what the value is here.
        found: &'static str,
    },
    /// A message has more values than the limit.
    #[error("there are more values than the limit of {limit}")]
    TooManyValues {
        /// The limit in force.
        limit: u32,
    },
    /// A link inside a graph of values was to be written without its graph.
    #[error("a link inside a graph of values cannot be written outside of it")]
    UnfinishedValue,
    /// Octets that are well formed but mean nothing acceptable.
    #[error("{0}")]
    Malformed(&'static str),
}
