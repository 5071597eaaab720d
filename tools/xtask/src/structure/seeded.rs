//! Each kind of violation, seeded in a small repository, and found there.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{complaints, first_command, measure, programs};
use crate::metadata;

/// A repository of a command line and two libraries, without violations.
struct Repository {
    folder: TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"net/*\", \"orb/*\", \"tools/*\"]\ndefault-members = [\"tools/cli\"]\n",
        );
        repository.write("tools/xtask/structure.toml", "gates = 0\n");
        repository.package("tools/xtask", "xtask", "");
        repository.package("net/error", "spandrel-error", "");
        repository.package("orb/cdr", "spandrel-cdr", "spandrel-error = { path = \"../../net/error\" }\n");
        repository.package("tools/cli", "spandrel-cli", "spandrel-cdr = { path = \"../../orb/cdr\" }\n");
        repository
    }

    /// Writes a package with an empty library.
    fn package(&self, folder: &str, name: &str, dependencies: &str) {
        let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        self.write(&format!("{folder}/Cargo.toml"), &format!("{package}[dependencies]\n{dependencies}"));
        self.write(&format!("{folder}/src/lib.rs"), "");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn complaints(&self) -> Vec<String> {
        // Cargo names folders without symbolic links.
        let root = self.root().canonicalize().unwrap();
        let built_first = first_command::packages(&root).unwrap(); // writes the lock file
        let packages = metadata::packages(&root).unwrap();
        complaints(&root, &measure(&packages).unwrap(), &packages, &built_first).unwrap()
    }
}

/// Checks that a repository with these files has these complaints.
fn seed(files: &[(&str, &str)], expected: &[&str]) {
    let repository = Repository::new();
    files.iter().for_each(|(path, text)| repository.write(path, text));
    assert_eq!(repository.complaints(), expected, "{files:?}");
}

const LIST: &str = "tools/xtask/structure.toml";
const ROOT: &str = "orb/cdr/src/lib.rs";
const ONE: &str = "orb/cdr/src/one.rs";
const TWO: &str = "orb/cdr/src/two.rs";
const GATE: &str = "#[cfg(feature = \"x\")] mod gated {}\n";

#[test]
fn a_repository_without_violations_has_no_complaint() {
    seed(&[], &[]);
}

#[test]
fn modules_that_use_each_other_are_found() {
    let cycle = [
        (ROOT, "mod one; mod two;"),
        (ONE, "use crate::two::Two; pub struct One(Option<Box<Two>>);"),
        (TWO, "use crate::one::One; pub struct Two(One);"),
    ];
    let expected = [
        "modules in the largest cycle of spandrel-cdr: 2, at most 0 are allowed",
        "modules in all cycles of spandrel-cdr: 2, at most 0 are allowed",
        "    cycles of spandrel-cdr: one two",
        "    their edges: cargo xtask structure --crate spandrel-cdr",
        "files in the largest cycle of files of spandrel-cdr: 2, at most 0 are allowed",
        "    cycles of files of spandrel-cdr: one.rs two.rs",
        "    their edges: cargo xtask structure --crate spandrel-cdr --edges",
    ];
    seed(&cycle, &expected);
    let pair = "gates = 0\n[[pair]]\npackage = \"spandrel-cdr\"\nmodules = [\"one\", \"two\"]\nreason = \"a reason\"\n";
    seed(&[&cycle[..], &[(LIST, pair)]].concat(), &expected[4..]);
}

#[test]
fn files_of_one_module_that_use_each_other_are_found() {
    let files = [(ROOT, "mod one;"), (ONE, "mod child; use child::start; pub struct One; fn f() { start() }")];
    let child = [("orb/cdr/src/one/child.rs", "use super::One; pub fn start() -> Option<One> { None }")];
    seed(
        &[&files[..], &child[..]].concat(),
        &[
            "files in the largest cycle of files of spandrel-cdr: 2, at most 0 are allowed",
            "    cycles of files of spandrel-cdr: one.rs one/child.rs",
            "    their edges: cargo xtask structure --crate spandrel-cdr --edges",
        ],
    );
}

#[test]
fn gates_are_found_in_orb_alone() {
    seed(&[(ROOT, GATE), ("net/error/src/lib.rs", GATE)], &["gates in orb/ and spandrel/: 1, at most 0 are allowed"]);
}

#[test]
fn bounds_above_the_figures_and_entries_without_need_are_found() {
    let pair =
        |modules: &str| format!("[[pair]]\npackage = \"spandrel-cdr\"\nmodules = [{modules}]\nreason = \"a reason\"\n");
    let list = format!(
        "gates = 3\n[cycles]\nspandrel-cdr = {{ largest = 2, all = 4 }}\n[file-cycles]\nspandrel-cdr = 2\n{}",
        pair("\"a\", \"b\"").repeat(4)
    );
    let repository = Repository::new();
    repository.write(LIST, &list);
    let complaints = repository.complaints();
    for expected in
        ["4 pairs are listed, 3 at most are allowed", "a and b of spandrel-cdr are not a cycle: remove their entry"]
    {
        assert!(complaints.iter().any(|complaint| complaint == expected), "{expected}: {complaints:?}");
    }
    for figure in ["gates in", "modules in the largest", "modules in all", "files in the largest"] {
        let lower = |complaint: &&String| complaint.contains(figure) && complaint.contains("--record");
        assert_eq!(complaints.iter().filter(lower).count(), 1, "{figure}: {complaints:?}");
    }
}

#[test]
fn internal_items_that_no_other_crate_names_are_found() {
    let files = [
        (ROOT, "mod one; #[doc(hidden)] pub mod internal;"),
        (ONE, "pub struct Used; pub struct Tested; pub struct Own; pub fn part() {} pub fn rest() {}"),
        ("orb/cdr/src/internal.rs", "mod inner; pub use crate::one::{Own, Tested, Used}; pub use inner::*;"),
        ("orb/cdr/src/internal/inner.rs", "pub mod parts { pub use crate::one::{part, rest}; } fn private() {}"),
        (TWO, ""),
        (
            "tools/cli/src/lib.rs",
            "use spandrel_cdr::internal::{Used as Renamed, parts}; pub fn f(_: Renamed) { parts::part() }
             #[cfg(test)] mod tests { use spandrel_cdr::internal::Tested; }",
        ),
    ];
    let expected = [
        "internal::Own of spandrel-cdr is named by no other crate",
        "internal::Tested of spandrel-cdr is named by no other crate",
        "internal::inner::parts::rest of spandrel-cdr is named by no other crate",
    ];
    seed(&files, &expected);
}

#[test]
fn globs_of_a_module_internal_are_found() {
    let files = [(ROOT, "mod one; pub mod internal { pub use crate::one::*; }"), (ONE, "pub struct Used;")];
    seed(&files, &["internal of spandrel-cdr has a glob: name the items of crate::one"]);
}

#[test]
fn dependencies_that_do_not_point_down_are_found() {
    let repository = Repository::new();
    repository.package("net/error", "spandrel-error", "");
    repository.package("net/sync", "spandrel-sync", "spandrel-giop = { path = \"../../orb/giop\" }\n");
    repository.package("orb/giop", "spandrel-giop", "");
    repository.package("orb/cdr", "spandrel-cdr", "spandrel-giop = { path = \"../giop\" }\n");
    repository.package("orb/unknown", "spandrel-unknown", "");
    assert_eq!(
        repository.complaints(),
        [
            "net/sync must not depend on orb/giop: dependencies point down, and right inside a layer",
            "orb/cdr must not depend on orb/giop: dependencies point down, and right inside a layer",
            "orb/unknown has no place in the layers (tools/xtask/src/structure/layers.rs)",
        ]
    );
}

#[test]
fn files_outside_of_every_test_program_are_found() {
    let repository = Repository::new();
    repository.write("orb/cdr/tests/main.rs", "mod named;\n");
    repository.write("orb/cdr/tests/named.rs", "");
    repository.write("orb/cdr/tests/orphan.rs", "");
    let manifest = repository.root().join("orb/cdr/Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap().replace("edition", "autotests = false\nedition");
    fs::write(manifest, text + "[[test]]\nname = \"cdr\"\npath = \"tests/main.rs\"\n").unwrap();
    let complaints = repository.complaints();
    assert!(complaints.len() == 1 && complaints[0].ends_with("orb/cdr/tests/orphan.rs is a module of no test program"));
}

#[test]
fn too_many_test_programs_and_packages_and_another_default_are_found() {
    let repository = Repository::new();
    let mut dependencies = String::new();
    for number in 0..=first_command::MAX {
        repository.package(&format!("tools/p{number}"), &format!("p{number}"), "");
        dependencies += &format!("p{number} = {{ path = \"../p{number}\" }}\n");
    }
    repository.package("tools/cli", "spandrel-cli", &dependencies);
    repository.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"net/*\", \"orb/*\", \"tools/*\"]\n");
    let complaints = repository.complaints();
    let begins = |start: String| complaints.iter().any(|complaint| complaint.starts_with(&start));
    // A library each, with those of the small repository.
    let (programs, packages) = (first_command::MAX + 5, first_command::MAX + 1);
    assert!(begins(format!("{programs} test programs, where {} are allowed", programs::MAX)), "{complaints:?}");
    assert!(begins(format!("{packages} packages below spandrel-cli, where {} are allowed", first_command::MAX)));
    assert!(begins("Cargo.toml lacks `default-members = [\"tools/cli\"]`".to_owned()));
}

#[test]
fn short_docs_vague_names_and_matches_on_unit_are_found() {
    let violations = "/// The value.\npub fn value(of: u8) -> u8 { match () { () if of == 1 => 2, () => 3 } }\n";
    let expected = [
        "short doc comments: 1, at most 0 are allowed",
        "vague names: 1, at most 0 are allowed",
        "matches on `()`: 1, at most 0 are allowed",
        "    their locations: cargo xtask structure --words",
    ];
    seed(&[(ROOT, violations)], &expected);
    let bounds = "gates = 0\n[words]\nshort-docs = 1\nvague-names = 1\nunit-matches = 1\n";
    seed(&[(ROOT, violations), (LIST, bounds)], &[]);
    let lower = "vague names: 0, fewer than the bound 1: lower it with cargo xtask structure --record";
    seed(&[(ROOT, "/// The value.\npub fn value() { match () { () => {} } }\n"), (LIST, bounds)], &[lower]);
}
