//! Samples of a process, taken in the process itself: where its processor time goes, with that in the kernel.
//!
//! A timer of processor time interrupts the process, and the stack of the interrupted thread is recorded. The process
//! writes the stacks at its end, into the file that a variable of its environment names:
//! `count <tab> innermost function <tab> its caller <tab> …`, a line for each stack.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use pprof::{ProfilerGuardBuilder, Report};
use spandrel_lab::child_command;

use super::callgrind::Function;
use super::layers::Layer;

/// The variable of the environment that names the file.
const FILE: &str = "SPANDREL_LAB_SAMPLES";
/// Samples in a second of processor time: no multiple of the periods of timers.
const FREQUENCY: i32 = 997;
/// The object of functions of C, whose names have no path. Those of Rust have one.
const C_LIBRARY: &str = "libc.so.6";

/// Lets a process of this program write its samples to a file.
pub(super) fn sample_into(command: &mut Command, file: &Path) {
    command.env(FILE, file);
}

/// Runs a process of an experiment, and samples it if its environment names a file.
///
/// # Errors
/// If the timer cannot be set. A file that cannot be written is missing where it is read.
pub(crate) fn run(process: child_command::Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = std::env::var_os(FILE) {
        let guard =
            ProfilerGuardBuilder::default().frequency(FREQUENCY).build().context("cannot sample this process")?;
        process.at_end(move || {
            if let Ok(report) = guard.report().build() {
                _ = fs::write(&file, text(&report));
            }
        });
    }
    process.run();
    Ok(ExitCode::SUCCESS)
}

fn text(report: &Report) -> String {
    let lines = report.data.iter().map(|(stack, count)| {
        // A frame has several symbols if functions were put into it; the innermost comes first.
        let names = stack.frames.iter().flatten().map(|symbol| symbol.name().replace(['\t', '\n'], " "));
        let names: Vec<String> = names.skip_while(|name| is_of_the_sampler(name)).collect();
        format!("{count}\t{}\n", names.join("\t"))
    });
    lines.collect()
}

/// Whether a function records the stack that it is in, or is the return from the signal that has called it.
fn is_of_the_sampler(name: &str) -> bool {
    let begins =
        ["backtrace::", "<backtrace::", "pprof::", "<pprof::", "perf_signal_handler", "__restore_rt", "_Unwind_"];
    begins.iter().any(|begin| name.starts_with(begin)) || name == "Unknown"
}

/// The stacks of a process, each with the number of its samples. The innermost function comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(Vec<(u64, Vec<String>)>);

/// Samples by layer and by function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// The samples of all layers and of none.
    pub total: u64,
    /// The samples of each layer.
    pub layers: BTreeMap<Layer, u64>,
    /// The samples that no layer owns, by their innermost function.
    pub without: BTreeMap<String, u64>,
    /// The samples of all layers and of none.by their innermost function.
    pub functions: BTreeMap<String, u64>,
}

impl Samples {
    /// Reads the text that a process has written.
    ///
    /// # Errors
    /// The line that has no count, as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let stack = |(index, line): (usize, &str)| {
            let (count, names) = line.split_once('\t').unwrap_or((line, ""));
            let count =
                count.parse().map_err(|_| format!("line {} of the samples: `{count}` is no count", index + 1))?;
            Ok((count, names.split('\t').filter(|name| !name.is_empty()).map(str::to_owned).collect()))
        };
        text.lines().enumerate().map(stack).collect::<Result<_, String>>().map(Self)
    }

    /// Adds the samples up. A sample belongs to the layer of its innermost function that has one.
    #[must_use]
    pub fn counts(&self) -> SampleCounts {
        let mut counts = SampleCounts::default();
        for (count, stack) in &self.0 {
            counts.total += count;
            let innermost = stack.first().map_or("(no stack)", String::as_str);
            *counts.functions.entry(innermost.to_owned()).or_default() += count;
            match layer(stack) {
                Some(layer) => *counts.layers.entry(layer).or_default() += count,
                None => *counts.without.entry(innermost.to_owned()).or_default() += count,
            }
        }
        counts
    }
}

/// The layer of a stack. Functions of C count at its inner end only: at the outer one they are the start of the thread.
fn layer(stack: &[String]) -> Option<Layer> {
    let is_rust = |name: &String| name.contains("::");
    if !stack.iter().any(is_rust) {
        return None;
    }
    let layer = |name: &String, object: &str| Layer::with(&Function { object: object.to_owned(), name: name.clone() });
    let outer = stack.iter().rposition(is_rust)?;
    stack[..=outer].iter().find_map(|name| layer(name, if is_rust(name) { "" } else { C_LIBRARY }))
}
