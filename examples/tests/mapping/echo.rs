//! Every type in every direction.

use std::fmt::Debug;

use spandrel::{
    ObjectRef, SystemException,
    cdr::ByteOrder,
    types::{BoundedString, BoundedVec, Char, LongDouble},
};

use super::idl::mapping::*;
use super::idl::shared::Place;
use crate::pair::Pair;

pub(crate) type Echoed<T> = Result<(T, T), SystemException>;

/// Returns `a` and the old `b`, and assigns `a` to `b`.
pub(crate) fn exchange<T: Clone>(a: T, b: &mut T) -> Echoed<T> {
    Ok((a.clone(), std::mem::replace(b, a)))
}

struct Server;

macro_rules! echoes {
    ($($operation:ident($a:ident: $argument:ty => $kept:expr) for $owned:ty;)*) => {
        impl EchoServant for Server {
            $(
                fn $operation(&self, $a: $argument, b: &mut $owned) -> Echoed<$owned> {
                    exchange($kept, b)
                }
            )*

            fn odd_names(
                &self,
                out: i32,
                input: &mut i32,
                call: &str,
                self_: &[u8],
            ) -> Result<(i32, i32, String), SystemException> {
                let sum = out + *input;
                *input = out;
                Ok((sum, i32::from(self_[0]), call.to_uppercase()))
            }
        }
    };
}

echoes! {
    echo_short(a: i16 => a) for i16;
    echo_ushort(a: u16 => a) for u16;
    echo_long(a: i32 => a) for i32;
    echo_ulong(a: u32 => a) for u32;
    echo_long_long(a: i64 => a) for i64;
    echo_ulong_long(a: u64 => a) for u64;
    echo_float(a: f32 => a) for f32;
    echo_double(a: f64 => a) for f64;
    echo_long_double(a: LongDouble => a) for LongDouble;
    echo_boolean(a: bool => a) for bool;
    echo_octet(a: u8 => a) for u8;
    echo_char(a: Char => a) for Char;
    echo_string(a: &str => a.to_owned()) for String;
    echo_short_text(a: &ShortText => a.clone()) for ShortText;
    echo_colour(a: Colour => a) for Colour;
    echo_mood(a: echo::Mood => a) for echo::Mood;
    echo_bin_struct(a: &BinStruct => *a) for BinStruct;
    echo_segment(a: &Segment => *a) for Segment;
    echo_record(a: &Record => a.clone()) for Record;
    echo_node(a: &Node => a.clone()) for Node;
    echo_matrix(a: &Matrix => *a) for Matrix;
    echo_names(a: &Names => a.clone()) for Names;
    echo_octets(a: &[u8] => a.to_vec()) for Octets;
    echo_doubles(a: &[f64] => a.to_vec()) for Doubles;
    echo_texts(a: &[String] => a.to_vec()) for Texts;
    echo_text_table(a: &[Texts] => a.to_vec()) for TextTable;
    echo_few(a: &Few => a.clone()) for Few;
    echo_colours(a: &[Colour] => a.to_vec()) for Colours;
    echo_bin_structs(a: &[BinStruct] => a.to_vec()) for BinStructs;
    echo_segments(a: &[Segment] => a.to_vec()) for Segments;
    echo_matrices(a: &[Matrix] => a.to_vec()) for Matrices;
    echo_echo(a: Option<&Echo> => a.cloned()) for Option<Echo>;
    echo_object(a: Option<&ObjectRef> => a.cloned()) for Option<ObjectRef>;
    echo_echoes(a: &[Option<Echo>] => a.to_vec()) for echo::Echoes;
}

/// Sends `first` as `a` and `second` as `b`, and checks the values returned for each.
#[track_caller]
pub(crate) fn check<T: Clone + Debug + PartialEq>(first: T, second: T, call: impl FnOnce(&T, &mut T) -> Echoed<T>) {
    let mut b = second.clone();
    let (result, c) = call(&first, &mut b).expect("an answer");
    assert_eq!(result, first, "the result");
    assert_eq!(c, second, "the out parameter");
    assert_eq!(b, first, "the inout parameter");
}

fn in_both_orders(test: impl Fn(&Pair, &Echo)) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let pair = Pair::new(order);
        let echo = pair.serve(EchoSkeleton::new(Server));
        test(&pair, &echo);
    }
}

#[test]
fn primitives_are_passed_by_value() {
    in_both_orders(|_, echo| {
        check(i16::MIN, 1, |a, b| echo.echo_short(*a, b));
        check(u16::MAX, 1, |a, b| echo.echo_ushort(*a, b));
        check(i32::MIN, 1, |a, b| echo.echo_long(*a, b));
        check(u32::MAX, 1, |a, b| echo.echo_ulong(*a, b));
        check(i64::MIN, 1, |a, b| echo.echo_long_long(*a, b));
        check(u64::MAX, 1, |a, b| echo.echo_ulong_long(*a, b));
        check(1.5, f32::MIN, |a, b| echo.echo_float(*a, b));
        check(-0.1, f64::MAX, |a, b| echo.echo_double(*a, b));
        check(LongDouble::from(0.1), LongDouble::from(-7.0), |a, b| echo.echo_long_double(*a, b));
        check(true, false, |a, b| echo.echo_boolean(*a, b));
        check(0xff, 0, |a, b| echo.echo_octet(*a, b));
        check(Char(0xe9), Char(b'x'), |a, b| echo.echo_char(*a, b));
    });
}

#[test]
fn enums_are_passed_by_value() {
    in_both_orders(|_, echo| {
        check(Colour::UltraViolet, Colour::Red, |a, b| echo.echo_colour(*a, b));
        check(echo::Mood::Cross, echo::Mood::Cheerful, |a, b| echo.echo_mood(*a, b));
        check(vec![Colour::Green, Colour::UltraViolet], vec![], |a, b| echo.echo_colours(a, b));
    });
}

#[test]
fn strings_are_passed_as_str_and_received_as_string() {
    in_both_orders(|_, echo| {
        check("Grüß Gott".to_owned(), String::new(), |a, b| echo.echo_string(a, b));
        let short = |text: &str| BoundedString::try_from(text).expect("at most eight characters");
        check(short("12345678"), short(""), |a, b| echo.echo_short_text(a, b));
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        check(texts(&["a", "", "ccc"]), texts(&[]), |a, b| echo.echo_texts(a, b));
        check(vec![texts(&["x"]), texts(&[]), texts(&["y", "z"])], vec![], |a, b| echo.echo_text_table(a, b));
        check(texts(&["one", "two"]), texts(&["three", "four"]), |a, b| {
            let array = |texts: &[String]| -> Names { texts.to_vec().try_into().expect("two names") };
            let mut names = array(b);
            let (result, c) = echo.echo_names(&array(a), &mut names)?;
            *b = names.to_vec();
            Ok((result.to_vec(), c.to_vec()))
        });
    });
}

#[test]
fn a_string_with_nul_is_rejected_before_sending() {
    in_both_orders(|_, echo| {
        let refused = echo.echo_string("a\0b", &mut String::new()).expect_err("NUL in a string");
        assert_eq!(refused.completed(), spandrel::CompletionStatus::No);
        assert!(BoundedString::<8>::try_from("123456789").is_err());
        assert!(BoundedVec::<i32, 3>::try_from(vec![1, 2, 3, 4]).is_err());
        check("still alive".to_owned(), String::new(), |a, b| echo.echo_string(a, b));
    });
}

fn bin_struct(seed: i16) -> BinStruct {
    BinStruct { s: seed, c: Char(seed as u8), l: i32::from(seed) << 16, o: seed as u8, d: f64::from(seed) / 3.0 }
}

fn segment(seed: i16) -> Segment {
    let end = |x| Point { x, y: f64::from(x) * 0.5 };
    let hue = if seed % 2 == 0 { Colour::Green } else { Colour::Red };
    Segment { lead: seed as u8, ends: [end(seed), end(-seed)], hue, open: seed > 2 }
}

#[test]
fn fixed_size_structs_are_read_as_they_were_written() {
    in_both_orders(|_, echo| {
        check(bin_struct(-3), bin_struct(300), |a, b| echo.echo_bin_struct(a, b));
        check(segment(1), segment(8), |a, b| echo.echo_segment(a, b));
        check((0..1000).map(bin_struct).collect(), vec![bin_struct(1)], |a, b| echo.echo_bin_structs(a, b));
        check((0..100).map(segment).collect(), vec![], |a, b| echo.echo_segments(a, b));
    });
}

fn record(seed: i32) -> Record {
    Record {
        who: format!("number {seed}"),
        nickname: BoundedString::try_from("nick").expect("a short name"),
        hue: Colour::UltraViolet,
        blob: vec![seed as u8; 7],
        aliases: ["a".to_owned(), "bc".to_owned()],
        cells: [[seed, 1, 2], [3, 4, -seed]],
        some_few: BoundedVec::try_from(vec![seed, 2]).expect("few"),
        precise: LongDouble::from(1e300),
        birth_place: Place { name: "Ulm".to_owned(), longitude: 9.99, latitude: 48.4 },
    }
}

#[test]
fn other_structs_are_read_as_they_were_written() {
    in_both_orders(|_, echo| {
        check(record(5), record(-1), |a, b| echo.echo_record(a, b));
        let leaf = |value| Node { value, children: vec![] };
        let tree = Node { value: 1, children: vec![leaf(2), Node { value: 3, children: vec![leaf(4)] }] };
        check(tree, leaf(9), |a, b| echo.echo_node(a, b));
    });
}

#[test]
fn sequences_are_passed_as_slices_and_received_as_vectors() {
    in_both_orders(|_, echo| {
        check((0..=255).collect(), vec![], |a: &Octets, b| echo.echo_octets(a, b));
        check(vec![7; 100_000], vec![1], |a: &Octets, b| echo.echo_octets(a, b));
        check(vec![0.5, -1e-300, f64::INFINITY], vec![], |a: &Doubles, b| echo.echo_doubles(a, b));
        let few = |few: &[i32]| Few::try_from(few.to_vec()).expect("at most three");
        check(few(&[1, 2, 3]), few(&[]), |a, b| echo.echo_few(a, b));
    });
}

#[test]
fn arrays_are_passed_as_references() {
    in_both_orders(|_, echo| {
        let matrix: Matrix = [[1, 2, 3], [-4, -5, -6]];
        check(matrix, Matrix::default(), |a, b| echo.echo_matrix(a, b));
        check(vec![matrix, Matrix::default()], vec![], |a, b| echo.echo_matrices(a, b));
    });
}

#[test]
fn references_are_passed_as_options_and_nil_is_none() {
    in_both_orders(|pair, echo| {
        let other: Echo = pair.serve(EchoSkeleton::new(Server));
        check(Some(echo.clone()), None, |a, b| echo.echo_echo(a.as_ref(), b));
        check(None, Some(other.clone()), |a, b| echo.echo_echo(a.as_ref(), b));
        check(Some(ObjectRef::from(other.clone())), None, |a, b| echo.echo_object(a.as_ref(), b));
        check(vec![Some(other.clone()), None, Some(echo.clone())], vec![], |a, b| echo.echo_echoes(a, b));
        // The returned reference can be called.
        let (back, _) = echo.echo_echo(Some(&other), &mut None).expect("an answer");
        check(1, 2, |a, b| back.as_ref().expect("the reference").echo_long(*a, b));
    });
}

#[test]
fn parameters_may_have_any_name() {
    in_both_orders(|_, echo| {
        let mut input = 20;
        let answer = echo.odd_names(3, &mut input, "loud", &[42]).expect("an answer");
        assert_eq!((answer, input), ((23, 42, "LOUD".to_owned()), 3));
    });
}
