//! The contenders of the scalability experiment.

use serde::{Deserialize, Serialize};

use crate::workload::named;

/// A pair of programs, a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Contender {
    /// This program, with its own ORB.
    Orb,
    /// The program of `peers/omniorb`, with omniORB.
    OmniOrb,
    /// The program of `peers/jacorb`, with JacORB.
    JacOrb,
}

impl Contender {
    /// All of them, ours first.
    pub const ALL: [Self; 3] = [Self::Orb, Self::OmniOrb, Self::JacOrb];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Orb => "orb",
            Self::OmniOrb => "omniorb",
            Self::JacOrb => "jacorb",
        }
    }
}

named!(Contender, "contender here");
