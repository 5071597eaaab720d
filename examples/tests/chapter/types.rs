//! Names, constants and types.

use spandrel::types::{BoundedString, BoundedVec, BoundedWString, Char, Fixed, LongDouble, WString};

use super::idl::{lists, naming, numbers, structs, texts, unions};

#[test]
fn names_follow_the_habits_of_rust() {
    let size = naming::ParcelSize { max_weight: 20, r#match: true };
    let kind = naming::Kind::SmallBox;
    assert_eq!(naming::DEFAULT_DEPTH, 3);
    assert_eq!((size.max_weight, kind as u32), (20, 1));

    fn _both(desk: &naming::HttpDesk) -> Result<(), spandrel::SystemException> {
        desk.get_foo()?; // getFoo, which came first
        desk.get_foo_() // get_foo
    }
}

#[test]
fn numbers_have_their_ranges() {
    let all = numbers::All {
        a: -1_i16,
        b: 1_u16,
        c: -1_i32,
        d: 1_u32,
        e: -1_i64,
        f: 1_u64,
        g: 0.5_f32,
        h: 0.5_f64,
        i: LongDouble::from(0.5),
        j: true,
        k: 0xff_u8,
        l: Char(b'x'),
        m: '€',
        n: "19.99".parse().expect("at most nine digits, two behind the point"),
        o: 7_u64,
    };
    let price: Fixed<9, 2> = all.n;
    assert_eq!(price.checked_add(numbers::FEE), Some(numbers::Amount::from_unscaled(2149)));
    assert_eq!(numbers::EURO, all.m);
    assert_eq!(numbers::THIRD, 1.0 / 3.0);
}

#[test]
fn bounded_strings_check_their_bounds() {
    let label = texts::Label {
        plain: "fragile".to_owned(),
        wide: WString::from("zerbrechlich"),
        mark: BoundedString::try_from("A-17").expect("at most eight characters"),
        heading: BoundedWString::try_from("Ärmel").expect("at most eight characters"),
    };
    assert!(label.wide.starts_with("zer")); // dereferences to `str`
    assert!(texts::Code::try_from("nine chars").is_err());
    assert_eq!((texts::HELLO, texts::GREETING), ("hello", "grüezi"));
}

#[test]
fn sequences_are_vectors() {
    let numbers: lists::Numbers = vec![3, 1, 2];
    let names: lists::Names = BoundedVec::try_from(vec!["a".to_owned()]).expect("at most three");
    let matrix: lists::Matrix = [[0.0; 3]; 2];
    assert_eq!((numbers.len(), names.len(), matrix.len()), (3, 1, 2));
}

#[test]
fn structs_have_the_traits_that_their_members_allow() {
    let shape = structs::Shape { fill: structs::Colour::Green, ..Default::default() };
    assert_eq!(shape.corners, []);
    let there = structs::Point { x: 1.0, y: 2.0 };
    let copy = there; // all of its members are `Copy`
    assert_eq!(there, copy);
    assert!(structs::Colour::Red < structs::Colour::Blue);
    assert_eq!(structs::Colour::try_from(2), Ok(structs::Colour::Blue));

    let leaf = |leaf: &str| structs::Tree { leaf: leaf.to_owned(), below: vec![] };
    let tree = structs::Tree { leaf: "trunk".to_owned(), below: vec![leaf("twig"), leaf("bud")] };
    assert_eq!(tree.below.len(), 2);
}

#[test]
fn unions_are_enums() {
    use unions::{Answer, Kind, Measure};

    fn say(measure: &Measure) -> String {
        match measure {
            Measure::Kilograms(value) => format!("{value} kg"),
            Measure::Millimetres { discriminator: Kind::Width, value } => format!("{value} mm wide"),
            Measure::Millimetres { value, .. } => format!("{value} mm long"),
            Measure::Unlisted(_) => "nothing".to_owned(),
        }
    }
    let width = Measure::Millimetres { discriminator: Kind::Width, value: 30 };
    assert_eq!(width.discriminator(), Kind::Width);
    assert_eq!(say(&width), "30 mm wide");
    assert_eq!(say(&Measure::Kilograms(1.5)), "1.5 kg");
    assert_eq!(Measure::default(), Measure::Unlisted(Kind::None));

    // `default` is selected by every value without a label.
    let answer = Answer::Code { discriminator: 17, value: 0xff };
    assert_ne!(answer, Answer::default());
    assert_eq!(Answer::default(), Answer::Text(String::new()));
}
