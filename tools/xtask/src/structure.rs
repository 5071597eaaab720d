//! `cargo xtask structure`: the shape of the crates, and bounds that keep it from getting worse.
//!
//! - **Cycles** of modules: uses of one module by another, from imports and paths, with re-exports followed
//!   to the module that defines the item ([`graph`] has the definition). Code for tests alone is left out.
//!   Other conditions are not evaluated: all alternatives of a module are read. Nodes of the check are
//!   top-level modules with all that lies inside them, and beside them single files.
//! - **Dependencies** between crates must follow the layers ([`layers`]).
//! - **Gates**: how often `feature = "` stands in Rust files, and how often elsewhere than on files, `mod`,
//!   `use`, `pub use` and `extern crate`.
//! - **Spread**: the number of files that hold `impl` blocks of one type ([`spread`]).
//! - **Internal items**: each item of a hidden module `internal` is named by another crate ([`internal`]).
//! - **Test programs**: their number, and that each file of a folder `tests` belongs to one ([`programs`]).
//! - **First command**: the number of packages that it builds ([`first_command`]).
//! - **Lengths** of files, and **doc lines** that begin with a vague word ([`measures`]).
//! - **Words**: doc comments of a few words, and names that are participles or pronouns ([`words`]).
//!
//! Cycles of both kinds, the gates of `orb/` and `spandrel/`, and the words have bounds in
//! `tools/xtask/structure.toml` ([`allowed`]).

mod allowed;
mod conditions;
mod first_command;
mod graph;
mod internal;
mod layers;
mod measures;
mod parse;
mod programs;
mod report;
mod resolve;
#[cfg(test)]
mod seeded;
mod spread;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::metadata::{self, Package};
use crate::workspace;
use allowed::{Allowed, Figures};
use graph::Graph;
use measures::Measures;
use report::Row;
use spread::Spread;
use tree::Crate;

/// Prints the report and compares it with the list of allowed figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let packages = metadata::packages(&root)?;
    let measurements = measure(&packages)?;
    match &options.only {
        Some(name) => print_one(&measurements, &packages, name, options.edges)?,
        None => print_all(&measurements, &packages, options.edges),
    }
    if options.words {
        print_words(&measurements.rows, options.only.as_deref());
    }
    if options.record {
        record(&root, &measurements)?;
    }
    check(&root, &measurements, &packages)
}

/// The options of the task.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Print the shape of one package, by its name or folder
    #[arg(long = "crate", value_name = "NAME")]
    only: Option<String>,
    /// Print all uses between modules and between files
    #[arg(long)]
    edges: bool,
    /// Print the location of each short doc comment and vague name
    #[arg(long)]
    words: bool,
    /// Lower the bounds in tools/xtask/structure.toml to the present figures
    #[arg(long)]
    record: bool,
}

struct Measurements {
    rows: Vec<Row>,
    spreads: Vec<Spread>,
    /// By crate, the folder of its package.
    folders: Vec<String>,
    /// A line for each item of a module `internal` that does not belong there.
    internal: Vec<String>,
}

fn measure(packages: &[Package]) -> Result<Measurements> {
    let (crates, owners) = read_crates(packages)?;
    let mut rows = Vec::new();
    for (nth, package) in packages.iter().enumerate() {
        let own = (0..crates.len()).filter(|krate| owners[*krate] == nth);
        rows.push(Row {
            folder: package.folder.clone(),
            package: package.name.clone(),
            measures: Measures::of_package(&package.path)?,
            targets: own.map(|krate| (crates[krate].name.clone(), graph::graphs(&crates, krate))).collect(),
        });
    }
    let folders = owners.iter().map(|owner| packages[*owner].folder.clone()).collect();
    let names: Vec<&str> = owners.iter().map(|owner| packages[*owner].name.as_str()).collect();
    let internal = internal::complaints(&crates, &names);
    Ok(Measurements { rows, spreads: spread::spreads(&crates), folders, internal })
}

/// Reads all libraries and binaries, with the package that each belongs to.
fn read_crates(packages: &[Package]) -> Result<(Vec<Crate>, Vec<usize>)> {
    let sources = |path: &Path| fs::read_to_string(path).ok();
    let (mut crates, mut owners, mut libraries) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (nth, package) in packages.iter().enumerate() {
        for target in &package.targets {
            if target.is_library {
                libraries.insert(package.name.as_str(), (crates.len(), target.name.clone()));
            }
            crates.push(parse::read(&target.name, &target.root, &sources)?);
            owners.push(nth);
        }
    }
    for (krate, owner) in owners.iter().enumerate() {
        let package = &packages[*owner];
        for dependency in &package.dependencies {
            if let Some((library, name)) = libraries.get(dependency.package.as_str()) {
                let name = dependency.rename.as_ref().map_or(name.clone(), |name| name.replace('-', "_"));
                crates[krate].externs.insert(name, *library);
            }
        }
        if let Some((library, name)) = libraries.get(package.name.as_str())
            && *library != krate
        {
            crates[krate].externs.insert(name.clone(), *library);
        }
    }
    Ok((crates, owners))
}

fn print_all(measurements: &Measurements, packages: &[Package], all_edges: bool) {
    println!("{}", report::table(&measurements.rows));
    println!(
        "Types whose impl blocks stand in the most files:\n{}",
        spread::table(&measurements.spreads, &measurements.folders)
    );
    println!("Dependencies, with those of tests alone in brackets:\n{}", report::dependencies(packages));
    println!("Cycles; edges with the fewest names come first, <-> marks edges that have a counterpart:");
    for row in &measurements.rows {
        print!("{}", report::cycles(row, all_edges));
    }
}

fn print_one(measurements: &Measurements, packages: &[Package], name: &str, all_edges: bool) -> Result<()> {
    let row = measurements.rows.iter().position(|row| row.package == name || row.folder == name.trim_end_matches('/'));
    let row = row.with_context(|| format!("no package or folder has the name {name}"))?;
    println!("{}", report::table(&measurements.rows[row..=row]));
    let folder = &packages[row].folder;
    let (spreads, folders) = (&measurements.spreads, &measurements.folders);
    let own: Vec<Spread> = spreads.iter().filter(|spread| folders[spread.krate] == *folder).cloned().collect();
    println!("Types whose impl blocks stand in the most files:\n{}", spread::table(&own, folders));
    print!("{}", report::cycles(&measurements.rows[row], all_edges));
    Ok(())
}

/// Prints the locations of words in one package or, by default, in all.
fn print_words(rows: &[Row], only: Option<&str>) {
    let is_printed =
        |row: &&Row| only.is_none_or(|name| row.package == name || row.folder == name.trim_end_matches('/'));
    for row in rows.iter().filter(is_printed) {
        row.measures.words.locations.iter().for_each(|location| println!("{location}"));
    }
}

/// The list of allowed figures of a repository.
fn allowed_text(root: &Path) -> Result<String> {
    let path = root.join(allowed::PATH);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Lowers the bounds of the list to the present figures.
fn record(root: &Path, measurements: &Measurements) -> Result<()> {
    let (text, path) = (allowed_text(root)?, root.join(allowed::PATH));
    let text = Allowed::parse(&text)?.tightened(&text, &figures(&measurements.rows));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn check(root: &Path, measurements: &Measurements, packages: &[Package]) -> Result<()> {
    let built_first = first_command::packages(root)?;
    let complaints = complaints(root, measurements, packages, &built_first)?;
    if complaints.is_empty() {
        let gates = figures(&measurements.rows).gates;
        println!("\nAs {} allows: {gates} gates in orb/ and spandrel/.", allowed::PATH);
        println!("{} test programs, of {} at most.", programs::count(packages), programs::MAX);
        println!("{} packages below the command line, of {} at most.", built_first.len(), first_command::MAX);
        return Ok(());
    }
    bail!("the structure differs from {}:\n  {}", allowed::PATH, complaints.join("\n  "))
}

/// A line for each violation in a repository. `built_first` are the packages below the command line.
fn complaints(
    root: &Path,
    measurements: &Measurements,
    packages: &[Package],
    built_first: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let mut complaints = layers::complaints(packages);
    complaints.extend(Allowed::parse(&allowed_text(root)?)?.complaints(&figures(&measurements.rows)));
    complaints.extend_from_slice(&measurements.internal);
    complaints.extend(programs::complaints(packages)?);
    complaints.extend(first_command::complaints(root, built_first)?);
    Ok(complaints)
}

/// The figures that have bounds.
fn figures(rows: &[Row]) -> Figures {
    let mut figures = Figures::default();
    for row in rows {
        figures.words += row.measures.words.counts;
        if row.folder.starts_with("orb/") || row.folder == "spandrel" {
            figures.gates += row.measures.gates.all;
        }
        for (_, graphs) in &row.targets {
            add_cycles(&mut figures.cycles, &row.package, &graphs.modules);
            add_cycles(&mut figures.file_cycles, &row.package, &graphs.files);
        }
    }
    figures
}

/// Adds the cycles of a target to those of its package.
fn add_cycles(cycles: &mut BTreeMap<String, Vec<Vec<String>>>, package: &str, graph: &Graph) {
    for cycle in graph.cycles() {
        cycles.entry(package.to_owned()).or_default().push(cycle.into_iter().collect());
    }
}
