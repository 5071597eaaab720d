//! The parts into which samples are divided.

use anyhow::{anyhow, bail, ensure};

use super::{ArrivalPlan, DistributionPlan, LoadPlan, Plan};
use crate::idl::orchestra::{Address, ArrivalKind, Load};
use crate::load;

/// The most slices of a sample.
pub const MAX_SLICES: u32 = 10_000;

/// A part of a sample: samples of several servers are taken in alternating slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The number of the sample among those of its server and load.
    pub round: u32,
    /// Its number among those of the sample.
    pub number: u32,
}

impl Plan {
    pub(super) fn check_slices(&self) -> anyhow::Result<()> {
        let Self { slices, live, .. } = self;
        ensure!((1..=MAX_SLICES).contains(slices), "a sample has from 1 to {MAX_SLICES} slices");
        ensure!(*slices == 1 || *live == 0.0, "live samples are of a server that runs alone: slices = 1, or live = 0");
        for load in &self.loads {
            let (requests, clients) = (load.requests.unwrap_or(self.requests), self.clients.len() as u64);
            // The share of a client would be 0, which is no limit.
            if (1..clients * u64::from(*slices)).contains(&requests) {
                let name = &load.name;
                let of_each = match slices {
                    1 => format!("one of each of {clients} clients"),
                    _ => format!("one of each client in each of {slices} slices"),
                };
                bail!("load `{name}`: {requests} requests are fewer than {of_each}");
            }
        }
        Ok(())
    }

    /// Checks the values of each client's load.
    pub(super) fn check_loads(&self) -> anyhow::Result<()> {
        let address = Address { host: "127.0.0.1".to_owned(), port: 1 };
        for load in &self.loads {
            for client in 0..self.clients.len() {
                let settings = self.load(load, &address, client, Slice::default(), true);
                load::check(&settings).map_err(|invalid| anyhow!("load `{}`: {}", load.name, invalid.reason))?;
            }
        }
        Ok(())
    }

    /// The load that one client applies in one slice.
    #[must_use]
    pub fn load(&self, load: &LoadPlan, target: &Address, client: usize, slice: Slice, greeting: bool) -> Load {
        let (clients, slices) = (self.clients.len() as u64, u64::from(self.slices));
        let (requests, client) = (load.requests.unwrap_or(self.requests), client as u64);
        let part = |whole: u64, parts: u64, number: u64| whole / parts + u64::from(number < whole % parts);
        let share = part(part(requests, clients, client), slices, u64::from(slice.number));
        let number = u64::from(slice.round) * slices + u64::from(slice.number);
        let octets = DistributionPlan::Constant { mean: f64::from(self.octets) };
        Load {
            target: target.clone(),
            requests: share,
            seconds: load.seconds / slices as f64,
            workers: load.workers.unwrap_or(self.workers),
            arrival: match load.arrival {
                ArrivalPlan::Closed => ArrivalKind::Closed,
                ArrivalPlan::OpenPaced => ArrivalKind::OpenPaced,
                ArrivalPlan::OpenPoisson => ArrivalKind::OpenPoisson,
            },
            rate: load.rate / clients as f64,
            size: load.size.unwrap_or(octets).into(),
            think_time: load.think_time.unwrap_or(DistributionPlan::Constant { mean: 0.0 }).into(),
            greeting,
            timeout: self.timeout,
            seed: self.seed.wrapping_add(number * clients + client),
        }
    }
}
