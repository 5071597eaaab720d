//! The reasons for which a value cannot be encoded, or octets cannot be decoded. The conversion to system
//! exceptions is in `spandrel-giop`.

/// A value that has no CDR form, or octets that are not the CDR form of what was expected.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdrError {
    /// The input ended inside a value.
    #[error("{needed} more octets were expected, {remaining} remain")]
    Truncated {
        /// Octets that the value needs, its alignment included.
        needed: usize,
        /// Octets between the start of the value and the end of the input.
        remaining: usize,
    },
    /// A length beyond the rest of the input.
    #[error("a length of {len} exceeds the {remaining} remaining octets")]
    LengthBeyondInput {
        /// The announced number of elements or octets.
        len: usize,
        /// Octets between the length and the end of the input.
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
    #[error("{len} elements exceed the range of a CDR length")]
    TooLong {
        /// The number of elements.
        len: usize,
    },
    /// A boolean that is neither 0 nor 1 (9.3.1.5).
    #[error("a boolean must be 0 or 1, found {0}")]
    BadBoolean(u8),
    /// A number without an enumerator.
    #[error("{value} is not an enumerator of {name}")]
    BadEnum {
        /// The Rust name of the enum.
        name: &'static str,
        /// The decoded number, at least the number of enumerators.
        value: u32,
    },
    /// A union whose discriminator selects another branch than the active one.
    #[error("the discriminator of a {name} does not select its active branch")]
    BadDiscriminator {
        /// The Rust name of the union.
        name: &'static str,
    },
    /// The last octet of a string is not NUL (9.3.2.7).
    #[error("a string does not end with NUL")]
    UnterminatedString,
    /// A decoded string that contains NUL before its end.
    #[error("a string contains NUL before its end")]
    StrayNul,
    /// A string with NUL, which CDR uses as its terminator.
    #[error("a string contains NUL, which CDR cannot encode")]
    NulInString,
    /// A character that the code set in use lacks.
    #[error("the character {character:?} (U+{:04X}) does not exist in {code_set}, the transmission code set", u32::from(*.character))]
    NotRepresentable {
        /// The first such character.
        character: char,
        /// The name of the transmission code set.
        code_set: &'static str,
    },
    /// A `char` that takes several octets in the code set in use, or none.
    #[error("the char {character:?} (U+{:04X}) is not one octet in {code_set}, the transmission code set", u32::from(*.character))]
    NotOneOctet {
        /// The character that was to be encoded.
        character: char,
        /// The name of the transmission code set.
        code_set: &'static str,
    },
    /// A decoded `char` that ISO 8859-1 lacks, and thus no [`Char`](crate::Char).
    #[error("the char {character:?} (U+{:04X}) does not exist in ISO 8859-1, the range of a Char", u32::from(*.character))]
    CharBeyondLatin1 {
        /// The character to which the octet was decoded.
        character: char,
    },
    /// Decoded text that is malformed in the transmission code set.
    #[error("a string is not {0}")]
    NotText(&'static str),
    /// GIOP 1.0 has no wide characters (9.3.1.6).
    #[error("GIOP 1.0 has no wide characters")]
    WideInGiop10,
    /// GIOP 1.1 has wide characters of two octets only (9.3.1.6).
    #[error("GIOP 1.1 has wide characters of two octets only, unlike {0}")]
    WideInGiop11(&'static str),
    /// Wide characters on a connection without a code set for them (7.10.2.7).
    #[error("no transmission code set was negotiated for wide characters")]
    NoWcharSet,
    /// Octets that are not a packed decimal number (9.3.2.8).
    #[error("a fixed-point number is malformed: {0}")]
    BadFixed(&'static str),
    /// A number with more digits before or after the point than its IDL type has.
    #[error("the number does not fit fixed<{digits},{scale}>")]
    FixedOverflow {
        /// All digits of the type.
        digits: u16,
        /// Digits after the point.
        scale: u16,
    },
    /// Constructed values or encapsulations nest deeper than the limit.
    #[error("values nest deeper than the limit of {limit}")]
    TooDeep {
        /// The limit in force.
        limit: u16,
    },
    /// A reference decoded without a binder.
    #[error("an object reference cannot be decoded without an ORB")]
    Unbound,
    /// A value without a factory for its type, or for a base to which it may be truncated.
    #[error("no factory is registered for values of type {}", spandrel_error::excerpt(repository_id))]
    UnknownValue {
        /// The repository id of the value's most derived type.
        repository_id: Box<str>,
    },
    /// A reference to a value that stands inside a graph of values, where only a [`Linked`](crate::Linked) can hold
    /// it. The function that reads a custom value has to decode a `Linked`.
    #[error(
        "a reference inside a graph of values was not read as a `Linked`, which the reader of a custom value has to do"
    )]
    UnlinkedValue,
    /// A value of another type than its position requires.
    #[error("expected a value of type {expected}, found {found}")]
    WrongValue {
        /// The repository id of the required type.
        expected: &'static str,
        /// The repository id of the value's type.
        found: &'static str,
    },
    /// A message has more values than the limit.
    #[error("there are more values than the limit of {limit}")]
    TooManyValues {
        /// The limit in force.
        limit: u32,
    },
    /// A message that takes more memory than the limit, beyond its octets.
    #[error(
        "the decoded values take more than {limit} octets of memory beyond those of the message (-ORBMaxDecodedFactor)"
    )]
    TooMuchMemory {
        /// The limit in force.
        limit: usize,
    },
    /// Memory that is not available at present, because others use it.
    #[error("there is no memory for the decoded values: {0}")]
    NoMemory(Box<str>),
    /// A link inside a graph of values, encoded without its graph.
    #[error("a link inside a graph of values cannot be encoded outside it")]
    UnfinishedValue,
    /// Octets after the value that was expected alone; see [`from_octets`](crate::from_octets).
    #[error("{remaining} octets follow the value")]
    TrailingOctets {
        /// Octets between the end of the value and the end of the input.
        remaining: usize,
    },
    /// Well-formed octets without an acceptable meaning.
    #[error("{0}")]
    Malformed(&'static str),
}
spandrel_error::debug_as_report!(CdrError);
