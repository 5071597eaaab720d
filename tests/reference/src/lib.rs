//! A deliberately naive CDR implementation, written from the text of the standard, as a reference for tests.
//!
//! A value is a tree ([`Value`]) with a type code. [`write()`] encodes it and [`read`] decodes octets to a
//! tree, one primitive at a time: slow, simple, and independent of the code of the marshaling engines. From
//! `spandrel-cdr` it uses only type codes and the enumerations of byte orders, versions and code sets.
//! [`types`] and [`values_of`] generate random types and values.
//!
//! To test a Rust type, generate values of its type code, encode them here and decode them as the Rust type,
//! and the other way round: see `tests/engines.rs`.
//!
//! Value types are not supported: they are graphs, not trees.
//!
//! Source: CORBA 3.3 Part 2, clauses 9.3.1 to 9.3.5.
#![forbid(unsafe_code)]

mod generate;
mod octets;
mod read;
mod type_codes;
mod write;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, TypeCode, Wire};

pub use generate::{types, values_of, wires};
pub use read::read;
pub use write::write;

/// A value of any type, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value of `null` and `void`.
    Nothing,
    /// The bits of a number, boolean, octet, `char` or enumerator, in the size of its type.
    Bits(u128),
    /// A `wchar`.
    Wide(char),
    /// A `string` or `wstring`.
    Text(String),
    /// A `fixed`: its digits, most significant first.
    Digits {
        /// True for values below zero.
        negative: bool,
        /// The digits, as many as the type has.
        digits: Vec<u8>,
    },
    /// Members of a struct or exception, elements of an array or sequence.
    Parts(Vec<Value>),
    /// A union: its discriminator, and the selected member, if any.
    Union(Box<Value>, Option<Box<Value>>),
    /// An `any`.
    Any(TypeCode, Box<Value>),
    /// A `TypeCode`.
    Type(TypeCode),
    /// An object reference: type id, and the tags and contents of the profiles.
    Reference(String, Vec<(u32, Vec<u8>)>),
}

/// True if the version has wide characters.
fn has_wide(wire: Wire) -> bool {
    wire.version >= GiopVersion::V1_1
}

fn is_counted_in_octets(wire: Wire) -> bool {
    wire.version >= GiopVersion::V1_2
}

fn in_order(wire: Wire, mut big: Vec<u8>) -> Vec<u8> {
    if wire.order == ByteOrder::Little {
        big.reverse();
    }
    big
}

fn is_utf8(wire: Wire) -> bool {
    wire.char_set == CharSet::Utf8
}

/// The size and alignment of a primitive type (table 9.1).
fn size_and_alignment(of: &TypeCode) -> Option<(usize, usize)> {
    use spandrel_cdr::TcKind as K;
    Some(match of.kind() {
        K::Boolean | K::Octet | K::Char => (1, 1),
        K::Short | K::UShort => (2, 2),
        K::Long | K::ULong | K::Float | K::Enum => (4, 4),
        K::LongLong | K::ULongLong | K::Double => (8, 8),
        K::LongDouble => (16, 8),
        _ => return None,
    })
}

/// The discriminator as a label value, sign-extended for signed types.
fn label_of(of: &TypeCode, discriminator: &Value) -> i128 {
    use spandrel_cdr::TcKind as K;
    match (discriminator, of.kind()) {
        (Value::Wide(value), _) => u32::from(*value).into(),
        (Value::Bits(bits), K::Short) => i128::from(*bits as u16 as i16),
        (Value::Bits(bits), K::Long) => i128::from(*bits as u32 as i32),
        (Value::Bits(bits), K::LongLong) => i128::from(*bits as u64 as i64),
        (Value::Bits(bits), _) => *bits as i128,
        _ => panic!("the value is not a discriminator"),
    }
}

/// The type of the union's member for this label, found by linear search.
fn member_for(of: &TypeCode, label: i128) -> Option<TypeCode> {
    let count = of.member_count().expect("a union");
    let labels: Vec<_> = (0..count).map(|nth| of.member_label(nth).expect("a label")).collect();
    let claimed = labels.iter().position(|known| *known == spandrel_cdr::Label::Value(label));
    let chosen = claimed.or_else(|| labels.iter().position(|known| *known == spandrel_cdr::Label::Default));
    chosen.map(|nth| of.member_type(nth).expect("a member"))
}

/// The members of a struct or exception.
fn members_of(of: &TypeCode) -> Vec<TypeCode> {
    (0..of.member_count().expect("members")).map(|nth| of.member_type(nth).expect("a member")).collect()
}
