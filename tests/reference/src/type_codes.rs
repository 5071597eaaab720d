//! Encoded type codes (9.3.5.1): a kind and its parameters, in an encapsulation unless they are numbers only.
//!
//! Recursive types are not supported. Indirections are read, but repeated types are written in full.

use spandrel_cdr::{ByteOrder, Label, TcKind, TypeCode};

use crate::Value;
use crate::octets::{Reader, Writer};

pub(crate) fn write(out: &mut Writer, of: &TypeCode) -> Option<()> {
    out.ulong(of.kind() as usize);
    match of.kind() {
        TcKind::String | TcKind::WString => out.ulong(of.length().ok()? as usize),
        TcKind::Fixed => {
            out.primitive(of.fixed_digits().ok()?.into(), 2, 2);
            out.primitive(of.fixed_scale().ok()?.cast_unsigned().into(), 2, 2);
        }
        TcKind::Struct | TcKind::Except | TcKind::Union | TcKind::Enum | TcKind::Alias | TcKind::ObjRef => {
            encapsulated(out, |inner| with_names(inner, of))?;
        }
        TcKind::Sequence | TcKind::Array => encapsulated(out, |inner| {
            write(inner, &of.content_type().ok()?)?;
            inner.ulong(of.length().ok()? as usize);
            Some(())
        })?,
        _ => {}
    }
    Some(())
}

/// An encapsulation: length, byte order, and the content from `write` with alignment from the start (9.3.3).
fn encapsulated(out: &mut Writer, write: impl FnOnce(&mut Writer) -> Option<()>) -> Option<()> {
    let order = u8::from(out.wire.order == ByteOrder::Little);
    let mut inner = Writer { octets: vec![order], wire: out.wire };
    write(&mut inner)?;
    out.ulong(inner.octets.len());
    out.octets.extend(inner.octets);
    Some(())
}

fn with_names(out: &mut Writer, of: &TypeCode) -> Option<()> {
    out.string(of.id().ok()?)?;
    out.string(of.name().ok()?)?;
    match of.kind() {
        TcKind::ObjRef => return Some(()),
        TcKind::Alias => return write(out, &of.content_type().ok()?),
        TcKind::Union => {
            write(out, &of.discriminator_type().ok()?)?;
            let default = of.default_index().ok()?.map_or(-1, |index| index as i32);
            out.primitive(default.cast_unsigned().into(), 4, 4);
        }
        _ => {}
    }
    let count = of.member_count().ok()?;
    out.ulong(count);
    for nth in 0..count {
        if of.kind() == TcKind::Union {
            label(out, of, nth)?;
        }
        out.string(of.member_name(nth).ok()?)?;
        if of.kind() != TcKind::Enum {
            write(out, &of.member_type(nth).ok()?)?;
        }
    }
    Some(())
}

/// The label as a value of the discriminator's type. The label of the default case has no meaning; omniORB
/// and Spandrel write a zero.
fn label(out: &mut Writer, of: &TypeCode, nth: usize) -> Option<()> {
    let switch = of.discriminator_type().ok()?.without_aliases();
    match of.member_label(nth).ok()? {
        Label::Default => out.scalar(&switch, &Value::Bits(0))?,
        Label::Value(value) if switch.kind() == TcKind::WChar => {
            out.scalar(&switch, &Value::Wide(char::from_u32(u32::try_from(value).ok()?)?))?;
        }
        Label::Value(value) => out.scalar(&switch, &Value::Bits(value.cast_unsigned()))?,
    }
    Some(())
}

pub(crate) fn read(input: &mut Reader<'_>) -> Option<TypeCode> {
    let kind = input.ulong()?;
    let place = input.base + input.at - 4;
    if kind == 0xffff_ffff {
        // An offset from its own position back to an earlier type code (9.3.5.1.3).
        let back = input.primitive(4, 4)? as u32 as i32;
        let target = i64::try_from(place).ok()? + 4 + i64::from(back);
        return input.known.iter().find(|(known, _)| i64::try_from(*known) == Ok(target)).map(|(_, of)| of.clone());
    }
    let of = read_kind(kind, input)?;
    input.known.push((place, of.clone()));
    Some(of)
}

fn read_kind(kind: usize, input: &mut Reader<'_>) -> Option<TypeCode> {
    match kind {
        0..=13 => Some(SIMPLE[kind].clone()),
        // 23 to 26: long long, unsigned long long, long double, wchar.
        23..=26 => Some(SIMPLE[kind - 9].clone()),
        18 => input.ulong().map(|bound| TypeCode::string(bound as u32)),
        27 => input.ulong().map(|bound| TypeCode::wstring(bound as u32)),
        28 => {
            let digits = input.primitive(2, 2)? as u16;
            TypeCode::fixed(digits, input.primitive(2, 2)? as i16).ok()
        }
        14..=17 | 19..=22 => {
            let octets = input.octet_sequence()?;
            let order = if *octets.first()? & 1 == 1 { ByteOrder::Little } else { ByteOrder::Big };
            let wire = spandrel_cdr::Wire { order, ..input.wire };
            let base = input.base + input.at - octets.len();
            let mut inner = Reader { octets, at: 1, wire, base, known: std::mem::take(&mut input.known) };
            let of = complex(kind, &mut inner);
            input.known = inner.known;
            of
        }
        _ => None,
    }
}

fn complex(kind: usize, input: &mut Reader<'_>) -> Option<TypeCode> {
    if kind == 19 || kind == 20 {
        let content = read(input)?;
        let len = input.ulong()? as u32;
        return if kind == 19 { TypeCode::sequence(&content, len) } else { TypeCode::array(&content, len) }.ok();
    }
    let (id, name) = (input.string()?, input.string()?);
    match kind {
        14 => TypeCode::object_reference(id, name).ok(),
        21 => TypeCode::alias(id, name, &read(input)?).ok(),
        16 => union(id, name, input),
        17 => {
            let count = input.ulong()?;
            let names = (0..count).map(|_| input.string()).collect::<Option<Vec<_>>>()?;
            TypeCode::enumeration(id, name, &names).ok()
        }
        _ => {
            let count = input.ulong()?;
            let members = (0..count).map(|_| Some((input.string()?, read(input)?))).collect::<Option<Vec<_>>>()?;
            if kind == 22 { TypeCode::exception(id, name, &members) } else { TypeCode::structure(id, name, &members) }
                .ok()
        }
    }
}

fn union(id: String, name: String, input: &mut Reader<'_>) -> Option<TypeCode> {
    let switch = read(input)?;
    let default = input.ulong()? as u32 as i32;
    let count = input.ulong()?;
    let mut members = Vec::new();
    for nth in 0..count {
        let resolved = switch.without_aliases();
        let value = Label::Value(crate::label_of(&resolved, &input.scalar(&resolved)?));
        let label = if usize::try_from(default) == Ok(nth) { Label::Default } else { value };
        members.push((label, input.string()?, read(input)?));
    }
    TypeCode::union(id, name, &switch, &members).ok()
}

/// The type codes without parameters: kinds 0 to 13, then 23 to 26.
const SIMPLE: [TypeCode; 18] = [
    TypeCode::NULL,
    TypeCode::VOID,
    TypeCode::SHORT,
    TypeCode::LONG,
    TypeCode::USHORT,
    TypeCode::ULONG,
    TypeCode::FLOAT,
    TypeCode::DOUBLE,
    TypeCode::BOOLEAN,
    TypeCode::CHAR,
    TypeCode::OCTET,
    TypeCode::ANY,
    TypeCode::TYPE_CODE,
    TypeCode::PRINCIPAL,
    TypeCode::LONGLONG,
    TypeCode::ULONGLONG,
    TypeCode::LONGDOUBLE,
    TypeCode::WCHAR,
];
