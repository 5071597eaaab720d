//! The extended language of the notification service (Notification Service 1.1, 2.4).

use std::collections::BTreeMap;

use proptest::prelude::*;
use spandrel_constraint::{
    ComponentPart, Constraint, ConstraintError, Limit, Limits, Properties, UnionLabel, Value, component_parts,
};

fn parse(text: &str) -> Result<Constraint, ConstraintError> {
    Constraint::parse_extended(text, Limits::default())
}

/// Components by their names; `$u` is a union with its default member.
struct Components(BTreeMap<&'static str, Value<'static>>);

impl Properties for Components {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.0.get(name).map(Value::borrowed)
    }

    fn is_default(&self, name: &str) -> bool {
        name == "$u"
    }
}

fn components() -> Components {
    let sequence = vec![Value::Integer(1), Value::Integer(3)];
    Components(BTreeMap::from([
        ("$", Value::Integer(7)),
        ("$x", Value::Integer(5)),
        ("$.header.fixed_header.event_name", Value::from("press")),
        ("$.filterable_data(level)", Value::Floating(2.5)),
        ("$.a[2].(-1)._length", Value::Integer(2)),
        ("$.list", Value::Sequence(sequence.into())),
        ("$.colour", Value::from("red")),
        ("$.(\'x y\')", Value::Boolean(true)),
        ("$u", Value::Other),
    ]))
}

#[test]
fn components_are_operands_of_all_operators() {
    let components = components();
    for (text, expected) in [
        ("$ == 7", true),
        ("$x + $ * 2 == 19", true),
        ("$.header.fixed_header.event_name ~ 'express'", true),
        ("$.filterable_data(level) > 2 and not exist $.b", true),
        ("$.a[2].(-1)._length == 2", true),
        ("$x - 2 in $.list", true),
        ("-$x == -5 and +$x == 5 and 1 - -$x == 6", true),
        ("$.colour == red and $.colour != blue", true),
        ("$.colour == \\red", true),
        ("$.('x y')", true),
        ("default $u and not default $x", true),
        ("exist $u", true),
        ("exist $.none", false),
        ("", true),
    ] {
        let constraint = parse(text).unwrap();
        assert_eq!(constraint.matches(&components), Ok(expected), "{text}");
        assert_eq!(parse(&constraint.to_string()).as_ref(), Ok(&constraint), "{text}");
    }
    assert!(parse("$.none == 1").unwrap().matches(&components).is_err());
}

#[test]
fn the_parts_of_a_component_are_those_of_the_grammar() {
    use ComponentPart::*;
    for (name, expected) in [
        ("$", vec![]),
        ("$curtime", vec![Variable("curtime")]),
        ("$.\\exist.in", vec![Member("exist"), Member("in")]),
        ("$a[10].0(b)", vec![Variable("a"), Element(10), Position(0), Named("b")]),
        ("$.()", vec![Case(UnionLabel::Default)]),
        (
            "$.(+3).(-4).('f')",
            [UnionLabel::Number(3), UnionLabel::Number(-4), UnionLabel::Text("f")].map(Case).to_vec(),
        ),
        ("$._d._type_id._repos_id._length", vec![Discriminator, TypeId, RepositoryId, Length]),
    ] {
        parse(&format!("exist {name}")).unwrap();
        assert_eq!(component_parts(name).collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn texts_beside_the_grammar_are_refused_with_their_position() {
    for (text, expected) in [
        ("$.", "expected the name of a member at octet 2, not the end of the text"),
        ("$a[x]", "expected an index at octet 3, not \"x]\""),
        ("$a[1", "expected `]` at octet 4, not the end of the text"),
        ("$a(1)", "expected a name at octet 3, not \"1)\""),
        ("$.('a", "expected the closing quote of a label at octet 4, not \"a\""),
        ("$a._size == 1", "expected the name of a member at octet 3, not \"_size == 1\""),
        ("exist a", "expected the name of a component at octet 6, not \"a\""),
        ("1 in list", "expected the name of a component at octet 5, not \"list\""),
        ("\\1", "expected a name behind the backslash at octet 0, not \"\\\\1\""),
        ("$a $b", "expected an operator or the end of the text at octet 3, not \"$b\""),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    // The language of the trading service has none of this.
    for text in ["$a == 1", "default == 1 and exist $b", "\\and"] {
        assert!(Constraint::parse(text, Limits::default()).is_err(), "{text}");
    }
    assert!(Constraint::parse("default == 1", Limits::default()).is_ok());
}

#[test]
fn a_component_of_too_many_parts_is_refused() {
    parse(&format!("exist ${}", ".a".repeat(32))).unwrap();
    let error = parse(&format!("exist ${}", ".a".repeat(33))).unwrap_err();
    assert_eq!(error, Limit::Parts(32).into());
    assert_eq!(error.to_string(), "a component name has more than 32 parts (limit of parts)");
    assert_eq!(parse(&"$.a == 1 or ".repeat(100_000)).unwrap_err(), Limit::Length(65_536).into());
    assert_eq!(parse(&"(".repeat(60_000)).unwrap_err(), Limit::Nesting(64).into());
}

#[test]
fn several_constraints_share_their_steps() {
    let mut steps = 5;
    let constraint = parse("$ == 7").unwrap();
    assert_eq!(constraint.matches_within(&components(), &mut steps), Ok(true));
    assert_eq!(steps, 2);
    assert_eq!(constraint.matches_within(&components(), &mut steps), Err(Limit::Steps(2).into()));
}

proptest! {
    #[test]
    fn random_texts_of_the_alphabet_are_refused_or_parse_to_their_text_form(
        words in prop::collection::vec(
            prop::sample::select(&[
                "$", "$a", ".b", "[1]", "[", "(c)", "(", ")", ".(1)", ".('d')", "._d", "._length", " ", "exist ", "default ",
                " in ", " ~ ", " == ", " < ", "+", "-", " * ", " and ", " or ", "not ", "1", "2.5", "'t'", "\\", "red", "TRUE",
            ][..]),
            0..24,
        )
    ) {
        let text: String = words.concat();
        if let Ok(constraint) = parse(&text) {
            let printed = constraint.to_string();
            let again = parse(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&constraint), "{} is printed as {}", text, printed);
            _ = constraint.matches(&components());
        }
    }
}
