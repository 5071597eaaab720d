//! Literals: from spelling to value (IDL 4.2, 7.2.6).
//!
//! The errors are messages; where they stand is for the caller to say.

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
    u128::from_str_radix(digits, radix).map_err(|_| format!("the integer `{text}` is too large"))
}

/// Whether the spelling is that of a floating-point literal, or of something malformed that comes nearest to one.
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

/// A character literal with its quotes: one character of ISO 8859-1.
pub(crate) fn character(text: &str) -> Result<char, String> {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let decoded = unescape(inner.unwrap_or(""))?;
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
    let decoded = unescape(inner.unwrap_or(""))?;
    if decoded.contains('\0') {
        return Err("a string cannot contain the character NUL".to_owned());
    }
    Ok(decoded)
}

/// Resolves escape sequences.
fn unescape(text: &str) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == '\\' {
            let (value, used) = escape(rest)?;
            result.push(value);
            rest = &rest[used..];
        } else if u32::from(character) > 0xff {
            return Err(format!("`{character}` is not a character of ISO 8859-1, in which IDL is written"));
        } else {
            result.push(character);
        }
    }
    Ok(result)
}

/// The character that an escape sequence means, and how many octets it takes after its backslash.
fn escape(rest: &str) -> Result<(char, usize), String> {
    let digits = |from: usize, most: usize, radix| {
        let digits = rest.get(from..).unwrap_or("").chars();
        digits.take(most).take_while(|it| it.is_digit(radix)).count()
    };
    let simple = |value: char| Ok((value, 1));
    match rest.as_bytes().first() {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'v') => simple('\x0b'),
        Some(b'b') => simple('\x08'),
        Some(b'r') => simple('\r'),
        Some(b'f') => simple('\x0c'),
        Some(b'a') => simple('\x07'),
        Some(&quoted @ (b'\\' | b'?' | b'\'' | b'"')) => simple(char::from(quoted)),
        Some(b'0'..=b'7') => {
            let count = digits(0, 3, 8);
            match u8::from_str_radix(&rest[..count], 8) {
                Ok(value) => Ok((char::from(value), count)),
                Err(_) => Err(format!("`\\{}` is greater than 255", &rest[..count])),
            }
        }
        Some(b'x') => {
            let count = digits(1, 2, 16);
            match u8::from_str_radix(&rest[1..1 + count], 16) {
                Ok(value) => Ok((char::from(value), 1 + count)),
                Err(_) => Err("`\\x` needs one or two hexadecimal digits".to_owned()),
            }
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
}
