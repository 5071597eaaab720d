//! `lab compare`: verdicts on two folders.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{check_code, copy_of_results, lab, results, stderr, stdout, text};

/// Gives a series of the copy these values.
fn set(folder: &Path, file: &str, series: &str, values: &[f64]) {
    let path = folder.join(file);
    let mut result: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let all = result["series"].as_array_mut().unwrap();
    let own = all.iter_mut().find(|one| one["name"] == series).unwrap();
    own["values"] = values.into();
    fs::write(&path, result.to_string()).unwrap();
}

#[test]
fn a_folder_does_not_differ_from_itself() {
    let output = lab(&["compare", text(results()), text(results())]);
    check_code(&output, 0);
    assert!(stdout(&output).contains(" series compared: 0 better, 0 worse, "), "{}", stdout(&output));
}

#[test]
fn a_difference_beyond_the_corrected_interval_is_told() {
    let (first, second) = (copy_of_results(), copy_of_results());
    let file = "lookups.random.500.100.json";
    let base = [100.0, 100.2, 99.8, 100.1, 99.9, 100.0, 100.2, 99.8, 100.1, 99.9];
    set(second.path(), file, "active", &base);
    set(first.path(), file, "active", &base.map(|value| value * 1.2));
    // Of the same size, but within 3 %.
    set(second.path(), file, "linear", &base);
    set(first.path(), file, "linear", &base.map(|value| value * 1.02));
    fs::remove_file(second.path().join("definitions.json")).unwrap();
    let output = lab(&["compare", text(first.path()), text(second.path())]);
    check_code(&output, 0);
    let text_of = stdout(&output);
    assert!(text_of.contains("series compared: 0 better, 1 worse, "), "{text_of}");
    let line = text_of.lines().find(|line| line.contains("lookups/random/500/100")).unwrap();
    assert!(line.contains("active") && line.contains("+20.0 %") && line.contains("worse"), "{line}");
    assert!(text_of.contains("not compared: definitions: only in"), "{text_of}");
    let output = lab(&["compare", text(first.path()), text(&first.path().join("nowhere"))]);
    check_code(&output, 1);
    assert!(stderr(&output).starts_with("error: cannot compare: cannot read the folder"), "{}", stderr(&output));
}
