//! Where the time of a call goes: the two processes of an experiment under callgrind and strace, and sampled.
//!
//! Each experiment runs twice under a tool, with few calls and with more; only the difference counts, so that start and
//! end of the processes are in no figure. Sampling, by the process itself, takes one run with many calls.

pub mod callgrind;
pub mod layers;
pub mod sampling;
pub mod strace;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spandrel_lab::LabError;
use spandrel_lab::child_command::launch;
use spandrel_lab::peer::child::{ChildKind, ChildRole};

use callgrind::{Cost, Profile};
use layers::{Layer, LayerCosts};
use sampling::Samples;
use strace::{Purpose, Trace};

use crate::series::{Measured, Series, Unit};

/// The functions that a table lists: the costliest ones.
const FUNCTIONS: usize = 12;
/// The smallest share of a function in a table, in percent.
const LEAST_SHARE: f64 = 0.5;
/// The longest name of a function in a table, in letters.
const NAME_LETTERS: usize = 120;

/// Why a program without names of functions has no profile.
const WITHOUT_SYMBOLS: &str = "its program has no symbols: build it with CARGO_PROFILE_RELEASE_STRIP=none";

/// A program that watches a process, or the process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Callgrind,
    Strace,
    Sampling,
}

impl Tool {
    fn program(self) -> &'static str {
        match self {
            Self::Callgrind => "valgrind",
            Self::Strace => "strace",
            Self::Sampling => "sampling",
        }
    }

    /// The arguments before the program that it runs; its results go to the file.
    fn arguments(self, file: &str) -> Vec<String> {
        match self {
            Self::Callgrind => vec![
                "--tool=callgrind".to_owned(),
                "--quiet".to_owned(),
                "--fair-sched=try".to_owned(),
                "--collect-systime=nsec".to_owned(),
                format!("--callgrind-out-file={file}"),
            ],
            Self::Strace => ["-f", "-qq", "-s", "0", "-o", file].map(str::to_owned).to_vec(),
            Self::Sampling => Vec::new(),
        }
    }
}

/// One of the two processes of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// How the processes of an experiment start: under a tool, with a file of results for each.
#[derive(Debug)]
pub(crate) struct Start<'f> {
    tool: Option<Tool>,
    folder: &'f Path,
}

impl Start<'_> {
    fn file(&self, side: Side) -> PathBuf {
        self.folder.join(side.name())
    }

    /// The command of a process of this program.
    pub(crate) fn launch(&self, role: &ChildRole) -> Command {
        let side = match role.kind {
            ChildKind::Receive(_) | ChildKind::ServantsServer { .. } => Side::Receiver,
            _ => Side::Sender,
        };
        let mut inner = launch(role);
        let Some(tool) = self.tool else { return inner };
        if tool == Tool::Sampling {
            sampling::sample_into(&mut inner, &self.file(side));
            return inner;
        }
        let mut command = Command::new(tool.program());
        command.args(tool.arguments(&self.file(side).to_string_lossy()));
        command.arg(inner.get_program()).args(inner.get_args());
        command
    }

    /// A folder with programs of the same names that start those of another folder under the tool: the first one is the
    /// receiver's.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn programs(&self, folder: &Path, names: [&str; 2]) -> Result<PathBuf, LabError> {
        let Some(tool) = self.tool else { return Ok(folder.to_owned()) };
        let here = self.folder.join("programs");
        let write = || {
            fs::create_dir_all(&here)?;
            let folder = fs::canonicalize(folder)?;
            for (name, side) in names.into_iter().zip([Side::Receiver, Side::Sender]) {
                let words = tool.arguments(&quoted(&self.file(side))).join(" ");
                let script =
                    format!("#!/bin/sh\nexec {} {words} {} \"$@\"\n", tool.program(), quoted(&folder.join(name)));
                let path = here.join(name);
                // A new file: a running script cannot be overwritten.
                _ = fs::remove_file(&path);
                let mut file = File::create(&path)?;
                file.write_all(script.as_bytes())?;
                file.set_permissions(fs::Permissions::from_mode(0o700))?;
            }
            Ok(())
        };
        write().map_err(io_error("write scripts that start a profiler"))?;
        Ok(here)
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// The calls of the two runs under a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// Calls of the shorter run.
    pub(crate) few: u64,
    /// Calls of the longer run.
    pub(crate) more: u64,
    /// Calls of the run that is sampled, for processes of this program.
    pub(crate) sampled: Option<u64>,
}

/// An experiment with two processes: makes that many calls, with processes that start in this way, until both have ended.
pub(crate) type Experiment<'e> = &'e dyn Fn(&Start<'_>, u64) -> Result<(), LabError>;

/// Adds the profiles of both processes of an experiment, whose series begin with the name of its contender. A contender
/// whose tools or symbols are missing is absent, with the reason.
///
/// # Errors
/// If the experiment fails, or the results of a tool cannot be read.
pub(crate) fn measure(
    measured: &mut Measured,
    contender: &str,
    calls: Calls,
    experiment: Experiment<'_>,
) -> Result<(), LabError> {
    let folder = tempfile::tempdir().map_err(io_error("make a folder for profiles"))?;
    let run = |tool: Tool, count: u64| {
        let start = Start { tool: Some(tool), folder: folder.path() };
        experiment(&start, count)?;
        Side::BOTH
            .map(|side| read(&start.file(side), side, tool))
            .into_iter()
            .collect::<Result<Vec<String>, LabError>>()
    };
    if let Some(count) = calls.sampled {
        for (side, text) in Side::BOTH.into_iter().zip(run(Tool::Sampling, count)?) {
            let name = format!("{contender} {}", side.name());
            add_samples(measured, &name, &Samples::parse(&text).map_err(refused)?, count);
        }
    }
    if let Some(reason) = missing_tool() {
        measured.absent.push((contender.to_owned(), reason));
        return Ok(());
    }
    let more = (calls.more - calls.few) as f64;
    let profiles = |count| {
        let texts = run(Tool::Callgrind, count)?;
        let parse = |text: &String| Profile::parse(text).map_err(refused);
        texts.iter().map(parse).collect::<Result<Vec<Profile>, LabError>>()
    };
    let (few, many) = (profiles(calls.few)?, profiles(calls.more)?);
    let traces = |count| Ok::<_, LabError>(run(Tool::Strace, count)?.iter().map(|text| Trace::parse(text)).collect());
    let (few_traced, many_traced): (Vec<Trace>, Vec<Trace>) = (traces(calls.few)?, traces(calls.more)?);
    for (index, side) in Side::BOTH.into_iter().enumerate() {
        let name = format!("{contender} {}", side.name());
        let profile = many[index].minus(&few[index]);
        if has_no_names(&profile) {
            measured.absent.push((name, WITHOUT_SYMBOLS.to_owned()));
            continue;
        }
        add_profile(measured, &name, &profile, more);
        add_trace(measured, &name, &many_traced[index].minus(&few_traced[index]), more);
    }
    Ok(())
}

/// The tool that cannot be started, if there is one.
fn missing_tool() -> Option<String> {
    let is_here = |tool: &Tool| {
        let mut command = Command::new(tool.program());
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let tool = [Tool::Callgrind, Tool::Strace].into_iter().find(|tool| !is_here(tool))?;
    Some(format!("{} is not installed", tool.program()))
}

fn read(file: &Path, side: Side, tool: Tool) -> Result<String, LabError> {
    let limit = match tool {
        Tool::Callgrind => callgrind::MAX_OCTETS,
        Tool::Strace | Tool::Sampling => strace::MAX_OCTETS,
    };
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(limit + 1).read_to_end(&mut text)).and_then(|octets| {
        let is_whole = octets as u64 <= limit;
        if is_whole { fs::remove_file(file) } else { Err(io::Error::other("it is too long")) }
    });
    read.map_err(io_error(format!("read what {} wrote about the {}", tool.program(), side.name())))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The failure of a system call.
fn io_error(action: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
    |cause| LabError::Io { action: action.into(), cause }
}

fn refused(detail: String) -> LabError {
    LabError::Peer { role: "profiler".to_owned(), detail }
}

/// Whether most instructions are in functions without names.
fn has_no_names(profile: &Profile) -> bool {
    let own = profile.own.iter().filter(|(function, _)| function.name.starts_with("0x") || function.name == "???");
    let without: f64 = own.map(|(_, cost)| cost.instructions).sum();
    without > profile.total().instructions / 2.0
}

/// The instructions of each layer in a call, their shares, and the costliest functions.
fn add_profile(measured: &mut Measured, name: &str, profile: &Profile, calls: f64) {
    let total = profile.total();
    let percent = |cost: &Cost| 100.0 * cost.instructions / total.instructions.max(1.0);
    let mut add = |title: String, unit, value: f64| {
        let series = Series::new(title, unit, vec![value]).counting("calls", calls as u64);
        measured.series.push(series);
    };
    let costs = LayerCosts::new(profile);
    add(format!("{name} all layers"), Unit::Instructions, total.instructions / calls);
    for layer in Layer::ALL {
        let cost = costs.layers.get(&layer).copied().unwrap_or_default();
        add(format!("{name} {layer}"), Unit::Instructions, cost.instructions / calls);
        add(format!("{name} {layer} share"), Unit::Percent, percent(&cost));
    }
    add(format!("{name} time in the kernel"), Unit::Microseconds, total.kernel_nanos / 1e3 / calls);
    let mut without: Vec<_> = costs.without.iter().collect();
    let share: f64 = without.iter().map(|(_, cost)| percent(cost)).sum();
    add(format!("{name} no layer share"), Unit::Percent, share);
    without.sort_by(|one, other| other.1.instructions.total_cmp(&one.1.instructions));
    for (function, cost) in without.into_iter().take(FUNCTIONS).filter(|(_, cost)| percent(cost) >= LEAST_SHARE / 5.0) {
        add(format!("{name} no layer: {}", shortened(&function.name)), Unit::Percent, percent(cost));
    }
    add_functions(measured, name, profile, calls);
}

/// The share of each layer in the samples of a process, and its costliest functions.
fn add_samples(measured: &mut Measured, name: &str, samples: &Samples, calls: u64) {
    let counts = samples.counts();
    if counts.total == 0 || counts.layers.is_empty() {
        let reason = if counts.total == 0 { "the run was too short for a sample" } else { WITHOUT_SYMBOLS };
        measured.absent.push((format!("{name} sampled"), reason.to_owned()));
        return;
    }
    let percent = |count: u64| 100.0 * count as f64 / counts.total as f64;
    let mut add = |title: String, count: u64| {
        let series = Series::new(format!("{name} sampled {title}"), Unit::Percent, vec![percent(count)]);
        measured.series.push(series.counting("calls", calls).counting("samples", count));
    };
    for layer in Layer::ALL {
        add(format!("{layer} share"), counts.layers.get(&layer).copied().unwrap_or(0));
    }
    add("no layer share".to_owned(), counts.without.values().sum());
    let costliest = |functions: &BTreeMap<String, u64>| {
        let mut short: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in functions {
            *short.entry(shortened(name)).or_default() += count;
        }
        let mut functions: Vec<(String, u64)> = short.into_iter().collect();
        functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        functions.truncate(FUNCTIONS);
        functions
    };
    for (function, count) in costliest(&counts.without) {
        add(format!("no layer: {function}"), count);
    }
    for (function, count) in
        costliest(&counts.functions).into_iter().filter(|(_, count)| percent(*count) >= LEAST_SHARE)
    {
        add(format!("function {function}"), count);
    }
}

/// The costliest functions, by their share of all instructions.
fn add_functions(measured: &mut Measured, name: &str, profile: &Profile, calls: f64) {
    let total = profile.total().instructions.max(1.0);
    let mut functions: BTreeMap<String, f64> = BTreeMap::new();
    for (function, cost) in &profile.own {
        *functions.entry(shortened(&function.name)).or_default() += 100.0 * cost.instructions / total;
    }
    let mut functions: Vec<(String, f64)> = functions.into_iter().filter(|(_, share)| *share >= LEAST_SHARE).collect();
    functions.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (function, share) in functions.into_iter().take(FUNCTIONS) {
        let series = Series::new(format!("{name} function {function}"), Unit::Percent, vec![share]);
        measured.series.push(series.counting("calls", calls as u64));
    }
}

/// Adds the profile of one process, whose series begin with this name: its instructions and costliest functions. The
/// command repeats the measured step that many times.
///
/// # Errors
/// If the process fails, or its profile cannot be read.
pub(crate) fn measure_process(
    measured: &mut Measured,
    name: &str,
    calls: Calls,
    command: &dyn Fn(u64) -> Command,
) -> Result<(), LabError> {
    if let Some(reason) = missing_tool() {
        measured.absent.push((name.to_owned(), reason));
        return Ok(());
    }
    let folder = tempfile::tempdir().map_err(io_error("make a folder for profiles"))?;
    let file = folder.path().join("process");
    let profile = |count: u64| {
        let inner = command(count);
        let mut outer = Command::new(Tool::Callgrind.program());
        outer.args(Tool::Callgrind.arguments(&file.to_string_lossy())).arg(inner.get_program()).args(inner.get_args());
        let output = outer.stdin(Stdio::null()).output().map_err(io_error(format!("start the process of {name}")))?;
        if !output.status.success() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()));
        }
        Profile::parse(&read(&file, Side::Sender, Tool::Callgrind)?).map_err(refused)
    };
    let (few, many) = (profile(calls.few)?, profile(calls.more)?);
    let beyond = many.minus(&few);
    if has_no_names(&beyond) {
        measured.absent.push((name.to_owned(), WITHOUT_SYMBOLS.to_owned()));
        return Ok(());
    }
    let more = (calls.more - calls.few) as f64;
    let all = Series::new(format!("{name} instructions"), Unit::Instructions, vec![beyond.total().instructions / more]);
    measured.series.push(all.counting("calls", more as u64));
    add_functions(measured, name, &beyond, more);
    Ok(())
}

/// A name of a function without the number of its instance, and of bounded length.
fn shortened(name: &str) -> String {
    let is_hash = |end: &&str| end.len() == 17 && end.starts_with('h');
    let name = match name.rsplit_once("::") {
        Some((begin, end)) if is_hash(&end) => begin,
        _ => name,
    };
    let mut short: String = name.chars().take(NAME_LETTERS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

/// The system calls of a call, and the octets of one read or write.
fn add_trace(measured: &mut Measured, name: &str, trace: &Trace, calls: f64) {
    let purposes = [
        (Purpose::Read, "reads"),
        (Purpose::Write, "writes"),
        (Purpose::Wait, "waits and wake-ups"),
        (Purpose::Other, "other system calls"),
    ];
    for (purpose, title) in purposes {
        let sum = trace.calls(purpose);
        let series = Series::new(format!("{name} {title} in a call"), Unit::Count, vec![sum.count / calls]);
        measured.series.push(series.counting("system calls", sum.count as u64));
        if matches!(purpose, Purpose::Read | Purpose::Write) && sum.count > 0.0 {
            let title = format!("{name} octets of {title}");
            measured.series.push(Series::new(title, Unit::Octets, vec![sum.octets / sum.count]));
        }
    }
}
