//! Values of basic types: defaults, equality, encoding and decoding.

use spandrel_cdr::{
    Any, CdrError, Char, Decimal, Decode, Decoder, Encode, Encoder, Ior, LongDouble, TcKind, TypeCode, WString,
};

use super::DynAnyError;

/// A value without components.
#[derive(Clone, Debug)]
pub(crate) enum Leaf {
    Boolean(bool),
    Octet(u8),
    Char(Char),
    WChar(char),
    Short(i16),
    UShort(u16),
    Long(i32),
    ULong(u32),
    LongLong(i64),
    ULongLong(u64),
    Float(f32),
    Double(f64),
    LongDouble(LongDouble),
    String(String),
    WString(WString),
    Any(Any),
    TypeCode(TypeCode),
    Reference(Ior),
    Enum(u32),
    Fixed(Decimal),
}

impl Leaf {
    /// The default value of a type without components (16.2.2); `None` for types without dynamic values.
    pub(crate) fn default_of(type_code: &TypeCode) -> Option<Self> {
        Some(match type_code.kind() {
            TcKind::Boolean => Self::Boolean(false),
            TcKind::Octet => Self::Octet(0),
            TcKind::Char => Self::Char(Char(0)),
            TcKind::WChar => Self::WChar('\0'),
            TcKind::Short => Self::Short(0),
            TcKind::UShort => Self::UShort(0),
            TcKind::Long => Self::Long(0),
            TcKind::ULong => Self::ULong(0),
            TcKind::LongLong => Self::LongLong(0),
            TcKind::ULongLong => Self::ULongLong(0),
            TcKind::Float => Self::Float(0.0),
            TcKind::Double => Self::Double(0.0),
            TcKind::LongDouble => Self::LongDouble(LongDouble::default()),
            TcKind::String => Self::String(String::new()),
            TcKind::WString => Self::WString(WString::new()),
            TcKind::Any => Self::Any(Any::default()),
            TcKind::TypeCode => Self::TypeCode(TypeCode::NULL),
            TcKind::ObjRef | TcKind::Component | TcKind::Home | TcKind::AbstractInterface => {
                Self::Reference(Ior::default())
            }
            TcKind::Enum => Self::Enum(0),
            TcKind::Fixed => Self::Fixed(Decimal::ZERO),
            _ => return None,
        })
    }

    /// Decodes a value of this type, which has no components.
    pub(crate) fn read(type_code: &TypeCode, input: &mut Decoder<'_>) -> Result<Self, DynAnyError> {
        Ok(match type_code.kind() {
            TcKind::Boolean => Self::Boolean(input.bool()?),
            TcKind::Octet => Self::Octet(input.u8()?),
            TcKind::Char => Self::Char(input.u8()?.into()),
            TcKind::WChar => Self::WChar(input.wchar()?),
            TcKind::Short => Self::Short(input.i16()?),
            TcKind::UShort => Self::UShort(input.u16()?),
            TcKind::Long => Self::Long(input.i32()?),
            TcKind::ULong => Self::ULong(input.u32()?),
            TcKind::LongLong => Self::LongLong(input.i64()?),
            TcKind::ULongLong => Self::ULongLong(input.u64()?),
            TcKind::Float => Self::Float(input.f32()?),
            TcKind::Double => Self::Double(input.f64()?),
            TcKind::LongDouble => Self::LongDouble(Decode::decode(input)?),
            TcKind::String => Self::String(Decode::decode(input)?),
            TcKind::WString => Self::WString(Decode::decode(input)?),
            TcKind::Any => Self::Any(Decode::decode(input)?),
            TcKind::TypeCode => Self::TypeCode(Decode::decode(input)?),
            TcKind::ObjRef | TcKind::Component | TcKind::Home => Self::Reference(Decode::decode(input)?),
            TcKind::Enum => Self::Enum(input.u32()?),
            TcKind::Fixed => {
                let (digits, scale) = digits_and_scale(type_code)?;
                Self::Fixed(Decimal::decode_as(digits, scale, input)?)
            }
            kind => return Err(DynAnyError::InconsistentTypeCode(kind)),
        })
    }

    /// Encodes the value, which is of this type.
    pub(crate) fn write<'a>(&'a self, type_code: &TypeCode, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        match self {
            Self::Boolean(value) => value.encode(out),
            Self::Octet(value) => value.encode(out),
            Self::Char(value) => value.encode(out),
            Self::WChar(value) => value.encode(out),
            Self::Short(value) => value.encode(out),
            Self::UShort(value) => value.encode(out),
            Self::Long(value) => value.encode(out),
            Self::ULong(value) | Self::Enum(value) => value.encode(out),
            Self::LongLong(value) => value.encode(out),
            Self::ULongLong(value) => value.encode(out),
            Self::Float(value) => value.encode(out),
            Self::Double(value) => value.encode(out),
            Self::LongDouble(value) => value.encode(out),
            Self::String(value) => value.encode(out),
            Self::WString(value) => value.encode(out),
            Self::Any(value) => value.encode(out),
            Self::TypeCode(value) => value.encode(out),
            Self::Reference(value) => value.encode(out),
            Self::Fixed(value) => {
                let (digits, scale) =
                    digits_and_scale(type_code).map_err(|_| CdrError::Malformed("the type is not a valid fixed"))?;
                value.encode_as(digits, scale, out)
            }
        }
    }
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Octet(a), Self::Octet(b)) => a == b,
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::WChar(a), Self::WChar(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::UShort(a), Self::UShort(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::ULong(a), Self::ULong(b)) | (Self::Enum(a), Self::Enum(b)) => a == b,
            (Self::LongLong(a), Self::LongLong(b)) => a == b,
            (Self::ULongLong(a), Self::ULongLong(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::LongDouble(a), Self::LongDouble(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::WString(a), Self::WString(b)) => a == b,
            (Self::Any(a), Self::Any(b)) => a == b,
            (Self::TypeCode(a), Self::TypeCode(b)) => a.equivalent(b),
            (Self::Reference(a), Self::Reference(b)) => a == b,
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            _ => false,
        }
    }
}

/// Digits and scale of a `fixed` type. A negative scale, possible in a type code but not in IDL, has no
/// values here.
pub(crate) fn digits_and_scale(type_code: &TypeCode) -> Result<(u16, u16), DynAnyError> {
    let scale =
        u16::try_from(type_code.fixed_scale()?).map_err(|_| DynAnyError::InconsistentTypeCode(TcKind::Fixed))?;
    Ok((type_code.fixed_digits()?, scale))
}
