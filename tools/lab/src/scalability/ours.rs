//! Our own client and server, each in a child process of this program.
//!
//! An application's view of the ORB: nothing here but its public interface.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use spandrel::dynamic::{
    ArgMode, DynamicImplementation, DynamicServant, NamedValue, NvList, Request, RequestError, ServerRequest,
};
use spandrel::poa::{ObjectId, PoaError};
use spandrel::{CompletionStatus, Interface, Orb, Poa, Servant, SystemException, Typed};

use super::job::{Job, Style};
use crate::LabError;
use crate::latency::{CallTimes, Printed};
use crate::mechanism::generated::latency::{
    self, Latency, LatencySkeleton, Servants, ServantsServant, ServantsSkeleton,
};
use crate::mechanism::orb::{Answering, ping_structs};
use crate::workload::{CallKind, PingCase};

/// How many references one call brings.
const BATCH: u32 = 1_000;

/// Serves so many objects until standard input ends; prints the reference of the object that knows them.
///
/// # Errors
/// If they cannot be served.
pub fn serve(servants: u32, is_dynamic: bool) -> Result<(), LabError> {
    let orb = Orb::builder().build().map_err(LabError::call("make the ORB"))?;
    let directory = || {
        let poa = Poa::root(&orb)?;
        let servant = || -> Arc<dyn Servant> {
            if is_dynamic {
                Arc::new(DynamicServant::new(Answering))
            } else {
                Arc::new(LatencySkeleton::new(Answering))
            }
        };
        let activate = |_| poa.activate_object(servant());
        let ids = (0..servants).map(activate).collect::<Result<_, PoaError>>()?;
        let directory = ServantsSkeleton::new(Directory { poa: poa.clone(), ids });
        poa.activate(directory)
    };
    let directory = directory().map_err(LabError::call("activate the servants"))?;
    say(&orb.object_to_string(&directory))?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(LabError::io("listen to the parent"))?;
    orb.shutdown(true).map_err(LabError::call("shut the server down"))
}

/// Calls the objects that the directory with this reference knows, as standard input says line by line.
///
/// # Errors
/// If a call fails, or a line is no job.
pub fn call(reference: &str) -> Result<(), LabError> {
    let orb = Orb::builder().build().map_err(LabError::call("make the ORB"))?;
    let targets = references(&orb, reference).map_err(LabError::call("get references to the servants"))?;
    say(&format!("ready {}", targets.len()))?;
    for line in io::stdin().lock().lines() {
        let job: Job = line.map_err(LabError::io("listen to the parent"))?.parse()?;
        let times = carry_out(&job, &targets).map_err(LabError::call("call"))?;
        let printed = serde_json::to_string(&Printed::of(&times)).expect("numbers have a text form");
        say(&printed)?;
    }
    orb.shutdown(true).map_err(LabError::call("shut the client down"))
}

fn say(line: &str) -> Result<(), LabError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::io("speak to the parent"))
}

fn references(orb: &Orb, reference: &str) -> Result<Vec<Latency>, SystemException> {
    let servants = Servants::narrow(&orb.string_to_object(reference)?)?;
    let count = servants.count()?;
    let mut targets = Vec::with_capacity(count as usize);
    while targets.len() < count as usize {
        let more = servants.references(targets.len() as u32, BATCH)?;
        targets.extend(more.into_iter().flatten());
    }
    // Bound to their connection before anything is timed.
    for target in &targets {
        _ = target.ping_1way();
    }
    targets[0].ping()?;
    Ok(targets)
}

fn carry_out(job: &Job, targets: &[Latency]) -> Result<CallTimes, SystemException> {
    let structs = ping_structs();
    let mut next = job.algorithm.targets(targets.len() as u32);
    let mut next = || &targets[next()];
    let times = match (job.style, job.call, job.case) {
        (Style::Dynamic, ..) => timed(job, || invoke(&mut dynamic(job, next(), &structs)?, job.call)),
        (Style::DynamicReused, ..) => {
            let mut request = dynamic(job, next(), &structs)?;
            timed(job, || invoke(request.set_target(next().as_object()), job.call))
        }
        (_, CallKind::TwoWay, PingCase::Void) => timed(job, || next().ping()),
        (_, CallKind::OneWay, PingCase::Void) => timed(job, || next().ping_1way()),
        (_, CallKind::TwoWay, PingCase::Structs) => timed(job, || next().send_struct_seq(&structs)),
        (_, CallKind::OneWay, PingCase::Structs) => timed(job, || next().send_struct_seq_1way(&structs)),
    }?;
    // What is still on its way is not the next job's burden.
    targets[0].ping()?;
    Ok(times)
}

/// The job's call as a dynamic invocation.
fn dynamic(job: &Job, target: &Latency, structs: &Vec<latency::BinStruct>) -> Result<Request, SystemException> {
    let operation = match (job.call, job.case) {
        (CallKind::TwoWay, PingCase::Void) => "ping",
        (CallKind::OneWay, PingCase::Void) => "ping_1way",
        (CallKind::TwoWay, PingCase::Structs) => "sendStructSeq",
        (CallKind::OneWay, PingCase::Structs) => "sendStructSeq_1way",
    };
    let mut request = Request::new(target.as_object(), operation);
    if job.case == PingCase::Structs {
        request.add_in_arg(structs)?;
    }
    Ok(request)
}

fn invoke(request: &mut Request, call: CallKind) -> Result<(), SystemException> {
    match call {
        CallKind::OneWay => request.send_oneway(),
        CallKind::TwoWay => request.invoke().map_err(|error| match error {
            RequestError::System(exception) => exception,
            _ => SystemException::unknown(0, CompletionStatus::Yes).with_detail("it raises nothing"),
        }),
    }
}

fn timed(job: &Job, mut call: impl FnMut() -> Result<(), SystemException>) -> Result<CallTimes, SystemException> {
    CallTimes::of_calls(job.warm_up, job.calls, &mut call)
}

impl DynamicImplementation for Answering {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let mut list = NvList::new();
        match request.operation() {
            "ping" | "ping_1way" => {}
            "sendStructSeq" | "sendStructSeq_1way" => {
                list.add(NamedValue::of_type("s", ArgMode::In, latency::StructSeq::type_code()));
            }
            _ => return Err(request.unknown_operation()),
        }
        black_box(request.arguments(list)?);
        Ok(())
    }

    fn primary_interface(&self, _object_id: &[u8]) -> String {
        Latency::REPOSITORY_ID.to_owned()
    }
}

/// Knows all servants.
#[derive(Debug)]
struct Directory {
    poa: Poa,
    ids: Vec<ObjectId>,
}

impl ServantsServant for Directory {
    fn count(&self) -> Result<u32, SystemException> {
        Ok(self.ids.len() as u32)
    }

    fn references(&self, first: u32, how_many: u32) -> Result<Vec<Option<Latency>>, SystemException> {
        let ids = self.ids.iter().skip(first as usize).take(how_many.min(BATCH) as usize);
        let reference = |id| Ok(Some(Latency::unchecked_narrow(&self.poa.id_to_reference(id)?)));
        ids.map(reference).collect()
    }
}
