//! Octets decoded as XDR: no panic, and a decoded value has the octets as its encoding.
//!
//! The first octet selects whether residual octets must be zero. The value then has that encoding, and no
//! other.

use spandrel_xdr::{
    Bounded, Decode as _, FixedOpaque, List, Opaque, Padding, Quadruple, Settings, XdrDecoder, encode, xdr_enum,
    xdr_struct, xdr_union,
};

xdr_enum! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Color { Red = 0, Green = 1, Blue = -3 }
}

xdr_struct! {
    #[derive(Debug)]
    struct Point { x: i32, y: f64, z: f32, flag: bool }
}

xdr_union! {
    #[derive(Debug)]
    union Shape: Color {
        Nothing = Color::Red,
        Name(name: Bounded<String, 40>) = Color::Green,
        Shapes(shapes: Vec<Shape>) = Color::Blue,
    }
}

xdr_union! {
    #[derive(Debug)]
    union Outcome: u32 {
        Done(octets: u64) = 0;
        default Failed(reason: Bounded<Opaque, 64>)
    }
}

xdr_struct! {
    #[derive(Debug)]
    struct Node { item: i64, fixed: FixedOpaque<5>, next: Option<Box<Node>> }
}

xdr_union! {
    #[derive(Debug)]
    union Value: u32 {
        Points(points: Bounded<Vec<Point>, 1000>) = 0,
        Shape(shape: Shape) = 1,
        Outcomes(outcomes: List<Outcome>) = 2,
        Node(node: Node) = 3,
        Quadruples(quadruples: [Quadruple; 3]) = 4,
        Lists(lists: List<List<u32>>) = 5,
    }
}

pub fn run(input: &[u8]) {
    let [how, octets @ ..] = input else { return };
    let padding = if how & 1 == 0 { Padding::Zero } else { Padding::Any };
    let mut decoder = XdrDecoder::with_settings(octets, Settings { padding, ..Settings::DEFAULT });
    let Ok(value) = Value::decode(&mut decoder) else { return };
    let read = &octets[..octets.len() - decoder.remaining().len()];
    let encoded = encode(&value).expect("a decoded value has an encoding");
    match padding {
        Padding::Zero => assert_eq!(encoded, read),
        Padding::Any => assert_eq!(encoded.len(), read.len()),
    }
}
