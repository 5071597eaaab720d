//! Plans: servers × loads × samples. The defaults are those of the paper (5.6).
//!
//! ```toml
//! name = "iterative servers"
//! clients = ["starship"]                 # hosts whose WorkTeams apply the loads
//! requests = 20000                       # of each sample, divided among the clients
//! octets = 4000
//! workers = 5                            # of each client
//! samples = 50                           # of each server and load
//! slices = 1                             # of each sample; more alternate between servers that are compared
//!
//! [[server]]
//! host = "bobsdell"                      # the host of the Harness
//! command = "transfer"
//! architectures = ["iterative", "reactive"]
//!
//! [[server]]
//! host = "bobsdell"
//! command = "transfer"
//! architectures = ["thread-pool"]
//! pooled = true                          # once with each of the pools, 5 and 10
//!
//! [[load]]                               # by default one closed loop
//! name = "poisson"
//! arrival = "open-poisson"
//! rate = 500.0
//!
//! [[pair]]                               # compared in the report; `base = "COMMAND"` makes all pairs with a command
//! first = "transfer/iterative"
//! second = "transfer/reactive"
//!
//! [versions]                             # of tools, for the report (table B.1)
//! "C compiler" = "gcc 12.2.0"
//! ```

mod defaults;
mod slice;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::idl::orchestra::{Distribution, DistributionKind, Server};

pub use slice::{MAX_SLICES, Slice};
pub use steps::Step;

/// The most samples of each server and load.
pub const MAX_SAMPLES: u32 = 100_000;

/// A plan of experiments: servers, loads and sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The name by which reports refer to the plan.
    pub name: String,
    /// The hosts whose WorkTeams apply the loads.
    pub clients: Vec<String>,
    /// Requests of a sample, divided among the clients.
    #[serde(default = "defaults::requests")]
    pub requests: u64,
    /// Octets that a server returns to each request.
    #[serde(default = "defaults::octets")]
    pub octets: u32,
    /// Parallel workers of each client.
    #[serde(default = "defaults::workers")]
    pub workers: u32,
    /// Samples of each server and load.
    #[serde(default = "defaults::samples")]
    pub samples: u32,
    /// The slices of a sample. With more than one, the servers that are compared with each other run at the same time,
    /// and their slices alternate in random order, so that changes of the machine affect all of them alike.
    #[serde(default = "defaults::slices")]
    pub slices: u32,
    /// The sizes of pools: servers with `pooled` run once with each.
    #[serde(default = "defaults::pools")]
    pub pools: Vec<u32>,
    /// Seconds for each step of a request.
    #[serde(default = "defaults::timeout")]
    pub timeout: f64,
    /// Seconds between the start of a server and its load.
    #[serde(default)]
    pub settle: f64,
    /// Seconds in which a server ends by itself when told to.
    #[serde(default = "defaults::grace")]
    pub grace: f64,
    /// Seconds for an agent that has died to be started again.
    #[serde(default = "defaults::agent_wait")]
    pub agent_wait: f64,
    /// The interval of live samples in seconds; 0 for none. They disturb the server a little.
    #[serde(default)]
    pub live: f64,
    /// The seed of the order of samples, and of loads.
    #[serde(default = "defaults::seed")]
    pub seed: u64,
    /// The servers that are measured.
    #[serde(rename = "server")]
    pub servers: Vec<ServerPlan>,
    /// The loads, each for every server.
    #[serde(rename = "load", default = "defaults::loads")]
    pub loads: Vec<LoadPlan>,
    /// The command to whose servers those of all other commands are compared, by architecture, pool and greeting.
    pub base: Option<String>,
    /// Pairs of servers to compare beyond those of `base`.
    #[serde(rename = "pair", default)]
    pub pairs: Vec<PairPlan>,
    /// Sentences for the report, such as on servers that are absent.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The versions of compilers, libraries and interpreters, by tool (table B.1).
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
}

/// A command that starts servers, with the configurations in which it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPlan {
    /// The host whose Harness starts the servers.
    pub host: String,
    /// The command, as the agent's configuration names it.
    pub command: String,
    /// The name of its servers in results, by default the command: for the same command on several hosts.
    pub name: Option<String>,
    /// The architectures to start, by the command's names.
    pub architectures: Vec<String>,
    /// Whether each runs with each of the pools of the plan.
    #[serde(default)]
    pub pooled: bool,
    /// Whether clients get the greeting of 5.5.3: runs with it, without it, or both.
    #[serde(default = "defaults::greetings")]
    pub greetings: Vec<bool>,
    /// The figure in which they stand; by default that of their architecture.
    pub picture: Option<String>,
    /// The address that clients use instead of the one that the server prints.
    pub address: Option<String>,
}

/// A load that the plan applies to its servers. Absent values are those of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// The name in results and reports.
    pub name: String,
    /// Closed or open loop.
    #[serde(default)]
    pub arrival: ArrivalPlan,
    /// Requests per second of an open loop, of all clients together.
    #[serde(default)]
    pub rate: f64,
    /// Requests of a sample; 0 for a load with a time only.
    pub requests: Option<u64>,
    /// Seconds in which requests are due; 0 for no limit.
    #[serde(default)]
    pub seconds: f64,
    /// Parallel workers of each client.
    pub workers: Option<u32>,
    /// Octets of an answer.
    pub size: Option<DistributionPlan>,
    /// Seconds between an answer and a worker's next request.
    pub think_time: Option<DistributionPlan>,
}

/// The rule by which workers make their requests: after an answer, or by a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalPlan {
    /// Each worker sends its next request after the answer.
    #[default]
    Closed,
    /// Requests at equal distances, whether answered or not.
    OpenPaced,
    /// Requests at exponentially distributed distances.
    OpenPoisson,
}

/// The distribution from which sizes or times are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum DistributionPlan {
    /// The same value each time.
    Constant {
        /// The value each time.
        mean: f64,
    },
    /// From mean - spread to mean + spread.
    Uniform {
        /// The middle of the range.
        mean: f64,
        /// Half the width of the range.
        spread: f64,
    },
    /// The exponential distribution, as between independent events.
    Exponential {
        /// The mean, which is also the standard deviation.
        mean: f64,
    },
    /// The normal distribution, by its mean and deviation.
    Normal {
        /// The mean of the distribution.
        mean: f64,
        /// The standard deviation of the distribution.
        spread: f64,
    },
}

/// Two servers to be compared, by their names: `NAME/ARCHITECTURE`, with `-N` for a pool of N.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairPlan {
    /// The server that is compared to the second.
    pub first: String,
    /// The second, to which the first is compared.
    pub second: String,
}

/// One server of a plan, in one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The server and its configuration, as results and reports name them.
    pub name: String,
    /// The figure in which it stands.
    pub picture: String,
    /// The host whose Harness starts the server.
    pub host: String,
    /// The address that clients use instead of the one that the server prints.
    pub address: Option<String>,
    /// The command and its configuration, as the Harness gets them.
    pub server: Server,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// A file that cannot be read or is malformed; values that no load can have.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the plan {}", file.display()))?;
        let plan: Self =
            spandrel_daemon::parse_toml(&text).with_context(|| format!("the plan {} is malformed", file.display()))?;
        plan.check().with_context(|| format!("the plan {} cannot be carried out", file.display()))?;
        Ok(plan)
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.clients.is_empty() {
            bail!("it names no clients");
        }
        // A WorkTeam applies one load at a time.
        let mut clients = BTreeSet::new();
        if let Some(client) = self.clients.iter().find(|client| !clients.insert(*client)) {
            bail!("the client `{client}` occurs twice");
        }
        if self.pools.contains(&0) {
            bail!("a pool has at least one worker (pools)");
        }
        // A server without one of these would be left out.
        for server in &self.servers {
            let empty = [
                ("architectures", server.architectures.is_empty()),
                ("greetings", server.greetings.is_empty()),
                ("pools", server.pooled && self.pools.is_empty()),
            ];
            if let Some((name, _)) = empty.iter().find(|(_, is_empty)| *is_empty) {
                bail!("`{name}` is empty, so that the command `{}` has no server", server.command);
            }
        }
        if self.samples > MAX_SAMPLES {
            bail!("there are at most {MAX_SAMPLES} samples of each server and load");
        }
        self.check_slices()?;
        let targets = self.targets();
        if targets.is_empty() || self.samples == 0 {
            bail!("it has no sample");
        }
        let mut names = BTreeSet::new();
        for name in targets.iter().map(|target| &target.name).chain(self.loads.iter().map(|load| &load.name)) {
            if !names.insert(name) {
                bail!("the name `{name}` occurs twice");
            }
        }
        for name in self.pairs.iter().flat_map(|pair| [&pair.first, &pair.second]) {
            if !targets.iter().any(|target| target.name == *name) {
                let target_names: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
                bail!("a pair names `{name}`, which is none of its servers: {}", target_names.join(", "));
            }
        }
        for (index, pair) in self.pairs.iter().enumerate() {
            if pair.first == pair.second {
                bail!("a pair compares `{}` with itself", pair.first);
            }
            if self.pairs[..index].contains(pair) {
                bail!("the pair of `{}` and `{}` occurs twice", pair.first, pair.second);
            }
        }
        if let Some(base) = &self.base
            && !targets.iter().any(|target| target.server.name == *base)
        {
            bail!("base = `{base}` is none of its commands");
        }
        let seconds = [self.settle, self.grace, self.agent_wait];
        if seconds.iter().any(|seconds| !(0.0..=3600.0).contains(seconds)) {
            bail!("settle, grace and agent_wait are seconds from 0 to 3600");
        }
        if self.live != 0.0 && !(0.01..=3600.0).contains(&self.live) {
            bail!("live is an interval from 0.01 to 3600 seconds, or 0");
        }
        self.check_groups()?;
        self.check_loads()
    }

    /// All servers, each in each of its configurations.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for plan in &self.servers {
            let pools = if plan.pooled { self.pools.clone() } else { vec![0] };
            for architecture in &plan.architectures {
                for &workers in &pools {
                    for &greeting in &plan.greetings {
                        let pool = if workers > 0 { format!("-{workers}") } else { String::new() };
                        let suffix = if greeting { "" } else { "-no-greeting" };
                        targets.push(Target {
                            name: format!(
                                "{}/{architecture}{pool}{suffix}",
                                plan.name.as_ref().unwrap_or(&plan.command)
                            ),
                            picture: plan.picture.clone().unwrap_or_else(|| architecture.clone()),
                            host: plan.host.clone(),
                            address: plan.address.clone(),
                            server: Server {
                                name: plan.command.clone(),
                                architecture: architecture.clone(),
                                workers,
                                greeting,
                            },
                        });
                    }
                }
            }
        }
        targets
    }

    /// The pairs of the plan, and each server with its counterpart in `base`.
    #[must_use]
    pub fn all_pairs(&self) -> Vec<PairPlan> {
        let targets = self.targets();
        let mut pairs = self.pairs.clone();
        for target in targets.iter().filter(|target| self.base.as_ref().is_some_and(|base| *base != target.server.name))
        {
            let counterpart = targets.iter().find(|other| {
                let base = Server { name: other.server.name.clone(), ..target.server.clone() };
                Some(&other.server.name) == self.base.as_ref() && other.server == base && other.host == target.host
            });
            let pair = counterpart.map(|other| PairPlan { first: target.name.clone(), second: other.name.clone() });
            // It may be one of the plan's own.
            pairs.extend(pair.filter(|pair| !self.pairs.contains(pair)));
        }
        pairs
    }
}

impl From<DistributionPlan> for Distribution {
    fn from(plan: DistributionPlan) -> Self {
        let (kind, mean, spread) = match plan {
            DistributionPlan::Constant { mean } => (DistributionKind::Constant, mean, 0.0),
            DistributionPlan::Uniform { mean, spread } => (DistributionKind::Uniform, mean, spread),
            DistributionPlan::Exponential { mean } => (DistributionKind::Exponential, mean, 0.0),
            DistributionPlan::Normal { mean, spread } => (DistributionKind::Normal, mean, spread),
        };
        Self { kind, mean, spread }
    }
}
