//! Conversion of received anys: the golden anys of `spandrel-cdr`, recorded from omniORB, and these with
//! changed octets.

use crate::DynAny;
use proptest::{prelude::*, sample::Index};
use spandrel_cdr::{Any, ByteOrder, Decode, Decoder, GiopVersion, Wire};

/// Name, wire form, octets.
fn golden() -> Vec<(String, Wire, Vec<u8>)> {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../cdr/tests/golden/anys.txt");
    let text = std::fs::read_to_string(text).unwrap();
    let vector = |line: &str| {
        let [name, order, digits] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let order = if order == "big" { ByteOrder::Big } else { ByteOrder::Little };
        let octet = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (name.to_owned(), Wire::new(order, GiopVersion::V1_2), (0..digits.len()).step_by(2).map(octet).collect())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(vector).collect()
}

#[test]
fn anys_of_omniorb_survive_conversion_to_components() {
    for (name, wire, octets) in golden() {
        let any = Any::decode(&mut Decoder::new(&octets, wire)).unwrap();
        let apart = DynAny::new(&any).unwrap_or_else(|error| panic!("{name}: {error}"));
        let together = apart.to_any().unwrap();
        assert_eq!(DynAny::new(&together).unwrap(), apart, "{name}");
        // Values with or without type information.
        if !name.starts_with("value") {
            assert_eq!(together, any, "{name}");
        }
    }
}

proptest! {
    #[test]
    fn changed_octets_are_safe(vector in prop::sample::select(golden()), changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4)) {
        let (_, wire, mut octets) = vector;
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if let Ok(any) = Any::decode(&mut Decoder::new(&octets, wire))
            && let Ok(mut apart) = DynAny::with_limit(&any, 10_000)
        {
            let copy = apart.clone();
            prop_assert_eq!(&copy, &apart);
            while apart.next() && apart.position() < Some(100) {
                let _ = apart.current_component();
                let _ = apart.insert_long(7);
            }
            let _ = apart.to_any();
        }
    }
}
