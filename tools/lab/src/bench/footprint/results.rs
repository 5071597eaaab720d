//! Results of the footprint experiment.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::settings::{Engine, Optimisation, Settings, Side};
use super::sizes::Sizes;
use crate::machine::Machine;

/// The size of one side of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// The operation of appendix C.
    pub operation: String,
    /// The engine of the stubs and skeletons.
    pub engine: Engine,
    /// The measured side: stubs or skeletons.
    pub side: Side,
    /// The goal for which the compiler optimised.
    pub optimisation: Optimisation,
    /// The octets of its functions, their helpers and their constants.
    pub sizes: Sizes,
}

/// The size of one side of all of a service's interfaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// The service whose IDL was compiled.
    pub service: String,
    /// The engine of the stubs and skeletons.
    pub engine: Engine,
    /// The measured side: stubs or skeletons.
    pub side: Side,
    /// The goal for which the compiler optimised.
    pub optimisation: Optimisation,
    /// The octets of its functions, their helpers and their constants.
    pub sizes: Sizes,
}

/// The call times of an operation in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The operation of appendix C.
    pub operation: String,
    /// The engine of both sides.
    pub engine: Engine,
    /// The round of the series in which it was measured.
    pub round: u32,
    /// Nanoseconds from the call of the stub until its result.
    pub two_way: f64,
    /// Nanoseconds of each [`Step`](super::Step) of its marshaling, without a network.
    pub marshaling: [f64; 4],
}

impl Call {
    /// All four steps of marshaling one call together, in nanoseconds: both sides, without a network.
    #[must_use]
    pub fn all_marshaling(&self) -> f64 {
        self.marshaling.iter().sum()
    }
}

/// The times of an operation with one engine: the median of the rounds and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Nanoseconds of a two-way call.
    pub two_way: Summary,
    /// Nanoseconds of all four steps together, without a network.
    pub marshaling: Summary,
    /// Nanoseconds of each [`Step`](super::Step) of it.
    pub steps: [Summary; 4],
}

/// The sizes of two programs, stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minimum {
    /// Octets of the program that uses a socket and no ORB.
    pub socket: u64,
    /// Octets of the one that is a CORBA client.
    pub client: u64,
}

/// All that an experiment has measured, as the result file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// The sizes of the code of each operation.
    pub footprints: Vec<Footprint>,
    /// The sizes of the stubs and skeletons of each service.
    pub services: Vec<Service>,
    /// Calls, in the order in which they were made.
    pub calls: Vec<Call>,
    /// The sizes of the smallest programs, if they were built.
    pub minimum: Option<Minimum>,
}

impl Results {
    pub(super) fn new(machine: Machine, settings: Settings) -> Self {
        let experiment = "footprint".to_owned();
        Self {
            experiment,
            machine,
            settings,
            footprints: Vec::new(),
            services: Vec::new(),
            calls: Vec::new(),
            minimum: None,
        }
    }

    /// The times of an operation with one engine; `None` if it was not called.
    #[must_use]
    pub fn latency(&self, operation: &str, engine: Engine) -> Option<Latency> {
        let calls = || self.calls.iter().filter(|call| call.operation == operation && call.engine == engine);
        let two_way = Summary::from_values(calls().map(|call| call.two_way))?;
        let marshaling = Summary::from_values(calls().map(Call::all_marshaling))?;
        let step = |nth: usize| Summary::from_values(calls().map(|call| call.marshaling[nth]));
        Some(Latency { two_way, marshaling, steps: [step(0)?, step(1)?, step(2)?, step(3)?] })
    }

    /// The speed of an engine as a multiple of the compiled one's in the same round: of calls, and of
    /// marshaling alone.
    #[must_use]
    pub fn speed(&self, operation: &str, engine: Engine) -> Option<(Summary, Summary)> {
        let rounds = |engine: Engine, time: fn(&Call) -> f64| {
            let calls = self.calls.iter().filter(move |call| call.operation == operation && call.engine == engine);
            calls.map(|call| (call.round, time(call))).collect::<Vec<(u32, f64)>>()
        };
        // Speed is one over time.
        let ratio = |time: fn(&Call) -> f64| Summary::of_ratios(&rounds(Engine::Compiled, time), &rounds(engine, time));
        Some((ratio(|call| call.two_way)?, ratio(Call::all_marshaling)?))
    }

    /// The octets of a service's stubs or skeletons, if they were measured.
    #[must_use]
    pub fn service_size(&self, name: &str, engine: Engine, side: Side, optimisation: Optimisation) -> Option<u64> {
        let build = (name, engine, side, optimisation);
        let service = self.services.iter().find(|it| (&*it.service, it.engine, it.side, it.optimisation) == build);
        service.map(|service| service.sizes.total())
    }

    /// The octets of the code of one side of an operation; `None` if it was not built.
    #[must_use]
    pub fn size(&self, operation: &str, engine: Engine, side: Side, optimisation: Optimisation) -> Option<Sizes> {
        let footprint = self.footprints.iter().find(|it| {
            (it.operation.as_str(), it.engine, it.side, it.optimisation) == (operation, engine, side, optimisation)
        });
        footprint.map(|footprint| footprint.sizes)
    }
}
