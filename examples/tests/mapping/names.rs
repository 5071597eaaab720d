//! Names that are keywords or prelude names in Rust.

use std::sync::atomic::{AtomicI32, Ordering};

use spandrel::{SystemException, cdr::ByteOrder, types::Interface as _};

use super::idl::mapping::Closed;
use super::idl::mapping::awkward::{self, option::LoopError};
use crate::pair::Pair;

#[derive(Default)]
struct Server {
    awaited: AtomicI32,
}

fn result(number: i32) -> awkward::Result {
    awkward::Result { r#type: number, r#match: number.to_string(), self_: number > 0 }
}

impl awkward::OptionServant for Server {
    fn r#loop(&self, r#fn: &awkward::Result, crate_: &mut awkward::Result) -> Result<awkward::Result, LoopError> {
        let old = std::mem::replace(crate_, r#fn.clone());
        if r#fn.r#type == 0 { Err(Closed {}.into()) } else { Ok(old) }
    }

    fn r#await(&self) -> Result<i32, SystemException> {
        Ok(self.awaited.load(Ordering::Relaxed))
    }

    fn set_await(&self, value: i32) -> Result<(), SystemException> {
        self.awaited.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn get_some(&self) -> Result<(), SystemException> {
        self.set_await(1)
    }

    fn get_some_(&self) -> Result<(), SystemException> {
        self.set_await(2)
    }

    fn narrow_(&self, as_object: i32) -> Result<i32, SystemException> {
        Ok(as_object)
    }
}

#[test]
fn keywords_and_collisions_add_at_most_an_underscore() {
    let pair = Pair::new(ByteOrder::Little);
    let option: awkward::Option = pair.serve(awkward::OptionSkeleton::new(Server::default()));
    let mut b = result(2);
    assert_eq!(option.r#loop(&result(1), &mut b), Ok(result(2)));
    assert_eq!(b, result(1));
    assert_eq!(option.set_await(9), Ok(()));
    assert_eq!(option.r#await(), Ok(9));
    assert_eq!(option.narrow_(5), Ok(5));
    // `getSome` came before `get_some`.
    option.get_some().expect("an answer");
    assert_eq!(option.r#await(), Ok(1));
    option.get_some_().expect("an answer");
    assert_eq!(option.r#await(), Ok(2));
}

#[test]
fn an_inout_keeps_its_value_when_the_call_fails() {
    let pair = Pair::new(ByteOrder::Little);
    let option: awkward::Option = pair.serve(awkward::OptionSkeleton::new(Server::default()));
    let mut b = result(2);
    assert_eq!(option.r#loop(&result(0), &mut b), Err(LoopError::Closed(Closed {})));
    assert_eq!(b, result(2));
}

#[test]
fn repository_ids_have_the_prefix_of_their_own_file() {
    assert_eq!(awkward::Option::REPOSITORY_ID, "IDL:mapping.example/Mapping/Awkward/Option:1.0");
    use spandrel::types::UserException as _;
    assert_eq!(super::idl::shared::Refused::REPOSITORY_ID, "IDL:spandrel.example/Shared/Refused:1.0");
}
