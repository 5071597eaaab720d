//! Whole calls, with the predictions of each side: adaptive demultiplexing on the server, cached request
//! headers on the client (paper 003).

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use spandrel::poa::{IdAssignmentPolicy, ObjectId, PoaError};
use spandrel::{Orb, Poa, SystemException};
use spandrel_measure::stats::Summary;

use super::lookup::Cost;
use super::requests::{Algorithm, Requests};
use super::settings::Settings;
use crate::LabError;
use crate::counter::Instructions;
use crate::mechanism::generated::demux::{Called, CalledServant, CalledSkeleton};
use crate::progress::Progress;

/// The predictions of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallPredictions {
    /// The server first checks the result of the last lookup.
    pub adaptive: bool,
    /// The client keeps the headers of its requests.
    pub caching: bool,
}

impl CallPredictions {
    /// All combinations; the one without predictions first.
    pub const ALL: [Self; 4] = [
        Self { adaptive: false, caching: false },
        Self { adaptive: true, caching: false },
        Self { adaptive: false, caching: true },
        Self { adaptive: true, caching: true },
    ];

    /// The name that tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.adaptive, self.caching) {
            (false, false) => "neither",
            (true, false) => "adaptive demultiplexing",
            (false, true) => "request caching",
            (true, true) => "both",
        }
    }
}

/// The algorithms of the calls: in trains predictions are right, in round robin they are all wrong.
pub(super) const ALGORITHMS: [Algorithm; 2] = [Algorithm::RequestTrain, Algorithm::RoundRobin];

/// The number of objects called.
const OBJECTS: u32 = 100;

/// The cost of a call with some predictions, in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCall {
    /// The predictions of client and server.
    pub predictions: CallPredictions,
    /// The order of objects.
    pub algorithm: Algorithm,
    /// The round: every combination has one run in each.
    pub round: u32,
    /// One two-way call, both sides.
    pub cost: Cost,
}

/// The rounds of one combination, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// The predictions of client and server.
    pub predictions: CallPredictions,
    /// The order of objects.
    pub algorithm: Algorithm,
    /// Nanoseconds of one two-way call.
    pub nanos: Summary,
    /// Instructions of it in user mode, on both sides together.
    pub instructions: Option<Summary>,
}

/// The rows of these runs.
pub(super) fn rows(measured: &[MeasuredCall]) -> Vec<CallRow> {
    let mut rows = Vec::new();
    for algorithm in ALGORITHMS {
        for predictions in CallPredictions::ALL {
            let costs = || measured.iter().filter(|one| one.algorithm == algorithm && one.predictions == predictions);
            let Some(nanos) = Summary::from_values(costs().map(|one| one.cost.nanos)) else { continue };
            let instructions = Summary::from_values(costs().filter_map(|one| one.cost.instructions));
            rows.push(CallRow { predictions, algorithm, nanos, instructions });
        }
    }
    rows
}

/// A servant that answers at once.
struct AnsweringServant;

impl CalledServant for AnsweringServant {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Two servers of the same objects, and a client of each with and without cached headers.
pub(super) struct CallPairs {
    orbs: Vec<Orb>,
    callers: Vec<(CallPredictions, Vec<Called>)>,
    /// Counts in all threads, so it started before them.
    counter: Option<Instructions>,
}

fn failed(cause: SystemException) -> LabError {
    LabError::Call { action: "call an object of the demultiplexing experiment".to_owned(), cause }
}

fn refused(error: PoaError) -> LabError {
    failed(error.into())
}

impl CallPairs {
    pub(super) fn new() -> Result<Self, LabError> {
        let counter = Instructions::start();
        let server = |is_on| Orb::builder().adaptive_demultiplexing(is_on).build().map_err(failed);
        let client = |is_on| Orb::builder().request_caching(is_on).build().map_err(failed);
        let servers = [(false, server(false)?), (true, server(true)?)];
        let clients = [(false, client(false)?), (true, client(true)?)];
        let mut callers = Vec::new();
        for (adaptive, server) in &servers {
            let references = serve(server)?;
            for (caching, client) in &clients {
                let bind = |reference: &String| client.string_to_object(reference)?.narrow::<Called>();
                let objects = references.iter().map(bind).collect::<Result<_, _>>().map_err(failed)?;
                callers.push((CallPredictions { adaptive: *adaptive, caching: *caching }, objects));
            }
        }
        let orbs = clients.into_iter().chain(servers).map(|(_, orb)| orb).collect();
        Ok(Self { orbs, callers, counter })
    }

    /// One round of all combinations.
    pub(super) fn round(
        &self,
        settings: &Settings,
        round: u32,
        progress: &mut Progress,
    ) -> Result<Vec<MeasuredCall>, LabError> {
        let mut measured = Vec::new();
        for algorithm in ALGORITHMS {
            let mut order: Vec<_> = self.callers.iter().collect();
            order.rotate_left(round as usize % self.callers.len());
            for (predictions, objects) in order {
                let label = format!("calls with {}", predictions.name());
                progress.at(&label);
                let cost = self.cost(objects, algorithm, settings.calls).map_err(failed)?;
                progress.step(&label, &format!("{:.0} ns for one", cost.nanos));
                measured.push(MeasuredCall { predictions: *predictions, algorithm, round, cost });
            }
        }
        Ok(measured)
    }

    fn cost(&self, objects: &[Called], algorithm: Algorithm, calls: u32) -> Result<Cost, SystemException> {
        let mut requests = Requests::new(algorithm, objects.len() as u32, 1, 1);
        let mut call = |count: u32| (0..count).try_for_each(|_| objects[requests.next().0 as usize].ping());
        call(calls.div_ceil(10))?;
        let before = self.counter.as_ref().and_then(Instructions::read);
        let start = Instant::now();
        call(calls)?;
        let nanos = start.elapsed().as_nanos() as f64;
        let after = self.counter.as_ref().and_then(Instructions::read);
        let each = |sum: f64| sum / f64::from(calls);
        let instructions = after.zip(before).map(|(after, before)| each((after - before) as f64));
        Ok(Cost { nanos: each(nanos), instructions })
    }

    pub(super) fn end(self) -> Result<(), LabError> {
        drop(self.callers);
        self.orbs.iter().try_for_each(|orb| orb.shutdown()).map_err(failed)
    }
}

/// Objects with ids of the application, which are in a hash table; returns their references.
fn serve(server: &Orb) -> Result<Vec<String>, LabError> {
    let root = Poa::root(server).map_err(failed)?;
    let poa = root
        .create_poa("demux", Some(&root.the_poa_manager()), [IdAssignmentPolicy::UserId.into()])
        .map_err(refused)?;
    let activate = |number: u32| {
        let id = ObjectId::from(format!("object number {number}").as_str());
        poa.activate_object_with_id(&id, Arc::new(CalledSkeleton::new(AnsweringServant)))?;
        Ok(server.object_to_string(&poa.id_to_reference(&id)?))
    };
    (0..OBJECTS).map(activate).collect::<Result<_, _>>().map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::super::settings::Strategy;
    use super::*;

    #[test]
    fn every_combination_calls() {
        let settings = Settings {
            strategies: Strategy::ALL.to_vec(),
            objects: vec![1],
            operations: vec![1],
            adapters: 1,
            algorithms: Algorithm::ALL.to_vec(),
            rounds: 1,
            run_micros: 1,
            lookups: None,
            calls: 200,
            core: None,
            budget_seconds: None,
        };
        let parties = CallPairs::new().unwrap();
        let measured = parties.round(&settings, 0, &mut Progress::begin(8)).unwrap();
        parties.end().unwrap();
        let rows = rows(&measured);
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row.nanos.median > 0.0), "{rows:?}");
    }
}
