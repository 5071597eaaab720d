//! The client: every case, by the same name as omniORB's client has it.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use spandrel::{Orb, Poa, SystemException};

use crate::idl::{Hub, Mismatch};

mod attributes;
mod bulk;
mod errors;
mod hub;
mod objects;
mod rotate;

/// Seeds 0 to 2 are the plain values, the rest random.
const SEEDS: u32 = 24;
/// What any single call may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How many cases were run and how many of them failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// How many were run.
    pub run: u32,
    /// How many of them failed.
    pub failed: u32,
}

impl Tally {
    /// True if something was run and nothing failed.
    #[must_use]
    pub fn is_good(self) -> bool {
        self.run > 0 && self.failed == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases, {} failed", self.run, self.failed)
    }
}

/// Runs the cases whose names begin with `only` against a hub; `say` gets a line for each.
///
/// # Errors
/// If the reference is not one to a hub, or the hub does not lead on.
pub fn run(orb: &Orb, reference: &str, only: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let poa = Poa::root(orb)?;
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let hub = Hub::narrow(&object).context("this is not a hub")?;
    let mut suite = Suite::new(only, say);
    hub::run(&mut suite, &hub);
    rotate::run(&mut suite, &hub)?;
    let objects = there(hub.the_objects()?)?;
    objects::run(&mut suite, &objects, &poa);
    objects::inheritance(&mut suite, &there(hub.the_lowest()?)?);
    errors::run(&mut suite, &there(hub.the_errors()?)?);
    bulk::run(&mut suite, &there(hub.the_bulk()?)?);
    attributes::run(&mut suite, &there(hub.the_attributes()?)?, &objects);
    attributes::oneways(&mut suite, &there(hub.the_oneways()?)?);
    suite.case("shutdown", || Ok(hub.shutdown()?));
    let tally = suite.tally;
    orb.shutdown(true)?;
    Ok(tally)
}

/// Runs cases and counts.
pub(crate) struct Suite<'s> {
    only: &'s str,
    say: &'s mut dyn FnMut(&str),
    tally: Tally,
}

impl<'s> Suite<'s> {
    pub(crate) fn new(only: &'s str, say: &'s mut dyn FnMut(&str)) -> Self {
        Self { only, say, tally: Tally::default() }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    pub(crate) fn case(&mut self, name: &str, body: impl FnOnce() -> Result<()>) {
        if !name.starts_with(self.only) {
            return;
        }
        self.tally.run += 1;
        match body() {
            Ok(()) => (self.say)(&format!("ok {name}")),
            Err(error) => {
                self.tally.failed += 1;
                (self.say)(&format!("FAIL {name}: {error:#}"));
            }
        }
    }

    /// A case that is to hold for all seeds.
    fn seeded(&mut self, name: &str, body: impl Fn(u32) -> Result<()>) {
        self.case(name, || (0..SEEDS).try_for_each(|seed| body(seed).with_context(|| format!("seed {seed}"))));
    }
}

/// A reference that must not be nil.
pub(crate) fn there<T>(reference: Option<T>) -> Result<T> {
    reference.context("a reference is nil")
}

/// Compares with the value that a seed and a role name.
fn check<T: crate::values::Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<()> {
    crate::values::check(what, seen, seed, role).map_err(anyhow::Error::msg)
}

/// Compares simple things.
pub(crate) fn equal<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(what: &str, seen: T, expected: U) -> Result<()> {
    ensure!(seen == expected, "{what}: expected {expected:?}, saw {seen:?}");
    Ok(())
}

/// Fails unless the call failed, with an error that `wanted` accepts.
pub(crate) fn raises<T, E: fmt::Debug>(result: Result<T, E>, wanted: impl FnOnce(&E) -> bool) -> Result<()> {
    match result {
        Ok(_) => anyhow::bail!("no exception"),
        Err(error) if wanted(&error) => Ok(()),
        Err(error) => anyhow::bail!("another exception: {error:?}"),
    }
}

pub(crate) fn kind(error: &SystemException) -> &'static str {
    error.kind().name()
}

/// What servers and clients agree on as the text of a [`Mismatch`] that was asked for.
fn is_as_asked(Mismatch { what }: &Mismatch) -> bool {
    what == "as you asked"
}
