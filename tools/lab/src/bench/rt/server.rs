//! Our servers of the experiment with priorities.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use spandrel::rt::policies::{PriorityModel, PriorityModelPolicy, ThreadpoolPolicy};
use spandrel::rt::{
    ExecutionTimes, LaneSettings, Overrun, OverrunAction, PoolSettings, Priority, RtClient, RtPoaBuilder, RtServerOrb,
};
use spandrel::{Endpoint, Orb, Poa, SystemException};

use super::settings::{Contender, HIGH, LOW, READERS, SPIN, scheduling};
use crate::LabError;
use crate::bench::driver::orb::compute;
use crate::mechanism::generated::latency::{BinStruct, Latency, LatencyServant, LatencySkeleton};

/// The time of the servants that are watched: above the upcalls of the flood, and far below a run.
const WATCHED_TIME: Duration = Duration::from_millis(5);

/// Prints the object's reference, and serves until standard input ends.
///
/// # Errors
/// If it cannot be served.
pub(crate) fn serve(
    contender: Contender,
    path: Option<&str>,
    next: Option<&str>,
    [high, low]: [Duration; 2],
    spin: Duration,
) -> Result<(), LabError> {
    let scheduling = scheduling();
    if contender != Contender::Spandrel {
        // The threads of the ORB, which read connections, inherit it.
        let readers = priority(READERS);
        scheduling.apply(readers).map_err(LabError::call("change the priority"))?;
    }
    let builder = Orb::builder().listen(Endpoint::new("127.0.0.1", 0));
    let builder = match path {
        Some(path) => builder.listen(Endpoint::of("uds", path)),
        None => builder,
    };
    let builder = match contender {
        Contender::Spandrel => builder,
        _ => builder.binding_policies(RtClient::new(&scheduling)),
    };
    let orb = builder.build().map_err(LabError::call("make the ORB"))?;
    let next = next.map(|reference| orb.string_to_object(reference)?.narrow::<Latency>()).transpose();
    let next = next.map_err(LabError::call("bind the next server"))?;
    let servant = PriorityServant { high, low, spin, next };
    let rt_orb = RtServerOrb::new(scheduling);
    let activate = || {
        let root = Poa::root(&orb)?;
        if contender == Contender::Spandrel {
            return root.activate(LatencySkeleton::new(servant));
        }
        let lane =
            |number, static_threads| LaneSettings { priority: priority(number), static_threads, dynamic_threads: 0 };
        let lanes = PoolSettings::with_lanes(vec![lane(LOW, 2), lane(HIGH, 1), lane(SPIN, 1)]);
        let times = ExecutionTimes::new(OverrunAction::Demote).all_lanes(WATCHED_TIME).observer(|_: &Overrun| {});
        let execution_times = (contender == Contender::SpandrelWatched).then_some(times);
        let pool = rt_orb.create(PoolSettings { buffering: Some((0, 0)), execution_times, ..lanes })?;
        let model = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: priority(LOW) };
        let poa = root.child("lanes").real_time(&rt_orb, [model.into(), ThreadpoolPolicy(pool).into()])?.create()?;
        poa.activate(LatencySkeleton::new(servant))
    };
    let reference = activate().map_err(LabError::call("activate the servant"))?;
    let mut out = io::stdout().lock();
    let line = orb.object_to_string(&reference);
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LabError::io("speak to the parent"))?;
    // A reactive ORB has no thread but those that run it.
    let runner = orb.clone();
    let run = std::thread::Builder::new().name("orb".to_owned()).spawn(move || runner.run());
    let run = run.map_err(LabError::io("start a thread"))?;
    for line in io::stdin().lock().lines() {
        line.map_err(LabError::io("listen to the parent"))?;
    }
    orb.shutdown().map_err(LabError::call("shut the server down"))?;
    _ = run.join();
    Ok(())
}

fn priority(number: i16) -> Priority {
    Priority::from_number(number).expect("the constants are priorities")
}

/// A servant with an operation for each kind of request.
#[derive(Clone, Debug)]
struct PriorityServant {
    high: Duration,
    low: Duration,
    spin: Duration,
    /// The server to which an intermediary passes each call of the first two kinds.
    next: Option<Latency>,
}

impl LatencyServant for PriorityServant {
    /// The request of the urgent client, which is measured.
    fn ping(&self) -> Result<(), SystemException> {
        match &self.next {
            Some(next) => next.ping(),
            None => {
                compute(self.high);
                Ok(())
            }
        }
    }

    fn ping_1way(&self) -> Result<(), SystemException> {
        Ok(())
    }

    /// The request that spins.
    fn send_struct_seq(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        compute(self.spin);
        Ok(())
    }

    /// The request of the flood.
    fn send_octet_seq(&self, octets: &[u8]) -> Result<(), SystemException> {
        match &self.next {
            Some(next) => next.send_octet_seq(octets),
            None => {
                compute(self.low);
                Ok(())
            }
        }
    }

    fn send_struct_seq_1way(&self, _: &[BinStruct]) -> Result<(), SystemException> {
        Ok(())
    }

    fn send_octet_seq_1way(&self, _: &[u8]) -> Result<(), SystemException> {
        Ok(())
    }
}
