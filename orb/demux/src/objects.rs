//! The strategies of object lookup.

/// The lookup of objects by id: a policy of object adapters, of Spandrel's own (paper 001, chapter 6).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ObjectDemux {
    /// The id contains the object's slot. Only for system-assigned ids, and their default.
    #[default]
    Active,
    /// A hash table that grows; the default for ids that the application assigns.
    DynamicHash,
    /// A hash table without collisions, built when the adapter's manager is activated; for sets of
    /// objects that seldom change.
    PerfectHash,
    /// A comparison with each id in turn, for measurements.
    Linear,
}

impl ObjectDemux {
    /// All strategies, for options and tables.
    pub const ALL: [Self; 4] = [Self::Active, Self::DynamicHash, Self::PerfectHash, Self::Linear];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::DynamicHash => "dynamic-hash",
            Self::PerfectHash => "perfect-hash",
            Self::Linear => "linear",
        }
    }
}
