//! Our own client and server, each in a child process of this program.
//!
//! An application's use of the ORB, through its public interface only.

use std::fmt;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spandrel::dynamic::{
    ArgMode, DynamicImplementation, DynamicServant, NamedValue, NvList, Request, RequestError, ServerRequest,
};
use spandrel::poa::{ObjectId, PoaError};
use spandrel::policy::ReferencePolicies as _;
use spandrel::rt::policies::PrivateConnectionPolicy;
use spandrel::rt::{LinearMapping, RtClient, Scheduling, SchedulingClass};
use spandrel::{
    CompletionStatus, Orb, Poa, SystemException,
    server::Servant,
    types::{Interface, Typed},
};

use super::job::{CallData, Job, JobRun, Style};
use super::programs::Timed;
use crate::LabError;
use crate::call_times::{CallTimes, Printed};
use crate::mechanism::generated::latency::{
    self, Latency, LatencyServant, LatencySkeleton, Servants, ServantsServant, ServantsSkeleton,
};
use crate::mechanism::orb::latency_structs;
use crate::workload::CallKind;

/// The number of references returned by one call.
const BATCH: u32 = 1_000;

/// Serves that many objects until standard input ends; prints the reference of their directory.
///
/// # Errors
/// If they cannot be served.
pub fn serve(servants: u32, is_dynamic: bool) -> Result<(), LabError> {
    let orb = Orb::builder().build().map_err(LabError::call("make the ORB"))?;
    let directory = || {
        let poa = Poa::root(&orb)?;
        let activate = |_| {
            if is_dynamic {
                let servant = Arc::new(DynamicServant::new(CalledFlag::default()));
                let id = poa.activate_object(Arc::clone(&servant) as Arc<dyn Servant>)?;
                Ok(Entry { id, servant })
            } else {
                let servant = Arc::new(LatencySkeleton::new(CalledFlag::default()));
                let id = poa.activate_object(Arc::clone(&servant) as Arc<dyn Servant>)?;
                Ok(Entry { id, servant })
            }
        };
        let entries = (0..servants).map(activate).collect::<Result<_, PoaError>>()?;
        let directory = ServantsSkeleton::new(Directory { poa: poa.clone(), entries });
        poa.activate(directory)
    };
    let directory = directory().map_err(LabError::call("activate the servants"))?;
    print_line(&orb.object_to_string(&directory))?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map_err(LabError::io("listen to the parent"))?;
    orb.shutdown().map_err(LabError::call("shut the server down"))
}

/// Calls the objects of the directory with this reference, by commands on standard input: over connections that all
/// references share, or over private ones.
///
/// # Errors
/// If a call fails, or a line is not a job.
pub fn call(reference: &str, has_private_connections: bool) -> Result<(), LabError> {
    let mut builder = Orb::builder();
    if has_private_connections {
        let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
        builder = builder.binding_policies(RtClient::new(&scheduling));
    }
    let orb = builder.build().map_err(LabError::call("make the ORB"))?;
    let client = Client::new(&orb, reference, has_private_connections)
        .map_err(LabError::call("get references to the servants"))?;
    print_line(&format!("ready {}", client.targets.len()))?;
    for line in io::stdin().lock().lines() {
        let run: JobRun = line.map_err(LabError::io("listen to the parent"))?.parse()?;
        let timed = client.carry_out(&run).map_err(LabError::call("call"))?;
        print_line(&serde_json::to_string(&timed).expect("numbers have a text form"))?;
    }
    orb.shutdown().map_err(LabError::call("shut the client down"))
}

fn print_line(line: &str) -> Result<(), LabError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::io("speak to the parent"))
}

/// The directory, and a reference to each of its servants.
struct Client {
    directory: Servants,
    targets: Vec<Latency>,
}

impl Client {
    fn new(orb: &Orb, reference: &str, has_private_connections: bool) -> Result<Self, SystemException> {
        let directory = Servants::narrow(&orb.string_to_object(reference)?)?;
        let count = directory.count()?;
        let mut targets = Vec::with_capacity(count as usize);
        while targets.len() < count as usize {
            let more = directory.references(targets.len() as u32, BATCH)?;
            targets.extend(more.into_iter().flatten());
        }
        if has_private_connections {
            let private = |target: &Latency| Ok(target.with_policy(PrivateConnectionPolicy)?);
            targets = targets.iter().map(private).collect::<Result<_, SystemException>>()?;
        }
        // Connected before the timed part.
        for target in &targets {
            _ = target.ping_1way();
        }
        targets[0].ping()?;
        Ok(Self { directory, targets })
    }

    fn carry_out(&self, run: &JobRun) -> Result<Timed, SystemException> {
        let (job, payload) = (&run.job, Payload::new(run.job.case));
        let (structs, octets) = (&payload.structs, &payload.octets);
        let mut next = job.algorithm.targets(self.targets.len() as u32, run.begin);
        let mut next = || &self.targets[next()];
        match (job.style, job.call, job.case) {
            (Style::Dynamic, ..) => self.timed(run, || invoke(&mut dynamic(job, next(), &payload)?, job.call)),
            (Style::DynamicReused, ..) => {
                let mut request = dynamic(job, &self.targets[0], &payload)?;
                self.timed(run, || invoke(request.set_target(next().as_object()), job.call))
            }
            (_, CallKind::TwoWay, CallData::Void) => self.timed(run, || next().ping()),
            (_, CallKind::OneWay, CallData::Void) => self.timed(run, || next().ping_1way()),
            (_, CallKind::TwoWay, CallData::Octets(_)) => self.timed(run, || next().send_octet_seq(octets)),
            (_, CallKind::OneWay, CallData::Octets(_)) => self.timed(run, || next().send_octet_seq_1way(octets)),
            (_, CallKind::TwoWay, CallData::Structs(_)) => self.timed(run, || next().send_struct_seq(structs)),
            (_, CallKind::OneWay, CallData::Structs(_)) => self.timed(run, || next().send_struct_seq_1way(structs)),
        }
    }

    /// Queries the directory between the warm-up and the timed calls, and after these; so no call is in
    /// flight when the next part begins.
    fn timed(
        &self,
        run: &JobRun,
        mut call: impl FnMut() -> Result<(), SystemException>,
    ) -> Result<Timed, SystemException> {
        (0..run.warm_up).try_for_each(|_| call())?;
        self.directory.called()?;
        let times = CallTimes::of_calls(0, run.calls, &mut call)?;
        Ok(Timed { times: Printed::from_times(&times), servants_called: self.directory.called()? })
    }
}

/// The parameters of calls; those that a call does not have are empty.
struct Payload {
    structs: Vec<latency::BinStruct>,
    octets: Vec<u8>,
}

impl Payload {
    fn new(data: CallData) -> Self {
        let (structs, octets) = match data {
            CallData::Void => (0, 0),
            CallData::Octets(count) => (0, count as usize),
            CallData::Structs(count) => (count as usize, 0),
        };
        Self { structs: latency_structs(structs), octets: (0..octets).map(|n| (n % 251) as u8).collect() }
    }
}

/// The job's call as a dynamic invocation.
fn dynamic(job: &Job, target: &Latency, payload: &Payload) -> Result<Request, SystemException> {
    let mut request = Request::new(target.as_object(), job.case.operation(job.call));
    match job.case {
        CallData::Void => {}
        CallData::Octets(_) => _ = request.add_in_arg(&payload.octets)?,
        CallData::Structs(_) => _ = request.add_in_arg(&payload.structs)?,
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

/// A servant that records that it was called, and answers at once.
#[derive(Debug, Default)]
struct CalledFlag(AtomicBool);

impl CalledFlag {
    /// Written once between two queries of the directory, so that calls do not share a modified cache line.
    fn set(&self) {
        if !self.0.load(Ordering::Relaxed) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl LatencyServant for CalledFlag {
    fn ping(&self) -> Result<(), SystemException> {
        self.set();
        Ok(())
    }

    fn ping_1way(&self) -> Result<(), SystemException> {
        self.set();
        Ok(())
    }

    fn send_struct_seq(&self, s: &[latency::BinStruct]) -> Result<(), SystemException> {
        self.set();
        black_box(s);
        Ok(())
    }

    fn send_octet_seq(&self, s: &[u8]) -> Result<(), SystemException> {
        self.set();
        black_box(s);
        Ok(())
    }

    fn send_struct_seq_1way(&self, s: &[latency::BinStruct]) -> Result<(), SystemException> {
        self.send_struct_seq(s)
    }

    fn send_octet_seq_1way(&self, s: &[u8]) -> Result<(), SystemException> {
        self.send_octet_seq(s)
    }
}

impl DynamicImplementation for CalledFlag {
    fn invoke(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let mut list = NvList::new();
        match request.operation() {
            "ping" | "ping_1way" => {}
            "sendStructSeq" | "sendStructSeq_1way" => {
                list.add(NamedValue::of_type("s", ArgMode::In, latency::StructSeq::type_code()));
            }
            "sendOctetSeq" | "sendOctetSeq_1way" => {
                list.add(NamedValue::of_type("s", ArgMode::In, latency::OctetSeq::type_code()));
            }
            _ => return Err(request.unknown_operation()),
        }
        self.set();
        black_box(request.arguments(list)?);
        Ok(())
    }

    fn primary_interface(&self, _object_id: &[u8]) -> String {
        Latency::REPOSITORY_ID.to_owned()
    }
}

/// A servant that reports whether it was called since the last query.
trait TakeCalled: Send + Sync + fmt::Debug {
    fn take_called(&self) -> bool;
}

impl TakeCalled for LatencySkeleton<CalledFlag> {
    fn take_called(&self) -> bool {
        self.0.take()
    }
}

impl TakeCalled for DynamicServant<CalledFlag> {
    fn take_called(&self) -> bool {
        self.implementation().take()
    }
}

/// The directory of all servants.
#[derive(Debug)]
struct Directory {
    poa: Poa,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    id: ObjectId,
    servant: Arc<dyn TakeCalled>,
}

impl ServantsServant for Directory {
    fn count(&self) -> Result<u32, SystemException> {
        Ok(self.entries.len() as u32)
    }

    fn references(&self, first: u32, how_many: u32) -> Result<Vec<Option<Latency>>, SystemException> {
        let entries = self.entries.iter().skip(first as usize).take(how_many.min(BATCH) as usize);
        let reference = |entry: &Entry| Ok(Some(Latency::unchecked_narrow(&self.poa.id_to_reference(&entry.id)?)));
        entries.map(reference).collect()
    }

    fn called(&self) -> Result<u32, SystemException> {
        Ok(self.entries.iter().filter(|entry| entry.servant.take_called()).count() as u32)
    }
}
