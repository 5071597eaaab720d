//! The contenders of the scalability experiment.

use serde::{Deserialize, Serialize};

use crate::workload::named;

/// A pair of programs, a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Contender {
    /// This program, with its own ORB.
    #[serde(rename = "orb")]
    Orb,
    /// As [`Orb`](Self::Orb), with a connection of its own for each reference.
    #[serde(rename = "orb-private")]
    OrbPrivate,
    /// The program of `peers/omniorb`, with omniORB.
    #[serde(rename = "omniorb")]
    OmniOrb,
    /// The program of `peers/jacorb`, with JacORB.
    #[serde(rename = "jacorb")]
    JacOrb,
    /// The program of `peers/tao`, with TAO.
    #[serde(rename = "tao")]
    Tao,
}

impl Contender {
    /// The contenders that options name, ours first. Private connections are not among them: only the
    /// laboratory measures them.
    pub const ALL: [Self; 4] = [Self::Orb, Self::OmniOrb, Self::JacOrb, Self::Tao];
    /// The default contenders. TAO, whose programs need its sources, is not among them.
    pub const USUAL: [Self; 3] = [Self::Orb, Self::OmniOrb, Self::JacOrb];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Orb => "orb",
            Self::OrbPrivate => "orb-private",
            Self::OmniOrb => "omniorb",
            Self::JacOrb => "jacorb",
            Self::Tao => "tao",
        }
    }
}

named!(Contender, "contender here");
