//! Literals: conversion from spelling to value (IDL 4.2, 7.2.6).
//!
//! The errors are messages; callers add the position.

use crate::model::FixedValue;

/// Maximum number of digits of a fixed-point number.
pub(crate) const MOST_DIGITS: usize = 31;

/// The longest prefix or repository id that a pragma may set, in octets.
pub(crate) const LONGEST_ID: usize = 1024;

/// An integer: decimal, octal after `0`, hexadecimal after `0x`.
pub(crate) fn integer(text: &str) -> Result<u128, String> {
    let (digits, radix, name) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16, "a hexadecimal"),
        [b'0', _, ..] => (&text[1..], 8, "an octal"),
        _ => (text, 10, "a decimal"),
    };
    if digits.is_empty() {
        return Err(format!("`{text}` has no digits"));
    }
    if let Some(wrong) = digits.chars().find(|digit| !digit.is_digit(radix)) {
        return Err(format!("`{wrong}` is not a digit of {name} integer"));
    }
    let value = u128::from_str_radix(digits, radix).ok().filter(|value| i128::try_from(*value).is_ok());
    value.ok_or_else(|| format!("the integer `{text}` is too large"))
}

/// Whether the spelling is a floating-point literal, or a malformed one.
pub(crate) fn is_float(text: &str) -> bool {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    !hexadecimal && text.contains(['.', 'e', 'E'])
}

/// Whether the spelling is that of a fixed-point literal, such as `1.5d`.
pub(crate) fn is_fixed(text: &str) -> bool {
    let Some(number) = text.strip_suffix(['d', 'D']) else {
        return false;
    };
    !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.')
}

/// A floating-point number: it has a fraction or an exponent, or both.
pub(crate) fn float(text: &str) -> Result<f64, String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    let mantissa_is_good = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction) && whole.len() + fraction.len() > 0,
        None => digits(mantissa) && !mantissa.is_empty(),
    };
    let exponent_is_good = exponent.is_none_or(|it| {
        let it = it.strip_prefix(['+', '-']).unwrap_or(it);
        digits(it) && !it.is_empty()
    });
    if !mantissa_is_good || !exponent_is_good {
        return Err(format!("`{text}` is not a number"));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("the number `{text}` is too large for a double")),
    }
}

/// A fixed-point literal, without insignificant zeros (IDL 4.2, 7.2.6.5). It has at most 31 digits before the
/// point, and at most 31 in all: further ones after the point are dropped, as in omniORB.
pub(crate) fn fixed(text: &str) -> Result<FixedValue, String> {
    let number = text.trim_end_matches(['d', 'D']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.len() + fraction.len() == 0 {
        return Err(format!("`{text}` is not a number"));
    }
    let whole = whole.trim_start_matches('0');
    let Some(room) = MOST_DIGITS.checked_sub(whole.len()) else {
        return Err(format!("a fixed-point number has at most {MOST_DIGITS} digits"));
    };
    let fraction = fraction.get(..room).unwrap_or(fraction).trim_end_matches('0');
    let digits = format!("0{whole}{fraction}");
    let unscaled = digits.parse().map_err(|_| format!("`{text}` is not a number"))?;
    Ok(FixedValue { unscaled, scale: fraction.len() as u8 })
}

/// A character literal with its quotes: one character of ISO 8859-1.
pub(crate) fn character(text: &str) -> Result<char, String> {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    only(&unescape(inner.unwrap_or(""), false)?)
}

/// A wide character literal, as in `L'x'`.
pub(crate) fn wide_character(text: &str) -> Result<char, String> {
    let inner = text.strip_prefix("L'").and_then(|rest| rest.strip_suffix('\''));
    only(&unescape(inner.unwrap_or(""), true)?)
}

fn only(decoded: &str) -> Result<char, String> {
    let mut characters = decoded.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("a character literal is empty".to_owned()),
        (Some(_), Some(_)) => Err("a character literal has more than one character".to_owned()),
    }
}

/// A string literal with its quotes: characters of ISO 8859-1, none of them NUL.
pub(crate) fn string(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    without_nul(unescape(inner.unwrap_or(""), false)?)
}

/// A wide string literal, as in `L"text"`: any characters except NUL.
pub(crate) fn wide_string(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix("L\"").and_then(|rest| rest.strip_suffix('"'));
    without_nul(unescape(inner.unwrap_or(""), true)?)
}

/// The text of a repository id or prefix, a string literal with its quotes. `\U` and four hexadecimal digits stay as
/// written: ids of the Java mapping have that form for characters outside ISO 8859-1, and `$` (CORBA 3.3 Part 1,
/// 14.7.3.2).
pub(crate) fn repository_id(text: &str) -> Result<String, String> {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        let (before, from) = rest.split_at(backslash);
        escaped.push_str(before);
        let is_java =
            from.starts_with("\\U") && from.get(2..6).is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let length = if is_java { 1 } else { 1 + from[1..].chars().next().map_or(0, char::len_utf8) };
        escaped.push_str(if is_java { r"\\" } else { &from[..length] });
        rest = &from[length..];
    }
    escaped.push_str(rest);
    string(&escaped)
}

fn without_nul(decoded: String) -> Result<String, String> {
    if decoded.contains('\0') {
        return Err("a string cannot contain the character NUL".to_owned());
    }
    Ok(decoded)
}

/// The characters of a literal, without the quotes around it, with escape sequences resolved.
fn unescape(text: &str, wide: bool) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == '\\' {
            let (value, used) = escaped_character(rest, wide)?;
            result.push(value);
            rest = &rest[used..];
        } else if u32::from(character) > 0xff && !wide {
            return Err(format!("`{character}` is not a character of ISO 8859-1, the character set of IDL"));
        } else {
            result.push(character);
        }
    }
    Ok(result)
}

/// The character of an escape sequence, or of two for a surrogate pair of UTF-16, and their octets after the
/// first backslash.
fn escaped_character(rest: &str, wide: bool) -> Result<(char, usize), String> {
    let (value, used) = escape(rest, wide)?;
    if let Some(character) = char::from_u32(value) {
        return Ok((character, used));
    }
    let second = rest[used..].strip_prefix('\\').and_then(|rest| escape(rest, wide).ok());
    if let (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, more))) = (value, second)
        && let Some(character) = char::from_u32(0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00))
    {
        return Ok((character, used + 1 + more));
    }
    Err(format!("`\\u{value:x}` is a surrogate without its partner"))
}

/// The code of an escape sequence, and its octets after the backslash.
fn escape(rest: &str, wide: bool) -> Result<(u32, usize), String> {
    let digits = |from: usize, most: usize, radix| {
        let digits = rest.get(from..).unwrap_or("").chars();
        digits.take(most).take_while(|it| it.is_digit(radix)).count()
    };
    let simple = |value: u8| Ok((u32::from(value), 1));
    match rest.as_bytes().first() {
        Some(b'n') => simple(b'\n'),
        Some(b't') => simple(b'\t'),
        Some(b'v') => simple(0x0b),
        Some(b'b') => simple(0x08),
        Some(b'r') => simple(b'\r'),
        Some(b'f') => simple(0x0c),
        Some(b'a') => simple(0x07),
        Some(&quoted @ (b'\\' | b'?' | b'\'' | b'"')) => simple(quoted),
        Some(b'0'..=b'7') => {
            let count = digits(0, 3, 8);
            match u8::from_str_radix(&rest[..count], 8) {
                Ok(value) => Ok((u32::from(value), count)),
                Err(_) => Err(format!("`\\{}` is greater than 255", &rest[..count])),
            }
        }
        Some(b'x') => {
            let count = digits(1, 2, 16);
            let value = u32::from_str_radix(&rest[1..1 + count], 16);
            value.map(|it| (it, 1 + count)).map_err(|_| "`\\x` needs one or two hexadecimal digits".to_owned())
        }
        Some(b'u') if wide => {
            let count = digits(1, 4, 16);
            let value = u32::from_str_radix(&rest[1..1 + count], 16);
            value.map(|it| (it, 1 + count)).map_err(|_| "`\\u` needs one to four hexadecimal digits".to_owned())
        }
        Some(b'u') => Err("`\\u` is for wide characters and strings only".to_owned()),
        _ => {
            let after = rest.chars().next().map(String::from).unwrap_or_default();
            Err(format!("`\\{after}` is not an escape sequence"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_three_radices() {
        assert_eq!(integer("0"), Ok(0));
        assert_eq!(integer("017"), Ok(15));
        assert_eq!(integer("0XfF"), Ok(255));
        assert_eq!(integer("18446744073709551616"), Ok(u128::from(u64::MAX) + 1));
        assert!(integer("08").is_err());
        assert!(integer("0x").is_err());
        assert!(integer("10L").is_err());
        assert!(integer(&"9".repeat(50)).is_err());
    }

    #[test]
    fn floats_need_a_fraction_or_an_exponent() {
        assert_eq!(float("1.5"), Ok(1.5));
        assert_eq!(float(".5"), Ok(0.5));
        assert_eq!(float("5."), Ok(5.0));
        assert_eq!(float("1e-3"), Ok(0.001));
        assert!(is_float("1e5") && !is_float("0x1e5") && !is_float("15"));
        for malformed in [".", "1e", "1e+", "1.2.3", "e5", "1.0f", "inf", "1e400"] {
            assert!(float(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(string(r#""a\n\\\"\x41\101\?""#).as_deref(), Ok("a\n\\\"AA?"));
        assert_eq!(string(r#""\xfg""#).as_deref(), Ok("\u{f}g"));
        assert_eq!(string(r#""\377é""#).as_deref(), Ok("ÿé"));
        assert!(string(r#""\0""#).is_err());
        assert!(string(r#""\q""#).is_err());
        assert!(string(r#""\400""#).is_err());
        assert!(string("\"€\"").is_err());
        assert_eq!(character(r"'\''"), Ok('\''));
        assert_eq!(character(r"'\0'"), Ok('\0'));
        assert!(character("''").is_err());
        assert!(character("'ab'").is_err());
    }

    #[test]
    fn ids_keep_the_escapes_of_java() {
        let id = r#""RMI:a.\U0024b\\U0041\x41\\:0""#;
        assert_eq!(repository_id(id).as_deref(), Ok(r"RMI:a.\U0024b\U0041A\:0"));
        for wrong in [r#""\U002""#, r#""\U""#, r#""\Uxyzw""#, r#""\U00é4""#, r#""\u0024""#] {
            assert!(repository_id(wrong).is_err(), "{wrong}");
        }
        assert!(string(r#""\U0024""#).is_err());
    }

    #[test]
    fn wide_literals_hold_any_character() {
        assert_eq!(wide_string(r#"L"\u20ac\u41z\x41\101\n€""#).as_deref(), Ok("€AzAA\n€"));
        assert_eq!(wide_string(r#"L"\ud83d\ude00""#).as_deref(), Ok("😀"));
        assert_eq!(wide_character("L'é'"), Ok('é'));
        assert_eq!(wide_character(r"L'\0'"), Ok('\0'));
        for wrong in
            [r#"L"\ud83d""#, r#"L"\ude00\ud83d""#, r#"L"\ud83dx""#, r#"L"\ud83d\u0041""#, r#"L"\u0""#, r#"L"\u""#]
        {
            assert!(wide_string(wrong).is_err(), "{wrong}");
        }
        assert!(string(r#""\u0041""#).is_err());
    }

    #[test]
    fn fixed_point_literals_lose_insignificant_zeros() {
        let value = |text: &str| fixed(text).map(|it| (it.unscaled, it.scale));
        assert_eq!(value("0123.450d"), Ok((12345, 2)));
        assert_eq!(value("3000.00D"), Ok((3000, 0)));
        assert_eq!(value(".05d"), Ok((5, 2)));
        assert_eq!(value("7.d"), Ok((7, 0)));
        assert_eq!(value("0d"), Ok((0, 0)));
        let longest = "9".repeat(31);
        assert_eq!(value(&format!("{longest}.9d")), Ok((longest.parse().unwrap(), 0)));
        assert_eq!(value(&format!("1.{}1d", "0".repeat(30))), Ok((1, 0)));
        assert!(fixed(&format!("1{longest}d")).is_err());
        assert!(fixed("1.2.3d").is_err());
        assert!(fixed(".d").is_err());
    }
}
