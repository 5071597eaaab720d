//! Values as octets outside of messages: bare and in encapsulations.

use crate::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{
    Any, ByteOrder, CdrError, Encode, Encoder, GiopVersion, Limits, OctetForm, TrailingOctets, WString, from_octets,
    to_octets,
};
use support::{ORDERS, order, wire};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn form(is_bare: bool, order: ByteOrder) -> OctetForm<'static> {
    if is_bare { OctetForm::bare(order) } else { OctetForm::encapsulation(order) }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn values_are_decoded_from_their_octets(
        texts in vec("[a-zé]{0,9}", 0..5), numbers in vec(any::<f64>(), 0..700), is_bare: bool, order in order(),
        version in 0..3_usize,
    ) {
        let form = form(is_bare, order).version(VERSIONS[version]);
        let octets = to_octets(&texts, &form).unwrap();
        prop_assert_eq!(from_octets::<Vec<String>>(&octets, &form), Ok(texts.clone()));
        // Long sequences are lent to an encoder; the octets contain them all the same.
        let lent = to_octets(&numbers, &form).unwrap();
        let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        prop_assert_eq!(from_octets::<Vec<f64>>(&lent, &form).map(bits), Ok(bits(numbers)));
        // Each octet belongs to the value.
        for len in 0..octets.len() {
            prop_assert!(from_octets::<Vec<String>>(&octets[..len], &form).is_err(), "{} octets", len);
        }
    }

    #[test]
    fn bare_octets_are_those_of_an_encoder(value: (i64, u8), texts in vec("[a-z]{0,9}", 0..5), order in order()) {
        let mut out = Encoder::new(wire(order));
        out.u8(value.1);
        out.i64(value.0);
        texts.encode(&mut out).unwrap();
        let octets = OctetForm::bare(order).encode_with(|out| {
            out.u8(value.1);
            out.i64(value.0);
            texts.encode(out)
        });
        prop_assert_eq!(octets.unwrap(), out.to_vec());
    }

    #[test]
    fn any_octets_are_decoded_or_rejected(octets in vec(any::<u8>(), 0..200), is_bare: bool, order in order()) {
        let form = form(is_bare, order);
        if let Ok(value) = from_octets::<Vec<String>>(&octets, &form) {
            prop_assert_eq!(from_octets(&to_octets(&value, &form).unwrap(), &form), Ok(value));
        }
        let _ = from_octets::<Any>(&octets, &form);
    }
}

#[test]
fn an_encapsulation_is_decoded_by_its_own_byte_order() {
    for order in ORDERS {
        let octets = to_octets(&-2_i64, &OctetForm::encapsulation(order)).unwrap();
        assert_eq!(octets[..8], [order.flag(), 0, 0, 0, 0, 0, 0, 0]);
        for other in ORDERS {
            assert_eq!(from_octets(&octets, &OctetForm::encapsulation(other)), Ok(-2_i64));
        }
    }
    assert!(matches!(
        from_octets::<u8>(&[], &OctetForm::encapsulation(ByteOrder::Big)),
        Err(CdrError::Truncated { .. })
    ));
}

#[test]
fn trailing_octets_are_rejected_unless_they_are_ignored() {
    for is_bare in [true, false] {
        let form = form(is_bare, ByteOrder::Big);
        let octets = [to_octets(&7_u16, &form).unwrap(), vec![0, 0, 0]].concat();
        assert_eq!(from_octets::<u16>(&octets, &form), Err(CdrError::TrailingOctets { remaining: 3 }));
        assert_eq!(from_octets(&octets, &form.trailing_octets(TrailingOctets::Ignore)), Ok(7_u16));
    }
}

#[test]
fn the_version_and_the_limits_are_those_of_the_form() {
    let form = OctetForm::bare(ByteOrder::Big);
    let wide = WString::from("w");
    assert_eq!(to_octets(&wide, &form).unwrap(), [0, 0, 0, 4, 0xfe, 0xff, 0, b'w'], "octets, with a byte order mark");
    assert_eq!(to_octets(&wide, &form.version(GiopVersion::V1_1)).unwrap(), [0, 0, 0, 2, 0, b'w', 0, 0]);
    assert_eq!(to_octets(&wide, &form.version(GiopVersion::V1_0)), Err(CdrError::WideInGiop10));

    let nested = Any::new(Any::new(Any::new(1_u8).unwrap()).unwrap()).unwrap();
    let octets = to_octets(&nested, &form).unwrap();
    assert_eq!(from_octets(&octets, &form), Ok(nested));
    let flat = form.limits(Limits { nesting: 1, ..Limits::default() });
    let inner = from_octets::<Any>(&octets, &flat).and_then(|any| to_octets(&any, &flat));
    assert!(inner.is_err(), "{inner:?}");
}
