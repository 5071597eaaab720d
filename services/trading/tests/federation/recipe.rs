//! Recipes of proxy offers.

use std::collections::BTreeMap;

use spandrel_constraint::{Constraint, Limits};

use spandrel_constraint::Value;
use spandrel_trading::federation::recipe::{InvalidRecipe, Recipe};

fn built(recipe: &str) -> Option<String> {
    let properties = BTreeMap::from([
        ("floor", Value::Integer(-4)),
        ("room", Value::from("it's \\ here")),
        ("weight", Value::Floating(1e-7)),
        ("is_new", Value::Boolean(true)),
        ("any", Value::Other),
    ]);
    Recipe::parse(recipe).unwrap().constraint("ppm > 20", &properties)
}

#[test]
fn a_recipe_takes_the_constraint_and_properties() {
    assert_eq!(built("($*) and floor == $(floor)").unwrap(), "(ppm > 20) and floor == -4");
    assert_eq!(built("cost == 'a\\$' and \\\\").unwrap(), "cost == 'a$' and \\");
    assert_eq!(built("").unwrap(), "");
    assert_eq!(built("$(any)"), None);
    assert_eq!(built("$(missing)"), None);
}

#[test]
fn values_are_literals_of_the_constraint_language() {
    let text = built("room == $(room) and weight == $(weight) and is_new == $(is_new) and floor == $(floor)").unwrap();
    let properties = BTreeMap::from([
        ("floor", Value::Integer(-4)),
        ("room", Value::from("it's \\ here")),
        ("weight", Value::Floating(1e-7)),
        ("is_new", Value::Boolean(true)),
    ]);
    let constraint = Constraint::parse(&text, Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(constraint.matches(&properties), Ok(true), "{text}");
}

#[test]
fn anything_else_behind_a_dollar_sign_is_refused() {
    for (invalid, at) in [("$", 0), ("a $x", 2), ("$()", 0), ("$(open", 0), ("x\\", 1), ("$*$(", 2)] {
        assert_eq!(Recipe::parse(invalid), Err(InvalidRecipe(at)), "{invalid}");
    }
}
