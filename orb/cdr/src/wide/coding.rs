//! Wide characters and strings on the wire (CORBA 3.3 Part 2, 9.3.1.6 and 9.3.2.7).
//!
//! | GIOP | `wchar` | `wstring` |
//! | --- | --- | --- |
//! | 1.0 | none | none |
//! | 1.1 | one code unit in the message's byte order | length in code units with the NUL, code units, NUL |
//! | 1.2 | an octet with the length in octets, octets | length in octets, octets without NUL |
//!
//! In 1.1 a code unit has two octets, so only UTF-16 and UCS-2 are possible. In 1.2, UTF-16 without a byte
//! order mark is big-endian, independent of the message's order. For UCS-2 and UCS-4 the standard leaves the
//! order open; JacORB has the first big-endian, omniORB the second in the message's order. Spandrel writes
//! the same: UTF-16 strings in the message's order after a mark, characters big-endian without one, the
//! others without a mark. A mark is accepted in all of them.

use crate::{ByteOrder, CdrError, CodeSet, Decoder, Encoder, GiopVersion, WcharSet, Wire};

impl Encoder<'_> {
    /// Writes an IDL `wstring`.
    ///
    /// # Errors
    /// [`CdrError::NulInString`]; [`CdrError::WideInGiop10`]; [`CdrError::NoWcharSet`];
    /// [`CdrError::TooLong`].
    pub fn wstr(&mut self, value: &str) -> Result<(), CdrError> {
        encode(self, value)
    }

    /// Writes an IDL `wchar`.
    ///
    /// # Errors
    /// [`CdrError::WideInGiop10`]; [`CdrError::NoWcharSet`]; in GIOP 1.1, whose wide characters are one code
    /// unit, [`CdrError::NotRepresentable`].
    pub fn wchar(&mut self, value: char) -> Result<(), CdrError> {
        encode_char(self, value)
    }
}

impl Decoder<'_> {
    /// Reads an IDL `wstring`.
    ///
    /// # Errors
    /// [`CdrError::NotText`] for octets that are not UTF-16; [`CdrError::StrayNul`];
    /// [`CdrError::UnterminatedString`] in GIOP 1.1;
    /// [`CdrError::WideInGiop10`]; [`CdrError::NoWcharSet`]; [`CdrError::LengthBeyondInput`].
    pub fn wstr(&mut self) -> Result<String, CdrError> {
        decode(self)
    }

    /// Reads an IDL `wchar`.
    ///
    /// # Errors
    /// As [`Decoder::wstr`]; [`CdrError::Malformed`] for an impossible number of octets.
    pub fn wchar(&mut self) -> Result<char, CdrError> {
        decode_char(self)
    }
}

/// The byte order mark.
const BOM: u32 = 0xfeff;

/// The form of wide characters in the version and the code set in force.
#[derive(Clone, Copy)]
enum Form {
    /// Code units of two octets, aligned, in the message's order.
    Units,
    /// A number of octets, then those octets without alignment.
    Counted,
}

/// The meaning of the octets.
#[derive(Clone, Copy)]
enum Coding {
    Utf16,
    /// This many octets per character.
    Fixed(usize),
    Octets(CodeSet),
}

fn form(wire: Wire) -> Result<(Form, Coding), CdrError> {
    let set = wire.wchar_set;
    let coding = match set {
        _ if wire.version < GiopVersion::V1_1 => return Err(CdrError::WideInGiop10),
        WcharSet::Unknown => return Err(CdrError::NoWcharSet),
        WcharSet::Utf16 => Coding::Utf16,
        WcharSet::Other(other) => other.width().map_or(Coding::Octets(other), Coding::Fixed),
    };
    match coding {
        _ if wire.version > GiopVersion::V1_1 => Ok((Form::Counted, coding)),
        Coding::Utf16 | Coding::Fixed(2) => Ok((Form::Units, coding)),
        _ => Err(CdrError::WideInGiop11(set.name())),
    }
}

fn not_representable(wire: Wire, character: char) -> CdrError {
    CdrError::NotRepresentable { character, code_set: wire.wchar_set.name() }
}

fn encode(out: &mut Encoder<'_>, value: &str) -> Result<(), CdrError> {
    let wire = out.wire();
    let (form, coding) = form(wire)?;
    out.record_code_sets();
    if value.contains('\0') {
        return Err(CdrError::NulInString);
    }
    match (form, coding) {
        (Form::Units, _) => {
            check_units(wire, coding, value)?;
            out.len(value.encode_utf16().count() + 1)?;
            value.encode_utf16().chain([0]).for_each(|unit| out.u16(unit));
        }
        _ if value.is_empty() => out.len(0)?,
        (Form::Counted, Coding::Utf16) => {
            let units = value.encode_utf16().count();
            out.len((units + 1).checked_mul(2).ok_or(CdrError::TooLong { len: units })?)?;
            std::iter::once(BOM as u16).chain(value.encode_utf16()).for_each(|unit| out.u16(unit));
        }
        (Form::Counted, Coding::Fixed(_)) if value.starts_with(['\u{feff}', '\u{fffe}']) => {
            // It would be read as a byte order mark, unless there is one.
            out.octet_sequence(&octets(wire, coding, &["\u{feff}", value].concat())?)?;
        }
        (Form::Counted, _) => out.octet_sequence(&octets(wire, coding, value)?)?,
    }
    Ok(())
}

/// Checks that each character is one code unit of UCS-2.
fn check_units(wire: Wire, coding: Coding, value: &str) -> Result<(), CdrError> {
    let beyond = match coding {
        Coding::Fixed(2) => value.chars().find(|value| value.len_utf16() > 1),
        _ => None,
    };
    beyond.map_or(Ok(()), |beyond| Err(not_representable(wire, beyond)))
}

/// The byte order of a fixed number of octets per character without a mark.
fn fixed_order(wire: Wire, width: usize) -> ByteOrder {
    if width == 4 { wire.order } else { ByteOrder::Big }
}

/// Encodes text as counted octets, without a mark.
fn octets(wire: Wire, coding: Coding, value: &str) -> Result<Vec<u8>, CdrError> {
    match coding {
        Coding::Utf16 => Ok(value.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Coding::Octets(set) => set.encode(value).map_err(|beyond| not_representable(wire, beyond)),
        Coding::Fixed(width) => {
            check_units(wire, coding, value)?;
            let order = fixed_order(wire, width);
            let mut octets = Vec::with_capacity(value.len() * width);
            for value in value.chars().map(u32::from) {
                match order {
                    ByteOrder::Big => octets.extend_from_slice(&value.to_be_bytes()[4 - width..]),
                    ByteOrder::Little => octets.extend_from_slice(&value.to_le_bytes()[..width]),
                }
            }
            Ok(octets)
        }
    }
}

fn encode_char(out: &mut Encoder<'_>, value: char) -> Result<(), CdrError> {
    let wire = out.wire();
    let (form, coding) = form(wire)?;
    out.record_code_sets();
    let text = &mut [0; 4];
    let text = value.encode_utf8(text);
    match form {
        Form::Units => out.u16(u16::try_from(u32::from(value)).map_err(|_| not_representable(wire, value))?),
        Form::Counted => {
            let octets = octets(wire, coding, text)?;
            out.u8(u8::try_from(octets.len()).expect("a character has a few octets"));
            out.octets(&octets);
        }
    }
    Ok(())
}

fn decode(input: &mut Decoder<'_>) -> Result<String, CdrError> {
    let wire = input.wire();
    let (form, coding) = form(wire)?;
    let text = match form {
        Form::Units => terminated_units(input)?,
        Form::Counted => text(wire, coding, input.octet_sequence()?, true)?,
    };
    if text.contains('\0') { Err(CdrError::StrayNul) } else { Ok(text) }
}

/// The text of a GIOP 1.1 string. A length of zero is accepted as the empty string, as for narrow strings.
fn terminated_units(input: &mut Decoder<'_>) -> Result<String, CdrError> {
    let len = input.sequence_len(2)?;
    let order = input.wire().order;
    if len == 0 {
        return Ok(String::new());
    }
    input.align(2)?;
    let (units, _) = input.take(len * 2)?.as_chunks();
    let (last, units) = units.split_last().expect("the length is not zero");
    if *last != [0, 0] {
        return Err(CdrError::UnterminatedString);
    }
    join(units, order)
}

fn decode_char(input: &mut Decoder<'_>) -> Result<char, CdrError> {
    let wire = input.wire();
    let (form, coding) = form(wire)?;
    if let Form::Units = form {
        return char::from_u32(u32::from(input.u16()?)).ok_or(CdrError::NotText(wire.wchar_set.name()));
    }
    let len = usize::from(input.u8()?);
    let octets = input.take(len)?;
    // A mark alone is the character U+FEFF: there is no text for it to mark.
    let is_marked = match coding {
        Coding::Utf16 => len > 2,
        Coding::Fixed(width) => len > width,
        Coding::Octets(_) => false,
    };
    let text = text(wire, coding, octets, is_marked)?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(CdrError::Malformed("a wide character has no octets")),
        _ => Err(CdrError::Malformed("a wide character has the octets of several")),
    }
}

/// Decodes counted octets; a mark may precede them.
fn text(wire: Wire, coding: Coding, octets: &[u8], is_marked: bool) -> Result<String, CdrError> {
    let not_text = || CdrError::NotText(wire.wchar_set.name());
    match coding {
        Coding::Octets(set) => set.decode(octets).ok_or_else(not_text),
        Coding::Utf16 | Coding::Fixed(2) => {
            let (units, []) = octets.as_chunks() else {
                return Err(CdrError::Malformed("wide text of two octets per character has an odd length"));
            };
            let (units, order) = split_mark(units, two, is_marked).unwrap_or((units, ByteOrder::Big));
            match coding {
                Coding::Utf16 => join(units, order),
                _ => units.iter().map(|unit| char::from_u32(two(*unit, order)).ok_or_else(not_text)).collect(),
            }
        }
        Coding::Fixed(_) => {
            let (units, []) = octets.as_chunks() else {
                return Err(CdrError::Malformed(
                    "wide text of four octets per character has a length that is no multiple of four",
                ));
            };
            let (units, order) = split_mark(units, four, is_marked).unwrap_or((units, fixed_order(wire, 4)));
            units.iter().map(|unit| char::from_u32(four(*unit, order)).ok_or_else(not_text)).collect()
        }
    }
}

fn two(octets: [u8; 2], order: ByteOrder) -> u32 {
    u32::from(match order {
        ByteOrder::Big => u16::from_be_bytes(octets),
        ByteOrder::Little => u16::from_le_bytes(octets),
    })
}

fn four(octets: [u8; 4], order: ByteOrder) -> u32 {
    match order {
        ByteOrder::Big => u32::from_be_bytes(octets),
        ByteOrder::Little => u32::from_le_bytes(octets),
    }
}

/// The units after the byte order mark, and its order, if there is one.
fn split_mark<const N: usize>(
    units: &[[u8; N]],
    number: fn([u8; N], ByteOrder) -> u32,
    is_marked: bool,
) -> Option<(&[[u8; N]], ByteOrder)> {
    let (first, rest) = units.split_first().filter(|_| is_marked)?;
    let order = [ByteOrder::Big, ByteOrder::Little].into_iter().find(|order| number(*first, *order) == BOM)?;
    Some((rest, order))
}

fn join(units: &[[u8; 2]], order: ByteOrder) -> Result<String, CdrError> {
    let units = units.iter().map(|octets| two(*octets, order) as u16);
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| CdrError::NotText("UTF-16"))
}
