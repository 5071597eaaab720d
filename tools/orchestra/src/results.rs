//! Results: lines of JSON, appended and synchronized after each sample, so that an interrupted run goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};
use spandrel_measure::{Times, histogram::Histogram};

use crate::plan::Plan;

/// A line of results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub enum Record {
    /// The plan: the first line, and again after an interruption.
    Plan {
        /// The time of the start, in seconds since 1970.
        at: f64,
        /// The plan as it was read.
        plan: Box<Plan>,
    },
    /// A machine, and the versions of its commands.
    Host(Host),
    /// A sample that was taken.
    Sample(Box<Sample>),
    /// A sample that could not be taken.
    Failure(Failure),
}

/// A machine of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name in the naming service.
    pub host: String,
    /// The part of the machine: `server` or `client`.
    pub role: String,
    /// The machine, as its agent describes it.
    pub properties: BTreeMap<String, String>,
    /// The versions of its commands; empty for programs that print none.
    pub versions: BTreeMap<String, String>,
}

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Seconds in user mode.
    pub user: f64,
    /// Seconds in the kernel.
    pub system: f64,
}

impl Cpu {
    /// User and system time together.
    #[must_use]
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// Latencies of the requests of a sample, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The mean of all latencies.
    pub mean: f64,
    /// Half of the latencies are lower.
    pub p50: f64,
    /// Nine in ten are lower.
    pub p90: f64,
    /// 99 in 100 are lower.
    pub p99: f64,
    /// 999 in 1,000 are lower.
    pub p999: f64,
    /// The highest of all latencies.
    pub highest: f64,
}

impl Latencies {
    /// Those of a histogram of nanoseconds; all zero without a request.
    pub(crate) fn of(nanos: &Histogram) -> Self {
        let Times { median, p90, p99, p999, max, mean, .. } =
            Times::of(nanos, Duration::from_secs(1)).unwrap_or_default();
        Self { mean, p50: median, p90, p99, p999, highest: max }
    }
}

/// The measurement of one server under one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The server and its configuration, as the plan names them.
    pub target: String,
    /// The load, as the plan names it.
    pub load: String,
    /// Its number among those of the server and load.
    pub round: u32,
    /// Seconds since 1970. It is the same for samples whose slices alternated.
    pub at: f64,
    /// Seconds from the beginning of the load to its last answer; the sum of those of its slices.
    pub elapsed: f64,
    /// Requests that were made.
    pub requests: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed, of any kind.
    pub failed: u64,
    /// Octets of the answers received.
    pub octets: u64,
    /// The failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// Processor time during the load by scope: `process`, `children`, `tree`, `group`, `machine`.
    pub cpu: BTreeMap<String, Cpu>,
    /// Octets of resident memory after the load.
    pub resident: u64,
    /// The highest octets of resident memory of the first process.
    pub peak_resident: u64,
    /// Voluntary context switches of the threads that exist after the load.
    pub voluntary_switches: u64,
    /// Involuntary context switches of those threads.
    pub involuntary_switches: u64,
    /// Processes after the load.
    pub processes: u32,
    /// The latencies of the answered requests, all clients together.
    pub latency: Latencies,
    /// Live samples during the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveSample>,
}

/// The use of resources at one time of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveSample {
    /// Seconds since the load began.
    pub after: f64,
    /// The server's processor time since it was started.
    pub cpu: f64,
    /// Octets of its resident memory.
    pub resident: u64,
    /// The processes of the server at that time.
    pub processes: u32,
    /// The threads of its first process.
    pub threads: usize,
}

impl Sample {
    /// The processor time of the server: that of its control group, or else of its process tree.
    #[must_use]
    pub fn server_cpu(&self) -> Option<Cpu> {
        self.cpu.get("group").or_else(|| self.cpu.get("tree")).copied()
    }

    /// The processor time that the whole machine used during the load.
    #[must_use]
    pub fn machine_cpu(&self) -> Option<Cpu> {
        self.cpu.get("machine").copied()
    }
}

/// A sample that could not be taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The server and its configuration, as the plan names them.
    pub target: String,
    /// The load, as the plan names it.
    pub load: String,
    /// The number of the sample.
    pub round: u32,
    /// The time of the failure, in seconds since 1970.
    pub at: f64,
    /// The host of the agent that could not be reached, if that was the reason.
    pub lost_agent: Option<String>,
    /// The reason as text for people.
    pub reason: String,
}

/// The beginning of each line.
const BEGINNING: &[u8] = b"{\"record\":\"";

/// The present time in seconds since 1970.
#[must_use]
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The records of a file, sorted by their kind.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The plan, as it was last carried out.
    pub plan: Option<Plan>,
    /// The versions that the plan had whenever it was carried out, by tool: several if a tool was replaced between.
    pub versions: BTreeMap<String, Vec<String>>,
    /// The machines that took part.
    pub hosts: Vec<Host>,
    /// The samples in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// The samples that could not be taken.
    pub failures: Vec<Failure>,
}

impl Results {
    /// Reads a file. A last line without its end is left out: its writer was interrupted.
    ///
    /// # Errors
    /// A file that cannot be read, or has other lines.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(file).with_context(|| format!("cannot read the results {}", file.display()))?;
        Self::parse(&text)
            .map(|(results, _)| results)
            .with_context(|| format!("cannot use the results {}", file.display()))
    }

    /// The records, and the octets that they take.
    fn parse(text: &[u8]) -> anyhow::Result<(Self, usize)> {
        let length = text.iter().rposition(|octet| *octet == b'\n').map_or(0, |last| last + 1);
        // Only a line that a supervisor has begun may be cut off; the file may be another one, given by mistake.
        let rest = &text[length..];
        if !rest.starts_with(&BEGINNING[..rest.len().min(BEGINNING.len())]) {
            bail!("its last line is no record");
        }
        let mut results = Self::default();
        for (index, line) in text[..length].split(|octet| *octet == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let record = serde_json::from_slice(line);
            results.add(record.map_err(|error| malformed(index + 1, &error))?);
        }
        Ok((results, length))
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Plan { plan, .. } => {
                for (tool, version) in &plan.versions {
                    let versions_of_tool = self.versions.entry(tool.clone()).or_default();
                    if !versions_of_tool.contains(version) {
                        versions_of_tool.push(version.clone());
                    }
                }
                self.plan = Some(*plan);
            }
            Record::Host(host) => {
                self.hosts.retain(|known| (&known.host, &known.role) != (&host.host, &host.role));
                self.hosts.push(host);
            }
            Record::Sample(sample) => self.samples.push(*sample),
            Record::Failure(failure) => self.failures.push(failure),
        }
    }

    /// The samples that were taken: server, load and round.
    #[must_use]
    pub fn done(&self) -> BTreeSet<(String, String, u32)> {
        let key = |sample: &Sample| (sample.target.clone(), sample.load.clone(), sample.round);
        self.samples.iter().map(key).collect()
    }
}

/// The error of a line that is no record.
fn malformed(number: usize, error: &serde_json::Error) -> anyhow::Error {
    // The parser tells the column of what it takes for line 1.
    let (text, column) = (error.to_string(), error.column());
    let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
    anyhow!("line {number} is no record (column {column}: {reason}); if it is removed, its sample is taken again")
}

/// A file of results to which records are appended while a plan is carried out.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    file: File,
}

impl ResultsFile {
    /// Opens the results of a plan, or begins them, and locks the file. Without samples it may be that of another plan.
    ///
    /// # Errors
    /// A file that cannot be written, that another supervisor writes, or that has the results of another plan.
    pub fn open(path: &Path, plan: &Plan) -> anyhow::Result<(Self, Results)> {
        let unusable = || format!("cannot use the results {} (--results)", path.display());
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).with_context(unusable)?;
        // A device may have no end.
        if !file.metadata().with_context(unusable)?.is_file() {
            return Err(anyhow!("it is no regular file")).with_context(unusable);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(anyhow!("another supervisor writes them")).with_context(unusable);
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(unusable),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(unusable)?;
        let (mut results, mut length) = Results::parse(&text).with_context(unusable)?;
        if let Some(earlier) = &results.plan {
            // More samples and comparisons may be added to a plan. Its texts for the report are no part of the experiment.
            let same = Plan {
                samples: plan.samples,
                base: plan.base.clone(),
                pairs: plan.pairs.clone(),
                notes: plan.notes.clone(),
                versions: plan.versions.clone(),
                ..earlier.clone()
            };
            if same != *plan && results.samples.is_empty() {
                (results, length) = (Results::default(), 0); // as after a run of a plan that was wrong
            } else if same != *plan {
                bail!("{} has the results of another plan: give another file (--results)", path.display());
            }
        }
        file.set_len(length as u64).with_context(unusable)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).with_context(unusable)?;
        let mut opened = Self { path: path.to_owned(), file };
        opened.append(&Record::Plan { at: now(), plan: Box::new(plan.clone()) })?;
        Ok((opened, results))
    }

    /// Appends a record. It is on the disk when this returns.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&mut self, record: &Record) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write the results {}", self.path.display()))
    }
}
