//! Tables of the sentences and exceptions of a specification, with the tests of each.
//!
//! The table is the file `sentences.md` beside the tests of a service. Its section `Sentences` has rows of a clause, the
//! sentence in own words, and tests. Its section `Exceptions` has rows of an operation, an exception that it raises, and the
//! test that receives it; in place of the test stands `none: REASON` where the service cannot raise the exception.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Operations as `Interface::operation`, each with an exception that it raises.
type OperationExceptions = BTreeSet<(String, String)>;
/// The text of each test, by `file::name`.
type TestBodies = BTreeMap<String, String>;

/// Requires that the outcome of a call is an exception, by the variant of the operation's error.
#[macro_export]
macro_rules! raises {
    ($exception:path, $call:expr) => {
        match $call {
            Err($exception(_)) => {}
            Err(other) => panic!("{}: {other}", stringify!($call)),
            Ok(_) => panic!("{} raises nothing", stringify!($call)),
        }
    };
}

/// Compares the table in a folder of tests with these tests, and with the exceptions of the operations in IDL files.
///
/// # Panics
/// If a row has no test, or one whose text does not name the operation and the exception; if an exception of an operation
/// has no row.
pub fn check_sentences(tests: &Path, idl: &[impl AsRef<Path>]) {
    let raised = idl.iter().flat_map(|file| raised_exceptions(&read(file.as_ref()))).collect();
    let faults = faults(&read(&tests.join("sentences.md")), &test_bodies(tests), raised);
    assert!(faults.is_empty(), "{} faults in sentences.md:\n{}", faults.len(), faults.join("\n"));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn faults(table: &str, bodies: &TestBodies, mut raised: OperationExceptions) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rows = BTreeMap::<String, usize>::new();
    for (section, cells) in table_rows(table) {
        *rows.entry(section.clone()).or_default() += 1;
        match (&*section, &cells[..]) {
            ("Sentences", [clause, sentence, tests]) => {
                if clause.is_empty() || sentence.is_empty() {
                    faults.push(format!("a sentence without clause or text: {clause} {sentence}"));
                }
                let unknown = tests.split(", ").filter(|test| !bodies.contains_key(*test));
                faults.extend(unknown.map(|test| format!("{clause} {sentence}: no test `{test}`")));
            }
            ("Exceptions", [operation, exception, test]) => {
                let row = format!("{operation} raises {exception}");
                if !raised.remove(&(operation.clone(), exception.clone())) {
                    faults.push(format!("{row}: a second row, or the IDL does not say so"));
                }
                let name = operation.rsplit("::").next().unwrap_or(operation);
                match (test.strip_prefix("none: "), bodies.get(test)) {
                    (Some(reason), _) if !reason.is_empty() => {}
                    (_, Some(body)) if has_name(body, name) && has_name(body, exception) => {}
                    (_, Some(_)) => faults.push(format!("{row}: the test `{test}` does not name both")),
                    (_, None) => faults.push(format!("{row}: no test `{test}`")),
                }
            }
            (section, cells) => faults.push(format!("the section `{section}` has a row of {} cells", cells.len())),
        }
    }
    faults.extend(raised.iter().map(|(operation, exception)| format!("{operation} raises {exception}: no row")));
    let sections = ["Sentences", "Exceptions"].into_iter().filter(|section| !rows.contains_key(*section));
    faults.extend(sections.map(|section| format!("no row in the section `{section}`")));
    faults
}

/// The rows of all tables without their heads, each with the heading above it.
fn table_rows(table: &str) -> Vec<(String, Vec<String>)> {
    let (mut section, mut line_of_table) = ("", 0);
    let mut rows = Vec::new();
    for line in table.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            line_of_table = 0;
            continue;
        };
        line_of_table += 1;
        if line_of_table > 2 {
            rows.push((section.to_owned(), cells.split('|').map(|cell| cell.trim().replace('`', "")).collect()));
        }
    }
    rows
}

/// Whether a text has a name of IDL, in whatever case and with underscores or not, as Rust has it.
fn has_name(text: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    plain(text).contains(&plain(name))
}

fn test_bodies(tests: &Path) -> TestBodies {
    let mut bodies = TestBodies::new();
    for entry in fs::read_dir(tests).unwrap_or_else(|error| panic!("{}: {error}", tests.display())) {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", tests.display())).path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            bodies.extend(tests_of(&read(&path)).map(|(name, body)| (format!("{module}::{name}"), body)));
        }
    }
    bodies
}

/// The tests of a formatted file by their names.
fn tests_of(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        lines.find(|line| line.trim() == "#[test]")?;
        let head = lines.find(|line| line.contains("fn "))?;
        let (before, name) = head.split_once("fn ")?;
        let end = format!("{}}}", " ".repeat(before.len()));
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        Some((name.split('(').next().unwrap_or(name).to_owned(), body.join("\n")))
    })
}

/// The exceptions of the operations in the text of an IDL file, without those of included files.
fn raised_exceptions(idl: &str) -> OperationExceptions {
    let text = without_comments(idl);
    let mut tokens = tokens(&text).into_iter();
    // The names of interfaces whose braces are open, and `None` for other braces.
    let mut scopes: Vec<Option<&str>> = Vec::new();
    let (mut declared, mut operation, mut last) = (None, "", "");
    let mut raised = OperationExceptions::new();
    while let Some(token) = tokens.next() {
        match token {
            "interface" => declared = tokens.next().map(|name| name.trim_end_matches(':')),
            "{" => scopes.push(declared.take()),
            "}" => drop(scopes.pop()),
            ";" => declared = None,
            "(" => operation = last,
            "raises" => {
                let interface = scopes.iter().rev().find_map(|scope| *scope).unwrap_or_default();
                let names = tokens.by_ref().take_while(|token| *token != ")");
                let exceptions = names.filter(|token| !matches!(*token, "(" | ","));
                let exception = |name: &str| name.rsplit(':').next().unwrap_or(name).to_owned();
                raised.extend(exceptions.map(|name| (format!("{interface}::{operation}"), exception(name))));
            }
            _ => {}
        }
        last = token;
    }
    raised
}

fn without_comments(idl: &str) -> String {
    let mut text = String::new();
    let mut rest = idl;
    while let Some((code, comment)) = rest.split_once("/*") {
        text += code;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    text += rest;
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(code).collect::<Vec<_>>().join("\n")
}

/// Scoped names, and each other character by itself.
fn tokens(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_name(first) { rest.find(|c| !is_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDL: &str = "
        #pragma prefix \"x\"
        module M { // raises (A)
          interface Later;
          exception Gone {};
          /* interface Other { void no() raises (Gone); }; */
          interface Base { void stop(in string why) raises (Gone, N::Full); void plain(); };
          interface Media: Base, N::Other { exception Own { long key; }; long go_on() raises (Own); };
        };";
    const TESTS: &str = "
#[test]
#[cfg(unix)]
fn stops() {
    assert!(matches!(base.stop(\"x\"), Err(StopError::Gone(_))));
}

mod inner {
    #[test]
    fn goes() {
        media.go_on()
    }
}
";

    fn row(table: &str, more: &str) -> Vec<String> {
        let bodies = tests_of(TESTS).map(|(name, body)| (format!("m::{name}"), body)).collect();
        faults(&format!("{table}{more}"), &bodies, raised_exceptions(IDL))
    }

    const TABLE: &str = "# T\n\n## Sentences\n\n| clause | sentence | tests |\n| --- | --- | --- |\n\
        | 1.2 | It ends. | `m::stops`, `m::goes` |\n\n## Exceptions\n\n| operation | exception | test |\n| --- | --- | --- |\n\
        | `Base::stop` | `Gone` | `m::stops` |\n| `Base::stop` | `Full` | none: it is never full |\n";

    #[test]
    fn exceptions_are_those_of_the_operations_of_each_interface() {
        let raised: Vec<(String, String)> = raised_exceptions(IDL).into_iter().collect();
        let expected = [("Base::stop", "Full"), ("Base::stop", "Gone"), ("Media::go_on", "Own")];
        assert_eq!(raised, expected.map(|(operation, exception)| (operation.to_owned(), exception.to_owned())));
    }

    #[test]
    fn a_table_has_a_row_for_each_exception_and_a_test_in_each_row() {
        assert_eq!(row(TABLE, ""), ["Media::go_on raises Own: no row"]);
        let whole = "| `Media::go_on` | `Own` | none: no such medium |\n";
        assert_eq!(row(TABLE, whole), [""; 0]);
        let cases = [
            (
                "| `Media::go_on` | `Own` | `m::goes` |\n",
                "Media::go_on raises Own: the test `m::goes` does not name both",
            ),
            ("| `Media::go_on` | `Own` | `m::ends` |\n", "Media::go_on raises Own: no test `m::ends`"),
            ("| `Media::go_on` | `Own` | none: |\n", "Media::go_on raises Own: no test `none:`"),
        ];
        for (more, expected) in cases {
            assert_eq!(row(TABLE, more), [expected]);
        }
        let twice = format!("{whole}{whole}");
        assert_eq!(row(TABLE, &twice), ["Media::go_on raises Own: a second row, or the IDL does not say so"]);
        assert_eq!(row(&TABLE.replace("`m::goes`", "`m::none`"), whole), ["1.2 It ends.: no test `m::none`"]);
        assert_eq!(row("", "").len(), 5, "three exceptions and both sections");
    }
}
