//! Unions, decimals, wide texts and `any` in every direction.

use std::sync::Mutex;

use spandrel::{
    CompletionStatus, SystemException, SystemExceptionKind,
    cdr::ByteOrder,
    types::{Any, BoundedWString, TypeCode, WString},
};
use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder, Typed, Wire};

use super::echo::{Echoed, check, exchange};
use super::idl::mapping::*;
use crate::pair::Pair;

#[derive(Default)]
struct Server(Mutex<WString>);

macro_rules! shows {
    ($($operation:ident($a:ident: $argument:ty => $kept:expr) for $owned:ty;)*) => {
        impl MirrorServant for Server {
            $(
                fn $operation(&self, $a: $argument, b: &mut $owned) -> Echoed<$owned> {
                    exchange($kept, b)
                }
            )*

            fn caption(&self) -> Result<WString, SystemException> {
                Ok(self.0.lock().expect("no panic").clone())
            }

            fn set_caption(&self, value: &str) -> Result<(), SystemException> {
                *self.0.lock().expect("no panic") = value.into();
                Ok(())
            }
        }
    };
}

shows! {
    show_figure(a: &Figure => *a) for Figure;
    show_wish(a: &Wish => a.clone()) for Wish;
    show_branch(a: &Branch => a.clone()) for Branch;
    show_letters(a: &Letters => a.clone()) for Letters;
    show_spoon(a: &Spoon => a.clone()) for Spoon;
    show_wishes(a: &[Wish] => a.to_vec()) for Wishes;
    show_wchar(a: char => a) for char;
    show_wstring(a: &str => a.into()) for WString;
    show_short_wide(a: &ShortWide => a.clone()) for ShortWide;
    show_wide_texts(a: &[WString] => a.to_vec()) for WideTexts;
    show_price(a: Price => a) for Price;
    show_price_list(a: &[Priced] => a.to_vec()) for PriceList;
    show_ticket(a: &Ticket => a.clone()) for Ticket;
    show_any(a: &Any => a.clone()) for Any;
    show_type_code(a: &TypeCode => a.clone()) for TypeCode;
}

fn in_both_orders(test: impl Fn(&Mirror)) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let pair = Pair::new(order);
        test(&pair.serve(MirrorSkeleton::new(Server::default())));
    }
}

fn figures() -> Vec<Figure> {
    vec![Figure::Radius(0.5), Figure::At(Point { x: 1, y: -2.0 }), Figure::Unlisted(Colour::UltraViolet)]
}

fn wishes() -> Vec<Wish> {
    vec![
        Wish::Word("peace".to_owned()),
        Wish::Words { discriminator: 3, value: vec!["a".to_owned(), String::new()] },
        Wish::Rest { discriminator: i32::MIN, value: 9 },
    ]
}

#[test]
fn unions_are_read_as_they_were_written() {
    in_both_orders(|mirror| {
        for figure in figures() {
            check(figure, Figure::default(), |a, b| mirror.show_figure(a, b));
        }
        for wish in wishes() {
            check(wish, Wish::default(), |a, b| mirror.show_wish(a, b));
        }
        check(wishes(), vec![], |a, b| mirror.show_wishes(a, b));
        check(Branch::Leaves(figures()), Branch::Leaf(figures()[1]), |a, b| mirror.show_branch(a, b));
        check(Letters::Alpha('ω'), Letters::Zed("zed".into()), |a, b| mirror.show_letters(a, b));
        check(Letters::Unlisted('x'), Letters::default(), |a, b| mirror.show_letters(a, b));
        let spoons = vec![Spoon::Held(Some(mirror.as_object().clone())), Spoon::Nested(vec![Spoon::Held(None)])];
        check(Spoon::Nested(spoons), Spoon::default(), |a, b| mirror.show_spoon(a, b));
    });
}

#[test]
fn a_discriminator_that_belongs_to_another_branch_is_not_sent() {
    in_both_orders(|mirror| {
        for wrong in [
            Wish::Words { discriminator: 1, value: vec![] },
            Wish::Words { discriminator: 4, value: vec![] },
            Wish::Rest { discriminator: 2, value: 0 },
        ] {
            let error = mirror.show_wish(&wrong, &mut Wish::default()).expect_err("refused");
            assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::BadParam, CompletionStatus::No));
        }
        let wrong = Figure::Unlisted(Colour::Red);
        let error = mirror.show_figure(&wrong, &mut Figure::default()).expect_err("refused");
        assert_eq!(error.kind(), SystemExceptionKind::BadParam);
        check(Figure::Radius(1.0), Figure::default(), |a, b| mirror.show_figure(a, b));
    });
}

#[test]
fn a_union_knows_its_discriminator() {
    let colours: Vec<Colour> = figures().iter().map(Figure::discriminator).collect();
    assert_eq!(colours, [Colour::Red, Colour::Green, Colour::UltraViolet]);
    let numbers: Vec<i32> = wishes().iter().map(Wish::discriminator).collect();
    assert_eq!(numbers, [1, 3, i32::MIN]);
    assert_eq!(Figure::default(), Figure::Unlisted(Colour::UltraViolet));
    assert_eq!(Wish::default(), Wish::Word(String::new()));
}

#[test]
fn unions_that_nest_too_deeply_are_refused() {
    let wire = Wire::default();
    let deep = (0..200).fold(Spoon::Nested(vec![]), |inner, _| Spoon::Nested(vec![inner]));
    let mut out = Encoder::new(wire);
    deep.encode(&mut out).expect("encoding has no limit");
    let refused = Spoon::decode(&mut Decoder::new(&out.to_vec(), wire));
    assert!(matches!(refused, Err(CdrError::TooDeep { .. })), "{refused:?}");
}

#[test]
fn wide_texts_and_decimals_are_read_as_they_were_written() {
    in_both_orders(|mirror| {
        check('€', 'x', |a, b| mirror.show_wchar(*a, b));
        check(WString::from("Žluťoučký kůň 🐎"), WString::new(), |a, b| mirror.show_wstring(a, b));
        let short = |text: &str| BoundedWString::try_from(text).expect("at most eight characters");
        check(short("αβγδεζηθ"), short(""), |a, b| mirror.show_short_wide(a, b));
        check(vec!["α".into(), WString::new()], vec![], |a, b| mirror.show_wide_texts(a, b));
        check(Price::MAX, Price::from_unscaled(-1), |a, b| mirror.show_price(*a, b));
        let priced = |lead: u8| {
            let price = |cents| Price::from_unscaled(cents * i128::from(lead));
            Priced { lead, asked: price(-7), more: [price(100), price(0)], weight: f64::from(lead) / 3.0 }
        };
        check((0..50).map(priced).collect(), vec![priced(1)], |a, b| mirror.show_price_list(a, b));
        mirror.set_caption("Überschrift — ☺").expect("an answer");
        assert_eq!(&*mirror.caption().expect("an answer"), "Überschrift — ☺");
    });
}

#[test]
fn an_any_returns_with_its_type() {
    in_both_orders(|mirror| {
        let any = |value: &Wish| Any::new(value).expect("a value that can be sent");
        for wish in wishes() {
            check(any(&wish), Any::default(), |a, b| mirror.show_any(a, b));
            let (back, _) = mirror.show_any(&any(&wish), &mut Any::default()).expect("an answer");
            assert_eq!(back.extract::<Wish>(), Ok(wish));
        }
        let ticket = Ticket {
            title: "Première".into(),
            code: ShortWide::try_from("A1").expect("short"),
            mark: '★',
            asked: Price::from_unscaled(1250),
            extra: any(&wishes()[1]),
            kind: spoons_tc(),
        };
        check(ticket.clone(), Ticket::default(), |a, b| mirror.show_ticket(a, b));
        let nested = Any::new(&ticket).expect("a value that can be sent");
        let (back, _) = mirror.show_any(&nested, &mut Any::default()).expect("an answer");
        assert_eq!(back.extract::<Ticket>(), Ok(ticket));
        let held = Any::new(Some(mirror.clone())).expect("a reference");
        let (back, _) = mirror.show_any(&held, &mut Any::default()).expect("an answer");
        assert_eq!(back.extract::<Option<Mirror>>(), Ok(Some(mirror.clone())));
    });
}

#[test]
fn every_generated_type_has_a_type_code_that_can_be_sent() {
    let codes = [
        Colour::type_code(),
        Segment::type_code(),
        Node::type_code(),
        Wish::type_code(),
        Spoon::type_code(),
        Letters::type_code(),
        Ticket::type_code(),
        Priced::type_code(),
        TooMuch::type_code(),
        Closed::type_code(),
        Mirror::type_code(),
        matrix_tc(),
        spoons_tc(),
        price_list_tc(),
        text_table_tc(),
        some_few_member(),
    ];
    in_both_orders(|mirror| {
        for code in &codes {
            check(code.clone(), TypeCode::default(), |a, b| mirror.show_type_code(a, b));
        }
    });
}

/// The type code of a member is that of the typedef that it is declared with.
fn some_few_member() -> TypeCode {
    let record = Record::type_code();
    let index = (0..9).find(|&index| record.member_name(index) == Ok("some_few")).expect("the member");
    let member = record.member_type(index).expect("its type");
    assert_eq!(member, few_tc());
    assert_eq!((member.id(), member.name()), (Ok("IDL:mapping.example/Mapping/Few:1.0"), Ok("Few")));
    member
}
