//! The foreign ORBs that ours is run against.

use std::fmt;

/// A foreign ORB.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Peer {
    #[value(name = "omniorb")]
    OmniOrb,
    #[value(name = "jacorb")]
    JacOrb,
}

impl Peer {
    pub(crate) const ALL: [Self; 2] = [Self::OmniOrb, Self::JacOrb];
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OmniOrb => "omniORB",
            Self::JacOrb => "JacORB",
        })
    }
}
