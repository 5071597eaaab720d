//! Speed of the compiler: generates a large specification in memory, compiles it to Rust, and prints the
//! times.
//!
//! `cargo run --release -p spandrel-idl --example speed -- [LINES] [RUNS] [SHAPE]`, by default 100,000 lines,
//! five runs, and a text similar to typical IDL ([`specification`]). The other shapes are extreme
//! ([`shapes`]): one of their names, or `all` for one run of each.

mod shapes;
mod specification;

use std::process::ExitCode;
use std::time::Instant;

use spandrel_idl::rust::{Options, generate};
use spandrel_idl::{FrontEndOptions, MemoryFiles, compile_with};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, default| arguments.get(nth).map_or(Ok(default), |it| it.parse::<usize>());
    let (Ok(lines), Ok(runs)) = (number(0, 100_000), number(1, 5)) else {
        eprintln!("usage: speed [LINES] [RUNS] [SHAPE]");
        return ExitCode::from(2);
    };
    let wanted = arguments.get(2).map_or("usual", String::as_str);
    let mut found = false;
    for (name, text) in shapes::ALL.iter().filter(|(name, _)| wanted == "all" || wanted == *name) {
        found = true;
        let text = text(lines);
        let (written, octets) = (text.lines().count(), text.len());
        let files = MemoryFiles::new().with("main.idl", text);
        println!("{name}: {written} lines, {octets} octets");
        if !compile(&files, if wanted == "all" { 1 } else { runs }) {
            return ExitCode::FAILURE;
        }
    }
    if wanted == "usual" || wanted == "all" {
        found = true;
        let (files, written, octets) = specification::specification(lines);
        println!("usual: {written} lines, {octets} octets");
        if !compile(&files, runs) {
            return ExitCode::FAILURE;
        }
    }
    if !found {
        let names = shapes::ALL.map(|(name, _)| name).join(", ");
        eprintln!("`{wanted}` is no shape: all, usual, {names}");
        return ExitCode::from(2);
    }
    if let Some(peak) = peak_memory() {
        println!("at most {peak} of memory");
    }
    ExitCode::SUCCESS
}

/// Compiles several times and prints the time of each run; returns false with the diagnostics if the text is
/// rejected.
fn compile(files: &MemoryFiles, runs: usize) -> bool {
    let options = Options::default();
    for _ in 0..runs {
        let start = Instant::now();
        let model = match compile_with(&FrontEndOptions::default(), files, "main.idl".as_ref()) {
            Ok(model) => model,
            Err(diagnostics) => {
                eprint!("{diagnostics}");
                return false;
            }
        };
        let read = start.elapsed().as_secs_f64() * 1e3;
        let (definitions, warnings) = (model.definitions().len(), model.warnings().iter().len());
        let start = Instant::now();
        let rust = generate(&model, &options);
        let made = start.elapsed().as_secs_f64() * 1e3;
        println!(
            "{read:8.1} ms to read {definitions} definitions ({warnings} warnings), {made:8.1} ms to write {} lines of Rust",
            rust.lines().count()
        );
    }
    true
}

/// The peak as counted by the kernel; `None` without `/proc`.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
