//! The executable, and a short run of everything that the tests share.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Runs the executable with these arguments.
pub(crate) fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spandrel-lab")).args(args).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn check_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
}

/// The cells of a printed table, by rows.
pub(crate) fn cells(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with the results of a short run of all figures and tables. All tests share the one run.
pub(crate) fn results() -> &'static Path {
    static RESULTS: OnceLock<(tempfile::TempDir, PathBuf, Output)> = OnceLock::new();
    // A failure is kept as well: all tests fail by it, and it is not repeated.
    let (_, folder, output) = RESULTS.get_or_init(|| {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results");
        let output = lab(&["run", "all", "--short", "--out", text(&folder)]);
        (root, folder, output)
    });
    // Links between network namespaces need root; where they are expected, their failure is one.
    let lines = stdout(output);
    let mut failures = lines.lines().filter(|line| line.starts_with("failed: "));
    let is_link =
        |line: &str| line.contains(": the link between network namespaces (it needs root, ip and tc) failed: ");
    if expects_links() || !failures.all(is_link) {
        check_code(output, 0);
    }
    folder
}

/// Whether links between network namespaces can be set up in any case.
pub(crate) fn expects_links() -> bool {
    std::env::var_os("SPANDREL_EXPECTS_NETNS").is_some()
}

/// A copy of the shared results, to change them.
pub(crate) fn copy_of_results() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(results()).unwrap() {
        let file = entry.unwrap().path();
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    copy
}
