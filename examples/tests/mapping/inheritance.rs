//! Inheritance: operations once each, conversions up and down.

use spandrel::{ObjectRef, SystemException, SystemExceptionKind, cdr::ByteOrder};

use super::idl::mapping::*;
use crate::pair::Pair;

struct Server;

type Answer<T> = Result<T, SystemException>;

impl BaseServant for Server {
    fn who(&self) -> Answer<String> {
        Ok("base".to_owned())
    }

    fn number(&self) -> Answer<i32> {
        Ok(4)
    }
}

impl LeftServant for Server {
    fn to_left(&self) -> Answer<String> {
        Ok("left".to_owned())
    }
}

impl RightServant for Server {
    fn to_right(&self, other: Option<&Base>) -> Answer<String> {
        match other {
            Some(other) => Ok(format!("right of {}", other.who()?)),
            None => Ok("right of nobody".to_owned()),
        }
    }
}

impl BottomServant for Server {
    fn to_bottom(&self) -> Answer<String> {
        Ok("bottom".to_owned())
    }
}

#[test]
fn a_derived_reference_has_all_operations() {
    let pair = Pair::new(ByteOrder::Little);
    let bottom: Bottom = pair.serve(BottomSkeleton::new(Server));
    assert_eq!(bottom.who(), Ok("base".to_owned()));
    assert_eq!(bottom.number(), Ok(4));
    assert_eq!(bottom.to_left(), Ok("left".to_owned()));
    assert_eq!(bottom.to_right(None), Ok("right of nobody".to_owned()));
    assert_eq!(bottom.to_bottom(), Ok("bottom".to_owned()));
}

#[test]
fn references_convert_upwards_and_narrow_downwards() {
    let pair = Pair::new(ByteOrder::Little);
    let bottom: Bottom = pair.serve(BottomSkeleton::new(Server));
    let (left, right) = (Left::from(bottom.clone()), Right::from(bottom.clone()));
    let base = Base::from(left.clone());
    assert_eq!(left.to_left(), Ok("left".to_owned()));
    assert_eq!(base.who(), Ok("base".to_owned()));
    assert_eq!(Base::from(bottom.clone()), base);
    assert_eq!(Bottom::narrow(base.as_object()), Ok(bottom.clone()));
    assert_eq!(Right::narrow(&ObjectRef::from(left)), Ok(right));
}

#[test]
fn narrowing_asks_the_object() {
    let pair = Pair::new(ByteOrder::Little);
    let left: Left = pair.serve(LeftSkeleton::new(Server));
    let error = Bottom::narrow(left.as_object()).expect_err("it is only a Left");
    assert_eq!(error.kind(), SystemExceptionKind::BadParam);
    assert!(left.as_object().is_a("IDL:mapping.example/Mapping/Base:1.0").expect("an answer"));
    assert!(!left.as_object().is_a("IDL:mapping.example/Mapping/Right:1.0").expect("an answer"));
}

#[test]
fn a_servant_can_call_the_references_that_it_is_given() {
    let pair = Pair::new(ByteOrder::Little);
    let bottom: Bottom = pair.serve(BottomSkeleton::new(Server));
    let base = Base::from(bottom.clone());
    assert_eq!(bottom.to_right(Some(&base)), Ok("right of base".to_owned()));
}
