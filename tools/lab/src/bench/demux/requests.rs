//! The invocation algorithms of chapter 4: the order of objects and operations.

use serde::{Deserialize, Serialize};

use crate::workload::named;

/// The order of objects and operations in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The same one a hundred times, then the next.
    RequestTrain,
    /// Each once, then from the beginning.
    RoundRobin,
    /// The requests go to random objects.
    Random,
    /// Always the last operation of the last object.
    WorstCase,
}

impl Algorithm {
    /// The algorithms in the order of the paper's figures.
    pub const ALL: [Self; 4] = [Self::RequestTrain, Self::RoundRobin, Self::Random, Self::WorstCase];

    /// The name that options and files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestTrain => "request-train",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
            Self::WorstCase => "worst-case",
        }
    }
}

named!(Algorithm, "known invocation algorithm");

/// Requests in a train.
const TRAIN: u32 = 100;

/// An endless sequence of requests. The same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    algorithm: Algorithm,
    objects: u32,
    operations: u32,
    next: (u32, u32),
    left_of_train: u32,
    random: u64,
}

impl Requests {
    pub(super) fn new(algorithm: Algorithm, objects: u32, operations: u32, seed: u64) -> Self {
        let next = if algorithm == Algorithm::WorstCase { (objects - 1, operations - 1) } else { (0, 0) };
        Self { algorithm, objects, operations, next, left_of_train: TRAIN, random: seed }
    }

    /// The object and the operation of the next request, as indexes.
    #[inline]
    pub(super) fn next(&mut self) -> (u32, u32) {
        match self.algorithm {
            Algorithm::RequestTrain => {
                if self.left_of_train == 0 {
                    self.left_of_train = TRAIN;
                    self.advance();
                }
                self.left_of_train -= 1;
                self.next
            }
            Algorithm::RoundRobin => {
                let next = self.next;
                self.advance();
                next
            }
            Algorithm::Random => {
                // Sufficient for indexes into a table, and only a few instructions (Weyl sequence and a
                // mixing multiplication).
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (self.random ^ (self.random >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = mixed ^ (mixed >> 29);
                (share(mixed >> 32, self.objects), share(mixed & 0xffff_ffff, self.operations))
            }
            Algorithm::WorstCase => self.next,
        }
    }

    #[inline]
    fn advance(&mut self) {
        let (object, operation) = self.next;
        let after = |index: u32, count: u32| if index + 1 == count { 0 } else { index + 1 };
        self.next = (after(object, self.objects), after(operation, self.operations));
    }
}

/// Scales a 32-bit number down to less than `all`.
#[inline]
fn share(number: u64, all: u32) -> u32 {
    ((number * u64::from(all)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn first(algorithm: Algorithm, count: usize) -> Vec<(u32, u32)> {
        let mut requests = Requests::new(algorithm, 5, 3, 1);
        (0..count).map(|_| requests.next()).collect()
    }

    #[test]
    fn each_algorithm_requests_in_its_order() {
        let train = first(Algorithm::RequestTrain, 201);
        assert_eq!(train.iter().filter(|one| **one == (0, 0)).count(), 100);
        assert_eq!((train[99], train[100], train[200]), ((0, 0), (1, 1), (2, 2)));
        assert_eq!(first(Algorithm::RoundRobin, 6), [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (0, 2)]);
        assert_eq!(first(Algorithm::WorstCase, 3), [(4, 2); 3]);
        let random = first(Algorithm::Random, 1000);
        assert_eq!(random.iter().collect::<HashSet<_>>().len(), 15, "all of them come");
        assert_eq!(random, first(Algorithm::Random, 1000));
    }

    #[test]
    fn names_are_parsed() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse::<Algorithm>().unwrap(), algorithm);
        }
        assert!("best-case".parse::<Algorithm>().unwrap_err().to_string().contains("worst-case"));
    }
}
