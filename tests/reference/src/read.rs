//! Decoding: from octets to a tree.

use spandrel_cdr::{TcKind, TypeCode, Wire};

use crate::octets::{Reader, is_scalar};
use crate::{Value, type_codes};

/// Reads a value; returns it with its end. Alignment counts from the first octet; the value begins at
/// `start`. `None` if the octets are not a value of the type.
#[must_use]
pub fn read(of: &TypeCode, octets: &[u8], wire: Wire, start: usize) -> Option<(Value, usize)> {
    let mut input = Reader { octets, at: start, wire, base: 0, known: Vec::new() };
    let value = input.value(of)?;
    Some((value, input.at))
}

impl Reader<'_> {
    fn bounded(text: String, of: &TypeCode) -> Option<Value> {
        let bound = of.length().expect("a bound") as usize;
        (bound == 0 || text.chars().count() <= bound).then_some(Value::Text(text))
    }

    pub(crate) fn value(&mut self, of: &TypeCode) -> Option<Value> {
        let of = of.without_aliases();
        if is_scalar(&of) {
            return self.scalar(&of);
        }
        Some(match of.kind() {
            TcKind::Null | TcKind::Void => Value::Nothing,
            TcKind::String => Self::bounded(self.string()?, &of)?,
            TcKind::WString => Self::bounded(self.wstring()?, &of)?,
            TcKind::Fixed => self.fixed(of.fixed_digits().expect("digits").into())?,
            TcKind::Struct => {
                Value::Parts(crate::members_of(&of).iter().map(|of| self.value(of)).collect::<Option<_>>()?)
            }
            TcKind::Except => {
                // 9.3.5.5 requires the repository id here, but omniORB does not write it within an `any`.
                let start = self.at;
                if self.string().is_none_or(|id| id.is_empty() || of.id() != Ok(&*id)) {
                    self.at = start;
                }
                Value::Parts(crate::members_of(&of).iter().map(|of| self.value(of)).collect::<Option<_>>()?)
            }
            TcKind::Sequence | TcKind::Array => self.elements(&of)?,
            TcKind::Union => {
                let switch = of.discriminator_type().expect("a union").without_aliases();
                let discriminator = self.value(&switch)?;
                let member = match crate::member_for(&of, crate::label_of(&switch, &discriminator)) {
                    Some(of) => Some(Box::new(self.value(&of)?)),
                    None => None,
                };
                Value::Union(Box::new(discriminator), member)
            }
            TcKind::Any => {
                let of = type_codes::read(self)?;
                let value = self.value(&of)?;
                Value::Any(of, Box::new(value))
            }
            TcKind::TypeCode => Value::Type(type_codes::read(self)?),
            TcKind::ObjRef => {
                let type_id = self.string()?;
                let count = self.ulong()?;
                let profiles = (0..count).map(|_| Some((self.ulong()? as u32, self.octet_sequence()?.to_vec())));
                Value::Reference(type_id, profiles.collect::<Option<_>>()?)
            }
            other => panic!("values of {other} are not supported"),
        })
    }

    fn elements(&mut self, of: &TypeCode) -> Option<Value> {
        let declared = of.length().expect("a number") as usize;
        let len = if of.kind() == TcKind::Sequence { self.ulong()? } else { declared };
        // A length beyond the remaining octets is invalid: each element has at least one octet.
        if of.kind() == TcKind::Sequence && (len > self.octets.len() - self.at || (declared > 0 && len > declared)) {
            return None;
        }
        let element = of.content_type().expect("elements");
        (0..len).map(|_| self.value(&element)).collect::<Option<_>>().map(Value::Parts)
    }
}
