//! Printing of values.

use std::{
    collections::{HashMap, HashSet},
    fmt::{self, Display as _},
};

use spandrel_cdr::{TcKind, TypeCode};

use super::super::{
    DynAny,
    discriminator::label_of,
    dyn_any::{State, Value, ValueId},
    leaf::Leaf,
    members::members_of,
};

/// The text that [`DynAny::from_text`] parses.
impl fmt::Display for DynAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let linked: HashSet<ValueId> = self.links().into_iter().collect();
        let numbered = self.states_in_order().into_iter().filter(|id| linked.contains(id));
        Printer { numbers: numbered.zip(1..).collect() }.value(self, f)
    }
}

struct Printer {
    /// The numbers of values that occur several times.
    numbers: HashMap<ValueId, usize>,
}

impl Printer {
    fn value(&self, value: &DynAny, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolved = value.resolved();
        match (&value.value, resolved.kind()) {
            (Value::Nothing, TcKind::Void) => f.write_str("void"),
            (Value::Nothing, _) => f.write_str("null"),
            (Value::Leaf(leaf), _) => value.leaf_text(leaf, f),
            (Value::Parts(parts), TcKind::Sequence | TcKind::Array) => {
                f.write_str("[")?;
                self.list(parts.iter().map(|part| (None, part)), f)?;
                f.write_str("]")
            }
            (Value::Parts(parts), TcKind::Union) => {
                let label = label_of(&parts[0]).ok();
                let member = label.and_then(|label| resolved.selected_member(label).ok().flatten());
                let name = member.and_then(|member| resolved.member_name(member).ok());
                f.write_str("{")?;
                let discriminator = std::iter::once((Some("_d"), &parts[0]));
                self.list(discriminator.chain(name.zip(parts.get(1)).map(|(name, part)| (Some(name), part))), f)?;
                f.write_str("}")
            }
            (Value::Parts(parts), _) => {
                let members = members_of(&resolved).unwrap_or_default();
                f.write_str("{")?;
                self.list(members.iter().zip(parts).map(|((name, _), part)| (Some(&**name), part)), f)?;
                f.write_str("}")
            }
            (Value::State(state), _) => self.state(state, &resolved, f),
            (Value::Link(link), _) => write!(f, "{{_ref: {}}}", self.numbers.get(&link.id).unwrap_or(&0)),
        }
    }

    fn state(&self, state: &State, declared: &TypeCode, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { id, of, parts } = state;
        let number = self.numbers.get(id);
        let of_own_type = Some(of).filter(|of| of.id() != declared.id());
        if let (TcKind::ValueBox, None, None, [content]) = (of.kind(), number, of_own_type, &parts[..]) {
            return self.value(content, f);
        }
        let members = if of.kind() == TcKind::ValueBox {
            vec![("_value".to_owned(), TypeCode::NULL)]
        } else {
            members_of(of).unwrap_or_default()
        };
        let mut comma = "";
        f.write_str("{")?;
        if let Some(number) = number {
            write!(f, "_id: {number}")?;
            comma = ", ";
        }
        if let Some(of) = of_own_type {
            write!(f, "{comma}_type: ")?;
            quoted(of.id().unwrap_or_default(), f)?;
            comma = ", ";
        }
        f.write_str(if parts.is_empty() { "" } else { comma })?;
        self.list(members.iter().zip(parts).map(|((name, _), part)| (Some(&**name), part)), f)?;
        f.write_str("}")
    }

    fn list<'p>(
        &self,
        parts: impl Iterator<Item = (Option<&'p str>, &'p DynAny)>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        for (index, (name, part)) in parts.enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            if let Some(name) = name {
                write!(f, "{name}: ")?;
            }
            self.value(part, f)?;
        }
        Ok(())
    }
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
