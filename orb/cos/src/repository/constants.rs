//! Values of constants and labels, as `any` and as IDL.

use spandrel_cdr::{Any, CdrError, Decimal, Label, TcKind, TypeCode};
use spandrel_dynamic::DynAny;
use spandrel_idl::{
    Model,
    model::{ConstValue, DefinitionKind},
};

/// The value of a constant, of this type.
pub(super) fn to_any(model: &Model, type_code: &TypeCode, value: &ConstValue) -> Result<Any, CdrError> {
    let kind = type_code.without_aliases().kind();
    let mismatch = || CdrError::Malformed("a constant is not of its type");
    Any::write(type_code.clone(), |out| {
        match (value, kind) {
            (ConstValue::Integer(value), TcKind::Short) => out.i16(i16::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::UShort) => out.u16(u16::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::Long) => out.i32(i32::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::ULong) => out.u32(u32::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::LongLong) => out.i64(i64::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::ULongLong) => out.u64(u64::try_from(*value).map_err(|_| mismatch())?),
            (ConstValue::Integer(value), TcKind::Octet) => out.u8(u8::try_from(*value).map_err(|_| mismatch())?),
            #[allow(clippy::cast_possible_truncation)] // the front end has rounded it
            (ConstValue::Float(value), TcKind::Float) => out.f32(*value as f32),
            (ConstValue::Float(value), TcKind::Double) => out.f64(*value),
            (ConstValue::Boolean(value), TcKind::Boolean) => out.bool(*value),
            (ConstValue::Char(value), TcKind::Char) => out.u8(*value),
            (ConstValue::Enumerator(id), TcKind::Enum) => match &model[*id].kind {
                DefinitionKind::Enumerator(body) => out.u32(body.ordinal),
                _ => return Err(mismatch()),
            },
            _ => return Err(mismatch()),
        }
        Ok(())
    })
    .or_else(|error| match value {
        ConstValue::String(text) => Any::with_type(type_code.clone(), text),
        ConstValue::WideString(text) => Any::with_type(type_code.clone(), &spandrel_cdr::WString::from(text.as_str())),
        ConstValue::WideChar(letter) => Any::with_type(type_code.clone(), letter),
        ConstValue::Fixed(value) => fixed(type_code, &decimal_text(value.unscaled, value.scale)),
        ConstValue::Float(value) if kind == TcKind::LongDouble => {
            let value = DynAny::from_text(type_code, &format!("{value:?}")).map_err(|_| mismatch())?;
            value.to_any().map_err(|_| mismatch())
        }
        _ => Err(error),
    })
}

fn fixed(type_code: &TypeCode, text: &str) -> Result<Any, CdrError> {
    let mismatch = || CdrError::Malformed("a constant is not of its type");
    let value: Decimal = text.parse().map_err(|_| mismatch())?;
    let value = DynAny::from_text(type_code, &value.to_string()).map_err(|_| mismatch())?;
    value.to_any().map_err(|_| mismatch())
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// The `any` for a label of a union; an octet zero stands for `default` (CORBA 3.3 Part 1, 14.5.8).
pub(super) fn label(
    model: &Model,
    discriminator: &TypeCode,
    label: &spandrel_idl::model::Label,
) -> Result<Any, CdrError> {
    match label {
        spandrel_idl::model::Label::Default => Any::new(0_u8),
        spandrel_idl::model::Label::Value(value) => to_any(model, discriminator, value),
    }
}

/// A constant's value as IDL; `scope` is the scope of the enumerators of its type.
pub(super) fn to_idl(value: &Any, enumerator: &dyn Fn(&TypeCode, u32) -> String) -> Result<String, CdrError> {
    let type_code = value.type_code().without_aliases();
    let mut input = value.value();
    Ok(match type_code.kind() {
        TcKind::Short => input.i16()?.to_string(),
        TcKind::UShort => input.u16()?.to_string(),
        TcKind::Long => input.i32()?.to_string(),
        TcKind::ULong => input.u32()?.to_string(),
        TcKind::LongLong => input.i64()?.to_string(),
        TcKind::ULongLong => input.u64()?.to_string(),
        TcKind::Octet => input.u8()?.to_string(),
        TcKind::Float => float(&format!("{:?}", input.f32()?)),
        TcKind::Double => float(&format!("{:?}", input.f64()?)),
        TcKind::Boolean => if input.bool()? { "TRUE" } else { "FALSE" }.to_owned(),
        TcKind::Char => char_literal(input.u8()?),
        TcKind::Enum => enumerator(&type_code, input.u32()?),
        TcKind::String => format!("\"{}\"", value_text(value)?.chars().map(escaped).collect::<String>()),
        TcKind::WString => format!("L\"{}\"", value_text(value)?.chars().map(wide_escaped).collect::<String>()),
        TcKind::WChar => {
            let letter = value.extract::<char>().map_err(|_| CdrError::Malformed("a wide character"))?;
            format!("L'{}'", if letter == '"' { letter.to_string() } else { wide_escaped(letter) })
        }
        TcKind::Fixed => {
            format!("{}d", DynAny::new(value).map_err(|_| unprintable())?.to_string().trim_end_matches(['d', 'D']))
        }
        TcKind::LongDouble => float(&DynAny::new(value).map_err(|_| unprintable())?.to_string()),
        _ => return Err(unprintable()),
    })
}

fn unprintable() -> CdrError {
    CdrError::Malformed("a constant has no IDL form")
}

fn value_text(value: &Any) -> Result<String, CdrError> {
    let type_code = value.type_code().without_aliases();
    let plain = if type_code.kind() == TcKind::String { TypeCode::STRING } else { TypeCode::WSTRING };
    let value = value.retyped(plain).unwrap_or_else(|_| value.clone());
    match type_code.kind() {
        TcKind::String => value.value().str().map(|text| text.into_owned()),
        _ => value.extract::<spandrel_cdr::WString>().map(|text| text.to_string()).map_err(|_| unprintable()),
    }
}

/// A floating-point literal has a point or an exponent (IDL 4.2, 7.2.6.4).
fn float(text: &str) -> String {
    if text.contains(['.', 'e', 'E']) { text.to_owned() } else { format!("{text}.0") }
}

fn char_literal(code: u8) -> String {
    match code {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        code => format!("'{}'", escaped(char::from(code))),
    }
}

/// A character in a string literal. Three octal digits end at the third, so that no digit can follow by mistake.
fn escaped(letter: char) -> String {
    match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        ' '..='~' => letter.to_string(),
        other => format!("\\{:03o}", u32::from(other)),
    }
}

fn wide_escaped(letter: char) -> String {
    match letter {
        '"' | '\'' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        other => {
            let mut units = [0; 2];
            other.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    }
}

/// The label of a union's member as IDL.
pub(super) fn label_to_idl(
    label: Label,
    type_code: &TypeCode,
    enumerator: &dyn Fn(&TypeCode, u32) -> String,
) -> Option<String> {
    let Label::Value(value) = label else { return None };
    let type_code = type_code.without_aliases();
    Some(match type_code.kind() {
        TcKind::Boolean => if value == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        TcKind::Char => char_literal(u8::try_from(value).ok()?),
        TcKind::WChar => format!("L'{}'", wide_escaped(char::from_u32(u32::try_from(value).ok()?)?)),
        TcKind::Enum => enumerator(&type_code, u32::try_from(value).ok()?),
        _ => value.to_string(),
    })
}
