//! The measurement of a point: the settings of an experiment, and the values of its contenders by round.

mod calls;
mod code;
mod definitions;
mod memory;
mod profiles;
mod rounds;
mod stacks;
mod throughput;

use std::time::Instant;

use spandrel_lab::LabError;
use spandrel_lab::machine::Machine;
use spandrel_lab::scalability::Job;

use crate::folder::{Form, PointResult};
use crate::point::{Link, Point};

/// Measures one point by its experiment.
///
/// # Errors
/// If the experiment cannot be set up, or one of its runs fails.
pub(crate) fn measure(point: &Point, form: Form) -> Result<PointResult, LabError> {
    let (machine, start) = (Machine::here(), Instant::now());
    let measured = match point {
        Point::Throughput { link, queue_octets, data, buffer_octets } => {
            throughput::measure(form, *link, *queue_octets, *data, *buffer_octets)
        }
        Point::Datagrams { data, buffer_octets } => throughput::of_datagrams(form, *data, *buffer_octets),
        Point::Servants { call, algorithm, case, servants } => {
            calls::of_servants(form, *call, *algorithm, case, *servants)
        }
        Point::Calls { case } => calls::of_sockets(form, case),
        Point::Marshaling { data, octets } => memory::marshaling(form, *data, *octets),
        Point::Lookups { algorithm, objects, operations } => memory::lookups(form, *algorithm, *objects, *operations),
        Point::Stubs => code::stubs(form),
        Point::Sizes { optimisation } => code::sizes(form, *optimisation),
        Point::Predictions => memory::predictions(form),
        Point::Definitions => definitions::measure(),
        Point::Stacks { protocol, threads } => stacks::measure(form, (*protocol).into(), *threads),
        Point::Servers => crate::servers::measure(form),
        Point::LadderProfile { data, octets } => profiles::of_the_ladder(form, *data, *octets),
        Point::FloodProfile { data, buffer_octets } => profiles::of_floods(form, *data, *buffer_octets),
        Point::CallProfile { style, call, algorithm, case, servants } => profiles::of_calls(
            form,
            Job { algorithm: *algorithm, call: *call, case: case.parse()?, style: *style },
            *servants,
        ),
    }?;
    Ok(PointResult::new(point.clone(), form, machine, start.elapsed(), measured))
}

/// The seconds that a full measurement of a point takes at most, as planned; with those of the slowest start of a peer.
pub(crate) fn planned_seconds(point: &Point, form: Form) -> f64 {
    if form == Form::Short {
        return 2.0;
    }
    match point {
        Point::Throughput { link, .. } => throughput::planned(*link).as_secs_f64(),
        Point::Datagrams { .. } => throughput::planned(Link::Loopback).as_secs_f64(),
        // The start of many servants and their references in three ORBs, twice.
        Point::Servants { servants, .. } => 25.0 + f64::from(*servants) / 2_500.0,
        Point::Calls { .. } => 15.0,
        Point::Marshaling { .. } => 12.0,
        Point::Lookups { .. } => 10.0,
        Point::Stubs => 30.0,
        Point::Sizes { .. } => 300.0,
        Point::Predictions => 20.0,
        Point::Definitions => 1.0,
        Point::Stacks { .. } => 30.0,
        Point::Servers => 600.0,
        Point::LadderProfile { .. } => 40.0,
        Point::FloodProfile { .. } => 90.0,
        Point::CallProfile { .. } => 60.0,
    }
}
