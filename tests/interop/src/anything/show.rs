//! Operations on values whose types are known only at run time: formatting them as text, and rebuilding them
//! from their parts. The format is that of `peers/omniorb/samples.hh`.

use std::fmt::Write;

use anyhow::{Context, Result};
use spandrel::dynamic::{DynAny, DynNamePair};
use spandrel::types::{Any, TcKind, TypeCode};

/// A type on one line; a type nested in itself appears as its repository id only.
///
/// # Errors
/// None: each type code is asked only for the properties of its kind.
pub fn show_type(of: &TypeCode) -> Result<String> {
    let mut out = String::new();
    write_type(of, &mut Vec::new(), &mut out)?;
    Ok(out)
}

fn write_type(of: &TypeCode, enclosing: &mut Vec<String>, out: &mut String) -> Result<()> {
    use TcKind::{
        Alias, Array, Enum, Except, Fixed, ObjRef, Sequence, String, Struct, Union, Value, ValueBox, WString,
    };
    let kind = of.kind();
    write!(out, "{}", kind as u32)?;
    let is_named = matches!(kind, Struct | Union | Enum | Except | Value | ValueBox | Alias | ObjRef);
    if is_named {
        let id = of.id()?.to_owned();
        write!(out, " {id}")?;
        if enclosing.contains(&id) {
            return Ok(());
        }
        enclosing.push(id);
    }
    if matches!(kind, Struct | Union | Except | Value | Enum) {
        out.push('{');
        for nth in 0..of.member_count()? {
            write!(out, "{} ", of.member_name(nth)?)?;
            if kind != Enum {
                write_type(&of.member_type(nth)?, enclosing, out)?;
                out.push(' ');
            }
        }
        out.push('}');
    }
    if let (Union, Some(default)) = (kind, of.default_index().ok().flatten()) {
        write!(out, "{default}")?;
    }
    if matches!(kind, String | WString | Sequence | Array) {
        write!(out, " {}", of.length()?)?;
    }
    if kind == Fixed {
        write!(out, " {} {}", of.fixed_digits()?, of.fixed_scale()?)?;
    }
    if matches!(kind, Sequence | Array | Alias | ValueBox) {
        out.push('<');
        write_type(&of.content_type()?, enclosing, out)?;
        out.push('>');
    }
    if is_named {
        enclosing.pop();
    }
    Ok(())
}

/// A value on one line.
///
/// # Errors
/// If the value cannot be decomposed.
pub fn show(value: &Any) -> Result<String> {
    let mut out = String::new();
    write_value(&DynAny::new(value)?, &mut out)?;
    Ok(out)
}

fn write_value(value: &DynAny, out: &mut String) -> Result<()> {
    match value.type_code().without_aliases().kind() {
        TcKind::Null | TcKind::Void => out.push_str("nothing"),
        TcKind::Short => write!(out, "{}", value.short()?)?,
        TcKind::Long => write!(out, "{}", value.long()?)?,
        TcKind::UShort => write!(out, "{}", value.ushort()?)?,
        TcKind::ULong => write!(out, "{}", value.ulong()?)?,
        TcKind::LongLong => write!(out, "{}", value.longlong()?)?,
        TcKind::ULongLong => write!(out, "{}", value.ulonglong()?)?,
        TcKind::Float => write!(out, "{:x}", value.float()?.to_bits())?,
        TcKind::Double => write!(out, "{:x}", value.double()?.to_bits())?,
        TcKind::Boolean => write!(out, "{}", u8::from(value.boolean()?))?,
        TcKind::Octet => write!(out, "{}", value.octet()?)?,
        TcKind::Char => write!(out, "{}", value.char()?.0)?,
        TcKind::WChar => write!(out, "{}", u32::from(value.wchar()?))?,
        TcKind::String => write!(out, "\"{}\"", value.string()?)?,
        TcKind::WString => value.wstring()?.encode_utf16().try_for_each(|unit| write!(out, "{unit}."))?,
        TcKind::Fixed => write!(out, "{}", value.clone().as_fixed()?.value())?,
        TcKind::Enum => write!(out, "{}", value.clone().as_enum()?.as_string()?)?,
        TcKind::ObjRef => out.push_str(if value.reference()?.is_nil() { "nil" } else { "object" }),
        TcKind::TypeCode => out.push_str(&show_type(&value.typecode()?)?),
        TcKind::Any => {
            let inner = value.any()?;
            write!(out, "any {} ", show_type(inner.type_code())?)?;
            write_value(&value.dyn_any()?, out)?;
        }
        kind => {
            out.push('{');
            write_constructed(&mut value.clone(), kind, out)?;
            out.push('}');
        }
    }
    Ok(())
}

fn write_constructed(value: &mut DynAny, kind: TcKind, out: &mut String) -> Result<()> {
    match kind {
        TcKind::Struct | TcKind::Except => write_members(&value.as_struct()?.members_as_dyn_any()?, out),
        TcKind::Value => {
            let value = value.as_value()?;
            if value.is_null() {
                out.push_str("null");
                return Ok(());
            }
            write_members(&value.members_as_dyn_any()?, out)
        }
        TcKind::ValueBox => {
            let boxed = value.as_value_box()?;
            if boxed.is_null() {
                out.push_str("null");
                return Ok(());
            }
            write_value(boxed.boxed_value_as_dyn_any()?, out)
        }
        TcKind::Union => {
            let union = value.as_union()?;
            write_value(union.discriminator(), out)?;
            if union.has_no_active_member() {
                return Ok(());
            }
            write!(out, " {} ", union.member_name()?)?;
            write_value(union.member()?, out)
        }
        _ => value.components().iter().try_for_each(|element| {
            out.push(' ');
            write_value(element, out)?;
            out.push(' ');
            Ok(())
        }),
    }
}

fn write_members(members: &[DynNamePair], out: &mut String) -> Result<()> {
    for DynNamePair { id, value } in members {
        write!(out, "{id} ")?;
        write_value(value, out)?;
        out.push(' ');
    }
    Ok(())
}

/// A value of the same type, rebuilt by copying each part.
///
/// # Errors
/// If the value cannot be decomposed.
pub fn rebuild(value: &Any) -> Result<Any> {
    let mut new = DynAny::of_type(value.type_code())?;
    refill(&mut new, &mut DynAny::new(value)?)?;
    Ok(new.to_any()?)
}

fn refill(to: &mut DynAny, from: &mut DynAny) -> Result<()> {
    match from.type_code().without_aliases().kind() {
        TcKind::Union => {
            let old = from.as_union()?;
            let mut new = to.as_union()?;
            new.set_discriminator(old.discriminator())?;
            if old.has_no_active_member() {
                return Ok(());
            }
            return refill(new.member_mut()?, &mut old.member()?.clone());
        }
        TcKind::Sequence => to.as_sequence()?.set_length(from.as_sequence()?.length())?,
        TcKind::Value if from.as_value()?.is_null() => {
            to.as_value()?.set_to_null();
            return Ok(());
        }
        TcKind::Value => to.as_value()?.set_to_value()?,
        TcKind::Struct | TcKind::Except | TcKind::Array => {}
        TcKind::Short => return Ok(to.insert_short(from.short()?)?),
        TcKind::Long => return Ok(to.insert_long(from.long()?)?),
        TcKind::Double => return Ok(to.insert_double(from.double()?)?),
        TcKind::String => return Ok(to.insert_string(from.string()?)?),
        TcKind::WString => return Ok(to.insert_wstring(from.wstring()?)?),
        _ => return Ok(to.from_any(&from.to_any()?)?),
    }
    to.rewind();
    for part in from.components() {
        refill(to.current_component_mut()?.context("a part is missing")?, &mut part.clone())?;
        to.next();
    }
    Ok(())
}
