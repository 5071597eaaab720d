//! The foreign ORBs that ours is run against.

use std::fmt;
use std::str::FromStr;

use anyhow::bail;

/// A foreign ORB.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    OmniOrb,
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

impl FromStr for Peer {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "omniorb" => Ok(Self::OmniOrb),
            "jacorb" => Ok(Self::JacOrb),
            _ => bail!("unknown peer: {name} (omniorb and jacorb exist)"),
        }
    }
}
