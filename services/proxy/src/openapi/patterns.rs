//! Patterns of texts, for every dialect of regular expressions: without assertions but `^` and `$`.

/// A text without U+0000, which CDR excludes.
pub(super) const WITHOUT_NUL: &str = r"^[^\u0000]*$";
/// One character of ISO 8859-1.
pub(super) const CHAR: &str = r"^[\u0000-\u00ff]$";
/// The names of the numbers of a `float` that are not finite, with [`NO_FLOAT`].
pub(super) const FLOAT: &str = "^(?:-?Infinity|NaN|NaN:0x[7f]f[89a-f][0-9a-f]{5})$";
/// Texts that have the form of a NaN, and the bits of an infinity.
pub(super) const NO_FLOAT: [&str; 2] = ["NaN:0x7f800000", "NaN:0xff800000"];
/// As [`FLOAT`], of a `double`, with [`NO_DOUBLE`].
pub(super) const DOUBLE: &str = "^(?:-?Infinity|NaN|NaN:0x[7f]ff[0-9a-f]{13})$";
/// The same as [`NO_FLOAT`], for `double`.
pub(super) const NO_DOUBLE: [&str; 2] = ["NaN:0x7ff0000000000000", "NaN:0xfff0000000000000"];
/// As [`DOUBLE`], or the bits of a `long double`.
pub(super) const LONG_DOUBLE: &str = "^(?:-?Infinity|NaN|NaN:0x[7f]ff[0-9a-f]{13}|0x[0-9a-f]{32})$";
/// Base64 with padding, in which bits beyond the octets are zero (RFC 4648, 3.5).
pub(super) const BASE64: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
/// The schemes of references.
pub(super) const REFERENCE: &str = "^(?:[Ii][Oo][Rr]|[Cc][Oo][Rr][Bb][Aa][Ll][Oo][Cc]):";
/// References that would have to be looked up elsewhere.
pub(super) const LOOKED_UP: &str = "^[Cc][Oo][Rr][Bb][Aa][Ll][Oo][Cc]:[Rr][Ii][Rr]";
/// The form of repository ids: a format, a colon, and more.
pub(super) const ID: &str = r"^[^:]+:[^\u0000]";
/// A repository id of a type that may have none.
pub(super) const OPTIONAL_ID: &str = r"^(?:$|[^:]+:[^\u0000])";
/// An identifier of IDL, or none.
pub(super) const NAME: &str = "^(?:[A-Za-z_][A-Za-z0-9_]*)?$";

/// The digits of a `fixed` with so many digits, of which so many are behind the point.
pub(super) fn fixed(digits: usize, scale: usize) -> String {
    let whole = match digits.saturating_sub(scale) {
        0 => "0".to_owned(),
        whole => format!("(?:0|[1-9][0-9]{{0,{}}})", whole - 1),
    };
    let fraction = if scale == 0 { String::new() } else { format!(r"(?:\.[0-9]{{1,{scale}}})?") };
    format!("^-?{whole}{fraction}$")
}

/// The integers of a range that contains zero, in their shortest digits.
pub(super) fn integer(least: i128, greatest: i128) -> String {
    let mut alternatives = vec!["0".to_owned()];
    alternatives.extend(up_to(greatest.unsigned_abs()));
    if least < 0 {
        let negative = up_to(least.unsigned_abs());
        alternatives.push(format!("-(?:{})", negative.join("|")));
    }
    format!("^(?:{})$", alternatives.join("|"))
}

/// Alternatives for the integers from one to this one.
fn up_to(greatest: u128) -> Vec<String> {
    let digits = greatest.to_string();
    let rest = |count: usize| if count == 0 { String::new() } else { format!("[0-9]{{{count}}}") };
    let mut alternatives = Vec::new();
    if digits.len() > 1 {
        alternatives.push(format!("[1-9][0-9]{{0,{}}}", digits.len() - 2));
    }
    for (at, digit) in digits.bytes().enumerate() {
        // Equal before this place, and less there.
        let least = if at == 0 { b'1' } else { b'0' };
        if digit > least {
            let range = format!("[{}-{}]", char::from(least), char::from(digit - 1));
            alternatives.push(format!("{}{range}{}", &digits[..at], rest(digits.len() - at - 1)));
        }
    }
    alternatives.push(digits);
    alternatives
}
