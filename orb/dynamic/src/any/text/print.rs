//! From values to text.

use std::fmt::{self, Display as _};

use spandrel_cdr::TcKind;

use super::super::{DynAny, discriminator::label_of, dyn_any::Value, leaf::Leaf, members::members_of};

/// As [`DynAny::from_text`] reads it.
impl fmt::Display for DynAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolved = self.resolved();
        match (&self.value, resolved.kind()) {
            (Value::Nothing, TcKind::Void) => f.write_str("void"),
            (Value::Nothing, _) => f.write_str("null"),
            (Value::Leaf(leaf), _) => self.leaf_text(leaf, f),
            (Value::Parts(parts), TcKind::Sequence | TcKind::Array) => {
                f.write_str("[")?;
                list(parts.iter().map(|part| (None, part)), f)?;
                f.write_str("]")
            }
            (Value::Parts(parts), TcKind::ValueBox) => parts.iter().try_for_each(|part| part.fmt(f)),
            (Value::Parts(parts), TcKind::Union) => {
                let label = label_of(&parts[0]).ok();
                let member = label.and_then(|label| resolved.selected_member(label).ok().flatten());
                let name = member.and_then(|member| resolved.member_name(member).ok());
                f.write_str("{")?;
                let discriminator = std::iter::once((Some("_d"), &parts[0]));
                list(discriminator.chain(name.zip(parts.get(1)).map(|(name, part)| (Some(name), part))), f)?;
                f.write_str("}")
            }
            (Value::Parts(parts), _) => {
                let members = members_of(&resolved).unwrap_or_default();
                f.write_str("{")?;
                list(members.iter().zip(parts).map(|((name, _), part)| (Some(&**name), part)), f)?;
                f.write_str("}")
            }
        }
    }
}

fn list<'p>(parts: impl Iterator<Item = (Option<&'p str>, &'p DynAny)>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, (name, part)) in parts.enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        if let Some(name) = name {
            write!(f, "{name}: ")?;
        }
        part.fmt(f)?;
    }
    Ok(())
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            other if other.is_control() => write!(f, "\\u{:04x}", u32::from(other))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

impl DynAny {
    fn leaf_text(&self, leaf: &Leaf, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match leaf {
            Leaf::Boolean(value) => write!(f, "{value}"),
            Leaf::Octet(value) => write!(f, "{value}"),
            Leaf::Char(value) => quoted(char::from(value.0).encode_utf8(&mut [0; 4]), f),
            Leaf::WChar(value) => quoted(value.encode_utf8(&mut [0; 4]), f),
            Leaf::Short(value) => write!(f, "{value}"),
            Leaf::UShort(value) => write!(f, "{value}"),
            Leaf::Long(value) => write!(f, "{value}"),
            Leaf::ULong(value) => write!(f, "{value}"),
            Leaf::LongLong(value) => write!(f, "{value}"),
            Leaf::ULongLong(value) => write!(f, "{value}"),
            Leaf::Float(value) => write!(f, "{value:?}"),
            Leaf::Double(value) => write!(f, "{value:?}"),
            Leaf::LongDouble(value) => write!(f, "{:?}", value.to_f64()),
            Leaf::String(value) => quoted(value, f),
            Leaf::WString(value) => quoted(value, f),
            Leaf::Any(value) => match Self::new(value) {
                Ok(value) => value.fmt(f),
                Err(_) => write!(f, "a value of type `{}`", value.type_code()),
            },
            Leaf::TypeCode(value) => write!(f, "`{value}`"),
            Leaf::Reference(value) if value.profiles.is_empty() => f.write_str("null"),
            Leaf::Reference(value) => f.write_str(&spandrel_giop::ior_to_string(value)),
            Leaf::Enum(value) => match self.resolved().member_name(*value as usize) {
                Ok(name) if !name.is_empty() => f.write_str(name),
                _ => write!(f, "{value}"),
            },
            Leaf::Fixed(value) => write!(f, "{value}"),
        }
    }
}
