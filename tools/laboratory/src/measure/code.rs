//! Stubs and skeletons: their times and sizes by engine.

use std::env;
use std::path::{self, Path};

use spandrel_lab::LabError;
use spandrel_lab::bench::footprint::{
    self, Code, CodeSize, Engine, Libraries, Operation, Optimisation, Part, Settings, Step,
};
use spandrel_lab::output::default_directory;

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

/// The octets of stubs and skeletons of each operation, and of the functions that write and read its type.
pub(super) fn sizes(form: Form, optimisation: Optimisation) -> Result<Measured, LabError> {
    let sizes = if form == Form::Full {
        let here = env::current_dir().map_err(failed)?;
        let tree = here.ancestors().find(|folder| folder.join("orb/idl/Cargo.toml").is_file());
        let tree = tree.ok_or_else(|| failed("it builds Spandrel: run it in the source tree"))?;
        let out = path::absolute(default_directory("lab-sizes")).map_err(failed)?;
        footprint::code_sizes(&Operation::ALL, optimisation, Libraries::Built { tree, out: &out })?
    } else {
        let out = tempfile::tempdir().map_err(failed)?;
        footprint::code_sizes(&[Operation::FixedStruct], optimisation, Libraries::Beside { out: out.path() })?
    };
    let mut measured = Measured::default();
    for CodeSize { operation, code, sizes } in sizes {
        let operation = name(operation);
        let title = match code {
            Code::Generated(engine, side) => format!("{operation} {} {}", engine.name(), side.name()),
            Code::Dynamic(side) => format!("{operation} dynamic {}", side.name()),
            Code::Writes => format!("write {operation}"),
            Code::Reads => format!("read {operation}"),
        };
        let parts =
            [("", sizes.total()), (" code", sizes.code), (" helpers", sizes.helpers), (" tables", sizes.tables)];
        for (part, octets) in parts {
            measured.series.push(Series::new(format!("{title}{part}"), Unit::Octets, vec![octets as f64]));
        }
    }
    Ok(measured)
}

fn failed(reason: impl ToString) -> LabError {
    LabError::Settings(reason.to_string())
}
