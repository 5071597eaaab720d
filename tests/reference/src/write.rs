//! From a tree to octets.

use spandrel_cdr::{TcKind, TypeCode, Wire};

use crate::{Value, codes, has_wide, in_order, is_counted_in_octets, is_utf8, size_and_alignment};

/// The octets of a value behind `start` others, which are 0xee. `None` if this agreement cannot say it.
#[must_use]
pub fn write(of: &TypeCode, value: &Value, wire: Wire, start: usize) -> Option<Vec<u8>> {
    let mut out = Writer { octets: vec![0xee; start], wire };
    out.value(of, value)?;
    Some(out.octets)
}

pub(crate) struct Writer {
    pub(crate) octets: Vec<u8>,
    pub(crate) wire: Wire,
}

impl Writer {
    pub(crate) fn primitive(&mut self, bits: u128, size: usize, alignment: usize) {
        while !self.octets.len().is_multiple_of(alignment) {
            self.octets.push(0);
        }
        let big = bits.to_be_bytes()[16 - size..].to_vec();
        self.octets.extend(in_order(self.wire, big));
    }

    pub(crate) fn ulong(&mut self, value: usize) {
        self.primitive(value as u128, 4, 4);
    }

    /// Length, text, NUL (9.3.2.7).
    pub(crate) fn string(&mut self, text: &str) -> Option<()> {
        let octets = if is_utf8(self.wire) {
            text.as_bytes().to_vec()
        } else {
            text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>()?
        };
        self.ulong(octets.len() + 1);
        self.octets.extend(octets);
        self.octets.push(0);
        Some(())
    }

    fn wstring(&mut self, text: &str) -> Option<()> {
        let units: Vec<u16> = text.encode_utf16().collect();
        if !has_wide(self.wire) {
            return None;
        }
        if !is_counted_in_octets(self.wire) {
            self.ulong(units.len() + 1);
            units.iter().chain(&[0]).for_each(|unit| self.primitive((*unit).into(), 2, 2));
        } else if units.is_empty() {
            self.ulong(0);
        } else {
            // A byte order mark says that what follows is in the message's order.
            self.ulong(units.len() * 2 + 2);
            [0xfeff].iter().chain(&units).for_each(|unit| self.primitive((*unit).into(), 2, 1));
        }
        Some(())
    }

    fn wchar(&mut self, value: char) -> Option<()> {
        let text = value.to_string();
        let units: Vec<u16> = text.encode_utf16().collect();
        if !has_wide(self.wire) {
            return None;
        }
        if is_counted_in_octets(self.wire) {
            self.octets.push(u8::try_from(units.len() * 2).expect("2 or 4"));
            self.octets.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
        } else {
            let [unit] = units[..] else { return None };
            self.primitive(unit.into(), 2, 2);
        }
        Some(())
    }

    /// Two digits an octet, a zero before an even number of them, the sign in the last half (9.3.2.8).
    fn fixed(&mut self, negative: bool, digits: &[u8]) {
        let mut halves = if digits.len().is_multiple_of(2) { vec![0] } else { vec![] };
        halves.extend(digits);
        halves.push(if negative { 0xd } else { 0xc });
        self.octets.extend(halves.chunks(2).map(|pair| pair[0] * 16 + pair[1]));
    }

    pub(crate) fn value(&mut self, of: &TypeCode, value: &Value) -> Option<()> {
        let of = of.without_aliases();
        if let (Some((size, alignment)), Value::Bits(bits)) = (size_and_alignment(&of), value) {
            self.primitive(*bits, size, alignment);
            return Some(());
        }
        match value {
            Value::Nothing => {}
            Value::Wide(value) => self.wchar(*value)?,
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
                codes::write(self, of)?;
                self.value(of, value)?;
            }
            Value::Type(of) => codes::write(self, of)?,
            Value::Reference(type_id, profiles) => {
                self.string(type_id)?;
                self.ulong(profiles.len());
                for (tag, content) in profiles {
                    self.ulong(*tag as usize);
                    self.ulong(content.len());
                    self.octets.extend(content);
                }
            }
            Value::Bits(_) => panic!("{of} has no bits"),
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
