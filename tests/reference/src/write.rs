//! Encoding: from a tree to octets.

use spandrel_cdr::{TcKind, TypeCode, Wire};

use crate::octets::Writer;
use crate::{Value, type_codes};

/// Encodes a value after `start` octets of 0xee. `None` if it cannot be represented with these wire settings.
#[must_use]
pub fn write(of: &TypeCode, value: &Value, wire: Wire, start: usize) -> Option<Vec<u8>> {
    let mut out = Writer { octets: vec![0xee; start], wire };
    out.value(of, value)?;
    Some(out.octets)
}

impl Writer {
    pub(crate) fn value(&mut self, of: &TypeCode, value: &Value) -> Option<()> {
        let of = of.without_aliases();
        match value {
            Value::Nothing => {}
            Value::Bits(_) | Value::Wide(_) => self.scalar(&of, value)?,
            Value::Text(text) if of.kind() == TcKind::WString => self.wstring(text)?,
            Value::Text(text) => self.string(text)?,
            Value::Digits { negative, digits } => self.fixed(*negative, digits),
            Value::Parts(parts) => self.parts(&of, parts)?,
            Value::Union(discriminator, member) => {
                let switch = of.discriminator_type().expect("a union").without_aliases();
                self.value(&switch, discriminator)?;
                if let Some(member) = member {
                    let of = crate::member_for(&of, crate::label_of(&switch, discriminator)).expect("a member");
                    self.value(&of, member)?;
                }
            }
            Value::Any(of, value) => {
                type_codes::write(self, of)?;
                self.value(of, value)?;
            }
            Value::Type(of) => type_codes::write(self, of)?,
            Value::Reference(type_id, profiles) => {
                self.string(type_id)?;
                self.ulong(profiles.len());
                for (tag, content) in profiles {
                    self.ulong(*tag as usize);
                    self.ulong(content.len());
                    self.octets.extend(content);
                }
            }
        }
        Some(())
    }

    fn parts(&mut self, of: &TypeCode, parts: &[Value]) -> Option<()> {
        match of.kind() {
            TcKind::Sequence | TcKind::Array => {
                if of.kind() == TcKind::Sequence {
                    self.ulong(parts.len());
                }
                let element = of.content_type().expect("elements");
                parts.iter().try_for_each(|part| self.value(&element, part))
            }
            kind => {
                if kind == TcKind::Except {
                    self.string(of.id().expect("an id"))?;
                }
                crate::members_of(of).iter().zip(parts).try_for_each(|(of, part)| self.value(of, part))
            }
        }
    }
}
