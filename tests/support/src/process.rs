//! Tests in processes of their own, and repeated runs of the current test program.

use std::{
    any::type_name,
    collections::BTreeSet,
    env,
    process::{Command, Output},
};

/// Environment variable of a process that runs one test alone.
const ALONE: &str = "SPANDREL_TEST_ALONE";

/// The current test program as a command, started through the emulator where there is one.
///
/// # Panics
/// If the system does not report the program's path.
#[must_use]
pub fn this_program() -> Command {
    let program = env::current_exe().expect("the path of this program");
    // Cargo passes its runner on to the tests; a program for another machine does not start without it.
    let runner = cfg!(target_arch = "s390x").then(|| env::var("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER").ok());
    let Some(runner) = runner.flatten() else { return Command::new(program) };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().expect("the name of the emulator"));
    command.args(words).arg(program);
    command
}

/// Runs the rest of a test in its own process: for tests that count allocations, descriptors or threads of
/// the whole process, or change its limits. Call it as the only statement of a test: `alone(|| …)`.
///
/// # Panics
/// If the test fails in that process.
#[track_caller]
pub fn alone<F: FnOnce()>(test: F) {
    if env::var_os(ALONE).is_some() || cfg!(miri) {
        return test();
    }
    // `program::module::test::{{closure}}`
    let path = type_name::<F>();
    let name = path.split_once("::").map_or(path, |(_, name)| name).trim_end_matches("::{{closure}}");
    run(&[name.to_owned()], ALONE, "1");
}

/// Runs all tests of these modules (given by their first path segment) again, with this variable in the
/// environment.
///
/// # Panics
/// If a module has no test, or a test fails.
#[track_caller]
pub fn run_modules_with(modules: &[&str], variable: &str, value: &str) {
    let output = this_program().arg("--list").output().expect("this program can be started");
    let listed = String::from_utf8_lossy(&output.stdout);
    let tests: Vec<_> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let module = |test: &str| test.split_once("::").map_or(String::new(), |(module, _)| module.to_owned());
    let found: BTreeSet<_> = tests.iter().map(|test| module(test)).collect();
    for module in modules {
        assert!(found.contains(*module), "no tests in the module {module}");
    }
    let chosen: Vec<_> =
        tests.into_iter().filter(|test| modules.contains(&&*module(test))).map(str::to_owned).collect();
    run(&chosen, variable, value);
}

/// Runs these tests, given by their full paths.
#[track_caller]
fn run(tests: &[String], variable: &str, value: &str) {
    let mut program = this_program();
    let Output { status, stdout, stderr } =
        program.arg("--exact").args(tests).env(variable, value).output().expect("this program can be started");
    let text = String::from_utf8_lossy(&stdout);
    let passed =
        text.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse().ok());
    if !status.success() || passed != Some(tests.len()) {
        panic!(
            "{variable}={value}: {status}, {passed:?} of {} passed\n{text}\n{}",
            tests.len(),
            String::from_utf8_lossy(&stderr)
        );
    }
    println!("{variable}={value}: {} tests passed", tests.len());
}
