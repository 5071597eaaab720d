//! Constants, and the traits of the generated types.

use std::collections::HashSet;

use spandrel::types::Char;

use super::idl::mapping::*;
use super::idl::{AT_THE_TOP, shared};

#[test]
fn constants_have_their_values() {
    assert_eq!(AT_THE_TOP, 7);
    assert_eq!(LEAST, i16::MIN);
    assert_eq!(MOST, u64::MAX);
    assert_eq!(THIRD, 1.0 / 3.0);
    assert_eq!(HALF, 0.5);
    const { assert!(YES) };
    assert_eq!(LETTER, Char(b'x'));
    assert_eq!(HIGH_BIT, 128);
    assert_eq!(GREETING, "say \"hello\"");
    assert_eq!(QUADRUPLE.to_f64(), 2.5);
    assert_eq!(FAVOURITE, Colour::UltraViolet);
}

#[test]
fn types_have_the_traits_that_their_members_allow() {
    let colours: HashSet<Colour> = [Colour::Red, Colour::Red, Colour::Green].into();
    assert_eq!(colours.len(), 2);
    assert!(Colour::Red < Colour::Green);
    assert_eq!(Colour::try_from(2), Ok(Colour::UltraViolet));
    assert!(Colour::try_from(3).is_err());
    let point = Point::default();
    let copy = point;
    assert_eq!(point, copy);
    assert_eq!(Node::default().children, []);
    assert_eq!(shared::Place::default().name, "");
}
