//! The client: its cases have the same names as those of omniORB's client.

use anyhow::{Context, Result};
use spandrel::{Orb, Poa};

use crate::idl::Hub;
use crate::suite::{Suite, TIME_LIMIT, Tally, not_nil};

mod attributes;
mod bulk;
mod errors;
mod hub;
mod objects;
mod rotate;

/// Runs the cases whose names begin with `only` against a hub; `say` receives a line for each.
///
/// # Errors
/// If the reference does not denote a hub, or the hub returns nil references.
pub fn run(orb: &Orb, reference: &str, only: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let poa = Poa::root(orb)?;
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let hub = Hub::narrow(&object).context("the object is not a hub")?;
    let mut suite = Suite::new(only, say);
    hub::run(&mut suite, &hub);
    rotate::run(&mut suite, &hub)?;
    let objects = not_nil(hub.the_objects()?)?;
    objects::run(&mut suite, &objects, &poa);
    objects::inheritance(&mut suite, &not_nil(hub.the_lowest()?)?);
    errors::run(&mut suite, &not_nil(hub.the_errors()?)?);
    bulk::run(&mut suite, &not_nil(hub.the_bulk()?)?);
    attributes::run(&mut suite, &not_nil(hub.the_attributes()?)?, &objects);
    attributes::oneways(&mut suite, &not_nil(hub.the_oneways()?)?);
    suite.case("shutdown", || Ok(hub.shutdown()?));
    orb.shutdown()?;
    Ok(suite.tally)
}
