//! Fixed-point numbers compute and are packed as in omniORB.
//!
//! The expected values and octets were printed by a program over omniORB 4.2.5 (`CORBA::Fixed`, its
//! operators, `round`, `truncate`, `to_string`, and `operator>>=` into a `cdrMemoryStream`).

use crate::support;

use proptest::prelude::*;
use spandrel_cdr::{CdrError, Decimal, Decode, Decoder, Encode, Encoder, Fixed, FixedError, FixedSize};
use support::{Model, Modelled, ORDERS, check, encoded, wire};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn arithmetic_keeps_31_digits_as_omniorb_does() {
    let cases = [
        ("123.45", '+', "0.055", Some("123.505")),
        ("1", '/', "3", Some("0.3333333333333333333333333333333")),
        ("9999999999999999999999999999999", '+', "0.5", Some("9999999999999999999999999999999")),
        ("9999999999999999999999999999999", '+', "1", None),
        ("9999999999999999999999999999999", '*', "0.5", Some("4999999999999999999999999999999")),
        ("0.0000000000000000000000000000003", '*', "0.4", Some("0.0000000000000000000000000000001")),
        ("2", '/', "7", Some("0.2857142857142857142857142857142")),
        ("20000000000000000000000000000", '/', "7", Some("2857142857142857142857142857.142")),
        ("-7", '/', "2", Some("-3.5")),
        ("123456789012345.678", '*', "98765432109876.54321", Some("12193263113702179433485749112.22")),
        ("1", '-', "0.0000000000000000000000000000001", Some("0.9999999999999999999999999999999")),
        ("1.50", '*', "2.0", Some("3")),
        ("5", '/', "0.0000000000000000000000000000001", None),
        ("5", '/', "0", None),
    ];
    for (a, operator, b, expected) in cases {
        let (a, b) = (decimal(a), decimal(b));
        let result = match operator {
            '+' => a.checked_add(b),
            '-' => a.checked_sub(b),
            '*' => a.checked_mul(b),
            _ => a.checked_div(b),
        };
        assert_eq!(result.map(|result| result.to_string()).as_deref(), expected, "{a} {operator} {b}");
    }
}

#[test]
fn rounding_goes_away_from_zero_at_half_and_truncation_towards_it() {
    for (value, rounded, truncated) in [
        ("1.25", "1.3", "1.2"),
        ("-1.25", "-1.3", "-1.2"),
        ("1.35", "1.4", "1.3"),
        ("9.96", "10", "9.9"),
        ("-0.05", "-0.1", "0"),
    ] {
        assert_eq!(
            (decimal(value).round(1), decimal(value).truncate(1)),
            (decimal(rounded), decimal(truncated)),
            "{value}"
        );
        assert_eq!((decimal(value).round(5), decimal(value).truncate(5)), (decimal(value), decimal(value)));
    }
    let nearly_ten: Fixed<2, 1> = "9.9".parse().unwrap();
    assert_eq!((nearly_ten.checked_round(0), nearly_ten.truncate(0).to_string()), (None, "9.0".to_owned()));
}

#[test]
fn packed_octets_are_those_of_omniorb() {
    fn packed<const D: u16, const S: u16>(text: &str) -> Vec<u8> {
        let value: Fixed<D, S> = text.parse().unwrap();
        let octets = encoded(&value, ORDERS[0], 0).unwrap();
        let mut dynamic = Encoder::new(wire(ORDERS[1]));
        value.to_decimal().encode_as(D, S, &mut dynamic).unwrap();
        assert_eq!(dynamic.to_vec(), octets, "the type is known at run time only");
        octets
    }
    assert_eq!(packed::<6, 3>("12.34"), [0x00, 0x12, 0x34, 0x0c]);
    assert_eq!(packed::<6, 3>("-1.2"), [0x00, 0x01, 0x20, 0x0d]);
    assert_eq!(packed::<6, 3>("0"), [0x00, 0x00, 0x00, 0x0c]);
    assert_eq!(packed::<6, 3>("-0.00"), [0x00, 0x00, 0x00, 0x0c]);
    assert_eq!(packed::<5, 2>("12.34"), [0x01, 0x23, 0x4c]);
    assert_eq!(packed::<5, 2>("-1.2"), [0x00, 0x12, 0x0d]);
}

#[test]
fn invalid_half_octets_are_rejected() {
    type Even = Fixed<4, 2>;
    let read = |octets: &[u8]| Even::decode(&mut Decoder::new(octets, wire(ORDERS[0])));
    assert_eq!(read(&[0x01, 0x23, 0x4d]).unwrap().to_string(), "-12.34");
    assert_eq!(read(&[0x00, 0x00, 0x0d]), Ok(Even::ZERO), "some ORBs write a negative zero");
    for octets in [
        [0x0a, 0x23, 0x4c],
        [0x01, 0x2f, 0x4c],
        [0x01, 0x23, 0xbc],
        [0x01, 0x23, 0x4f],
        [0x01, 0x23, 0x44],
        [0x91, 0x23, 0x4c],
    ] {
        assert!(matches!(read(&octets), Err(CdrError::BadFixed(_))), "{octets:02x?}");
    }
    assert!(matches!(read(&[0x01, 0x23]), Err(CdrError::Truncated { .. })));
    for (digits, scale) in [(0, 0), (32, 0), (4, 5), (u16::MAX, 0)] {
        let refused = Decimal::decode_as(digits, scale, &mut Decoder::new(&[0x0c; 40], wire(ORDERS[0])));
        assert_eq!(refused, Err(CdrError::FixedOverflow { digits, scale }));
    }
}

#[test]
fn conversions_never_lose_digits_silently() {
    type Amount = Fixed<5, 2>;
    assert_eq!("123.456".parse::<Amount>(), Err(FixedError::Inexact));
    assert_eq!(Amount::truncating(decimal("123.456")).unwrap().to_string(), "123.45");
    assert_eq!(Amount::rounding(decimal("123.456")).unwrap().to_string(), "123.46");
    assert_eq!(Amount::rounding(decimal("999.996")), Err(FixedError::Overflow));
    assert_eq!(Amount::try_from(1000_i32), Err(FixedError::Overflow));
    assert_eq!(Amount::try_from(-999_i64).unwrap().to_string(), "-999.00");
    assert_eq!((Amount::MAX.to_string(), Amount::MIN.to_string()), ("999.99".to_owned(), "-999.99".to_owned()));
    assert_eq!((Amount::MAX.to_f64(), Amount::MAX.to_i64()), (999.99, Some(999)));
    assert_eq!(format!("{:>8}|{:+}|{:?}", -Amount::MAX, Amount::ZERO, Amount::MAX), " -999.99|+0.00|999.99d");
    assert_eq!(Decimal::try_from(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::try_from(1e-40).unwrap(), Decimal::ZERO);
    assert_eq!(Decimal::try_from(1e31), Err(FixedError::Overflow));
    assert_eq!(Decimal::try_from(f64::NAN), Err(FixedError::NotANumber));
    assert_eq!(decimal("9999999999999999999").to_i64(), None);
}

#[test]
fn text_is_an_idl_literal_with_a_sign() {
    for (text, expected) in
        [("1.50D", "1.5"), ("+.5", "0.5"), ("-5.", "-5"), ("007.0d", "7"), ("0.00", "0"), ("100", "100")]
    {
        assert_eq!(decimal(text).to_string(), expected);
    }
    for text in ["", "-", ".", "d", "1,5", "1.2.3", "--1", "1e5", " 1", "½"] {
        assert_eq!(text.parse::<Decimal>(), Err(FixedError::NotANumber), "{text:?}");
    }
    assert_eq!("10000000000000000000000000000000".parse::<Decimal>(), Err(FixedError::Overflow));
    let tiny = format!("0.{}1", "0".repeat(31));
    assert_eq!(tiny.parse::<Decimal>(), Err(FixedError::Inexact));
    assert_eq!((decimal("0.05").digits(), decimal("0.05").scale(), decimal("12.5").digits()), (2, 2, 3));
}

impl<const D: u16, const S: u16> Modelled for Fixed<D, S> {
    /// From the decimal text: the standard's rule, digit by digit.
    fn model(&self, model: &mut Model) {
        let digits: String = self.to_string().chars().filter(char::is_ascii_digit).collect();
        let width = if D.is_multiple_of(2) { D + 1 } else { D };
        let text = format!(
            "{:0>width$}{}",
            digits.trim_start_matches('0'),
            if self.unscaled() < 0 { 'd' } else { 'c' },
            width = usize::from(width)
        );
        let halves: Vec<u8> = text.chars().map(|half| half.to_digit(16).unwrap() as u8).collect();
        model.octets.extend(halves.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
    }
}

fn number() -> impl Strategy<Value = Decimal> {
    let digits = prop_oneof![-999_i128..=999, -(10_i128.pow(31) - 1)..10_i128.pow(31)];
    (digits, 0..=31_u16).prop_map(|(unscaled, scale)| Decimal::new(unscaled, scale).unwrap())
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn every_fixed_survives_encoding_and_decoding(a in -99_i128..=99, b in -(10_i128.pow(31) - 1)..10_i128.pow(31), c in -999_i128..=999) {
        check(&Fixed::<2, 2>::from_unscaled(a));
        check(&Fixed::<31, 31>::from_unscaled(b));
        check(&vec![Fixed::<3, 0>::from_unscaled(c); 2]);
        prop_assert_eq!(<Fixed::<31, 31> as FixedSize>::SIZE, 16);
    }

    #[test]
    fn text_represents_the_number(value in number()) {
        prop_assert_eq!(value.to_string().parse(), Ok(value));
    }

    #[test]
    fn the_order_agrees_with_differences(a in number(), b in number()) {
        // The difference may be too large, or too small for a digit, but it never has the wrong sign.
        if let Some(difference) = a.checked_sub(b) {
            prop_assert!(difference.cmp(&Decimal::ZERO) == a.cmp(&b) || difference == Decimal::ZERO);
        }
        prop_assert_eq!(a.checked_add(b), b.checked_add(a));
        prop_assert_eq!(a.checked_mul(b), b.checked_mul(a));
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
    }

    #[test]
    fn small_numbers_compute_exactly(a in -999_999_i64..=999_999, b in -999_999_i64..=999_999) {
        let (x, y) = (Decimal::new(a.into(), 3).unwrap(), Decimal::new(b.into(), 3).unwrap());
        prop_assert_eq!(x.checked_add(y), Decimal::new((a + b).into(), 3).ok());
        prop_assert_eq!(x.checked_sub(y), Decimal::new((a - b).into(), 3).ok());
        prop_assert_eq!(x.checked_mul(y), Decimal::new((a * b).into(), 6).ok());
        if let Some(quotient) = x.checked_div(y) {
            // Truncated towards zero: the product with the divisor is at most slightly too small.
            let back = quotient.checked_mul(y).unwrap();
            let error = x.checked_sub(back).unwrap();
            prop_assert!(error == Decimal::ZERO || error.is_negative() == x.is_negative(), "{} / {} = {}", x, y, quotient);
            let error = if error.is_negative() { -error } else { error };
            prop_assert!(error < decimal("0.000000000000000000000001"));
        } else {
            prop_assert_eq!(b, 0);
        }
    }
}

#[test]
fn a_struct_of_fixed_size_may_contain_a_fixed() {
    let mut octets = [0; 3];
    FixedSize::put::<true>(&Fixed::<5, 2>::from_unscaled(-120), &mut octets);
    assert_eq!(octets, [0x00, 0x12, 0x0d]);
    assert_eq!(<Fixed<5, 2> as FixedSize>::get::<true>(&octets), Ok(Fixed::from_unscaled(-120)));
    let mut out = Encoder::new(wire(ORDERS[0]));
    assert!(Fixed::<5, 2>::MAX.to_decimal().encode_as(4, 2, &mut out).is_err());
    Fixed::<5, 2>::MAX.encode(&mut out).unwrap();
    assert_eq!(out.to_vec(), [0x99, 0x99, 0x9c]);
}
