//! A deliberately naive CDR, written straight from the standard's text, for tests to compare with.
//!
//! A value is a tree ([`Value`]), its type a type code. [`write()`] makes octets of it and [`read`] a tree of octets, one
//! primitive after the other: slow, simple, and without anything of the marshaling engines' code. Of `spandrel-cdr` it uses
//! only what type codes say of themselves, and the names of orders, versions and code sets. [`types`] and [`values_of`] make
//! random ones.
//!
//! For a Rust type whose code is to be tested, take values of its type code, write them here, read them there, and the
//! other way round: see `tests/engines.rs`.
//!
//! Value types are left out: they are graphs, and not trees.
//!
//! Source: CORBA 3.3 Part 2, clauses 9.3.1 to 9.3.5.
#![forbid(unsafe_code)]

mod codes;
mod make;
mod octets;
mod read;
mod write;

use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, TypeCode, Wire};

pub use make::{types, values_of, wires};
pub use read::read;
pub use write::write;

/// A value of any type, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of `null` and `void`.
    Nothing,
    /// The bits of any number, boolean, octet, `char` or enumerator, in as many octets as its type has.
    Bits(u128),
    /// A `wchar`.
    Wide(char),
    /// A `string` or `wstring`.
    Text(String),
    /// A `fixed`: its digits, most significant first.
    Digits {
        /// Below zero: not of zero itself.
        negative: bool,
        /// As many as the type has.
        digits: Vec<u8>,
    },
    /// Members of a struct or exception, elements of an array or sequence.
    Parts(Vec<Value>),
    /// A union: its discriminator, and the member for it, if there is one.
    Union(Box<Value>, Option<Box<Value>>),
    /// An `any`.
    Any(TypeCode, Box<Value>),
    /// A `TypeCode`.
    Type(TypeCode),
    /// An object reference: type id, tags and contents of profiles.
    Reference(String, Vec<(u32, Vec<u8>)>),
}

/// Whether the form of wide characters in a version is that of 1.1, that of 1.2, or none.
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

/// Octets of a primitive type, and its alignment (table 9.1).
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

/// The discriminator's value as labels have it: with its sign, if its type has one.
fn label_of(of: &TypeCode, discriminator: &Value) -> i128 {
    use spandrel_cdr::TcKind as K;
    match (discriminator, of.kind()) {
        (Value::Wide(value), _) => u32::from(*value).into(),
        (Value::Bits(bits), K::Short) => i128::from(*bits as u16 as i16),
        (Value::Bits(bits), K::Long) => i128::from(*bits as u32 as i32),
        (Value::Bits(bits), K::LongLong) => i128::from(*bits as u64 as i64),
        (Value::Bits(bits), _) => *bits as i128,
        _ => panic!("no discriminator"),
    }
}

/// The type of the member that a union has for this label: labels are looked for one after the other.
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
