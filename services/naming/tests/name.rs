//! The string form of names.

use proptest::prelude::*;

use spandrel::services::cos_naming::NameComponent;
use spandrel::services::name::InvalidName::{
    Empty, EmptyComponent, EmptyKind, Escape, LongComponent, SecondDot, TooManyComponents,
};
use spandrel::services::name::{MAX_COMPONENT_OCTETS, MAX_COMPONENTS, parse, to_string};

fn step(id: &str, kind: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: kind.to_owned() }
}

#[test]
fn the_examples_of_the_specification() {
    assert_eq!(parse("a/b.c/."), Ok(vec![step("a", ""), step("b", "c"), step("", "")]));
    assert_eq!(parse(r"a/x\/y\/z/b"), Ok(vec![step("a", ""), step("x/y/z", ""), step("b", "")]));
    assert_eq!(parse(r"a\.b.c\.d"), Ok(vec![step("a.b", "c.d")]));
    assert_eq!(parse(".k"), Ok(vec![step("", "k")]));
}

#[test]
fn malformed_texts_are_refused() {
    for (text, error) in [
        ("", Empty),
        ("/", EmptyComponent),
        ("/a", EmptyComponent),
        ("a/", EmptyComponent),
        ("a//b", EmptyComponent),
        ("a.", EmptyKind),
        ("a.b.c", SecondDot),
        ("..", SecondDot),
        (r"a\", Escape),
        (r"a\b", Escape),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
    assert_eq!(parse(&"a/".repeat(MAX_COMPONENTS + 1)), Err(TooManyComponents));
    assert_eq!(parse(&"a".repeat(MAX_COMPONENT_OCTETS + 1)), Err(LongComponent));
}

proptest! {
    #[test]
    fn a_name_and_its_string_form_are_equivalent(
        steps in prop::collection::vec(("[a./\\\\ é]{0,6}", "[b./\\\\]{0,4}"), 1..6)
    ) {
        let name: Vec<_> = steps.iter().map(|(id, kind)| step(id, kind)).collect();
        prop_assert_eq!(parse(&to_string(&name)), Ok(name));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[a./\\\\]{0,12}") {
        if let Ok(name) = parse(&text) {
            prop_assert_eq!(to_string(&name), text);
        }
    }
}
