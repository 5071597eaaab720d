//! The contenders of the latency experiment.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mechanism::MechanismName;

/// A pair of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
#[non_exhaustive]
pub enum Contender {
    /// A mechanism of this program.
    Mechanism(MechanismName),
    /// omniORB's client and server.
    OmniOrb,
    /// TAO's client and server.
    Tao,
}

impl Contender {
    /// The usual base of the ratios.
    pub const BASE: Self = Self::Mechanism(MechanismName::C);

    /// The base of the ratios of a series: plain calls over TCP, or else the first one named.
    #[must_use]
    pub fn base(named: &[Self]) -> Self {
        if named.contains(&Self::BASE) { Self::BASE } else { named.first().copied().unwrap_or(Self::BASE) }
    }

    /// The default contenders, the base first. TAO, whose programs need its sources, is not among them.
    #[must_use]
    pub fn usual() -> Vec<Self> {
        MechanismName::available(false).into_iter().map(Self::Mechanism).chain([Self::OmniOrb]).collect()
    }

    /// All contenders, the base of the ratios first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mechanisms = MechanismName::ALL.into_iter().filter(|name| !name.sends_floods_only());
        mechanisms.map(Self::Mechanism).chain([Self::OmniOrb, Self::Tao]).collect()
    }

    /// The contenders of a quick run, the base first.
    #[must_use]
    pub fn quick(between_machines: bool) -> Vec<Self> {
        let mechanisms = MechanismName::quick(between_machines).into_iter().map(Self::Mechanism);
        mechanisms.chain((!between_machines).then_some(Self::OmniOrb)).collect()
    }

    /// The meaning for a legend, in less than 80 columns.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Mechanism(mechanism) => mechanism.description(),
            Self::OmniOrb => "omniORB's client and server",
            Self::Tao => "TAO's client and server",
        }
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mechanism(mechanism) => mechanism.name(),
            Self::OmniOrb => "omniorb",
            Self::Tao => "tao",
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Contender> for &'static str {
    fn from(contender: Contender) -> Self {
        contender.name()
    }
}

impl TryFrom<String> for Contender {
    type Error = crate::LabError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl std::str::FromStr for Contender {
    type Err = crate::LabError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let orb = [Self::OmniOrb, Self::Tao].into_iter().find(|orb| orb.name() == text);
        orb.map_or_else(|| text.parse().map(Self::Mechanism), Ok)
    }
}
