//! The samples of a step: a server, or a group of servers, is started, measured under load, and ended.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use super::error::{SampleError, called};
use super::interruption::Interruption;
use super::measured::MeasuredServer;
use crate::idl::orchestra::work_team::{BeginError, TakeResultError};
use crate::idl::orchestra::{Harness, LoadResult, Scope, StartedServer, WorkTeam};
use crate::load::CANCELLED;
use crate::names::{self, Names};
use crate::plan::{LoadPlan, Plan, Slice, Step, Target};
use crate::results::{LiveSample, Sample, now};

/// The longest wait of one call for the end of a load, in seconds. The Harness is called between two waits.
const WAIT: f64 = 5.0;
/// The longest time in seconds for the server of a sample that is given up to end.
const GIVEN_UP_GRACE: f64 = 0.5;

/// Samples that are to be taken at the same time.
pub(super) struct Sampling<'s> {
    pub(super) plan: &'s Plan,
    pub(super) names: &'s Names,
    pub(super) step: &'s Step,
    /// The targets of the step, which are on one host.
    pub(super) targets: Vec<&'s Target>,
    pub(super) load: &'s LoadPlan,
    pub(super) interruption: &'s Interruption,
}

/// The agents of the samples.
struct Agents<'s> {
    harness: Harness,
    /// Those of the clients, with the names of their hosts.
    teams: Vec<(&'s str, WorkTeam)>,
}

impl Agents<'_> {
    fn cancel_loads(&self) {
        self.teams.iter().for_each(|(_, team)| _ = team.cancel());
    }
}

/// A server of the group, or the reason why it cannot be measured any more.
type GroupServer<'s> = Result<MeasuredServer<'s>, SampleError>;

impl<'s> Sampling<'s> {
    /// Takes the samples, in the order of the targets. Those of a group that were taken have the same time. A server
    /// that cannot be measured is left out from then on; all other errors are those of the whole group.
    pub(super) fn take(&self) -> Vec<Result<Sample, SampleError>> {
        let agents = match self.reach_agents() {
            Ok(agents) => agents,
            Err(error) => return self.targets.iter().map(|_| Err(error.clone())).collect(),
        };
        let (mut servers, mut started) = (Vec::new(), Vec::new());
        self.interruption.set_teams(agents.teams.iter().map(|(_, team)| team.clone()).collect());
        let measured =
            self.start(&agents, &mut servers, &mut started).and_then(|()| self.measure(&agents, &mut servers));
        self.interruption.set_teams(Vec::new());
        if let Err(error) = measured {
            agents.cancel_loads();
            servers.resize_with(self.targets.len(), || Err(error.clone()));
            servers.iter_mut().filter(|server| server.is_ok()).for_each(|server| *server = Err(error.clone()));
        }
        self.stop(&agents, &mut servers, &started);
        let at = now();
        let sample = |server: MeasuredServer<'_>| server.into_sample(&self.load.name, self.step.round, at);
        servers.into_iter().map(|server| server.map(sample)).collect()
    }

    fn host(&self) -> &'s str {
        &self.targets[0].host
    }

    /// The Harness and the WorkTeams, which have no load any more.
    fn reach_agents(&self) -> Result<Agents<'s>, SampleError> {
        // Agents that were started again have other references.
        let found =
            |name: &[_], host: &str| self.names.resolve(name).map_err(|reason| SampleError::lost(host, &reason));
        let harness = Harness::unchecked_narrow(&found(&names::harness(self.host()), self.host())?);
        let mut teams = Vec::new();
        for client in &self.plan.clients {
            let team = WorkTeam::unchecked_narrow(&found(&names::work_team(client), client)?);
            called(team.cancel(), client, "cancel")?; // of a load that an interrupted supervisor has begun
            teams.push((client.as_str(), team));
        }
        Ok(Agents { harness, teams })
    }

    /// Starts the servers; `started` gets the places and numbers of those that have started.
    fn start(
        &self,
        agents: &Agents<'_>,
        servers: &mut Vec<GroupServer<'s>>,
        started: &mut Vec<(usize, u32)>,
    ) -> Result<(), SampleError> {
        for (place, target) in self.targets.iter().enumerate() {
            if place > 0 {
                self.check_interruption()?;
            }
            let beside: Vec<u32> = started.iter().map(|(_, number)| *number).collect();
            let start = called(agents.harness.start_server(&target.server, &beside), self.host(), "start_server");
            servers.push(match start.map_err(SampleError::of_server) {
                Ok(StartedServer { number, listens_at }) => {
                    started.push((place, number));
                    Ok(MeasuredServer::new(target, number, listens_at))
                }
                Err(error) if error.is_of_server => Err(error),
                Err(error) => return Err(error),
            });
        }
        Ok(())
    }

    /// Applies the load to the servers that have started, slice by slice.
    fn measure(&self, agents: &Agents<'_>, servers: &mut [GroupServer<'s>]) -> Result<(), SampleError> {
        if servers.iter().all(Result::is_err) {
            return Ok(());
        }
        self.interruption.wait(Duration::from_secs_f64(self.plan.settle));
        for number in 0..self.plan.slices {
            for place in self.plan.slice_order(self.step, number) {
                self.check_interruption()?;
                let Ok(server) = &mut servers[place] else { continue };
                match self.measure_slice(agents, server, Slice { round: self.step.round, number }) {
                    Err(error) if error.is_of_server => {
                        agents.cancel_loads();
                        servers[place] = Err(error);
                    }
                    measured => measured?,
                }
            }
        }
        Ok(())
    }

    fn measure_slice(
        &self,
        agents: &Agents<'_>,
        server: &mut MeasuredServer<'_>,
        slice: Slice,
    ) -> Result<(), SampleError> {
        let (harness, host, number) = (&agents.harness, self.host(), server.number);
        let snapshot = || called(harness.take_snapshot(number), host, "take_snapshot").map_err(SampleError::of_server);
        let record =
            |interval| called(harness.record(number, interval), host, "record").map_err(SampleError::of_server);
        let before = snapshot()?;
        if self.plan.live > 0.0 {
            record(self.plan.live)?;
        }
        let loads = self.begin(&agents.teams, server, slice)?;
        let mut results = Vec::new();
        for ((name, team), load) in agents.teams.iter().zip(loads) {
            results.push(self.result(harness, (name, team), load, number)?);
        }
        let after = snapshot()?;
        server.add(&before, &after, &results).map_err(|reason| SampleError::new(format!("{reason:#}")))?;
        if self.plan.live > 0.0 {
            record(0.0)?;
            server.set_live(self.live(harness, before.at)?);
        }
        Ok(())
    }

    /// Waits for the end of a load of one client on a server; both are named by their numbers.
    fn result(
        &self,
        harness: &Harness,
        (name, team): (&str, &WorkTeam),
        load: u32,
        server: u32,
    ) -> Result<LoadResult, SampleError> {
        loop {
            self.check_interruption()?;
            let team_result = team.take_result(WAIT);
            // The load of this sample is there until it is taken here, or cancelled.
            if let Err(TakeResultError::NoLoad(_)) = team_result {
                return Err(SampleError::new(format!("take_result on {name} failed: {CANCELLED}")));
            }
            match called(team_result, name, "take_result")? {
                (true, result) if result.number == load => return Ok(result),
                (true, _) => return Err(SampleError::new(format!("another supervisor has begun a load on {name}"))),
                (false, _) => {
                    let address = called(harness.server_address(server), self.host(), "server_address");
                    address.map_err(SampleError::of_server)?;
                }
            }
        }
    }

    fn check_interruption(&self) -> Result<(), SampleError> {
        match self.interruption.is_requested() {
            true => Err(SampleError::new("the run was interrupted")),
            false => Ok(()),
        }
    }

    /// Begins the loads of all clients at the same time, each with a thread of its own, so that many clients begin as
    /// one does. Returns their numbers.
    fn begin(
        &self,
        teams: &[(&str, WorkTeam)],
        server: &MeasuredServer<'_>,
        slice: Slice,
    ) -> Result<Vec<u32>, SampleError> {
        let begin = |(client, (name, team)): (usize, &(&str, WorkTeam))| {
            let greeting = server.target.server.greeting;
            let load = self.plan.load(self.load, &server.address, client, slice, greeting);
            match team.begin(&load) {
                Err(BeginError::Busy(_)) => {
                    Err(SampleError::new(format!("begin on {name} failed: another supervisor has begun a load there")))
                }
                begun => called(begun, name, "begin"),
            }
        };
        if let [only] = teams {
            return Ok(vec![begin((0, only))?]);
        }
        thread::scope(|scope| {
            let calls: Vec<_> = teams.iter().enumerate().map(|team| scope.spawn(move || begin(team))).collect();
            calls.into_iter().map(|call| call.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// The live samples of the load, which began at this time of the agent.
    fn live(&self, harness: &Harness, began: f64) -> Result<Vec<LiveSample>, SampleError> {
        let mut live = Vec::new();
        loop {
            let first = u32::try_from(live.len()).unwrap_or(u32::MAX);
            let more = called(harness.recorded(first), self.host(), "recorded")?;
            if more.is_empty() {
                return Ok(live);
            }
            live.extend(more.iter().map(|snapshot| {
                let time = |scope: Scope| snapshot.cpu.iter().find(|usage| usage.counted == scope);
                let cpu = time(Scope::Group).or_else(|| time(Scope::Tree)).map(|usage| usage.time);
                LiveSample {
                    after: snapshot.at - began,
                    cpu: cpu.map_or(0.0, |cpu| cpu.user + cpu.system),
                    resident: snapshot.resident,
                    processes: snapshot.processes,
                    threads: snapshot.threads.len(),
                }
            }));
        }
    }

    /// Ends all servers at the same time. One that had ended, or has to be killed, has no sample.
    fn stop(&self, agents: &Agents<'_>, servers: &mut [GroupServer<'s>], started: &[(usize, u32)]) {
        let is_given_up = self.interruption.is_requested() && servers.iter().any(Result::is_err);
        let grace = if is_given_up { self.plan.grace.min(GIVEN_UP_GRACE) } else { self.plan.grace };
        let stop = |number: u32| {
            let stopped = agents.harness.stop_server(number, grace);
            called(stopped, self.host(), "stop_server").map_err(SampleError::of_server)
        };
        let stopped: Vec<Result<(), SampleError>> = if let [(_, only)] = started {
            vec![stop(*only)]
        } else {
            thread::scope(|scope| {
                let calls: Vec<_> = started.iter().map(|(_, number)| scope.spawn(move || stop(*number))).collect();
                calls.into_iter().map(|call| call.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
            })
        };
        for ((place, _), stopped) in started.iter().zip(stopped) {
            if let (Err(error), Ok(_)) = (stopped, &servers[*place]) {
                servers[*place] = Err(error);
            }
        }
    }
}
