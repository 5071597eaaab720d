//! `cargo xtask mutants`: whether tests notice small changes of the code that they guard (mutation testing).
//!
//! `cargo-mutants` changes one function body or operator at a time, and runs tests. A mutant that does not
//! compile is unviable. One is caught if a test fails or does not end, and survives if all tests pass. Then a
//! test is missing, the code can go, or the mutant is [equivalent](equivalents): it behaves as the original.
//!
//! Files are changed in a copy of the repository, below `target/mutants/AREA`. The results lie there, too, so
//! that an interrupted run goes on. They are void once a file of the area's packages, `Cargo.lock` or the
//! toolchain differs. A change of another package voids nothing: the folder is removed by hand then.

mod areas;
mod copy;
mod equivalents;
mod outcomes;
mod until_failure;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace;

use crate::parallel::run_in_parallel;
use areas::{AREAS, Area, Suite};
use equivalents::{Equivalents, Mutant};
use outcomes::{Outcome, State};
pub(crate) use until_failure::run_until_failure;

const TOOL: &str = "cargo-mutants";
const TOOL_VERSION: &str = "27.1.0";
/// The least percentage of an area's viable mutants that tests catch, without equivalent ones.
const LEAST_PERCENTAGE: f64 = 95.0;
/// The least time limit of tests in seconds. It is longer for tests that take long without a mutant.
const LEAST_TEST_TIMEOUT: u32 = 20;
/// The hidden command of this program that runs a test program until a test fails.
pub(crate) const UNTIL_FAILURE: &str = "until-failure";
/// The time limit of a build in seconds.
const BUILD_TIMEOUT: u32 = 600;

/// Tests the mutants of these areas, all without a name. Prints a table and the survivors. With `keeps`, mutants that were
/// caught before are not tested again, even if sources or tests have changed.
///
/// # Errors
/// An area in which tests catch too few mutants, a wrong list of equivalent mutants, tests that fail without a
/// mutant.
pub(crate) fn run(names: &[&str], keeps: bool) -> Result<()> {
    let areas = selected(names)?;
    let root = workspace::root();
    let text = fs::read_to_string(root.join(equivalents::PATH)).context(equivalents::PATH)?;
    let equivalents = Equivalents::parse(&text, &AREAS.map(|area| area.name))?;
    let tool = workspace::cargo_tool(TOOL, TOOL_VERSION, &[])?;
    let files = copy::files(&root)?;
    let reports: Mutex<BTreeMap<&str, Result<Report>>> = Mutex::default();
    // A failed area does not stop the others.
    run_in_parallel(&areas, |area| {
        let report = Run { area, tool: &tool, is_alone: areas.len() == 1 }.finish(&files, keeps, &equivalents);
        reports.lock().expect("no holder panics").insert(area.name, report);
        Ok(())
    })?;
    let mut reports = reports.into_inner().expect("no holder panics");
    let in_order = areas.iter().map(|area| (area.name, reports.remove(area.name).expect("each area has a report")));
    conclude(in_order.collect())
}

fn selected(names: &[&str]) -> Result<Vec<&'static Area>> {
    if let Some(name) = names.iter().find(|name| !AREAS.iter().any(|area| area.name == **name)) {
        bail!("there is no area `{name}`; there are: {}", AREAS.map(|area| area.name).join(", "));
    }
    Ok(AREAS.iter().filter(|area| names.is_empty() || names.contains(&area.name)).collect())
}

/// Prints the reports, and fails if one of them is a failure.
fn conclude(reports: Vec<(&str, Result<Report>)>) -> Result<()> {
    println!("\n{}", Report::HEADER);
    let mut failures = Vec::new();
    for (area, report) in &reports {
        match report {
            Ok(report) => {
                println!("{}", report.row(area));
                failures.extend(report.failures(area));
            }
            Err(error) => failures.push(format!("{area}: {error:#}")),
        }
    }
    for (area, report) in &reports {
        let Ok(report) = report else { continue };
        if !report.survivors.is_empty() {
            println!("\nsurvived in {area}:\n  {}", report.survivors.join("\n  "));
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n  "));
    Ok(())
}

/// The figures of an area.
#[derive(Debug, Default)]
struct Report {
    mutants: usize,
    unviable: usize,
    caught: usize,
    timeouts: usize,
    equivalent: usize,
    /// The names of those that survived and are not equivalent.
    survivors: Vec<String>,
    seconds: f64,
    has_older_results: bool,
    complaints: Vec<String>,
}

impl Report {
    const HEADER: &str = "area           mutants  unviable  caught  timeouts  equivalent  survived       %  minutes";

    fn new(area: &str, mutants: &[Mutant], state: &State, equivalents: &Equivalents) -> Self {
        let with_outcomes: Vec<_> =
            mutants.iter().map(|mutant| (mutant, state.outcomes.get(&mutant.name).copied())).collect();
        let count = |of: Outcome| with_outcomes.iter().filter(|(_, outcome)| *outcome == Some(of)).count();
        let missed = with_outcomes.iter().filter(|(_, outcome)| *outcome == Some(Outcome::Missed));
        let (equivalent, survivors): (Vec<&Mutant>, Vec<&Mutant>) =
            missed.map(|(mutant, _)| *mutant).partition(|mutant| equivalents.contains(area, mutant));
        Self {
            mutants: mutants.len(),
            unviable: count(Outcome::Unviable),
            caught: count(Outcome::Caught),
            timeouts: count(Outcome::Timeout),
            equivalent: equivalent.len(),
            survivors: survivors.iter().map(|mutant| mutant.name.clone()).collect(),
            seconds: state.seconds,
            has_older_results: state.has_older_results,
            complaints: equivalents.complaints(area, &with_outcomes),
        }
    }

    /// The percentage of viable mutants that tests catch, without equivalent ones.
    fn percentage(&self) -> f64 {
        let caught = self.caught + self.timeouts;
        let all = caught + self.survivors.len();
        if all == 0 { 100.0 } else { 100.0 * caught as f64 / all as f64 }
    }

    fn row(&self, area: &str) -> String {
        let Self { mutants, unviable, caught, timeouts, equivalent, .. } = self;
        let (survived, minutes) = (self.survivors.len(), self.seconds / 60.0);
        let note = if self.has_older_results { "  (some results are older than the tests)" } else { "" };
        format!(
            "{area:<15}{mutants:>7}{unviable:>10}{caught:>8}{timeouts:>10}{equivalent:>12}{survived:>10}{:>8.1}{minutes:>9.1}{note}",
            self.percentage()
        )
    }

    fn failures(&self, area: &str) -> Vec<String> {
        let mut failures = self.complaints.clone();
        let percentage = self.percentage();
        if percentage < LEAST_PERCENTAGE {
            failures.push(format!(
                "{area}: tests catch {percentage:.1} % of the mutants, and {LEAST_PERCENTAGE} % is the least"
            ));
        }
        failures
    }
}

/// The run of an area.
struct Run<'r> {
    area: &'r Area,
    tool: &'r Path,
    /// Whether no other area is tested at the same time.
    is_alone: bool,
}

impl Run<'_> {
    /// Tests the mutants that have no result yet.
    fn finish(&self, files: &BTreeSet<PathBuf>, keeps: bool, equivalents: &Equivalents) -> Result<Report> {
        copy::update(&workspace::root(), files, &self.tree())?;
        let file = self.folder().join("state.json");
        let mut state = State::read(&file)?;
        state.take_results(&self.folder().join("mutants.out"))?;
        state.adapt(self.key(files)?, keeps);
        state.write(&file)?;
        let (mutants, others) = self.mutants()?;
        loop {
            let suite = &self.area.suites[state.suite];
            let remaining = mutants.iter().filter(|mutant| !state.outcomes.contains_key(&mutant.name)).count();
            if remaining > 0 {
                let tested_before =
                    mutants.iter().map(|mutant| &mutant.name).filter(|name| state.outcomes.contains_key(*name));
                self.test(suite, remaining, tested_before.chain(&others))?;
                state.take_results(&self.folder().join("mutants.out"))?;
                state.write(&file)?;
                ensure!(
                    mutants.iter().all(|mutant| state.outcomes.contains_key(&mutant.name)),
                    "some mutants were not tested: {} has the reason",
                    self.log().display()
                );
            }
            let is_open = |mutant: &Mutant| {
                state.outcomes.get(&mutant.name) == Some(&Outcome::Missed)
                    && !equivalents.contains(self.area.name, mutant)
            };
            if state.suite + 1 == self.area.suites.len() || !mutants.iter().any(is_open) {
                return Ok(Report::new(self.area.name, &mutants, &state, equivalents));
            }
            state.begin_next_suite();
            state.write(&file)?;
        }
    }

    fn folder(&self) -> PathBuf {
        workspace::target().join("mutants").join(self.area.name)
    }

    /// The copy of the repository.
    fn tree(&self) -> PathBuf {
        self.folder().join("tree")
    }

    /// The file with the output of cargo-mutants.
    fn log(&self) -> PathBuf {
        self.folder().join("log.txt")
    }

    /// A hash of all that the results depend on, as far as it is known.
    fn key(&self, files: &BTreeSet<PathBuf>) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        (TOOL_VERSION, format!("{:?}", self.area)).hash(&mut hasher);
        let is_of_all = |file: &Path| ["Cargo.lock", "rust-toolchain.toml"].iter().any(|name| file == Path::new(name));
        for file in files {
            if is_of_all(file) || self.area.folders.iter().any(|folder| file.starts_with(folder)) {
                let contents = fs::read(self.tree().join(file)).with_context(|| file.display().to_string())?;
                (file, contents).hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    /// The mutants to be tested, and the names of the others in the same files.
    fn mutants(&self) -> Result<(Vec<Mutant>, Vec<String>)> {
        let output = self.tool().arg("--list").output().with_context(|| format!("cannot start {TOOL}"))?;
        ensure!(output.status.success(), "{TOOL} --list failed:\n{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).context("the list of mutants is not UTF-8")?;
        let (chosen, others): (Vec<_>, Vec<_>) =
            text.lines().enumerate().partition(|(nth, _)| nth % self.area.every == 0);
        ensure!(!chosen.is_empty(), "there are no mutants in {:?}", self.area.files);
        let mut sources: BTreeMap<&str, String> = BTreeMap::new();
        let mut mutants = Vec::new();
        for (_, name) in chosen {
            let (file, line) = equivalents::file_and_line(name).with_context(|| format!("`{name}` is no mutant"))?;
            if !sources.contains_key(file) {
                let source = fs::read_to_string(self.tree().join(file)).with_context(|| file.to_owned())?;
                sources.insert(file, source);
            }
            let line = sources[file].lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
            mutants.push(Mutant { name: name.to_owned(), line });
        }
        Ok((mutants, others.into_iter().map(|(_, name)| name.to_owned()).collect()))
    }

    /// Runs the tests of a suite for all mutants but these.
    fn test<'n>(&self, suite: &Suite, remaining: usize, excluded: impl Iterator<Item = &'n String>) -> Result<()> {
        // With `--iterate`, the tool leaves out what a run before has caught.
        let results = self.folder().join("mutants.out");
        fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
        let excluded: String = excluded.map(|name| format!("{name}\n")).collect();
        fs::write(results.join("previously_caught.txt"), excluded)?;
        println!("{}: {remaining} mutants, by tests of {}; {}", self.area.name, suite.package, self.log().display());
        let log = File::create(self.log()).with_context(|| self.log().display().to_string())?;
        let mut command = self.tool();
        command.args(["--in-place", "--iterate", "--test-package", suite.package]).arg("--output").arg(self.folder());
        command.args(suite.programs.iter().map(|program| format!("--cargo-arg={program}")));
        let own = env::current_exe().context("cannot find the path of this program")?;
        let runner = [own.to_str().context("the path of this program is not UTF-8")?, UNTIL_FAILURE];
        command.arg(format!("--cargo-arg=--config=target.'cfg(all())'.runner={runner:?}"));
        command.arg(format!("--minimum-test-timeout={LEAST_TEST_TIMEOUT}"));
        command.arg(format!("--build-timeout={BUILD_TIMEOUT}"));
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let tasks = if self.is_alone { processors } else { processors.div_ceil(2) };
        command.arg(format!("--jobserver-tasks={tasks}"));
        if !suite.tests.is_empty() {
            command.args(["--", "--"]).args(suite.tests);
        }
        command.stdout(log.try_clone()?).stderr(log);
        let status = command.status().with_context(|| format!("cannot start {TOOL}"))?;
        match status.code() {
            Some(0 | 2 | 3) => Ok(()), // all caught, some missed, some timeouts
            Some(4) => bail!("tests fail without a mutant: {}", results.join("log/baseline.log").display()),
            _ => bail!("{TOOL} failed ({status}): {} has its output", self.log().display()),
        }
    }

    /// The tool, for the mutants of the area.
    fn tool(&self) -> Command {
        let mut command = Command::new(self.tool);
        command.args(["mutants", "--no-config", "--colors=never", "--package", self.area.package, "--dir"]);
        command.arg(self.tree()).args(self.area.files.iter().flat_map(|file| ["--file", file]));
        command.current_dir(self.tree()).env("CARGO_TARGET_DIR", self.folder().join("build"));
        // As in `.ci/run`: line tables cost time, and the result depends on the change alone.
        command.envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("RUST_TEST_THREADS", "4")]);
        command.envs([("PROPTEST_CASES", "32"), ("PROPTEST_RNG_SEED", "20"), ("SHUTTLE_RANDOM_SEED", "20")]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: &[(&str, Option<Outcome>)], list: &str) -> Report {
        let name = |change: &str| format!("orb/cdr/src/a.rs:1:1: {change}");
        let mutants: Vec<_> =
            outcomes.iter().map(|(change, _)| Mutant { name: name(change), line: String::new() }).collect();
        let named_outcomes = outcomes.iter().filter_map(|(change, outcome)| Some((name(change), (*outcome)?)));
        let state = State { outcomes: named_outcomes.collect(), seconds: 90.0, ..State::default() };
        Report::new("cdr", &mutants, &state, &Equivalents::parse(list, &["cdr"]).unwrap())
    }

    #[test]
    fn equivalent_and_unviable_mutants_do_not_count() {
        let outcomes = [
            ("replace a", Some(Outcome::Caught)),
            ("replace b", Some(Outcome::Timeout)),
            ("replace c", Some(Outcome::Missed)),
            ("replace d", Some(Outcome::Missed)),
            ("replace e", Some(Outcome::Unviable)),
        ];
        let list = "[[equivalent]]\narea = 'cdr'\nmutant = 'orb/cdr/src/a.rs: replace d'\nreason = 'it is the same'";
        let report = report(&outcomes, list);
        assert_eq!((report.mutants, report.unviable, report.equivalent), (5, 1, 1));
        assert_eq!(report.survivors, ["orb/cdr/src/a.rs:1:1: replace c"]);
        assert_eq!(
            report.row("cdr").split_whitespace().collect::<Vec<_>>(),
            ["cdr", "5", "1", "1", "1", "1", "1", "66.7", "1.5"]
        );
        assert_eq!(report.failures("cdr"), ["cdr: tests catch 66.7 % of the mutants, and 95 % is the least"]);
    }

    #[test]
    fn an_area_passes_with_95_percent() {
        let outcomes = |caught: usize| {
            let names: Vec<String> = (0..=caught).map(|nth| format!("replace {nth}")).collect();
            let outcome = |nth| Some(if nth < caught { Outcome::Caught } else { Outcome::Missed });
            let outcomes: Vec<_> = names.iter().enumerate().map(|(nth, name)| (name.as_str(), outcome(nth))).collect();
            report(&outcomes, "").failures("cdr").len()
        };
        assert_eq!((outcomes(19), outcomes(18)), (0, 1));
    }

    #[test]
    fn a_header_stands_above_its_column() {
        let row = report(&[("replace a", Some(Outcome::Caught))], "").row("connection");
        assert_eq!(row.len(), Report::HEADER.len());
    }

    #[test]
    fn areas_are_selected_by_name_in_their_order() {
        let names = |names: &[&str]| selected(names).unwrap().iter().map(|area| area.name).collect::<Vec<_>>();
        assert_eq!(names(&[]).len(), AREAS.len());
        assert_eq!(names(&["naming", "cdr"]), ["cdr", "naming"]);
        assert!(selected(&["moon"]).unwrap_err().to_string().contains("there are: connection, cdr"));
    }

    #[test]
    fn the_areas_and_the_list_of_equivalent_mutants_fit_the_repository() {
        let root = workspace::root();
        for area in &AREAS {
            let folders =
                area.files.iter().map(|file| file.rsplit_once('/').unwrap().0).chain(area.folders.iter().copied());
            folders.for_each(|folder| assert!(root.join(folder).is_dir(), "{folder}"));
            let files = area.files.iter().filter(|file| !file.contains('*'));
            files.for_each(|file| assert!(root.join(file).is_file(), "{file}"));
        }
        let list = fs::read_to_string(root.join(equivalents::PATH)).unwrap();
        Equivalents::parse(&list, &AREAS.map(|area| area.name)).unwrap();
    }

    #[test]
    fn a_failed_area_leaves_the_figures_of_the_others() {
        let passed = Report { caught: 1, mutants: 1, ..Report::default() };
        let error = conclude(vec![("cdr", Ok(passed)), ("giop", Err(anyhow::anyhow!("no tests")))]).unwrap_err();
        assert_eq!(error.to_string(), "giop: no tests");
    }
}
