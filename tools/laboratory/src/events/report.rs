//! The samples of event channels as tables, CSV, JSON and pictures, and the goals.

use std::fmt::Write as _;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use spandrel_lab::LabError;
use spandrel_lab::output::Directory;
use spandrel_measure::plot::{Line, Picture, Scale};
use spandrel_measure::stats::Summary;
use spandrel_measure::table::{self, Align, Table};
use spandrel_measure::units::grouped;

use super::contender::Contender;
use super::load::{FanOutOutcome, MemoryOutcome, Outcome, SuppliersOutcome};

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The outcome of one point of a contender in one round, or the reason of its failure.
pub(super) struct Sample {
    pub(super) contender: Contender,
    pub(super) consumers: u32,
    pub(super) round: u32,
    pub(super) outcome: Result<Outcome, String>,
}

impl Serialize for Sample {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Sample", 4)?;
        fields.serialize_field("contender", &self.contender)?;
        fields.serialize_field("consumers", &self.consumers)?;
        fields.serialize_field("round", &self.round)?;
        match &self.outcome {
            Ok(outcome) => fields.serialize_field("outcome", outcome)?,
            Err(reason) => fields.serialize_field("failure", reason)?,
        }
        fields.end()
    }
}

/// The quantities that tables and files have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Quantity {
    Deliveries,
    Processor,
    EventsPerCall,
    P50,
    P99,
    P999,
    PersistentEvents,
    PersistentProcessor,
    ChannelMemory,
    ConsumerMemory,
}

impl Quantity {
    const ALL: [Self; 10] = [
        Self::Deliveries,
        Self::Processor,
        Self::EventsPerCall,
        Self::P50,
        Self::P99,
        Self::P999,
        Self::PersistentEvents,
        Self::PersistentProcessor,
        Self::ChannelMemory,
        Self::ConsumerMemory,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Deliveries => "deliveries",
            Self::Processor => "processor time of the server for each delivery",
            Self::EventsPerCall => "events for each call of a consumer",
            Self::P50 => "latency p50",
            Self::P99 => "latency p99",
            Self::P999 => "latency p99.9",
            Self::PersistentEvents => "acknowledged events",
            Self::PersistentProcessor => "processor time for each acknowledged event",
            Self::ChannelMemory => "memory for each channel",
            Self::ConsumerMemory => "memory for each consumer",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Deliveries | Self::PersistentEvents => "1/s",
            Self::EventsPerCall => "1",
            Self::ChannelMemory | Self::ConsumerMemory => "KiB",
            _ => "µs",
        }
    }

    fn value(self, outcome: &Outcome) -> Option<f64> {
        match outcome {
            Outcome::FanOut(outcome) => self.of_fan_out(outcome),
            Outcome::Suppliers(SuppliersOutcome { events, seconds, processor }) => match self {
                Self::PersistentEvents => Some(*events as f64 / seconds),
                Self::PersistentProcessor => Some(processor * 1e6 / *events as f64),
                _ => None,
            },
            Outcome::Memory(MemoryOutcome { channel, consumer }) => match self {
                Self::ChannelMemory => *channel,
                Self::ConsumerMemory => Some(*consumer),
                _ => None,
            },
        }
    }

    fn of_fan_out(self, outcome: &FanOutOutcome) -> Option<f64> {
        let deliveries = outcome.deliveries as f64;
        match self {
            Self::Deliveries => Some(deliveries / outcome.seconds),
            Self::Processor => Some(outcome.processor * 1e6 / deliveries),
            Self::EventsPerCall => Some(deliveries / outcome.calls as f64),
            Self::P50 => Some(outcome.latency.median),
            Self::P99 => Some(outcome.latency.p99),
            Self::P999 => outcome.p999(),
            _ => None,
        }
    }
}

/// A goal, and the ratio that was measured for it.
#[derive(Serialize)]
struct Goal {
    goal: String,
    /// The median of the ratios of all rounds; none without both contenders.
    ratio: Option<f64>,
    limit: f64,
    /// Whether the ratio is to be at least the limit, or at most.
    is_minimum: bool,
}

impl Goal {
    fn is_met(&self) -> Option<bool> {
        self.ratio.map(|ratio| if self.is_minimum { ratio >= self.limit } else { ratio <= self.limit })
    }
}

/// All samples of a run, with its settings.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) rounds: u32,
    /// The milliseconds of each measurement.
    pub(super) millis: u64,
    pub(super) consumers: Vec<u32>,
    /// Contenders that could not be measured, each with what is missing.
    pub(super) absent: Vec<(Contender, String)>,
    pub(super) samples: Vec<Sample>,
}

impl Report {
    /// The values of a quantity with their rounds. Memory and events on a disk have one number of consumers.
    fn values(&self, contender: Contender, consumers: Option<u32>, quantity: Quantity) -> Vec<(u32, f64)> {
        let is_point = |sample: &&Sample| {
            sample.contender == contender && consumers.is_none_or(|consumers| sample.consumers == consumers)
        };
        let value = |sample: &Sample| Some((sample.round, quantity.value(sample.outcome.as_ref().ok()?)?));
        self.samples.iter().filter(is_point).filter_map(value).collect()
    }

    fn summary(&self, contender: Contender, consumers: Option<u32>, quantity: Quantity) -> Option<Summary> {
        Summary::from_values(self.values(contender, consumers, quantity).into_iter().map(|(_, value)| value))
    }

    /// The ratio of a contender to another one, formed within each round.
    fn ratio(&self, one: Contender, base: Contender, consumers: Option<u32>, quantity: Quantity) -> Option<f64> {
        let [values, base] = [one, base].map(|contender| self.values(contender, consumers, quantity));
        Summary::of_ratios(&values, &base).map(|ratio| ratio.median)
    }

    fn measured(&self, quantity: Quantity) -> impl Iterator<Item = Contender> + '_ {
        Contender::ALL.into_iter().filter(move |contender| !self.values(*contender, None, quantity).is_empty())
    }

    fn fan_out_table(&self) -> Table {
        use Align::{Left, Right};
        let mut table = table::with_columns(&[
            ("service", Left),
            ("consumers", Right),
            ("deliveries/s", Right),
            ("± %", Right),
            ("of c", Right),
            ("CPU µs", Right),
            ("of c", Right),
            ("events/call", Right),
            ("p50 µs", Right),
            ("p99 µs", Right),
            ("p99.9 µs", Right),
        ]);
        for contender in self.measured(Quantity::Deliveries) {
            for consumers in &self.consumers {
                let summary = |quantity| self.summary(contender, Some(*consumers), quantity);
                let Some(deliveries) = summary(Quantity::Deliveries) else { continue };
                let ratio = |quantity| self.ratio(contender, Contender::C, Some(*consumers), quantity);
                table.add_row([
                    contender.name().to_owned(),
                    consumers.to_string(),
                    grouped(deliveries.median),
                    format!("{:.0}", deliveries.spread_percent()),
                    decimals(ratio(Quantity::Deliveries), 2),
                    decimals(summary(Quantity::Processor).map(|it| it.median), 2),
                    decimals(ratio(Quantity::Processor), 2),
                    decimals(summary(Quantity::EventsPerCall).map(|it| it.median), 1),
                    decimals(summary(Quantity::P50).map(|it| it.median), 0),
                    decimals(summary(Quantity::P99).map(|it| it.median), 0),
                    decimals(summary(Quantity::P999).map(|it| it.median), 0),
                ]);
            }
        }
        for (contender, reason) in &self.absent {
            table.add_row([contender.name().to_owned(), format!("absent: {reason}")]);
        }
        table
    }

    fn memory_table(&self) -> Table {
        use Align::{Left, Right};
        let mut table = table::with_columns(&[("memory of", Left), ("KiB/channel", Right), ("KiB/consumer", Right)]);
        for contender in self.measured(Quantity::ConsumerMemory) {
            let median = |quantity| self.summary(contender, None, quantity).map(|it| it.median);
            let cells =
                [Quantity::ChannelMemory, Quantity::ConsumerMemory].map(|quantity| decimals(median(quantity), 1));
            table.add_row([contender.name().to_owned()].into_iter().chain(cells));
        }
        table
    }

    fn disk_table(&self) -> Table {
        use Align::{Left, Right};
        let mut table = table::with_columns(&[
            ("on a disk", Left),
            ("events/s", Right),
            ("± %", Right),
            ("of fdatasync", Right),
            ("CPU µs", Right),
        ]);
        for contender in self.measured(Quantity::PersistentEvents) {
            let summary = |quantity| self.summary(contender, None, quantity);
            let Some(events) = summary(Quantity::PersistentEvents) else { continue };
            table.add_row([
                contender.name().to_owned(),
                grouped(events.median),
                format!("{:.0}", events.spread_percent()),
                decimals(self.ratio(contender, Contender::Fdatasync, None, Quantity::PersistentEvents), 2),
                decimals(summary(Quantity::PersistentProcessor).map(|it| it.median), 1),
            ]);
        }
        table
    }

    fn goals(&self) -> Vec<Goal> {
        use Contender::{C, Event, Fdatasync, Nats, NotificationSequence, OmniEvents, Persistent64};
        let mut goals = Vec::new();
        let mut add = |goal: String, ratio, limit, is_minimum| goals.push(Goal { goal, ratio, limit, is_minimum });
        for consumers in self.consumers.iter().filter(|consumers| **consumers > 1) {
            let ratio = self.ratio(Event, C, Some(*consumers), Quantity::Deliveries);
            add(format!("deliveries of event to {consumers} consumers, of c"), ratio, 0.6, true);
        }
        for consumers in &self.consumers {
            let ratio = self.ratio(Event, OmniEvents, Some(*consumers), Quantity::Deliveries);
            add(format!("deliveries of event to {consumers} consumers, of omnievents"), ratio, 2.0, true);
            let ratio = self.ratio(Event, OmniEvents, Some(*consumers), Quantity::P50);
            add(format!("latency (p50) of event with {consumers} consumers, of omnievents"), ratio, 0.5, false);
            let ratio = self.ratio(NotificationSequence, Nats, Some(*consumers), Quantity::Processor);
            add(format!("processor time of sequences to {consumers} consumers, of nats"), ratio, 2.0, false);
        }
        let ratio = self.ratio(Persistent64, Fdatasync, None, Quantity::PersistentEvents);
        add("persistent events of 64 suppliers, of one fdatasync for each".to_owned(), ratio, 5.0, true);
        goals
    }

    /// The tables, goals, and failures of a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.fan_out_table());
        for (quantity, table) in
            [(Quantity::ConsumerMemory, self.memory_table()), (Quantity::PersistentEvents, self.disk_table())]
        {
            if self.measured(quantity).next().is_some() {
                _ = writeln!(text, "\n{table}");
            }
        }
        text.push('\n');
        for goal in self.goals() {
            let bound = if goal.is_minimum { "at least" } else { "at most" };
            let verdict = match (goal.ratio, goal.is_met()) {
                (Some(ratio), Some(is_met)) => format!("{ratio:.2}: {}", if is_met { "met" } else { "missed" }),
                _ => "not measured".to_owned(),
            };
            _ = writeln!(text, "goal: {}, {bound} {}: {verdict}", goal.goal, goal.limit);
        }
        for sample in &self.samples {
            let point =
                format!("{}, {} consumers, round {}", sample.contender.name(), sample.consumers, sample.round + 1);
            match &sample.outcome {
                Err(reason) => _ = writeln!(text, "failed: {point}: {reason}"),
                Ok(Outcome::FanOut(outcome)) if outcome.disordered > 0 => {
                    _ = writeln!(text, "out of order: {point}: {} events", outcome.disordered);
                }
                Ok(_) => {}
            }
        }
        text
    }

    fn csv(&self) -> String {
        let mut text = "contender,consumers,round,quantity,unit,value\n".to_owned();
        for Sample { contender, consumers, round, outcome } in &self.samples {
            let Ok(outcome) = outcome else { continue };
            for quantity in Quantity::ALL {
                if let Some(value) = quantity.value(outcome) {
                    let (name, unit) = (quantity.name(), quantity.unit());
                    _ = writeln!(text, "{},{consumers},{round},{name},{unit},{value}", contender.name());
                }
            }
        }
        text
    }

    fn picture(&self, title: &str, quantity: Quantity) -> Picture {
        let line = |contender: Contender| {
            let point = |(position, consumers): (usize, &u32)| {
                Some((position as f64, self.summary(contender, Some(*consumers), quantity)?))
            };
            Line {
                label: contender.name().to_owned(),
                points: self.consumers.iter().enumerate().filter_map(point).collect(),
            }
        };
        Picture {
            title: title.to_owned(),
            subtitle: format!("median and range of {} rounds", self.rounds),
            x_title: "consumers".to_owned(),
            x_labels: self.consumers.iter().map(u32::to_string).collect(),
            y_title: quantity.unit().to_owned(),
            scale: Scale::Logarithmic,
            lines: self.measured(quantity).map(line).collect(),
        }
    }

    /// Writes the samples as CSV and JSON, and pictures.
    pub(super) fn write(&self, directory: &mut Directory) -> Result<(), LabError> {
        directory.write("samples.csv", &self.csv())?;
        directory.write_json("samples.json", &WithGoals { report: self, goals: self.goals() })?;
        for (file, title, quantity) in [
            ("deliveries.svg", "Deliveries in a second", Quantity::Deliveries),
            ("processor.svg", "Processor time of the server for each delivery", Quantity::Processor),
            ("latency.svg", "Latency of single events (p50)", Quantity::P50),
        ] {
            directory.write(file, &self.picture(title, quantity).svg())?;
        }
        Ok(())
    }
}

/// A report as its file has it.
#[derive(Serialize)]
struct WithGoals<'r> {
    #[serde(flatten)]
    report: &'r Report,
    goals: Vec<Goal>,
}

fn decimals(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
