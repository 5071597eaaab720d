//! Whole two-way requests by each strategy of demultiplexing: client and server in one process, over the loopback device.
//!
//! The tables are those that the options of the server's ORB choose, so that everything around the lookup is that of any
//! other server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spandrel::generated::Operations;
use spandrel::poa::{IdAssignmentPolicy, ObjectDemux, ObjectId, PoaError};
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::{ObjectRef, Orb, Poa, SystemException};

use super::lookup::interface;
use super::requests::{Algorithm, Requests};
use super::settings::Strategy;
use crate::LabError;
use crate::placement::on_core;

/// The measurement of one situation by all strategies.
#[derive(Clone, Debug)]
pub struct WholeRequests {
    /// The strategies, which take turns in each round.
    pub strategies: Vec<Strategy>,
    /// The number of objects of each server.
    pub objects: u32,
    /// The number of operations of their interface.
    pub operations: u32,
    /// The order in which requests go round the objects and operations.
    pub algorithm: Algorithm,
    /// The requests that are timed together in a round.
    pub requests: u32,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The core of client and server.
    pub core: Option<usize>,
    /// The time after which no further round begins.
    pub budget: Duration,
}

/// Nanoseconds of one two-way request by a strategy, in each round.
#[derive(Clone, Debug)]
pub struct RequestTimes {
    /// The strategy of the server's adapter.
    pub strategy: Strategy,
    /// The mean time of a request, one value for each round.
    pub nanos: Vec<f64>,
}

fn failed(cause: SystemException) -> LabError {
    LabError::Call { action: "call an object of the demultiplexing experiment".to_owned(), cause }
}

fn refused(error: PoaError) -> LabError {
    failed(error.into())
}

/// A servant that answers each of its operations at once.
#[derive(Debug)]
struct AnsweringServant(&'static Operations);

impl Servant for AnsweringServant {
    fn repository_id(&self) -> &str {
        "IDL:Answering:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn operations(&self) -> &'static Operations {
        self.0
    }

    fn upcall(&self, _operation: usize, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.reply(|_out| Ok(()))
    }
}

/// A server with the tables of one strategy, and a client with references to all its objects.
struct Pair {
    strategy: Strategy,
    server: Orb,
    client: Orb,
    objects: Vec<ObjectRef>,
}

impl Pair {
    fn new(strategy: Strategy, settings: &WholeRequests, operations: &'static Operations) -> Result<Self, LabError> {
        let builder = Orb::builder()
            .adaptive_demultiplexing(strategy == Strategy::Adaptive)
            .system_id_demux(strategy.objects())
            .user_id_demux(strategy.objects())
            .operation_demux(strategy.operations());
        let server = builder.build().map_err(failed)?;
        let client = Orb::builder().operation_index(strategy == Strategy::Active).build().map_err(failed)?;
        let is_active = strategy.objects() == ObjectDemux::Active;
        let assignment = if is_active { IdAssignmentPolicy::SystemId } else { IdAssignmentPolicy::UserId };
        let root = Poa::root(&server).map_err(failed)?;
        let poa = root.create_poa("requests", None, [assignment.into()]).map_err(refused)?;
        let activate = |number: u32| {
            let servant = Arc::new(AnsweringServant(operations));
            let id = match is_active {
                true => poa.activate_object(servant)?,
                false => {
                    let id = ObjectId::from(format!("object number {number}").as_str());
                    poa.activate_object_with_id(&id, servant)?;
                    id
                }
            };
            poa.id_to_reference(&id)
        };
        let references: Vec<ObjectRef> =
            (0..settings.objects).map(activate).collect::<Result<_, _>>().map_err(refused)?;
        // Only now, so that a perfect hash function is computed for all of them.
        poa.the_poa_manager().activate().map_err(refused)?;
        let objects = references.iter().map(|reference| client.reference(reference.ior().clone())).collect();
        Ok(Self { strategy, server, client, objects })
    }

    fn nanos(&self, settings: &WholeRequests, names: &[&str], round: u32) -> Result<f64, LabError> {
        let mut order = Requests::new(settings.algorithm, settings.objects, settings.operations, u64::from(round) + 1);
        let mut call = |count: u32| {
            (0..count).try_for_each(|_| {
                let (object, operation) = order.next();
                self.objects[object as usize].invoke(names[operation as usize], |_| Ok(()), |_| Ok(()))
            })
        };
        call(settings.requests.div_ceil(10)).map_err(failed)?;
        let start = Instant::now();
        call(settings.requests).map_err(failed)?;
        Ok(start.elapsed().as_nanos() as f64 / f64::from(settings.requests))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        _ = self.client.shutdown();
        _ = self.server.shutdown();
    }
}

impl WholeRequests {
    /// Measures all strategies that support that many objects, round by round.
    ///
    /// # Errors
    /// If the core is not available, an object cannot be activated, or a call fails.
    pub fn measure(&self) -> Result<Vec<RequestTimes>, LabError> {
        on_core(self.core, || self.rounds())?
    }

    fn rounds(&self) -> Result<Vec<RequestTimes>, LabError> {
        let operations = interface(self.operations)?;
        let supported = self.strategies.iter().filter(|strategy| strategy.unsupported_reason(self.objects).is_none());
        let pairs: Vec<Pair> =
            supported.map(|strategy| Pair::new(*strategy, self, operations)).collect::<Result<_, _>>()?;
        let mut times: Vec<RequestTimes> =
            pairs.iter().map(|pair| RequestTimes { strategy: pair.strategy, nanos: Vec::new() }).collect();
        let start = Instant::now();
        for round in 0..self.rounds {
            if round > 0 && start.elapsed() >= self.budget {
                break;
            }
            // The order rotates, so that no strategy always follows the same one.
            for turn in 0..pairs.len() {
                let index = (turn + round as usize) % pairs.len();
                times[index].nanos.push(pairs[index].nanos(self, operations.names(), round)?);
            }
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_answers_requests_in_each_order() {
        for algorithm in Algorithm::ALL {
            let settings = WholeRequests {
                strategies: Strategy::ALL.to_vec(),
                objects: 20,
                operations: 7,
                algorithm,
                requests: 50,
                rounds: 2,
                core: None,
                budget: Duration::from_secs(60),
            };
            let times = settings.measure().unwrap();
            assert_eq!(times.iter().map(|one| one.strategy).collect::<Vec<_>>(), Strategy::ALL);
            assert!(times.iter().all(|one| one.nanos.len() == 2 && one.nanos.iter().all(|nanos| *nanos > 0.0)));
        }
    }
}
