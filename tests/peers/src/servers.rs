//! `cargo xtask servers`: our servers and those of `peers/servers`, built and checked against their contract.
//!
//! [`table`] has the programs; [`program`] builds them and starts them. [`checks`] has the checks, which a
//! client over plain sockets ([`client`]) makes for each architecture. [`versions`] lists the tools that the
//! programs depend on, as table B.1 of paper 004 does. [`experiment`] measures the servers through the Orchestrator
//! (`cargo xtask orchestra`).

mod checks;
mod client;
pub(crate) mod experiment;
mod program;
mod table;
mod versions;

use std::fs;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use crate::builds::Profile;
use program::{Environment, Program};
use table::PROGRAMS;

/// Builds the selected programs and checks each of their architectures. `only` has names of programs,
/// separated by commas.
///
/// A program whose tools are absent has a row with the reason, and is a failure.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let selected = selected(only)?;
    let folder = std::path::absolute(xtask::workspace::target().join("peers/servers"))?;
    fs::create_dir_all(&folder)?;
    let environment = Environment::new(folder, Profile::Dev);
    let started = Instant::now();
    let mut failures = Vec::new();
    for program in selected {
        failures.extend(check(program, &environment));
    }
    println!("\n{}", versions::table());
    println!("{:.0} s in all", started.elapsed().as_secs_f64());
    if !failures.is_empty() {
        bail!("{} of the servers failed: {}", failures.len(), failures.join(", "));
    }
    Ok(())
}

/// Prints the versions of the tools.
pub(crate) fn print_versions() {
    print!("{}", versions::table());
}

/// Checks a program, prints a row for each architecture, and returns the names of those that failed.
fn check(program: &Program, environment: &Environment) -> Vec<String> {
    if let Err(reason) = program.require() {
        println!("absent  {}: {reason:#}", program.name);
        return vec![program.name.to_owned()];
    }
    if let Err(error) = program.build(environment).and_then(|()| checks::command_line(program, environment)) {
        println!("FAILED  {}: {error:#}", program.name);
        return vec![program.name.to_owned()];
    }
    let mut failures = Vec::new();
    for architecture in program.architectures {
        let started = Instant::now();
        let result = checks::architecture(program, architecture, environment);
        let seconds = started.elapsed().as_secs_f64();
        match result {
            Ok(()) => println!("good    {} {architecture} ({seconds:.1} s)", program.name),
            Err(error) => {
                println!("FAILED  {} {architecture}: {error:#}", program.name);
                failures.push(format!("{} {architecture}", program.name));
            }
        }
    }
    failures
}

fn selected(only: Option<&str>) -> Result<Vec<&'static Program>> {
    let Some(only) = only else { return Ok(PROGRAMS.iter().collect()) };
    let names: Vec<&str> = only.split(',').collect();
    for name in &names {
        let known: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        ensure!(known.contains(name), "unknown program `{name}`; there are: {}", known.join(", "));
    }
    // A program is selected with all of its back ends.
    let is_selected = |program: &&Program| {
        let other = PROGRAMS.iter().find(|other| program.backend.is_some() && other.file == program.file);
        names.contains(&program.name) || other.is_some_and(|other| names.contains(&other.name))
    };
    Ok(PROGRAMS.iter().filter(is_selected).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_selected_by_name() {
        let names = |only| selected(only).unwrap().iter().map(|program| program.name).collect::<Vec<_>>();
        assert_eq!(names(None).len(), PROGRAMS.len());
        assert_eq!(names(Some("ace,posix")), ["posix", "ace"]);
        assert_eq!(names(Some("spandrel")), ["spandrel", "spandrel-poll", "spandrel-select"]);
        assert_eq!(names(Some("spandrel-poll")), ["spandrel-poll"]);
        let error = selected(Some("posix,cobol")).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "unknown program `cobol`; there are: spandrel, spandrel-poll, spandrel-select, posix, win32"
            ),
            "{error}"
        );
    }
}
