//! The marshaling engines under test, and the timed loop.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spandrel_cdr::{Encoder, Wire};

use super::data::{Data, Engine};
use crate::LabError;
use crate::ladder::{self, Rung};

/// An engine that writes and reads sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub struct Contender(Marshaler);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marshaler {
    /// A rung of the ladder.
    Ladder(Rung),
    /// An engine of the ORB.
    Engine(Engine),
    /// A plain copy of the user data: the lower bound.
    Copy,
}

/// The half of marshaling that a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From values to octets.
    Write,
    /// From octets to values, which are dropped.
    Read,
}

impl Direction {
    /// The name that options and series use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// Both, in the order in which they are measured.
pub const DIRECTIONS: [Direction; 2] = [Direction::Write, Direction::Read];

impl Contender {
    /// The first rung, the base of the comparison.
    pub const ORIGINAL: Self = Self(Marshaler::Ladder(Rung::Original));

    /// The rungs of the ladder, the first one first.
    #[must_use]
    pub fn rungs() -> Vec<Self> {
        Rung::ALL.into_iter().map(Marshaler::Ladder).map(Self).collect()
    }

    /// All engines, in the order of the report.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let rungs = Rung::ALL.into_iter().map(Marshaler::Ladder);
        let engines = [Engine::Interpretive, Engine::Adaptive, Engine::Compiled, Engine::Padded].map(Marshaler::Engine);
        rungs.chain(engines).chain([Marshaler::Copy]).map(Self).collect()
    }

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Marshaler::Ladder(rung) => rung.name(),
            Marshaler::Engine(Engine::Compiled) => "compiled",
            Marshaler::Engine(Engine::Interpretive) => "interpretive",
            Marshaler::Engine(Engine::Adaptive) => "adaptive",
            Marshaler::Engine(Engine::Padded) => "padded",
            Marshaler::Copy => "copy",
        }
    }

    /// The rung, if it is one.
    pub(super) fn rung(self) -> Option<Rung> {
        match self.0 {
            Marshaler::Ladder(rung) => Some(rung),
            Marshaler::Engine(_) | Marshaler::Copy => None,
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
        Self::all().into_iter().find(|it| it.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::all().iter().map(|it| it.name()).collect();
            LabError::Settings(format!("`{text}` marshals nothing here; known are {}", names.join(", ")))
        })
    }
}

impl From<Contender> for &'static str {
    fn from(contender: Contender) -> Self {
        contender.name()
    }
}

impl TryFrom<String> for Contender {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

/// One contender with one sequence, ready to run.
pub(super) struct Bench<'d> {
    contender: Contender,
    data: &'d Data,
    node: ladder::Node,
    memory: Vec<u8>,
    scratch: Vec<u8>,
    octets: Vec<u8>,
}

impl<'d> Bench<'d> {
    pub(super) fn new(contender: Contender, data: &'d Data) -> Result<Self, LabError> {
        let (node, memory) = (data.node(), data.memory());
        let mut bench = Self { contender, data, node, memory, scratch: Vec::new(), octets: Vec::new() };
        // Once in each direction: buffers have grown, and the octets to read exist.
        bench.write()?;
        bench.read()?;
        Ok(bench)
    }

    /// MiB of user data per second, over at least this duration and sixteen repetitions.
    pub(super) fn rate(&mut self, direction: Direction, span: Duration) -> Result<f64, LabError> {
        let start = Instant::now();
        let mut turns = 0u32;
        loop {
            // The clock is read so rarely that it does not matter.
            for _ in 0..16 {
                match direction {
                    Direction::Write => self.write()?,
                    Direction::Read => self.read()?,
                }
            }
            turns += 16;
            let elapsed = start.elapsed();
            if elapsed >= span {
                let octets = self.memory.len() as f64 * f64::from(turns);
                return Ok(octets / elapsed.as_secs_f64() / f64::from(1 << 20));
            }
        }
    }

    /// Writes or reads the sequence that often.
    pub(super) fn repeat(&mut self, direction: Direction, turns: u64) -> Result<(), LabError> {
        (0..turns).try_for_each(|_| match direction {
            Direction::Write => self.write(),
            Direction::Read => self.read(),
        })
    }

    fn write(&mut self) -> Result<(), LabError> {
        match self.contender.0 {
            Marshaler::Ladder(rung) => ladder::encode(rung, &self.node, black_box(&self.memory), &mut self.octets),
            Marshaler::Engine(engine) => self.write_by(engine)?,
            Marshaler::Copy => {
                self.octets.clear();
                self.octets.extend_from_slice(black_box(&self.memory));
            }
        }
        black_box(&self.octets);
        Ok(())
    }

    fn write_by(&mut self, engine: Engine) -> Result<(), LabError> {
        let mut out = Encoder::reusing(std::mem::take(&mut self.scratch), Wire::default());
        let written = black_box(self.data).encode(engine, &mut out);
        self.octets.clear();
        for part in out.parts() {
            self.octets.extend_from_slice(&part);
        }
        self.scratch = out.into_scratch();
        written.map_err(unmarshalable)
    }

    fn read(&mut self) -> Result<(), LabError> {
        let octets = black_box(self.octets.as_slice());
        match self.contender.0 {
            Marshaler::Ladder(rung) => drop(black_box(ladder::decode(rung, &self.node, octets)?)),
            Marshaler::Engine(engine) => self.data.decode(engine, octets).map_err(unmarshalable)?,
            Marshaler::Copy => drop(black_box(octets.to_vec())),
        }
        Ok(())
    }
}

fn unmarshalable(error: spandrel_cdr::CdrError) -> LabError {
    LabError::Settings(format!("the sequence cannot be marshaled: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::DataType;

    #[test]
    fn every_contender_writes_and_reads_every_type() {
        for data_type in DataType::ALL {
            let data = Data::new(data_type, 1_000);
            for contender in Contender::all() {
                let mut bench = Bench::new(contender, &data).unwrap();
                for direction in DIRECTIONS {
                    assert!(bench.rate(direction, Duration::from_micros(10)).unwrap() > 0.0, "{contender} {data_type}");
                }
            }
        }
    }

    #[test]
    fn names_are_parsed() {
        for contender in Contender::all() {
            assert_eq!(contender.name().parse::<Contender>().unwrap(), contender);
        }
        assert!("swift".parse::<Contender>().unwrap_err().to_string().contains("split-decoding"));
    }
}
