//! The order of the samples of a plan, and the servers whose samples are taken at the same time.

use anyhow::bail;
use fastrand::Rng;

use super::Plan;
use crate::agent::MAX_SERVERS;

/// Samples that are taken at the same time: one without slices, otherwise those of a group of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the samples among those of their servers and load.
    pub round: u32,
    /// The index of the load in the plan.
    pub load: usize,
    /// The indices of the targets, in their order.
    pub targets: Vec<usize>,
}

impl Plan {
    /// All samples in their order. Each round has all servers and loads once, in an order of its own, so that slow
    /// changes of the machine affect all of them alike.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let groups = self.groups();
        let round = |round: u32| {
            let mut steps: Vec<Step> = (0..self.loads.len())
                .flat_map(|load| groups.iter().map(move |targets| Step { round, load, targets: targets.clone() }))
                .collect();
            Rng::with_seed(self.seed.wrapping_add(u64::from(round))).shuffle(&mut steps);
            steps
        };
        (0..self.samples).flat_map(round).collect()
    }

    /// The targets that run at the same time, by their indices: with slices, those of one host that pairs connect.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
        let targets = self.targets();
        let mut groups: Vec<Vec<usize>> = (0..targets.len()).map(|target| vec![target]).collect();
        if self.slices == 1 {
            return groups;
        }
        for pair in self.all_pairs() {
            let target_index = |name: &str| targets.iter().position(|target| target.name == name);
            let (Some(first), Some(second)) = (target_index(&pair.first), target_index(&pair.second)) else { continue };
            let group_of = |target: usize| groups.iter().position(|group| group.contains(&target));
            let (Some(one), Some(other)) = (group_of(first), group_of(second)) else { continue };
            if one != other && targets[first].host == targets[second].host {
                let joined = std::mem::take(&mut groups[one.max(other)]);
                groups[one.min(other)].extend(joined);
            }
        }
        groups.retain(|group| !group.is_empty());
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups
    }

    pub(super) fn check_groups(&self) -> anyhow::Result<()> {
        if let Some(group) = self.groups().iter().find(|group| group.len() > MAX_SERVERS) {
            let (first, count) = (&self.targets()[group[0]].name, group.len());
            bail!(
                "{count} servers are compared with `{first}`, directly or not, and at most {MAX_SERVERS} run at one time"
            );
        }
        Ok(())
    }

    /// The order in which the servers of a group have their slices of one number, by their indices in the group.
    #[must_use]
    pub(crate) fn slice_order(&self, step: &Step, slice: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..step.targets.len()).collect();
        let first = step.targets.first().copied().unwrap_or(0);
        // Each slice of each round, load and group has an order of its own.
        let mut random = [u64::from(step.round), step.load as u64, first as u64, u64::from(slice)]
            .into_iter()
            .fold(Rng::with_seed(self.seed), |mut random, number| Rng::with_seed(random.u64(..) ^ number));
        random.shuffle(&mut order);
        order
    }
}
