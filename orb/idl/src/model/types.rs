//! Types, the values of constants, and the ids of definitions in both.

/// The index of a [`Definition`](super::Definition) in its [`Model`](super::Model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefId(pub(crate) u32);

impl DefId {
    /// The position in [`Model::definitions`](super::Model::definitions).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The value of a constant; the constant's type determines the variant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConstValue {
    /// Any integer type, `octet` included.
    Integer(i128),
    /// `float` (already rounded), `double`, `long double` (with the precision of a double).
    Float(f64),
    /// The value of a `boolean` constant: TRUE or FALSE.
    Boolean(bool),
    /// `char`: an ISO 8859-1 code.
    Char(u8),
    /// A character of a `wchar` constant, in Unicode.
    WideChar(char),
    /// `string`: characters up to U+00FF, none of them NUL.
    String(String),
    /// The text of a `wstring` constant, in Unicode.
    WideString(String),
    /// The decimal number of a `fixed` constant.
    Fixed(FixedValue),
    /// A value of an enumeration: the enumerator.
    Enumerator(DefId),
}

/// A decimal number: `unscaled` × 10^-`scale`, of at most 31 digits. The scale is that of the constant's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedValue {
    /// All digits as a whole number.
    pub unscaled: i128,
    /// The number of digits after the point.
    pub scale: u8,
}

/// A type, as used by members, parameters, typedefs and constants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// A basic type without parameters, such as `unsigned long`.
    Primitive(Primitive),
    /// A string of `char`: `string`, or `string<bound>`.
    String {
        /// The maximum number of characters, without the terminating NUL.
        bound: Option<u32>,
    },
    /// A string of `wchar`: `wstring`, or `wstring<bound>`.
    WString {
        /// The maximum number of wide characters.
        bound: Option<u32>,
    },
    /// `sequence<element>`, or `sequence<element, bound>`.
    Sequence {
        /// The type of each element; possibly a typedef or a further sequence.
        element: Box<Type>,
        /// The maximum number of elements.
        bound: Option<u32>,
    },
    /// An array, from the dimensions of a declarator. The element is never written as an array itself, but
    /// may be a typedef of one.
    Array {
        /// The type of one element, behind all dimensions.
        element: Box<Type>,
        /// The dimensions, outermost first; at least one, each at least 1.
        dimensions: Vec<u32>,
    },
    /// An interface, value type, struct, union, enum, typedef or native type (or exception, where `raises` names one).
    Named(DefId),
    /// `Object`: a reference to an object of any interface.
    Object,
    /// `fixed<digits, scale>`, or `fixed` alone as the type of a constant.
    Fixed {
        /// Total number of digits, at most 31; for a constant, those of its value.
        digits: u16,
        /// Number of digits after the point, at most all of them.
        scale: u16,
    },
    /// `any`: a value with its type.
    Any,
    /// `CORBA::TypeCode`: the description of a type.
    TypeCode,
    /// `ValueBase` (also written `CORBA::ValueBase`): a value of any value type.
    ValueBase,
    /// `CORBA::AbstractBase`: a reference or a value.
    AbstractBase,
}

/// Primitive types (IDL 4.2, 7.4.1.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Primitive {
    /// `short`, a signed integer of 16 bits.
    Short,
    /// `unsigned short`, an integer of 16 bits.
    UnsignedShort,
    /// `long`, a signed integer of 32 bits.
    Long,
    /// `unsigned long`, an integer of 32 bits.
    UnsignedLong,
    /// `long long`: 64 bits.
    LongLong,
    /// `unsigned long long`, an integer of 64 bits.
    UnsignedLongLong,
    /// `float`: IEEE 754 single.
    Float,
    /// `double`: IEEE 754 double.
    Double,
    /// `long double`: IEEE 754 quadruple, 16 octets.
    LongDouble,
    /// `boolean`, encoded as one octet.
    Boolean,
    /// `octet`, eight bits that no code set converts.
    Octet,
    /// `char`, a character of one octet.
    Char,
    /// `wchar`, a character of the wide code set.
    WChar,
}
