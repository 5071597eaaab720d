//! The inventory of the papers' figures and tables, which the source tree keeps as TOML.

use std::fmt;

use serde::{Deserialize, Serialize};
use spandrel_lab::bench::demux;
use spandrel_lab::bench::footprint::Optimisation;
use spandrel_lab::scalability;
use spandrel_lab::workload::{CallKind, DataType};
use spandrel_measure::units::Octets;

use crate::folder::Form;
use crate::measure;
use crate::point::{Link, Point, StackProtocol};

/// The texts, a paper each, and what goes beyond their figures.
const TEXTS: [&str; 6] = [
    include_str!("../inventory/p0.toml"),
    include_str!("../inventory/p1.toml"),
    include_str!("../inventory/p2.toml"),
    include_str!("../inventory/p3.toml"),
    include_str!("../inventory/p4.toml"),
    include_str!("../inventory/mechanisms.toml"),
];

/// The figures and tables of the papers, with the experiments that repeat them.
#[derive(Clone, Debug)]
pub struct Inventory {
    rows: Vec<Row>,
}

/// The text of one paper's inventory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    row: Vec<Row>,
}

/// A figure or table of a paper, with the experiment that repeats it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Row {
    /// The paper, and the number of the caption: `p1.fig2.3`, `p0.table1`; or `m` with the number of the paper for an
    /// experiment without a caption: `m3.1`.
    pub name: String,
    /// The section in which the paper prints it.
    pub section: String,
    /// The content of the figure or table, in words of this project.
    pub title: String,
    /// Whether it can be repeated here.
    pub state: State,
    /// The reason why it does not run; absent if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The respect in which the run differs from the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The experiment and its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// The series of its points that it shows: names, or their parts around `*`; a part that ends with a space is a
    /// beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// The ratios that the paper reports, for the comparison in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper: Vec<PaperRatio>,
}

/// Whether a figure or table can be repeated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// `lab run` measures it.
    Runs,
    /// A program of another project is needed, and is not among the peers.
    NeedsPeer,
    /// The mechanism or its experiment is not built yet.
    NotBuilt,
    /// Its subject is gone, or nothing was measured: a drawing, a listing, a definition.
    NoCounterpart,
}

impl State {
    /// All states in the order of summaries.
    pub const ALL: [Self; 4] = [Self::Runs, Self::NeedsPeer, Self::NotBuilt, Self::NoCounterpart];

    /// The state in words, for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs here",
            Self::NeedsPeer => "needs a peer",
            Self::NotBuilt => "not built yet",
            Self::NoCounterpart => "no counterpart",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A ratio of two figures, as the paper reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PaperRatio {
    /// The two figures in words.
    pub title: String,
    /// The value that the paper states, or that its figures give.
    pub ratio: f64,
    /// The series of the first figure: its best value among the points of the row.
    pub numerator: String,
    /// Part of the names of the points of the first figure; all points of the row without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numerator_at: Option<String>,
    /// The series of the second figure.
    pub denominator: String,
    /// Part of the names of the points of the second figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denominator_at: Option<String>,
    /// The conclusion of the paper from the ratio, for one of its main findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The least ratio of today with which the finding still holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The greatest ratio of today with which the finding still holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// An experiment with lists of parameters: a point for each combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Measure {
    /// Floods of typed data (`spandrel ttcp`).
    Throughput {
        /// Networks between sender and receiver.
        links: Vec<Link>,
        /// Sizes of the sockets' queues.
        queues: Vec<String>,
        /// Element types of the sequences.
        types: Vec<DataType>,
        /// Sizes of the sender's buffers.
        sizes: Vec<String>,
    },
    /// Floods as datagrams, beside the same over connections.
    Datagrams {
        /// Element types of the sequences.
        types: Vec<DataType>,
        /// Sizes of the sender's buffers.
        sizes: Vec<String>,
    },
    /// Calls to many servants (`spandrel latency --servants`).
    Servants {
        /// Numbers of servants of one server.
        servants: Vec<u32>,
        /// Orders in which they are called.
        algorithms: Vec<scalability::Algorithm>,
        /// One-way and two-way calls.
        calls: Vec<CallKind>,
        /// Parameters of the calls.
        cases: Vec<String>,
    },
    /// Calls to one object, and plain sockets (`spandrel latency`).
    Calls {
        /// Parameters of the calls.
        cases: Vec<String>,
    },
    /// The ladder of engines, in memory (`spandrel bench marshal`).
    Marshaling {
        /// Element types of the sequences.
        types: Vec<DataType>,
        /// Sizes of the sequences.
        sizes: Vec<String>,
        /// Whether floods over TCP, marshaled by the same engines, stand beside them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        over_tcp: bool,
    },
    /// Look-ups of objects and operations (`spandrel bench demux`).
    Lookups {
        /// Numbers of objects in the table.
        objects: Vec<u32>,
        /// Numbers of operations of their interface.
        operations: Vec<u32>,
        /// Orders in which requests come.
        algorithms: Vec<demux::Algorithm>,
    },
    /// The times of stubs and skeletons by engine (`spandrel bench footprint --parts latency`).
    Stubs,
    /// The sizes of stubs, skeletons and the functions that write and read each type.
    Sizes {
        /// Goals for which the compiler optimises.
        optimisations: Vec<Optimisation>,
        /// Whether the times of stubs and skeletons stand beside them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_times: bool,
    },
    /// Calls with and without the predictions of client and server (`spandrel bench demux --calls`).
    Predictions,
    /// Counts of the definitions in the IDL of services.
    Definitions,
    /// Parallel protocol stacks (`spandrel bench stacks`).
    Stacks {
        /// Transport protocols of the stacks.
        protocols: Vec<StackProtocol>,
        /// Numbers of processing elements.
        threads: Vec<usize>,
    },
    /// Servers of every architecture under the load of paper 004.
    Servers {
        /// Architectures that the row shows; all are measured together.
        servers: Vec<String>,
    },
    /// The ladder of engines under callgrind.
    LadderProfile {
        /// Element types of the sequences.
        types: Vec<DataType>,
        /// Sizes of the sequences.
        sizes: Vec<String>,
    },
    /// Floods of typed data under callgrind and strace.
    FloodProfile {
        /// Element types of the sequences.
        types: Vec<DataType>,
        /// Sizes of the sender's buffers.
        sizes: Vec<String>,
    },
    /// Calls to servants under callgrind and strace.
    CallProfile {
        /// Interfaces by which requests are made and served.
        styles: Vec<scalability::Style>,
        /// One-way and two-way calls.
        calls: Vec<CallKind>,
        /// Orders in which servants are called.
        algorithms: Vec<scalability::Algorithm>,
        /// Parameters of the calls.
        cases: Vec<String>,
        /// Numbers of servants of one server.
        servants: Vec<u32>,
    },
}

/// A name that selects no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectError(String);

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectError {}

impl Inventory {
    /// The inventory of this build.
    ///
    /// # Panics
    /// If its text is not valid, which a test excludes.
    #[must_use]
    pub fn of_the_papers() -> Self {
        let parse = |text: &str| toml::from_str::<Paper>(text).unwrap_or_else(|error| panic!("inventory: {error}"));
        Self { rows: TEXTS.into_iter().flat_map(|text| parse(text).row).collect() }
    }

    /// All rows, by paper and in the order of their captions.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of a name (`p1.fig2.9`), a chapter (`p1.2`), a paper (`p1`), or `all`.
    ///
    /// # Errors
    /// If there are none: with the most similar name.
    pub fn select(&self, text: &str) -> Result<Vec<&Row>, SelectError> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.is_selected_by(text)).collect();
        if !rows.is_empty() {
            return Ok(rows);
        }
        let names = self.rows.iter().map(|row| row.name.as_str());
        let similar = spandrel_error::closest(text, names).map(|name| format!("; did you mean `{name}`?"));
        Err(SelectError(format!(
            "no figure, table, chapter or paper is named `{text}`{}",
            similar.unwrap_or_else(|| "; `lab list` has all names".to_owned())
        )))
    }
}

impl Row {
    /// The name of its paper: `p1`.
    #[must_use]
    pub fn paper_name(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The name of its chapter, for papers whose captions have the chapter's number (`p1.2`, `p4.A`); otherwise that of the
    /// paper.
    #[must_use]
    pub fn chapter(&self) -> String {
        let mut parts = self.name.split('.');
        let (paper, caption) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let number = caption.trim_start_matches("fig").trim_start_matches("table");
        if parts.next().is_some() { format!("{paper}.{number}") } else { paper.to_owned() }
    }

    fn is_selected_by(&self, text: &str) -> bool {
        text == "all" || text == self.name || text == self.paper_name() || text == self.chapter()
    }

    /// The points that it shows; none unless it runs here.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        self.measure.as_ref().filter(|_| self.state == State::Runs).map(Measure::points).unwrap_or_default()
    }

    /// The points of its short form: one value of each parameter.
    #[must_use]
    pub fn short_points(&self) -> Vec<Point> {
        let measure = self.measure.as_ref().filter(|_| self.state == State::Runs);
        measure.map(|measure| measure.short().points()).unwrap_or_default()
    }

    /// Minutes of a full run at most, with all points that it shares with other rows; 0 if it does not run here.
    #[must_use]
    pub fn minutes(&self) -> u32 {
        let seconds: f64 = self.points().iter().map(|point| measure::planned_seconds(point, Form::Full)).sum();
        (seconds / 60.0).ceil() as u32
    }

    /// The command that measures it; none for a row that does not run.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        (self.state == State::Runs).then(|| format!("spandrel lab run {}", self.name))
    }

    /// Whether it shows the series of this name.
    #[must_use]
    pub fn shows(&self, series: &str) -> bool {
        self.series.iter().any(|pattern| is_match(pattern, series))
    }

    /// Whether it shows a series of this contender, whose names begin with the contender's.
    #[must_use]
    pub fn shows_contender(&self, contender: &str) -> bool {
        self.shows(contender) || self.series.iter().any(|pattern| pattern.starts_with(contender))
    }
}

/// Whether a name is the pattern's: equal, with anything in place of `*`, and behind a pattern that ends with a space.
fn is_match(pattern: &str, name: &str) -> bool {
    if pattern.ends_with(' ') {
        return name.starts_with(pattern);
    }
    match pattern.split_once('*') {
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
        None => pattern == name,
    }
}

impl Measure {
    /// A point for each combination of parameters.
    fn points(&self) -> Vec<Point> {
        let octets = |text: &String| text.parse::<Octets>().map_or(0, |octets| octets.0 as usize);
        let mut points = Vec::new();
        match self {
            Self::Throughput { links, queues, types, sizes } => {
                for (link, queue) in pairs(links, queues) {
                    points.extend(pairs(types, sizes).map(|(data, size)| Point::Throughput {
                        link: *link,
                        queue_octets: octets(queue),
                        data: *data,
                        buffer_octets: octets(size),
                    }));
                }
            }
            Self::Datagrams { types, sizes } => points.extend(
                pairs(types, sizes).map(|(data, size)| Point::Datagrams { data: *data, buffer_octets: octets(size) }),
            ),
            Self::Servants { servants, algorithms, calls, cases } => {
                for (call, algorithm) in pairs(calls, algorithms) {
                    points.extend(pairs(cases, servants).map(|(case, servants)| Point::Servants {
                        call: *call,
                        algorithm: *algorithm,
                        case: case.clone(),
                        servants: *servants,
                    }));
                }
            }
            Self::Calls { cases } => points.extend(cases.iter().map(|case| Point::Calls { case: case.clone() })),
            Self::Marshaling { types, sizes, over_tcp } => {
                points.extend(
                    pairs(types, sizes).map(|(data, size)| Point::Marshaling { data: *data, octets: octets(size) }),
                );
                if *over_tcp {
                    let (links, queues) = (vec![Link::Loopback], vec!["64K".to_owned()]);
                    let floods = Self::Throughput { links, queues, types: types.clone(), sizes: sizes.clone() };
                    points.extend(floods.points());
                }
            }
            Self::Predictions => points.push(Point::Predictions),
            Self::Lookups { objects, operations, algorithms } => {
                for algorithm in algorithms {
                    points.extend(pairs(objects, operations).map(|(objects, operations)| Point::Lookups {
                        algorithm: *algorithm,
                        objects: *objects,
                        operations: *operations,
                    }));
                }
            }
            Self::Stubs => points.push(Point::Stubs),
            Self::Sizes { optimisations, with_times } => {
                points.extend(with_times.then_some(Point::Stubs));
                points.extend(optimisations.iter().map(|optimisation| Point::Sizes { optimisation: *optimisation }));
            }
            Self::Definitions => points.push(Point::Definitions),
            Self::Stacks { protocols, threads } => points.extend(
                pairs(protocols, threads)
                    .map(|(protocol, threads)| Point::Stacks { protocol: *protocol, threads: *threads }),
            ),
            Self::Servers { .. } => points.push(Point::Servers),
            Self::LadderProfile { types, sizes } => points.extend(
                pairs(types, sizes).map(|(data, size)| Point::LadderProfile { data: *data, octets: octets(size) }),
            ),
            Self::FloodProfile { types, sizes } => points.extend(
                pairs(types, sizes)
                    .map(|(data, size)| Point::FloodProfile { data: *data, buffer_octets: octets(size) }),
            ),
            Self::CallProfile { styles, calls, algorithms, cases, servants } => {
                for ((style, call), algorithm) in
                    pairs(styles, calls).flat_map(|pair| algorithms.iter().map(move |algorithm| (pair, algorithm)))
                {
                    points.extend(pairs(cases, servants).map(|(case, servants)| Point::CallProfile {
                        style: *style,
                        call: *call,
                        algorithm: *algorithm,
                        case: case.clone(),
                        servants: *servants,
                    }));
                }
            }
        }
        points
    }

    /// The same with one value of each parameter.
    fn short(&self) -> Self {
        fn last<T: Clone>(values: &[T]) -> Vec<T> {
            values.last().cloned().into_iter().collect()
        }
        fn first<T: Clone>(values: &[T]) -> Vec<T> {
            values.first().cloned().into_iter().collect()
        }
        match self {
            Self::Throughput { links, queues, types, sizes } => Self::Throughput {
                links: last(links),
                queues: first(queues),
                types: last(types),
                sizes: sizes.iter().filter(|size| *size == "8K").cloned().collect(),
            },
            Self::Datagrams { types, .. } => Self::Datagrams { types: last(types), sizes: vec!["1K".to_owned()] },
            Self::Servants { servants, algorithms, calls, cases } => Self::Servants {
                // With more than one, the order of calls matters.
                servants: servants
                    .iter()
                    .copied()
                    .find(|number| *number > 1)
                    .map_or_else(|| first(servants), |one| vec![one]),
                algorithms: algorithms.clone(),
                calls: first(calls),
                cases: first(cases),
            },
            // The size of the shortest floods, so that the points are shared.
            Self::Marshaling { types, over_tcp, .. } => {
                Self::Marshaling { types: last(types), sizes: vec!["8K".to_owned()], over_tcp: *over_tcp }
            }
            Self::Lookups { objects, operations, algorithms } => {
                Self::Lookups { objects: last(objects), operations: last(operations), algorithms: algorithms.clone() }
            }
            Self::Sizes { optimisations, with_times } => {
                Self::Sizes { optimisations: first(optimisations), with_times: *with_times }
            }
            Self::Stacks { protocols, .. } => Self::Stacks { protocols: first(protocols), threads: vec![2] },
            Self::LadderProfile { types, .. } => {
                Self::LadderProfile { types: last(types), sizes: vec!["1K".to_owned()] }
            }
            Self::FloodProfile { types, .. } => Self::FloodProfile { types: last(types), sizes: vec!["1K".to_owned()] },
            // Few elements, since each takes some fifty times as long under a profiler.
            Self::CallProfile { styles, .. } => Self::CallProfile {
                styles: first(styles),
                calls: vec![CallKind::OneWay],
                algorithms: vec![scalability::Algorithm::RoundRobin],
                cases: vec!["octets-16".to_owned()],
                servants: vec![2],
            },
            Self::Calls { .. } | Self::Stubs | Self::Predictions | Self::Definitions | Self::Servers { .. } => {
                self.clone()
            }
        }
    }
}

/// Each of the first with each of the second.
fn pairs<'a, A, B>(first: &'a [A], second: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    first.iter().flat_map(move |one| second.iter().map(move |other| (one, other)))
}
