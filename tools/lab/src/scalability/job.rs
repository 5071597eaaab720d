//! The jobs of a client, and the order in which it calls the servants. `Settings::run` sets the number of
//! calls and the first servant of each round.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use spandrel_measure::units::grouped;

use crate::LabError;
use crate::workload::{BIN_STRUCT_OCTETS, CallKind, PING_STRUCTS, PingCase, named};

/// Calls on each servant (`MAXITER` in paper 001, 4.2.5); in a request train they follow each other.
pub(super) const CALLS_ON_EACH: u32 = 100;

/// The order in which a client calls the servants (paper 001, 4.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// A hundred calls on each servant in turn.
    Train,
    /// One call on each servant in turn.
    RoundRobin,
    /// Calls servants in random order.
    Random,
    /// The last servant, repeatedly: the worst case of a linear search.
    WorstCase,
}

impl Algorithm {
    /// All orders of calls, as the paper lists them.
    pub const ALL: [Self; 4] = [Self::Train, Self::RoundRobin, Self::Random, Self::WorstCase];

    /// The name that options, jobs and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
            Self::WorstCase => "worst-case",
        }
    }

    /// The endless sequence of servants to call. `begin` is the first servant of trains and of round robin,
    /// and the seed of random ones. The programs of the peers compute the same.
    pub fn targets(self, servants: u32, begin: u32) -> impl FnMut() -> usize {
        let (mut call, mut state) = (0u64, u64::from(begin));
        move || {
            let nth = |turn: u64| ((u64::from(begin) + turn) % u64::from(servants)) as u32;
            let target = match self {
                Self::Train => nth(call / u64::from(CALLS_ON_EACH)),
                Self::RoundRobin => nth(call),
                Self::Random => {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ((state >> 33) % u64::from(servants)) as u32
                }
                Self::WorstCase => servants - 1,
            };
            call += 1;
            target as usize
        }
    }
}

/// The invocation interfaces of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A stub calls a skeleton.
    Static,
    /// A dynamic invocation, created for each call, calls a skeleton.
    Dynamic,
    /// One dynamic invocation, reused for each call to the same servant, calls a skeleton.
    DynamicReused,
    /// A stub calls a dynamic skeleton.
    DynamicSkeleton,
}

impl Style {
    /// All styles in the order of reports.
    pub const ALL: [Self; 4] = [Self::Static, Self::Dynamic, Self::DynamicReused, Self::DynamicSkeleton];

    /// The name that options, jobs and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dii",
            Self::DynamicReused => "dii-reused",
            Self::DynamicSkeleton => "dsi",
        }
    }

    /// Whether the server's servants are dynamic.
    #[must_use]
    pub fn wants_dynamic_servants(self) -> bool {
        self == Self::DynamicSkeleton
    }
}

named!(Algorithm, "known invocation algorithm");
named!(Style, "style of invocation");

/// The parameters of a call to a servant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum CallData {
    /// None: the operation `ping`.
    Void,
    /// A sequence of that many octets.
    Octets(u32),
    /// A sequence of that many `BinStruct`s.
    Structs(u32),
}

/// The greatest number of elements of a call.
const MAX_ELEMENTS: u32 = 1 << 20;

impl CallData {
    /// Octets of user data in a call, in the layout of C.
    #[must_use]
    pub fn octets(self) -> u64 {
        match self {
            Self::Void => 0,
            Self::Octets(count) => count.into(),
            Self::Structs(count) => u64::from(count) * BIN_STRUCT_OCTETS as u64,
        }
    }

    /// The parameters in the words of a heading.
    pub(super) fn description(self) -> String {
        match self {
            Self::Void => "without parameters".to_owned(),
            Self::Octets(count) => format!("with {} octets", grouped(f64::from(count))),
            Self::Structs(count) => format!("with {} BinStructs", grouped(f64::from(count))),
        }
    }

    /// The operation for such a call.
    pub(super) fn operation(self, call: CallKind) -> &'static str {
        match (self, call) {
            (Self::Void, CallKind::TwoWay) => "ping",
            (Self::Void, CallKind::OneWay) => "ping_1way",
            (Self::Octets(_), CallKind::TwoWay) => "sendOctetSeq",
            (Self::Octets(_), CallKind::OneWay) => "sendOctetSeq_1way",
            (Self::Structs(_), CallKind::TwoWay) => "sendStructSeq",
            (Self::Structs(_), CallKind::OneWay) => "sendStructSeq_1way",
        }
    }
}

impl From<PingCase> for CallData {
    fn from(case: PingCase) -> Self {
        match case {
            PingCase::Void => Self::Void,
            PingCase::Structs => Self::Structs(PING_STRUCTS as u32),
        }
    }
}

/// `void`, `octets-N` and `structs-N`; `structs` alone are as many as in [`PingCase::Structs`].
impl fmt::Display for CallData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => f.pad("void"),
            Self::Octets(count) => f.pad(&format!("octets-{count}")),
            Self::Structs(count) if *count as usize == PING_STRUCTS => f.pad("structs"),
            Self::Structs(count) => f.pad(&format!("structs-{count}")),
        }
    }
}

impl FromStr for CallData {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let count = |text: &str| text.parse().ok().filter(|count| (1..=MAX_ELEMENTS).contains(count));
        let parsed = match text.split_once('-') {
            None if text == "void" => Some(Self::Void),
            None if text == "structs" => Some(PingCase::Structs.into()),
            Some(("octets", rest)) => count(rest).map(Self::Octets),
            Some(("structs", rest)) => count(rest).map(Self::Structs),
            _ => None,
        };
        parsed.ok_or_else(|| {
            LabError::Settings(format!(
                "`{text}` is no call: expected void, octets-N or structs-N, N up to {MAX_ELEMENTS}"
            ))
        })
    }
}

impl From<CallData> for String {
    fn from(data: CallData) -> Self {
        data.to_string()
    }
}

impl TryFrom<String> for CallData {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

/// A kind of call that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// The order of servants.
    pub algorithm: Algorithm,
    /// Whether calls are answered.
    pub call: CallKind,
    /// The data that a call passes.
    pub case: CallData,
    /// The interface by which requests are made.
    pub style: Style,
}

/// A job in one round, as sent to a client; its text form is one line of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// The quantity that is measured.
    pub job: Job,
    /// Calls before the timed ones.
    pub warm_up: u32,
    /// Calls whose times are recorded.
    pub calls: u32,
    /// The beginning of the [targets](Algorithm::targets).
    pub begin: u32,
}

impl Job {
    /// The measured quantity, as text.
    #[must_use]
    pub fn title(&self) -> String {
        let call = match self.call {
            CallKind::OneWay => "one-way",
            CallKind::TwoWay => "two-way",
        };
        format!("{call} calls {}, {}, {}", self.case.description(), self.algorithm, self.style)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, call, case, style } = self;
        write!(f, "{algorithm} {call} {case} {style}")
    }
}

impl fmt::Display for JobRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, warm_up, calls, begin } = self;
        write!(f, "{job} {warm_up} {calls} {begin}")
    }
}

impl FromStr for JobRun {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = || LabError::Protocol { role: "experiment".to_owned(), found: text.to_owned() };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [algorithm, call, case, style, warm_up, calls, begin] = words[..] else { return Err(wrong()) };
        let number = |word: &str| word.parse().map_err(|_| wrong());
        Ok(Self {
            job: Job { algorithm: algorithm.parse()?, call: call.parse()?, case: case.parse()?, style: style.parse()? },
            warm_up: number(warm_up)?,
            calls: number(calls)?,
            begin: number(begin)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_job_is_parsed_from_its_line() {
        let run = JobRun {
            job: Job {
                algorithm: Algorithm::RoundRobin,
                call: CallKind::OneWay,
                case: PingCase::Structs.into(),
                style: Style::DynamicReused,
            },
            warm_up: 5,
            calls: 100,
            begin: 7,
        };
        assert_eq!(run.to_string(), "round-robin oneway structs dii-reused 5 100 7");
        assert_eq!(run.to_string().parse::<JobRun>().unwrap(), run);
        for wrong in [
            "",
            "train",
            "train oneway void static 1 2",
            "round oneway void static 1 2 3",
            "train oneway void static 1 -2 3",
        ] {
            assert!(wrong.parse::<JobRun>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_data_of_a_call_are_parsed_from_their_name() {
        for (text, data, octets) in [
            ("void", CallData::Void, 0),
            ("octets-16", CallData::Octets(16), 16),
            ("structs", CallData::Structs(1024), 24 * 1024),
            ("structs-3", CallData::Structs(3), 72),
        ] {
            assert_eq!((text.parse::<CallData>().unwrap(), data.octets()), (data, octets));
            assert_eq!(data.to_string(), text);
        }
        assert_eq!("structs-1024".parse::<CallData>().unwrap(), PingCase::Structs.into());
        for wrong in ["", "octets", "octets-0", "octets-1048577", "structs--1", "void-1"] {
            assert!(wrong.parse::<CallData>().is_err(), "{wrong}");
        }
    }

    fn first(algorithm: Algorithm, servants: u32, begin: u32, calls: u32) -> Vec<usize> {
        let mut next = algorithm.targets(servants, begin);
        (0..calls).map(|_| next()).collect()
    }

    #[test]
    fn each_algorithm_has_its_order() {
        let train = first(Algorithm::Train, 3, 0, 301);
        assert!(train[..100].iter().all(|target| *target == 0) && train[100..200].iter().all(|target| *target == 1));
        assert_eq!(train[300], 0);
        assert_eq!(first(Algorithm::RoundRobin, 3, 0, 4), [0, 1, 2, 0]);
        assert_eq!(first(Algorithm::WorstCase, 7, 3, 2), [6, 6]);
        let random = first(Algorithm::Random, 10, 1, 1_000);
        for target in 0..10 {
            let times = random.iter().filter(|called| **called == target).count();
            assert!((60..=140).contains(&times), "{target} was called {times} times of 1,000");
        }
    }

    #[test]
    fn a_different_start_calls_different_servants() {
        assert_eq!(first(Algorithm::Train, 3, 2, 101)[99..], [2, 0]);
        assert_eq!(first(Algorithm::RoundRobin, u32::MAX, u32::MAX - 1, 3), [u32::MAX as usize - 1, 0, 1]);
        let set = |begin| first(Algorithm::Random, 1_000_000, begin, 1_000).into_iter().collect::<BTreeSet<usize>>();
        assert!(set(1).intersection(&set(2)).count() < 10, "another thousand of a million");
    }
}
