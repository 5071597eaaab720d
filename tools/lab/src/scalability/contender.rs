//! Who takes part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// A pair of programs, a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Contender {
    /// This program.
    Orb,
    /// omniORB's, from `peers/omniorb`.
    OmniOrb,
    /// JacORB's, from `peers/jacorb`.
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

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Contender {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let found = Self::ALL.into_iter().find(|contender| contender.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            LabError::Settings(format!("`{text}` takes no part in this experiment; there are {names}"))
        })
    }
}
