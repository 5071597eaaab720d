//! The values that all programs of the suite compute from a seed and a role.

use spandrel::types::{BoundedVec, LongDouble};
use spandrel_interop::values::{Value as _, check, value};

#[test]
fn the_generator_follows_the_readme() {
    // The second number that the omniORB peers compute; the first one, 0x710738f7e219399e, selects the kind of value.
    assert_eq!(value::<u64>(5, 1), 0x548cea3ad1a671ba);
}

#[test]
fn plain_values_are_as_documented() {
    assert_eq!(value::<i16>(0, 3), i16::MIN);
    assert_eq!(value::<u64>(1, 3), u64::MAX);
    assert_eq!(value::<[i32; 3]>(2, 1), [16, 17, 18]);
    assert_eq!(value::<LongDouble>(2, 1), LongDouble::from(16.5));
    assert_eq!(value::<String>(2, 1), "rstu"); // 16 % 5 + 3 characters from 17 on
    assert_eq!(value::<BoundedVec<u8, 3>>(1, 1).len(), 3);
}

#[test]
fn a_difference_is_reported_with_its_name() {
    let error = check("b", &7_i32, 0, 1).unwrap_err();
    assert_eq!(error, format!("b: expected {}, saw 7", i32::MIN));
    assert!(check("z", &0.0_f64, 0, 1).is_err());
    assert!(!(-0.0_f64).same(&0.0));
}
