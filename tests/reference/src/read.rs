//! From octets to a tree.

use spandrel_cdr::{ByteOrder, TcKind, TypeCode, Wire};

use crate::{Value, codes, has_wide, is_counted_in_octets, is_utf8, size_and_alignment};

/// A value, and where it ends. Alignment counts from the first octet; the value begins at `start`. `None` if the octets are
/// no value of the type.
#[must_use]
pub fn read(of: &TypeCode, octets: &[u8], wire: Wire, start: usize) -> Option<(Value, usize)> {
    let mut input = Reader { octets, at: start, wire, base: 0, known: Vec::new() };
    let value = input.value(of)?;
    Some((value, input.at))
}

pub(crate) struct Reader<'o> {
    pub(crate) octets: &'o [u8],
    pub(crate) at: usize,
    pub(crate) wire: Wire,
    /// Where the first octet stands in the message: not at its beginning, within encapsulations.
    pub(crate) base: usize,
    /// Type codes that were read, and where: what indirections mean.
    pub(crate) known: Vec<(usize, TypeCode)>,
}

impl<'o> Reader<'o> {
    pub(crate) fn take(&mut self, len: usize) -> Option<&'o [u8]> {
        let taken = self.octets.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    pub(crate) fn primitive(&mut self, size: usize, alignment: usize) -> Option<u128> {
        while !self.at.is_multiple_of(alignment) {
            self.take(1)?;
        }
        let mut big = self.take(size)?.to_vec();
        if self.wire.order == ByteOrder::Little {
            big.reverse();
        }
        Some(big.iter().fold(0, |bits, octet| bits << 8 | u128::from(*octet)))
    }

    pub(crate) fn ulong(&mut self) -> Option<usize> {
        self.primitive(4, 4).map(|value| value as usize)
    }

    pub(crate) fn octet_sequence(&mut self) -> Option<&'o [u8]> {
        let len = self.ulong()?;
        self.take(len)
    }

    /// Length, text, NUL (9.3.2.7). Some write no NUL for an empty text.
    pub(crate) fn string(&mut self) -> Option<String> {
        let octets = self.octet_sequence()?;
        let Some((last, text)) = octets.split_last() else { return Some(String::new()) };
        if *last != 0 || text.contains(&0) {
            return None;
        }
        if is_utf8(self.wire) {
            return String::from_utf8(text.to_vec()).ok();
        }
        Some(text.iter().map(|octet| char::from(*octet)).collect())
    }

    fn wstring(&mut self) -> Option<String> {
        if !has_wide(self.wire) {
            return None;
        }
        let len = self.ulong()?;
        let mut units = Vec::new();
        if is_counted_in_octets(self.wire) {
            units = marked(self.take(len)?)?;
        } else {
            for _ in 0..len {
                units.push(self.primitive(2, 2)? as u16);
            }
            if len > 0 && units.pop() != Some(0) {
                return None;
            }
        }
        String::from_utf16(&units).ok().filter(|text| !text.contains('\0'))
    }

    fn wchar(&mut self) -> Option<char> {
        if !has_wide(self.wire) {
            return None;
        }
        let units = if is_counted_in_octets(self.wire) {
            let len = usize::from(*self.take(1)?.first()?);
            let octets = self.take(len)?;
            // With two octets there is nothing for a mark to mark.
            if len == 2 { vec![u16::from_be_bytes([octets[0], octets[1]])] } else { marked(octets)? }
        } else {
            vec![self.primitive(2, 2)? as u16]
        };
        let text = String::from_utf16(&units).ok()?;
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none())
    }

    fn fixed(&mut self, count: usize) -> Option<Value> {
        let octets = self.take(count / 2 + 1)?;
        let mut halves: Vec<u8> = octets.iter().flat_map(|octet| [octet / 16, octet % 16]).collect();
        let negative = match halves.pop()? {
            0xc => false,
            0xd => true,
            _ => return None,
        };
        let surplus = halves.len() - count;
        let fits = halves.iter().all(|half| *half < 10) && halves[..surplus].iter().all(|half| *half == 0);
        // "0xD for negative numbers and 0xC for positive and zero values" (9.3.2.8): a zero with the other sign is a zero.
        let digits = halves[surplus..].to_vec();
        fits.then(|| Value::Digits { negative: negative && digits.iter().any(|digit| *digit > 0), digits })
    }

    fn bounded(text: String, of: &TypeCode) -> Option<Value> {
        let bound = of.length().expect("a bound") as usize;
        (bound == 0 || text.chars().count() <= bound).then_some(Value::Text(text))
    }

    pub(crate) fn value(&mut self, of: &TypeCode) -> Option<Value> {
        let of = of.without_aliases();
        if let Some((size, alignment)) = size_and_alignment(&of) {
            let bits = self.primitive(size, alignment)?;
            let most = match of.kind() {
                TcKind::Boolean => 1,
                TcKind::Enum => of.member_count().expect("enumerators") as u128 - 1,
                _ => u128::MAX,
            };
            return (bits <= most).then_some(Value::Bits(bits));
        }
        Some(match of.kind() {
            TcKind::Null | TcKind::Void => Value::Nothing,
            TcKind::WChar => Value::Wide(self.wchar()?),
            TcKind::String => Self::bounded(self.string()?, &of)?,
            TcKind::WString => Self::bounded(self.wstring()?, &of)?,
            TcKind::Fixed => self.fixed(of.fixed_digits().expect("digits").into())?,
            TcKind::Struct => {
                Value::Parts(crate::members_of(&of).iter().map(|of| self.value(of)).collect::<Option<_>>()?)
            }
            TcKind::Except => {
                // Its id should stand here (9.3.5.5), but omniORB writes none within an `any`.
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
                let of = codes::read(self)?;
                let value = self.value(&of)?;
                Value::Any(of, Box::new(value))
            }
            TcKind::TypeCode => Value::Type(codes::read(self)?),
            TcKind::ObjRef => {
                let type_id = self.string()?;
                let count = self.ulong()?;
                let profiles = (0..count).map(|_| Some((self.ulong()? as u32, self.octet_sequence()?.to_vec())));
                Value::Reference(type_id, profiles.collect::<Option<_>>()?)
            }
            other => panic!("no values of {other} are read here"),
        })
    }

    fn elements(&mut self, of: &TypeCode) -> Option<Value> {
        let said = of.length().expect("a number") as usize;
        let len = if of.kind() == TcKind::Sequence { self.ulong()? } else { said };
        // More elements than octets that are left: such a length is a lie here, where every element has some.
        if of.kind() == TcKind::Sequence && (len > self.octets.len() - self.at || (said > 0 && len > said)) {
            return None;
        }
        let element = of.content_type().expect("elements");
        (0..len).map(|_| self.value(&element)).collect::<Option<_>>().map(Value::Parts)
    }
}

/// UTF-16 that a mark may stand before; big-endian without one (9.3.1.6).
fn marked(octets: &[u8]) -> Option<Vec<u16>> {
    let mut pairs: Vec<[u8; 2]> = octets.chunks(2).map(|pair| pair.try_into().ok()).collect::<Option<_>>()?;
    let little = pairs.first() == Some(&[0xff, 0xfe]);
    if little || pairs.first() == Some(&[0xfe, 0xff]) {
        pairs.remove(0);
    }
    Some(pairs.iter().map(|pair| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) }).collect())
}
