//! Test cases: each has a name, is reported in one line, and is counted.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use spandrel::SystemException;

/// Seeds 0 to 2 are the plain values, the rest random.
pub(crate) const SEEDS: u32 = 24;
/// The timeout of each call.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many cases were run and which of them failed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// The number of cases run.
    pub run: u32,
    /// The names of the failed cases, each with its reason.
    pub failures: Vec<(String, String)>,
}

impl Tally {
    /// True if at least one case was run and none failed.
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

/// Runs cases and counts them.
pub(crate) struct Suite<'s> {
    only: &'s str,
    say: &'s mut dyn FnMut(&str),
    pub(crate) tally: Tally,
}

impl<'s> Suite<'s> {
    /// A suite that runs the cases whose names begin with `only`, and calls `say` with a line for each.
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

    /// A case that runs once for each seed.
    pub(crate) fn seeded(&mut self, name: &str, body: impl Fn(u32) -> Result<()>) {
        self.case(name, || (0..SEEDS).try_for_each(|seed| body(seed).with_context(|| format!("seed {seed}"))));
    }
}

/// The reference, or an error if it is nil.
pub(crate) fn not_nil<T>(reference: Option<T>) -> Result<T> {
    reference.context("a reference is nil")
}

/// Fails if a value differs from that of a seed and a role.
pub(crate) fn check<T: crate::values::Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<()> {
    crate::values::check(what, seen, seed, role).map_err(anyhow::Error::msg)
}

/// Fails if the two values differ.
pub(crate) fn equal<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(what: &str, seen: T, expected: U) -> Result<()> {
    ensure!(seen == expected, "{what}: expected {expected:?}, saw {seen:?}");
    Ok(())
}

/// Fails unless the call failed, with an error that `expected` accepts.
pub(crate) fn raises<T, E: fmt::Debug>(result: Result<T, E>, expected: impl FnOnce(&E) -> bool) -> Result<()> {
    match result {
        Ok(_) => bail!("no exception"),
        Err(error) if expected(&error) => Ok(()),
        Err(error) => bail!("another exception: {error:?}"),
    }
}

pub(crate) fn kind(error: &SystemException) -> &'static str {
    error.kind().name()
}

/// Polls until the condition holds: a one-way request may be executed after later requests on other
/// connections.
pub(crate) fn poll_until(what: &str, condition: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + TIME_LIMIT;
    while !condition()? {
        ensure!(Instant::now() < deadline, "{what}: timed out");
        thread::yield_now();
    }
    Ok(())
}
