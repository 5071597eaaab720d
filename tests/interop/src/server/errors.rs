//! User and system exceptions, and an operation that sleeps.

use std::thread;
use std::time::Duration;

use spandrel::{CompletionStatus, SystemException, SystemExceptionKind};

use crate::idl::*;
use crate::values::value;

/// Raises the exception that the caller names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raiser;

impl ErrorsServant for Raiser {
    fn raise_user(&self, which: u32, seed: u32) -> Result<i32, errors::RaiseUserError> {
        match which {
            0 => Ok(17),
            1 => Err(Empty {}.into()),
            2 => Err(Plain { code: seed.cast_signed(), why: GREETING.into() }.into()),
            3 => Err(value::<Rich>(seed, 1).into()),
            _ => Err(Mismatch { what: "as you asked".into() }.into()),
        }
    }

    fn raise_system(&self, name: &str, minor: u32, completed: u32) -> Result<(), SystemException> {
        let kind = SystemExceptionKind::ALL.iter().find(|kind| kind.name() == name);
        let Some(&kind) = kind else {
            return Err(SystemException::bad_param(0, CompletionStatus::No));
        };
        let completed = match completed {
            0 => CompletionStatus::Yes,
            1 => CompletionStatus::No,
            _ => CompletionStatus::Maybe,
        };
        Err(SystemException::new(kind, minor, completed))
    }

    fn sleep(&self, milliseconds: u32) -> Result<u32, SystemException> {
        thread::sleep(Duration::from_millis(milliseconds.into()));
        Ok(milliseconds)
    }
}
