//! Results of the marshaling experiment: the runs, and their summaries.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

use super::contender::{Contender, DIRECTIONS, Direction};
use super::data::Data;
use super::settings::Settings;
use crate::ladder;
use crate::machine::Machine;
use crate::workload::DataType;

/// One run of one contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Octets of user data in the sequence.
    pub octets: usize,
    /// The IDL type of the elements of the sequence.
    pub data_type: DataType,
    /// The measured direction: encoding or decoding.
    pub direction: Direction,
    /// The round; runs of one type and size in one round followed each other directly.
    pub round: u32,
    /// The engine that did the work.
    pub contender: Contender,
    /// MiB of user data per second.
    pub rate: f64,
}

/// The rounds of one contender, summarised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Octets of user data in the sequence.
    pub octets: usize,
    /// The IDL type of the elements of the sequence.
    pub data_type: DataType,
    /// The measured direction: encoding or decoding.
    pub direction: Direction,
    /// The engine that was measured.
    pub contender: Contender,
    /// MiB of user data per second.
    pub rate: Summary,
    /// The rate as a multiple of the original interpreter's in the same round, if that was run.
    pub over_original: Option<Summary>,
}

/// The number of calls of a rung's methods for one element, as in the paper's profiles of chapter 5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The rung of the ladder that was counted.
    pub contender: Contender,
    /// The IDL type of the element.
    pub data_type: DataType,
    /// The measured direction: encoding or decoding.
    pub direction: Direction,
    /// Calls per element, by method; methods that were never called are left out.
    pub calls: Vec<(String, f64)>,
}

/// The measurements of all rounds with their summaries, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// A summary of each configuration.
    pub rows: Vec<Row>,
    /// Calls of the interpreters' methods.
    pub counted: Vec<Counted>,
    /// The single runs, in the order in which they were made.
    pub measured: Vec<Measurement>,
}

impl Results {
    pub(super) fn from_measurements(machine: Machine, settings: Settings, measured: Vec<Measurement>) -> Self {
        let mut rows = Vec::new();
        for &octets in &settings.sizes {
            for &data_type in &settings.types {
                for direction in DIRECTIONS {
                    let rates = |contender: Contender| {
                        let here = measured.iter().filter(|m| {
                            (m.octets, m.data_type, m.direction, m.contender)
                                == (octets, data_type, direction, contender)
                        });
                        here.map(|m| (m.round, m.rate)).collect::<Vec<(u32, f64)>>()
                    };
                    let original = rates(Contender::ORIGINAL);
                    rows.extend(settings.contenders.iter().filter_map(|&contender| {
                        let rates = rates(contender);
                        let rate = Summary::from_values(rates.iter().map(|(_, rate)| *rate))?;
                        let over_original = Summary::of_ratios(&rates, &original);
                        Some(Row { octets, data_type, direction, contender, rate, over_original })
                    }));
                }
            }
        }
        let counted = count(&settings);
        Self { experiment: "marshal".to_owned(), machine, settings, rows, counted, measured }
    }
}

/// Octets of the sequences whose calls are counted.
const COUNTED_OCTETS: usize = 24_000;
/// The best and the worst case, which the paper's profiles show.
const COUNTED_TYPES: [DataType; 2] = [DataType::Double, DataType::Struct];

fn count(settings: &Settings) -> Vec<Counted> {
    let mut counted = Vec::new();
    for data_type in COUNTED_TYPES.into_iter().filter(|data_type| settings.types.contains(data_type)) {
        let data = Data::new(data_type, COUNTED_OCTETS);
        let elements = (COUNTED_OCTETS / data_type.element_octets()) as f64;
        for &contender in &settings.contenders {
            let Some(rung) = contender.rung() else { continue };
            let (writing, reading) = ladder::calls(rung, &data.node(), &data.memory());
            for (direction, calls) in DIRECTIONS.into_iter().zip([writing, reading]) {
                let called = calls.into_iter().filter(|(_, count)| *count > 0);
                let calls = called
                    .map(|(method, count)| (method.name().to_owned(), rounded(count as f64 / elements)))
                    .collect();
                counted.push(Counted { contender, data_type, direction, calls });
            }
        }
    }
    counted
}

/// Rounded to four decimal places, which is more than tables show.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
