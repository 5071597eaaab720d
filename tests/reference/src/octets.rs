//! Primitives, strings and `fixed` in octets (9.3.1, 9.3.2), for type codes and values.

use spandrel_cdr::{ByteOrder, TcKind, TypeCode, Wire};

use crate::{Value, has_wide, in_order, is_counted_in_octets, is_utf8, size_and_alignment};

/// True if values of the type are one number or one character.
pub(crate) fn is_scalar(of: &TypeCode) -> bool {
    of.kind() == TcKind::WChar || size_and_alignment(of).is_some()
}

pub(crate) struct Reader<'o> {
    pub(crate) octets: &'o [u8],
    pub(crate) at: usize,
    pub(crate) wire: Wire,
    /// The offset of the first octet in the message, for encapsulations.
    pub(crate) base: usize,
    /// The type codes read so far and their offsets, for indirections.
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

    /// Length, characters, NUL (9.3.2.7). Some ORBs write no NUL for an empty string.
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

    pub(crate) fn wstring(&mut self) -> Option<String> {
        if !has_wide(self.wire) {
            return None;
        }
        let len = self.ulong()?;
        let mut units = Vec::new();
        if is_counted_in_octets(self.wire) {
            units = utf16_units(self.take(len)?)?;
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
            // With two octets there is no byte order mark.
            if len == 2 { vec![u16::from_be_bytes([octets[0], octets[1]])] } else { utf16_units(octets)? }
        } else {
            vec![self.primitive(2, 2)? as u16]
        };
        let text = String::from_utf16(&units).ok()?;
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none())
    }

    pub(crate) fn fixed(&mut self, count: usize) -> Option<Value> {
        let octets = self.take(count / 2 + 1)?;
        let mut halves: Vec<u8> = octets.iter().flat_map(|octet| [octet / 16, octet % 16]).collect();
        let negative = match halves.pop()? {
            0xc => false,
            0xd => true,
            _ => return None,
        };
        let surplus = halves.len() - count;
        let fits = halves.iter().all(|half| *half < 10) && halves[..surplus].iter().all(|half| *half == 0);
        // "0xD for negative numbers and 0xC for positive and zero values" (9.3.2.8): a negative zero is a zero.
        let digits = halves[surplus..].to_vec();
        fits.then(|| Value::Digits { negative: negative && digits.iter().any(|digit| *digit > 0), digits })
    }

    /// A value of a discriminator type or another number; `None` if the type is not a [scalar](is_scalar).
    pub(crate) fn scalar(&mut self, of: &TypeCode) -> Option<Value> {
        if of.kind() == TcKind::WChar {
            return self.wchar().map(Value::Wide);
        }
        let (size, alignment) = size_and_alignment(of)?;
        let bits = self.primitive(size, alignment)?;
        let most = match of.kind() {
            TcKind::Boolean => 1,
            TcKind::Enum => of.member_count().expect("enumerators") as u128 - 1,
            _ => u128::MAX,
        };
        (bits <= most).then_some(Value::Bits(bits))
    }
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

    /// Length, characters, NUL (9.3.2.7).
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

    pub(crate) fn wstring(&mut self, text: &str) -> Option<()> {
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
            // The byte order mark states the message's byte order.
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
            self.octets.push(u8::try_from(units.len() * 2).expect("the length is 2 or 4"));
            self.octets.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
        } else {
            let [unit] = units[..] else { return None };
            self.primitive(unit.into(), 2, 2);
        }
        Some(())
    }

    /// Two digits per octet, a leading zero for an even number of digits, the sign in the last half octet
    /// (9.3.2.8).
    pub(crate) fn fixed(&mut self, negative: bool, digits: &[u8]) {
        let mut halves = if digits.len().is_multiple_of(2) { vec![0] } else { vec![] };
        halves.extend(digits);
        halves.push(if negative { 0xd } else { 0xc });
        self.octets.extend(halves.chunks(2).map(|pair| pair[0] * 16 + pair[1]));
    }

    /// A value of a discriminator type or another number.
    pub(crate) fn scalar(&mut self, of: &TypeCode, value: &Value) -> Option<()> {
        match (size_and_alignment(of), value) {
            (_, Value::Wide(value)) => self.wchar(*value),
            (Some((size, alignment)), Value::Bits(bits)) => {
                self.primitive(*bits, size, alignment);
                Some(())
            }
            _ => panic!("{of} is not a scalar"),
        }
    }
}

/// UTF-16 with an optional byte order mark; big-endian without one (9.3.1.6).
fn utf16_units(octets: &[u8]) -> Option<Vec<u16>> {
    let mut pairs: Vec<[u8; 2]> = octets.chunks(2).map(|pair| pair.try_into().ok()).collect::<Option<_>>()?;
    let little = pairs.first() == Some(&[0xff, 0xfe]);
    if little || pairs.first() == Some(&[0xfe, 0xff]) {
        pairs.remove(0);
    }
    Some(pairs.iter().map(|pair| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) }).collect())
}
