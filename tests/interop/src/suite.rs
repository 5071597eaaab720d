//! Cases: each is run by its name, told of in one line, and counted.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use spandrel::SystemException;

/// Seeds 0 to 2 are the plain values, the rest random.
pub(crate) const SEEDS: u32 = 24;
/// What any single call may take.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many cases were run and which of them failed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// How many were run.
    pub run: u32,
    /// The names of those that failed, each with its reason.
    pub failures: Vec<(String, String)>,
}

impl Tally {
    /// True if something was run and nothing failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.run > 0 && self.failures.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} failed", self.run, self.failures.len())
    }
}

/// Runs cases and counts.
pub(crate) struct Suite<'s> {
    only: &'s str,
    say: &'s mut dyn FnMut(&str),
    pub(crate) tally: Tally,
}

impl<'s> Suite<'s> {
    /// Of the cases whose names begin with `only`; `say` gets a line for each.
    pub(crate) fn new(only: &'s str, say: &'s mut dyn FnMut(&str)) -> Self {
        Self { only, say, tally: Tally::default() }
    }

    pub(crate) fn case(&mut self, name: &str, body: impl FnOnce() -> Result<()>) {
        if !name.starts_with(self.only) {
            return;
        }
        self.tally.run += 1;
        match body() {
            Ok(()) => (self.say)(&format!("ok {name}")),
            Err(error) => {
                (self.say)(&format!("FAIL {name}: {error:#}"));
                self.tally.failures.push((name.to_owned(), format!("{error:#}")));
            }
        }
    }

    /// A case that is to hold for all seeds.
    pub(crate) fn seeded(&mut self, name: &str, body: impl Fn(u32) -> Result<()>) {
        self.case(name, || (0..SEEDS).try_for_each(|seed| body(seed).with_context(|| format!("seed {seed}"))));
    }
}

/// A reference that must not be nil.
pub(crate) fn there<T>(reference: Option<T>) -> Result<T> {
    reference.context("a reference is nil")
}

/// Compares simple things.
pub(crate) fn equal<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(what: &str, seen: T, expected: U) -> Result<()> {
    ensure!(seen == expected, "{what}: expected {expected:?}, saw {seen:?}");
    Ok(())
}

/// Fails unless the call failed, with an error that `wanted` accepts.
pub(crate) fn raises<T, E: fmt::Debug>(result: Result<T, E>, wanted: impl FnOnce(&E) -> bool) -> Result<()> {
    match result {
        Ok(_) => bail!("no exception"),
        Err(error) if wanted(&error) => Ok(()),
        Err(error) => bail!("another exception: {error:?}"),
    }
}

pub(crate) fn kind(error: &SystemException) -> &'static str {
    error.kind().name()
}

/// Asks until it is so: one-way calls may be carried out after later calls on other connections.
pub(crate) fn eventually(what: &str, so: impl Fn() -> Result<bool>) -> Result<()> {
    let give_up = Instant::now() + TIME_LIMIT;
    while !so()? {
        ensure!(Instant::now() < give_up, "{what}: it never happened");
        thread::yield_now();
    }
    Ok(())
}
