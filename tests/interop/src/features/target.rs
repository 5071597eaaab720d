//! The servant of each object.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use spandrel::SystemException;
use spandrel::poa::Current;

use super::contexts;
use crate::features_idl::*;

type Answer<T> = Result<T, SystemException>;

/// The servant of each object.
#[derive(Debug, Default)]
pub(super) struct NamedTarget {
    /// `None` for a default servant: the name is then the object id.
    name: Option<String>,
    noted: AtomicI32,
}

impl NamedTarget {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

impl TargetServant for NamedTarget {
    fn name(&self) -> Answer<String> {
        let id = || Current::new().object_id().expect("an upcall has an object id");
        Ok(self.name.clone().unwrap_or_else(|| String::from_utf8_lossy(id().as_bytes()).into_owned()))
    }

    fn halve(&self, whole: i32, text: &mut String) -> Result<(i32, f64), target::HalveError> {
        if whole < 0 {
            return Err(Refused { why: "negative".to_owned() }.into());
        }
        *text = text.repeat(2);
        Ok((whole / 2, f64::from(whole) / 2.0))
    }

    fn note(&self, number: i32, milliseconds: u32) -> Answer<()> {
        thread::sleep(Duration::from_millis(milliseconds.into()));
        self.noted.store(number, Ordering::Release);
        Ok(())
    }

    fn noted(&self) -> Answer<i32> {
        Ok(self.noted.load(Ordering::Acquire))
    }

    fn heard(&self) -> Answer<String> {
        Ok(contexts::request_data())
    }
}
