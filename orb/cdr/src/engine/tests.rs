//! The engine over types of every kind, small enough for Miri.

use crate::{
    BoundedString, BoundedVec, ByteOrder, CdrError, Char, Decode, Decoder, Encode, Encoder, GiopVersion, LongDouble,
    Wire, interpret,
};

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
enum Colour {
    Red,
    Green,
    Blue,
}
interpret!(
    enum Colour {
        Red,
        Green,
        Blue,
    }
);

/// The papers' `BinStruct`: five primitives with gaps between them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct BinStruct {
    s: i16,
    c: Char,
    l: i32,
    o: u8,
    d: f64,
}
interpret!(
    struct BinStruct {
        s: i16,
        c: Char,
        l: i32,
        o: u8,
        d: f64,
    }
);

/// A struct with another member order in memory than in CDR.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shuffled {
    s: i16,
    colour: Colour,
    inner: BinStruct,
    yes: bool,
    d: f64,
}
interpret!(
    struct Shuffled {
        s: i16,
        colour: Colour,
        inner: BinStruct,
        yes: bool,
        d: f64,
    }
);

#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
struct Tree {
    name: String,
    a: u8,
    b: u32,
    flag: bool,
    kids: Vec<Tree>,
    grid: [[i16; 3]; 2],
    points: [BinStruct; 2],
    nick: BoundedString<4>,
    few: BoundedVec<Colour, 3>,
    exact: LongDouble,
    pair: [String; 2],
    texts: Vec<String>,
    flags: Vec<bool>,
    shuffled: Vec<Shuffled>,
    bins: Vec<BinStruct>,
    octets: Vec<u8>,
    longs: Vec<i64>,
}
interpret!(
    struct Tree {
        name: String,
        a: u8,
        b: u32,
        flag: bool,
        kids: Vec<Tree>,
        grid: [[i16; 3]; 2],
        points: [BinStruct; 2],
        nick: BoundedString<4>,
        few: BoundedVec<Colour, 3>,
        exact: LongDouble,
        pair: [String; 2],
        texts: Vec<String>,
        flags: Vec<bool>,
        shuffled: Vec<Shuffled>,
        bins: Vec<BinStruct>,
        octets: Vec<u8>,
        longs: Vec<i64>,
    }
);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Empty {}
interpret!(
    struct Empty {}
);

fn bin(n: i16) -> BinStruct {
    BinStruct { s: n, c: Char(b'c'), l: -i32::from(n), o: 7, d: f64::from(n) / 3.0 }
}

fn shuffled(n: i16) -> Shuffled {
    Shuffled { s: n, colour: Colour::Blue, inner: bin(n + 1), yes: n % 2 == 0, d: 0.5 }
}

fn tree(depth: usize) -> Tree {
    Tree {
        name: format!("tree {depth}"),
        a: 1,
        b: 2,
        flag: true,
        kids: (0..depth).map(|_| tree(depth - 1)).collect(),
        grid: [[1, 2, 3], [4, 5, 6]],
        points: [bin(1), bin(2)],
        nick: "nick".try_into().unwrap(),
        few: vec![Colour::Green, Colour::Blue].try_into().unwrap(),
        exact: LongDouble::from(1.5),
        pair: ["x".into(), "yy".into()],
        texts: vec!["a".into(), String::new()],
        flags: vec![true, false],
        shuffled: (0..depth as i16 + 2).map(shuffled).collect(),
        bins: (0..70 * depth as i16).map(bin).collect(),
        octets: vec![1, 2, 3],
        longs: vec![-1, 1 << 40],
    }
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn wire(order: ByteOrder) -> Wire {
    Wire::new(order, GiopVersion::V1_2)
}

/// The octets of a value that begins at `start`.
fn octets<T: Encode>(value: &T, order: ByteOrder, start: usize) -> Vec<u8> {
    let mut out = Encoder::new(wire(order));
    out.octets(&vec![0; start]);
    value.encode(&mut out).unwrap();
    out.to_vec()
}

fn read<T: Decode>(octets: &[u8], order: ByteOrder, start: usize) -> Result<T, CdrError> {
    T::decode(&mut Decoder::new(octets, wire(order)).at(start))
}

#[test]
fn values_survive_encoding_at_every_offset_in_both_orders() {
    let tree = tree(1);
    for order in ORDERS {
        for start in 0..8 {
            let octets = octets(&tree, order, start);
            assert_eq!(read::<Tree>(&octets, order, start), Ok(tree.clone()));
        }
    }
}

#[test]
fn truncated_values_are_rejected_without_leaks() {
    let octets = octets(&tree(1), ByteOrder::NATIVE, 0);
    for len in (0..octets.len()).step_by(if cfg!(miri) { 37 } else { 1 }) {
        assert!(read::<Tree>(&octets[..len], ByteOrder::NATIVE, 0).is_err(), "{len}");
    }
}

#[test]
fn padding_is_zero_on_the_wire_and_ignored_from_it() {
    let mut octets = octets(&vec![bin(-1); 3], ByteOrder::NATIVE, 4);
    assert_eq!(octets.len(), 80);
    for element in 0..3 {
        for gap in [3..4, 9..16] {
            let gap = gap.start + 8 + element * 24..gap.end + 8 + element * 24;
            assert!(octets[gap.clone()].iter().all(|&octet| octet == 0));
            octets[gap].fill(0xff);
        }
    }
    assert_eq!(read::<Vec<BinStruct>>(&octets, ByteOrder::NATIVE, 4), Ok(vec![bin(-1); 3]));
}

#[test]
fn invalid_booleans_and_enumerators_are_found_in_blocks_too() {
    for order in ORDERS {
        let values: Vec<Shuffled> = (0..3).map(shuffled).collect();
        let octets = octets(&values, order, 4);
        for nth in 8..octets.len() {
            let mut bad = octets.clone();
            bad[nth] ^= 0x80;
            if let Ok(read) = read::<Vec<Shuffled>>(&bad, order, 4) {
                assert!(read.iter().all(|value| matches!(value.colour as u32, 0..3)));
            }
        }
        let mut bad = octets.clone();
        bad[12..16].fill(0xff);
        assert_eq!(read::<Vec<Shuffled>>(&bad, order, 4), Err(CdrError::BadEnum { name: "Colour", value: u32::MAX }));
    }
}

#[test]
fn bounds_and_lengths_are_checked() {
    let four = octets(&vec![1u32; 4], ByteOrder::NATIVE, 0);
    let over = read::<Wrapped>(&four, ByteOrder::NATIVE, 0);
    assert_eq!(over.unwrap_err(), CdrError::OverBound { len: 4, bound: 3 });
    let endless = [0xff; 64];
    assert!(matches!(read::<Wrapped>(&endless, ByteOrder::NATIVE, 0), Err(CdrError::LengthBeyondInput { .. })));
}

#[derive(Clone, Debug, PartialEq)]
struct Wrapped {
    few: BoundedVec<Colour, 3>,
}
interpret!(
    struct Wrapped {
        few: BoundedVec<Colour, 3>,
    }
);

#[test]
fn empty_structs_are_values() {
    assert_eq!(Empty::MIN_OCTETS, 1);
    assert!(octets(&Empty {}, ByteOrder::NATIVE, 0).is_empty());
    let octets = octets(&vec![Empty {}; 5], ByteOrder::NATIVE, 0);
    assert_eq!(octets.len(), 4);
    // A sequence of them could have any length without octets: as with compiled code, an element counts as an
    // octet.
    assert!(read::<Vec<Empty>>(&octets, ByteOrder::NATIVE, 0).is_err());
    let mut longer = octets.clone();
    longer.extend([0; 5]);
    assert_eq!(read::<Vec<Empty>>(&longer, ByteOrder::NATIVE, 0).unwrap().len(), 5);
}

#[test]
fn deep_nesting_is_rejected() {
    let mut octets = Vec::new();
    let leaf = tree(0);
    let mut out = Encoder::new(Wire::default());
    for _ in 0..100 {
        "".encode(&mut out).unwrap();
        out.u8(0);
        out.u32(0);
        out.bool(false);
        out.u32(1);
    }
    leaf.encode(&mut out).unwrap();
    octets.extend(out.to_vec());
    octets.extend([0; 4096]);
    assert_eq!(read::<Tree>(&octets, ByteOrder::NATIVE, 0), Err(CdrError::TooDeep { limit: 64 }));
}

/// Counts its instances, and panics or fails if its octet demands it.
#[derive(Debug)]
struct Trouble(std::rc::Rc<()>);

thread_local! {
    static ALIVE: std::rc::Rc<()> = std::rc::Rc::new(());
}

impl Clone for Trouble {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Encode for Trouble {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u8(1);
        Ok(())
    }
}

impl Decode for Trouble {
    const MIN_OCTETS: usize = 1;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        match input.u8()? {
            0 => panic!("the octet demands a panic"),
            1 => Ok(Self(ALIVE.with(std::rc::Rc::clone))),
            _ => Err(CdrError::Malformed("the octet demands an error")),
        }
    }
}

#[derive(Clone, Debug)]
struct Troubled {
    name: String,
    one: Trouble,
    many: Vec<Trouble>,
    array: [Trouble; 2],
    last: Trouble,
}
interpret!(
    struct Troubled {
        name: String,
        one: Trouble,
        many: Vec<Trouble>,
        array: [Trouble; 2],
        last: Trouble,
    }
);

#[test]
fn decoded_parts_are_dropped_when_a_later_part_fails_or_panics() {
    let alive = || ALIVE.with(std::rc::Rc::strong_count);
    let before = alive();
    let good: Vec<u8> = [&2u32.to_ne_bytes()[..], b"n\0", &[1, 0], &2u32.to_ne_bytes(), &[1, 1, 1, 1, 1]].concat();
    let value = read::<Troubled>(&good, ByteOrder::NATIVE, 0).unwrap();
    assert_eq!(alive(), before + 6);
    drop(value);
    for position in [6, 12, 13, 14, 15, 16] {
        for trouble in [0, 2] {
            let mut octets = good.clone();
            octets[position] = trouble;
            let outcome = std::panic::catch_unwind(|| read::<Troubled>(&octets, ByteOrder::NATIVE, 0).is_err());
            assert_eq!(outcome.ok(), (trouble == 2).then_some(true));
            assert_eq!(alive(), before, "{position} {trouble}");
        }
    }
}
