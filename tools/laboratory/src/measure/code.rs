//! Stubs and skeletons: their times by engine.

use std::path::Path;

use spandrel_lab::LabError;
use spandrel_lab::bench::footprint::{self, Engine, Operation, Part, Settings, Step};

use super::rounds::core;
use crate::folder::Form;
use crate::series::{Measured, Series, Unit};

/// Calls of an operation in a round (paper 001, 7.3.4).
const CALLS: u32 = 2_000;

/// The paper's name of an operation.
fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Short => "short",
        Operation::String => "ubstring",
        Operation::FixedStruct => "fixed_struct",
        Operation::StrSeq => "strseq",
        Operation::VarStruct => "var_struct",
        Operation::NestedStruct => "nested_struct",
        Operation::StructSeq => "struct_seq",
    }
}

/// Two-way times of each operation by engine, and the times of their marshaling by step.
pub(super) fn stubs(form: Form) -> Result<Measured, LabError> {
    let (rounds, calls) = if form == Form::Full { (9, CALLS) } else { (2, 20) };
    let settings = Settings { parts: vec![Part::Latency], rounds, calls, core: core()? };
    // This part builds nothing, so that the folders are not used.
    let results = footprint::run(&settings, Path::new("."), Path::new("."))?;
    let mut measured = Measured::default();
    for operation in Operation::ALL {
        for engine in Engine::ALL {
            let runs = || results.calls.iter().filter(|run| run.operation == operation.name() && run.engine == engine);
            let title = format!("{} {}", name(operation), engine.name());
            let times = runs().map(|run| run.two_way).collect();
            let total_calls = u64::from(rounds) * u64::from(calls);
            measured.series.push(Series::new(&title, Unit::Microseconds, times).counting("calls", total_calls));
            let all = runs().map(footprint::Call::all_marshaling).collect();
            measured.series.push(Series::new(format!("{title} marshaling"), Unit::Microseconds, all));
            for (index, step) in Step::ALL.into_iter().enumerate() {
                let times = runs().map(|run| run.marshaling[index]).collect();
                let title = format!("{title} step {}", step.name().join(" "));
                measured.series.push(Series::new(title, Unit::Microseconds, times));
            }
        }
    }
    Ok(measured)
}
