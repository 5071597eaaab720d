//! The client: every case, by the same name as omniORB's client has it.

use anyhow::{Context, Result};
use spandrel::{Orb, Poa};

use crate::idl::{Hub, Mismatch};
use crate::suite::{Suite, TIME_LIMIT, Tally, there};

mod attributes;
mod bulk;
mod errors;
mod hub;
mod objects;
mod rotate;

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
    orb.shutdown(true)?;
    Ok(suite.tally)
}

/// Compares with the value that a seed and a role name.
fn check<T: crate::values::Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<()> {
    crate::values::check(what, seen, seed, role).map_err(anyhow::Error::msg)
}

/// What servers and clients agree on as the text of a [`Mismatch`] that was asked for.
fn is_as_asked(Mismatch { what }: &Mismatch) -> bool {
    what == "as you asked"
}
