//! The form of floating-point numbers.
//!
//! A number has the shortest digits that are parsed as the same number. NaN and the infinities have names; a
//! NaN with another payload than usual is followed by its bits. A `long double` that is no `double` is
//! written as its bits.

use std::{fmt, str::FromStr};

use spandrel_cdr::LongDouble;

/// Numbers of the IDL types `float` and `double`.
pub(super) trait Float: Copy + FromStr + Into<f64> + fmt::Debug {
    const NAME: &'static str;
    const NAN: Self;

    fn bits(self) -> u64;

    fn of_bits(bits: u64) -> Option<Self>;
}

impl Float for f32 {
    const NAME: &'static str = "float";
    const NAN: Self = f32::NAN;

    fn bits(self) -> u64 {
        self.to_bits().into()
    }

    fn of_bits(bits: u64) -> Option<Self> {
        u32::try_from(bits).ok().map(Self::from_bits)
    }
}

impl Float for f64 {
    const NAME: &'static str = "double";
    const NAN: Self = f64::NAN;

    fn bits(self) -> u64 {
        self.to_bits()
    }

    fn of_bits(bits: u64) -> Option<Self> {
        Some(Self::from_bits(bits))
    }
}

/// The digits of a finite number, or the name of another one.
#[derive(Debug)]
pub(super) enum FloatText {
    Digits(String),
    Name(String),
}

pub(super) fn float_text<F: Float>(value: F) -> FloatText {
    let double: f64 = value.into();
    if double.is_finite() {
        return FloatText::Digits(format!("{value:?}"));
    }
    FloatText::Name(if double.is_nan() {
        if value.bits() == F::NAN.bits() { "NaN".to_owned() } else { format!("NaN:{:#x}", value.bits()) }
    } else if double > 0.0 {
        "Infinity".to_owned()
    } else {
        "-Infinity".to_owned()
    })
}

pub(super) fn long_double_text(value: LongDouble) -> FloatText {
    let double = value.to_f64();
    if LongDouble::from(double) == value {
        float_text(double)
    } else {
        FloatText::Name(format!("0x{:032x}", value.to_bits()))
    }
}

/// Parses a number; infinite only if written so.
pub(super) fn float<F: Float>(word: &str) -> Result<F, String> {
    if let Some(bits) = word.strip_prefix("NaN:0x") {
        let value = u64::from_str_radix(bits, 16).ok().and_then(F::of_bits);
        return value.filter(|value| (*value).into().is_nan()).ok_or_else(|| format!("`{word}` is not a NaN"));
    }
    match word.parse::<F>() {
        Ok(value) if value.into().is_infinite() && is_number(word) => {
            Err(format!("`{word}` is out of range for `{}`", F::NAME))
        }
        Ok(value) if value.into().is_nan() => Ok(F::NAN),
        Ok(value) => Ok(value),
        Err(_) => Err(format!("expected a number, not `{word}`")),
    }
}

/// Parses a `long double`: its bits, or a `double`.
pub(super) fn long_double(word: &str) -> Result<LongDouble, String> {
    match word.strip_prefix("0x") {
        Some(digits) if digits.len() == 32 => {
            let bits = u128::from_str_radix(digits, 16).map_err(|_| format!("expected a number, not `{word}`"))?;
            Ok(LongDouble::from_bits(bits))
        }
        _ => float::<f64>(word).map(LongDouble::from),
    }
}

/// Whether a text is the name of a number that is not finite, with lower-case digits.
pub(super) fn is_canonical<F: Float>(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
        || (text.starts_with("NaN:") && float::<F>(text).is_ok_and(|value| format!("NaN:{:#x}", value.bits()) == text))
}

/// As [`is_canonical`], or the bits of a `long double`.
pub(super) fn is_canonical_long_double(text: &str) -> bool {
    let is_bits = |value: LongDouble| format!("0x{:032x}", value.to_bits()) == text;
    is_canonical::<f64>(text) || (text.starts_with("0x") && long_double(text).is_ok_and(is_bits))
}

/// Whether a word has digits.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'))
        && word.contains(|letter: char| letter.is_ascii_digit())
}
