//! `cargo xtask full`: the checks that draw random cases, or take too long for each change.
//!
//! `.ci/run` has the checks whose result depends on a change alone. Here each check explores. Each is a step: a process
//! of its own with a time limit, whose output is a file. A failed step does not stop the others. The results of steps
//! belong to the sources that they were run for: the same command goes on after an interruption with the steps that
//! have not passed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use xtask::workspace;

/// The command of a step.
#[derive(Clone, Copy, Debug)]
enum Program {
    /// `cargo xtask` with these arguments.
    Task(&'static [&'static str]),
    Cargo(&'static [&'static str]),
    /// The tests of the workspace, with more random inputs than in `.ci/run`.
    Tests,
    /// The script that installs what the checks need.
    Install,
}

/// One of the checks.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    program: Program,
    /// The time after which it is ended, in minutes.
    limit: u32,
}

const fn task(name: &'static str, arguments: &'static [&'static str], limit: u32) -> Step {
    Step { name, program: Program::Task(arguments), limit }
}

const fn cargo(name: &'static str, arguments: &'static [&'static str], limit: u32) -> Step {
    Step { name, program: Program::Cargo(arguments), limit }
}

const STEPS: [Step; 29] = [
    Step { name: "install", program: Program::Install, limit: 30 },
    task("structure", &["structure"], 15),
    task("features --all", &["features", "--all"], 30),
    Step { name: "tests, with more random inputs", program: Program::Tests, limit: 120 },
    task("models", &["models"], 90),
    task("miri --all", &["miri", "--all"], 240),
    task("big-endian --all", &["big-endian", "--all"], 120),
    task("windows --all", &["windows"], 120),
    task("idl --compile", &["idl", "--compile"], 60),
    task("idl --repository", &["idl", "--repository"], 30),
    task("interop --tshark", &["interop", "--tshark"], 90),
    task("services, 500 kills", &["services"], 90),
    task("events to a silent consumer, an hour", &["services", "--silent", "3600"], 90),
    task("proxy", &["proxy"], 60),
    task("tango", &["tango"], 30),
    task("stacks", &["stacks"], 30),
    task("servers of paper 004", &["servers"], 60),
    task("orchestra", &["orchestra", "--samples", "5", "--requests", "2000"], 90),
    task("orchestra-hosts", &["orchestra-hosts"], 30),
    task("etcd: naming over a cluster", &["etcd"], 60),
    task("jetstream: events over a cluster, ten minutes", &["jetstream"], 60),
    task("hostile peers", &["hostile"], 60),
    task("faults", &["faults"], 60),
    task("fuzzing, 60 seconds a target", &["fuzz", "--seconds", "60"], 60),
    task("book", &["book"], 60),
    task("package --verify", &["package", "--verify"], 90),
    cargo("ttcp --quick", &["run", "--release", "--locked", "--", "ttcp", "--quick"], 60),
    cargo("soak, an hour", &["run", "--release", "--locked", "--", "soak", "--seconds", "3600"], 90),
    task("mutants", &["mutants"], 240),
];

/// The result of a step.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Outcome {
    has_passed: bool,
    seconds: u64,
    /// The last line of its output: what it did, or why it failed.
    last_line: String,
}

/// The results for one state of the sources, kept in a file of the target folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Results {
    /// The state, by [`state_of_sources`].
    sources: String,
    outcomes: BTreeMap<String, Outcome>,
}

impl Results {
    /// Reads the results for this state. Those for another state do not count, nor does a file that is damaged.
    fn read(file: &Path, sources: &str) -> Self {
        let stored = fs::read(file).ok().and_then(|octets| serde_json::from_slice::<Self>(&octets).ok());
        let empty = Self { sources: sources.to_owned(), outcomes: BTreeMap::new() };
        stored.filter(|results| results.sources == sources).unwrap_or(empty)
    }

    fn write(&self, file: &Path) -> Result<()> {
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec_pretty(self)?).with_context(|| new.display().to_string())?;
        fs::rename(&new, file).with_context(|| file.display().to_string())
    }

    fn has_passed(&self, step: &Step) -> bool {
        self.outcomes.get(step.name).is_some_and(|outcome| outcome.has_passed)
    }
}

/// The arguments of the steps that are tasks.
#[cfg(test)]
pub(crate) fn tasks() -> impl Iterator<Item = &'static [&'static str]> {
    STEPS.into_iter().filter_map(|step| match step.program {
        Program::Task(arguments) => Some(arguments),
        _ => None,
    })
}

/// Runs the steps whose names begin with one of these words; without a word, all that have not passed yet, and with
/// `again` all. Fails if a step has failed.
pub(crate) fn run(words: &[&str], again: bool) -> Result<()> {
    let selected = selected(words)?;
    let folder = std::path::absolute(workspace::target().join("full"))?;
    fs::create_dir_all(&folder)?;
    let file = folder.join("results.json");
    let mut results = Results::read(&file, &state_of_sources()?);
    // Beside this program, which it has started.
    let xtask = std::env::current_exe()?.with_file_name("xtask");
    let is_done = |results: &Results, step: &Step| !again && words.is_empty() && results.has_passed(step);
    let pending: Vec<_> = selected.iter().filter(|step| !is_done(&results, step)).collect();
    println!("{} of {} steps to run; their output is in {}", pending.len(), selected.len(), folder.display());
    for step in pending {
        println!("\n== {}", step.name);
        let outcome = step.run(&folder, &xtask)?;
        println!("{}", line(step, Some(&outcome)));
        results.outcomes.insert(step.name.to_owned(), outcome);
        results.write(&file)?;
    }
    conclude(&selected, &results)
}

/// Prints a line for each step, and fails if one has not passed.
fn conclude(steps: &[Step], results: &Results) -> Result<()> {
    println!("\nsources: {}", results.sources);
    for step in steps {
        println!("{}", line(step, results.outcomes.get(step.name)));
    }
    let failed: Vec<_> = steps.iter().filter(|step| !results.has_passed(step)).map(|step| step.name).collect();
    if !failed.is_empty() {
        bail!("{} of {} steps failed: {}", failed.len(), steps.len(), failed.join(", "));
    }
    Ok(())
}

/// The line of a step in the table.
fn line(step: &Step, outcome: Option<&Outcome>) -> String {
    let Some(Outcome { has_passed, seconds, last_line }) = outcome else {
        return format!("not run        {}", step.name);
    };
    let word = if *has_passed { "passed" } else { "FAILED" };
    format!("{word} {:>4}:{:02}  {}: {last_line}", seconds / 60, seconds % 60, step.name)
}

fn selected(words: &[&str]) -> Result<Vec<Step>> {
    if let Some(word) = words.iter().find(|word| !STEPS.iter().any(|step| step.name.starts_with(**word))) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!("no step begins with `{word}`; there are: {}", names.join(", "));
    }
    let is_selected = |step: &Step| words.is_empty() || words.iter().any(|word| step.name.starts_with(word));
    Ok(STEPS.into_iter().filter(is_selected).collect())
}

impl Step {
    /// Runs it to its end or its time limit, with its output in a file of the folder.
    fn run(&self, folder: &Path, xtask: &Path) -> Result<Outcome> {
        let path = folder.join(self.file_name());
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let start = Instant::now();
        let mut command = self.command(xtask);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).current_dir(workspace::root());
        let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
        let output = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let last_line = match status.code() {
            Some(TIMED_OUT) => format!("ended after {} minutes", self.limit),
            _ => last_line(&output).to_owned(),
        };
        Ok(Outcome { has_passed: status.success(), seconds: start.elapsed().as_secs(), last_line })
    }

    /// The command, below `timeout`, which ends all processes of the step's process group.
    fn command(&self, xtask: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=30s", &format!("{}m", self.limit)]);
        match self.program {
            Program::Task(arguments) => command.arg(xtask).args(arguments),
            Program::Cargo(arguments) => command.arg(workspace::cargo_program()).args(arguments),
            Program::Tests => command
                .arg(workspace::cargo_program())
                .args(["test", "--quiet", "--workspace", "--no-fail-fast"])
                .env("PROPTEST_CASES", "1024"),
            Program::Install => command.arg(workspace::root().join(".ci/install")),
        };
        command.env("CARGO_TERM_COLOR", "never");
        command
    }

    fn file_name(&self) -> PathBuf {
        let words: Vec<_> =
            self.name.split(|letter: char| !letter.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        PathBuf::from(words.join("-")).with_extension("log")
    }
}

/// The exit code of `timeout` for a command that it has ended.
const TIMED_OUT: i32 = 124;

/// The last line of an output that is not empty.
fn last_line(output: &str) -> &str {
    output.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output")
}

/// The commit, and a number for the changes that are not committed, if there are any.
fn state_of_sources() -> Result<String> {
    let git = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(workspace::root())
            .output()
            .context("cannot start git, which tells the state of the sources")?;
        ensure!(output.status.success(), "git failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["stash", "create"])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    if changed.is_empty() && untracked.is_empty() {
        return Ok(commit);
    }
    let tree = if changed.is_empty() { String::new() } else { git(&["rev-parse", &format!("{changed}^{{tree}}")])? };
    let mut contents = Vec::new();
    for file in untracked.lines() {
        contents.push(git(&["hash-object", "--", file])?);
    }
    let mut hasher = DefaultHasher::new();
    (tree, contents).hash(&mut hasher);
    Ok(format!("{commit} with changes {:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: Step = cargo("passes", &["--version"], 1);
    const FAILS: Step = cargo("fails: always", &["no-such-command"], 1);

    #[test]
    fn steps_are_selected_by_the_beginning_of_their_names() {
        let names = |words: &[&str]| selected(words).unwrap().iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(&[]).len(), STEPS.len());
        assert_eq!(names(&["models", "miri"]), ["models", "miri --all"]);
        let error = selected(&["moon"]).unwrap_err().to_string();
        assert!(error.starts_with("no step begins with `moon`; there are: install"), "{error}");
    }

    #[test]
    fn steps_have_different_names_and_files() {
        let names: std::collections::BTreeSet<_> = STEPS.iter().map(Step::file_name).collect();
        assert_eq!(names.len(), STEPS.len());
        assert_eq!(FAILS.file_name(), Path::new("fails-always.log"));
    }

    #[test]
    fn a_step_records_its_result_and_the_last_line_of_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let passed = PASSES.run(folder.path(), Path::new("xtask")).unwrap();
        assert!(passed.has_passed && passed.last_line.starts_with("cargo "), "{passed:?}");
        let failed = FAILS.run(folder.path(), Path::new("xtask")).unwrap();
        assert!(!failed.has_passed && !failed.last_line.is_empty(), "{failed:?}");
        assert!(fs::read_to_string(folder.path().join("fails-always.log")).unwrap().contains("no-such-command"));
    }

    #[test]
    fn results_count_for_the_same_sources_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.json");
        let mut results = Results::read(&file, "one");
        assert!(!results.has_passed(&PASSES));
        let outcome = Outcome { has_passed: true, seconds: 61, last_line: "done".to_owned() };
        assert_eq!(line(&PASSES, Some(&outcome)), "passed    1:01  passes: done");
        results.outcomes.insert(PASSES.name.to_owned(), outcome);
        results.write(&file).unwrap();
        assert!(Results::read(&file, "one").has_passed(&PASSES));
        assert!(!Results::read(&file, "two").has_passed(&PASSES));
        fs::write(&file, "{\"sources\":\"one\"").unwrap();
        assert!(!Results::read(&file, "one").has_passed(&PASSES));
    }

    #[test]
    fn a_step_that_did_not_pass_makes_the_whole_fail() {
        let mut results = Results::default();
        let error = conclude(&[PASSES, FAILS], &results).unwrap_err().to_string();
        assert_eq!(error, "2 of 2 steps failed: passes, fails: always");
        let outcome = Outcome { has_passed: true, seconds: 0, last_line: String::new() };
        results.outcomes.insert(PASSES.name.to_owned(), outcome);
        conclude(&[PASSES], &results).unwrap();
    }
}
