//! The reference reads and writes omniORB's octets: the golden anys of `spandrel-cdr`.

use spandrel_cdr::{Any, ByteOrder, CharSet, Decode, Decoder, Encode, Encoder, GiopVersion, TypeCode, Wire};
use spandrel_reference::{read, write};

/// The samples that the reference does not support: value types, recursive types, abstract and local
/// interfaces, and types without an id, which builders refuse.
fn is_unsupported(name: &str) -> bool {
    const NAMES: [&str; 9] =
        ["object", "tree", "tc-tree", "tc-node", "tc-everything", "tc-special", "tc-vague", "tc-outer", "tc-text"];
    name.starts_with("value") || NAMES.contains(&name)
}

#[test]
fn golden_anys_are_read_and_written_like_omniorb() {
    let text = std::fs::read_to_string("../../orb/cdr/tests/golden/anys.txt").unwrap();
    let mut seen = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [name, order, digits] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let order = if order == "big" { ByteOrder::Big } else { ByteOrder::Little };
        let wire = Wire::new(order, GiopVersion::V1_2);
        let octets: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        let found = read(&TypeCode::ANY, &octets, wire, 0);
        if is_unsupported(name) && found.is_none() {
            continue;
        }
        let (value, end) = found.unwrap_or_else(|| panic!("reading {name} failed"));
        assert_eq!(end, octets.len(), "{name}");
        // omniORB and the engine write a repeated type once, the reference in full. An exception has its id.
        let repeats = name == "broke" || octets.windows(4).any(|four| four == [0xff; 4]);
        // The engine's octets, in both byte orders and at another offset.
        let any = Any::decode(&mut Decoder::new(&octets, wire)).unwrap();
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let wire = Wire { char_set: CharSet::Utf8, ..Wire::new(order, GiopVersion::V1_2) };
            let mut out = Encoder::new(wire);
            out.octets(&[0xee; 3]);
            any.encode(&mut out).unwrap();
            let sent = out.to_vec();
            assert_eq!(read(&TypeCode::ANY, &sent, wire, 3), Some((value.clone(), sent.len())), "{name}");
            // The engine keeps a byte order mark that differs from the message's order.
            if name != "wstring" && !repeats {
                assert_eq!(write(&TypeCode::ANY, &value, wire, 3).unwrap(), sent, "{name}");
            }
        }
        // As omniORB writes it, except padding, which is arbitrary there; encapsulations, which it writes in
        // native order; and the missing default case of a union, for which it writes -2.
        let ours = write(&TypeCode::ANY, &value, wire, 0).unwrap();
        assert!(repeats || ours.len() == octets.len(), "{name}");
        if order == ByteOrder::Little && !repeats {
            let differ = ours.iter().zip(&octets).filter(|(ours, theirs)| ours != theirs && **ours != 0);
            assert!(differ.clone().all(|pair| pair == (&0xff, &0xfe)), "{name}: {ours:02x?} is not {octets:02x?}");
            assert!(differ.count() <= 1, "{name}");
        }
        seen += 1;
    }
    assert!(seen >= 30, "{seen} of the vectors were read");
}
