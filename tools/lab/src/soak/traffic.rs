//! The clients, and the cycles of traffic and rest.
//!
//! The calls, and the comparison of their replies, are in [`kind`](super::kind).

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use spandrel::{Orb, SystemException};
use spandrel_measure::units::grouped;

use super::kind::{Client, Done};
use super::{CYCLES, Kind, Process, Results, Row, Settings, server};
use crate::LabError;
use crate::machine::{Look, Machine};
use crate::mechanism::generated::soak::soak::Target;
use crate::peer::child::{ChildHandle, ChildKind, ChildRole};
use crate::peer::pair::Launch;
use crate::progress::Progress;

/// The time limit for the server to start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// The time limit for both processes to release the resources of their last calls.
const REST_LIMIT: Duration = Duration::from_secs(10);
/// The polling interval for that.
const REST_STEP: Duration = Duration::from_millis(20);
/// The maximum number of failures that are kept as text.
const MAX_REPORTED_FAILURES: usize = 10;
/// The number of streams of one-ways of each client.
const STREAMS_EACH: u32 = u32::MAX / 64;

/// The results of all clients together.
#[derive(Default)]
struct Tally {
    done: [Done; Kind::ALL.len()],
    failures: u64,
    first_failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, at: usize, outcome: Result<Done, String>) {
        match outcome {
            Ok(done) => {
                self.done[at].calls += done.calls;
                self.done[at].octets += done.octets;
            }
            Err(why) => {
                self.failures += 1;
                if self.first_failures.len() < MAX_REPORTED_FAILURES {
                    self.first_failures.push(format!("{}: {why}", Kind::ALL[at]));
                }
            }
        }
    }
}

/// Starts a server, calls it from all clients until the time is over, and returns what was counted.
///
/// # Errors
/// If the server cannot be started or reached. Later failures are in the results.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let role = ChildRole { kind: ChildKind::SoakServer { options: settings.orb.clone() }, core: None };
    let mut process = ChildHandle::start("server", launch(&role))?;
    let reference = process.line(START_LIMIT)?.trim().to_owned();
    let orbs = (0..settings.clients.div_ceil(2)).map(|_| super::orb(&settings.orb)).collect::<Result<Vec<_>, _>>()?;
    let mut clients = Vec::new();
    for number in 0..settings.clients {
        let orb = &orbs[number as usize / 2];
        let client = client(orb, &reference, settings, number);
        clients.push(client.map_err(LabError::call("reach the server"))?);
    }
    let (ours, theirs, tally) = cycles(settings, &mut clients)?;
    drop(clients);
    for orb in orbs {
        orb.shutdown().map_err(LabError::call("shut a client down"))?;
    }
    let row = |(kind, done): (&Kind, Done)| Row { kind: *kind, calls: done.calls, octets: done.octets };
    Ok(Results {
        experiment: "soak".to_owned(),
        machine,
        settings: settings.clone(),
        rows: Kind::ALL.iter().zip(tally.done).map(row).collect(),
        processes: vec![
            Process { name: "server".to_owned(), looks: theirs },
            Process { name: "client".to_owned(), looks: ours },
        ],
        failures: tally.failures,
        first_failures: tally.first_failures,
    })
}

fn client<'s>(
    orb: &Orb,
    reference: &'s str,
    settings: &'s Settings,
    number: u32,
) -> Result<Client<'s>, SystemException> {
    let target = Target::narrow(&orb.string_to_object(reference)?)?;
    Ok(Client {
        rng: Rng::with_seed(settings.seed.wrapping_add(u64::from(number))),
        target,
        own: Target::unchecked_narrow(&server::activate(orb)?),
        reference,
        options: &settings.orb,
        max_octets: settings.max_octets as usize,
        next_stream: number * STREAMS_EACH,
    })
}

/// All cycles; returns the samples of this process and the server at rest, and the results.
fn cycles(settings: &Settings, clients: &mut [Client<'_>]) -> Result<(Vec<Look>, Vec<Look>, Tally), LabError> {
    let tally = Mutex::new(Tally::default());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut progress = Progress::begin(u64::from(CYCLES));
    for cycle in 1..=CYCLES {
        progress.at(&format!("cycle {cycle}"));
        let end = Instant::now() + settings.cycle();
        thread::scope(|scope| {
            for client in &mut *clients {
                scope.spawn(|| run_until(client, end, &tally));
            }
        });
        let (our, their) = at_rest(&clients[0].target)?;
        let done = tally.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = done.done.iter().map(|done| done.calls).sum::<u64>();
        progress.step(&format!("cycle {cycle}"), &format!("{} calls", grouped(calls as f64)));
        ours.push(our);
        theirs.push(their);
    }
    progress.finish();
    Ok((ours, theirs, tally.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

fn run_until(client: &mut Client<'_>, end: Instant, tally: &Mutex<Tally>) {
    while Instant::now() < end {
        let kind = Kind::draw(&mut client.rng);
        let outcome = client.make(kind);
        let at = Kind::ALL.iter().position(|known| *known == kind).expect("it was drawn from these");
        tally.lock().unwrap_or_else(PoisonError::into_inner).add(at, outcome);
    }
}

/// The resources of both processes once their numbers of threads and descriptors are stable.
fn at_rest(target: &Target) -> Result<(Look, Look), LabError> {
    let look = || -> Result<(Look, Look), LabError> {
        let theirs = target.look_around().map_err(LabError::call("look at the server"))?;
        Ok((Look::now(0), theirs.into()))
    };
    let counts = |(ours, theirs): &(Look, Look)| [ours.threads, ours.descriptors, theirs.threads, theirs.descriptors];
    let (deadline, mut last, mut same) = (Instant::now() + REST_LIMIT, look()?, 0);
    while same < 10 && Instant::now() < deadline {
        thread::sleep(REST_STEP);
        let now = look()?;
        same = if counts(&now) == counts(&last) { same + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}
