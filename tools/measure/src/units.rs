//! Sizes and rates in their usual notation: `64K`, `1K..128K`, `12,345 Mbit/s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of octets, written with a binary suffix: `512`, `1K`, `64M`, `1G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Octets(pub u64);

/// The reason why a text is not a size, or not a list of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text is not a number with an optional suffix.
    #[error("`{0}` is not a size: expected a whole number of octets, or of K, M or G, such as 64K")]
    NotASize(String),
    /// The number does not fit into 64 bits.
    #[error("`{0}` is more octets than 64 bits can count")]
    TooLarge(String),
    /// A range is descending, or begins at zero.
    #[error("`{0}` is not a range: expected the smaller size first, above zero, such as 1K..128K")]
    BadRange(String),
}

impl FromStr for Octets {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let upper = trimmed.to_ascii_uppercase();
        let number = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, shift) = match number.as_bytes().last() {
            Some(b'K') => (&number[..number.len() - 1], 10),
            Some(b'M') => (&number[..number.len() - 1], 20),
            Some(b'G') => (&number[..number.len() - 1], 30),
            _ => (number, 0),
        };
        if digits.is_empty() || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(UnitError::NotASize(trimmed.to_owned()));
        }
        let too_large = || UnitError::TooLarge(trimmed.to_owned());
        let units: u64 = digits.parse().map_err(|_| too_large())?;
        units.checked_mul(1 << shift).map(Octets).ok_or_else(too_large)
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, suffix) in [(30, 'G'), (20, 'M'), (10, 'K')] {
            let unit = 1u64 << shift;
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{}{suffix}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// Parses one item of a list of buffer sizes: a size, or a range by powers of two (`1K..128K`, both ends
/// included).
///
/// # Errors
/// If an end is not a size, or the range is not ascending.
pub fn parse_sizes(text: &str) -> Result<Vec<Octets>, UnitError> {
    let Some((low, high)) = text.split_once("..") else {
        return Ok(vec![text.parse()?]);
    };
    let (low, high) = (low.parse::<Octets>()?, high.trim_start_matches('=').parse::<Octets>()?);
    if low.0 == 0 || low > high {
        return Err(UnitError::BadRange(text.trim().to_owned()));
    }
    let doubled = |size: &u64| size.checked_mul(2);
    Ok(std::iter::successors(Some(low.0), doubled).take_while(|size| *size <= high.0).map(Octets).collect())
}

/// Formats a whole number with commas between its thousands.
#[must_use]
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value <= -0.5 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_suffixes() {
        for (text, octets) in [
            ("0", 0),
            ("512", 512),
            ("1K", 1024),
            ("8k", 8192),
            ("64M", 64 << 20),
            ("2G", 2 << 30),
            ("4KiB", 4096),
            (" 3 ", 3),
        ] {
            assert_eq!(text.parse(), Ok(Octets(octets)), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_is_refused_with_its_text() {
        for text in ["", "K", "-1", "1.5K", "1T", "0x10", "1 K"] {
            assert_eq!(text.parse::<Octets>(), Err(UnitError::NotASize(text.to_owned())), "{text}");
        }
        assert_eq!("99999999999G".parse::<Octets>(), Err(UnitError::TooLarge("99999999999G".to_owned())));
        assert_eq!(
            "99999999999999999999".parse::<Octets>(),
            Err(UnitError::TooLarge("99999999999999999999".to_owned()))
        );
    }

    #[test]
    fn a_size_is_written_with_the_largest_exact_suffix() {
        for (octets, text) in [
            (0, "0"),
            (1000, "1000"),
            (1024, "1K"),
            (1536, "1536"),
            (128 << 10, "128K"),
            (64 << 20, "64M"),
            (1 << 30, "1G"),
        ] {
            assert_eq!(Octets(octets).to_string(), text);
        }
    }

    #[test]
    fn a_range_doubles_from_its_start_to_its_end() {
        let sizes = |text| parse_sizes(text).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(sizes("1K..128K"), ["1K", "2K", "4K", "8K", "16K", "32K", "64K", "128K"]);
        assert_eq!(sizes("3..=12"), ["3", "6", "12"]);
        assert_eq!(sizes("5K"), ["5K"]);
        assert_eq!(parse_sizes("8K..1K"), Err(UnitError::BadRange("8K..1K".to_owned())));
        assert_eq!(parse_sizes("0..1K"), Err(UnitError::BadRange("0..1K".to_owned())));
        assert!(parse_sizes("1K..").is_err());
    }

    #[test]
    fn thousands_are_grouped() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (38_568.2, "38,568"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }
}
