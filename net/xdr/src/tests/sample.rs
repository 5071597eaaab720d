//! A value with all types of RFC 4506: that of `peers/xdr`.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Bounded, FixedOpaque, List, Opaque, Quadruple, xdr_enum, xdr_struct, xdr_union};

xdr_enum! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) enum Color { Red = 0, Green = 1, Blue = -3 }
}

xdr_struct! {
    #[derive(Clone, Debug, PartialEq)]
    pub(super) struct Point { x: i32, y: f64 }
}

xdr_union! {
    #[derive(Clone, Debug, PartialEq)]
    pub(super) union Shape: Color {
        Red = Color::Red,
        Green(number: i32) = Color::Green,
        Blue(name: Bounded<String, 40>) = Color::Blue,
    }
}

xdr_union! {
    #[derive(Clone, Debug, PartialEq)]
    pub(super) union Outcome: i32 {
        Done(octets: u64) = 0,
        Absent = 2;
        default Failed(ratio: f32)
    }
}

xdr_struct! {
    #[derive(Clone, Debug, PartialEq)]
    pub(super) struct Sample {
        i: i32,
        u: u32,
        color: Color,
        flag: bool,
        h: i64,
        uh: u64,
        f: f32,
        d: f64,
        quadruple: Quadruple,
        fixed: FixedOpaque<5>,
        opaque: Bounded<Opaque, 64>,
        text: Bounded<String, 40>,
        numbers: [i32; 3],
        points: Bounded<Vec<Point>, 10>,
        shape: Shape,
        outcome: Outcome,
        optional: Option<i32>,
        list: List<u32>,
    }
}

#[cfg(target_os = "linux")]
fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(target_os = "linux")] // for the comparison with the peer
impl Sample {
    /// The text that the peer prints for this value.
    pub(super) fn describe(&self) -> String {
        let mut words = vec![
            self.i.to_string(),
            self.u.to_string(),
            (self.color as i32).to_string(),
            u32::from(self.flag).to_string(),
            self.h.to_string(),
            self.uh.to_string(),
            hex(&self.f.to_be_bytes()),
            hex(&self.d.to_be_bytes()),
            hex(&self.quadruple.0),
            hex(&self.fixed.0),
            hex(&self.opaque.0),
            hex(self.text.as_bytes()),
        ];
        words.extend(self.numbers.iter().map(ToString::to_string));
        for point in self.points.iter() {
            words.extend([point.x.to_string(), hex(&point.y.to_be_bytes())]);
        }
        match &self.shape {
            Shape::Red => words.push("red".to_owned()),
            Shape::Green(number) => words.push(format!("green {number}")),
            Shape::Blue(name) => words.push(format!("blue {}", hex(name.as_bytes()))),
        }
        match &self.outcome {
            Outcome::Done(octets) => words.push(format!("done {octets}")),
            Outcome::Absent => words.push("absent".to_owned()),
            Outcome::Failed(code, ratio) => words.push(format!("failed {code} {}", hex(&ratio.to_be_bytes()))),
        }
        words.push(self.optional.map_or("none".to_owned(), |value| format!("some {value}")));
        words.extend(self.list.0.iter().map(ToString::to_string));
        words.into_iter().map(|word| word + " ").collect()
    }

    /// Whether C may change the value: a string ends at the first zero, and a NaN may become another one.
    pub(super) fn has_zero_or_nan(&self) -> bool {
        let name = if let Shape::Blue(name) = &self.shape { name.contains('\0') } else { false };
        let ratio = if let Outcome::Failed(_, ratio) = &self.outcome { ratio.is_nan() } else { false };
        let points = self.points.iter().any(|point| point.y.is_nan());
        self.text.contains('\0') || name || ratio || points || self.f.is_nan() || self.d.is_nan()
    }
}

/// Text of at most `len` octets. It has no zero, at which strings in C end.
fn text(len: usize) -> impl Strategy<Value = Bounded<String, 40>> {
    "[^\0]{0,40}".prop_map(move |text| {
        let end = (0..=len.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).expect("0 is one");
        Bounded::new(text[..end].to_owned()).expect("it is at most 40 octets")
    })
}

/// Numbers without NaN, which differs from itself.
fn float() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("no NaN", |value| !value.is_nan())
}

fn double() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("no NaN", |value| !value.is_nan())
}

fn color() -> impl Strategy<Value = Color> {
    prop_oneof![Just(Color::Red), Just(Color::Green), Just(Color::Blue)]
}

pub(super) fn samples() -> impl Strategy<Value = Sample> {
    let scalars = (any::<i32>(), any::<u32>(), color(), any::<bool>(), any::<i64>(), any::<u64>(), float(), double());
    let octets = (any::<[u8; 16]>(), any::<[u8; 5]>(), vec(any::<u8>(), 0..=64), text(40));
    let points = vec((any::<i32>(), double()).prop_map(|(x, y)| Point { x, y }), 0..=10);
    let shape = prop_oneof![Just(Shape::Red), any::<i32>().prop_map(Shape::Green), text(40).prop_map(Shape::Blue)];
    let other_code = any::<i32>().prop_filter("of the default arm", |code| *code != 0 && *code != 2);
    let outcome = prop_oneof![
        any::<u64>().prop_map(Outcome::Done),
        Just(Outcome::Absent),
        (other_code, float()).prop_map(|(code, ratio)| Outcome::Failed(code, ratio)),
    ];
    let rest = (any::<[i32; 3]>(), points, shape, outcome, any::<Option<i32>>(), vec(any::<u32>(), 0..50));
    (scalars, octets, rest).prop_map(|(scalars, octets, rest)| {
        let (i, u, color, flag, h, uh, f, d) = scalars;
        let (quadruple, fixed, opaque, text) = octets;
        let (numbers, points, shape, outcome, optional, list) = rest;
        Sample {
            i,
            u,
            color,
            flag,
            h,
            uh,
            f,
            d,
            quadruple: Quadruple(quadruple),
            fixed: FixedOpaque(fixed),
            opaque: Bounded::new(Opaque(opaque)).expect("at most 64"),
            text,
            numbers,
            points: Bounded::new(points).expect("at most 10"),
            shape,
            outcome,
            optional,
            list: List(list),
        }
    })
}
