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

/// The verdict on a series of the first folder, if it is better or worse.
fn verdict(first: &Path, second: &Path, series: &str) -> Option<String> {
    let output = lab(&["compare", text(first), text(second)]);
    check_code(&output, 0);
    let lines = stdout(&output);
    let line = lines.lines().find(|line| line.contains("lookups/random/500/100") && line.contains(series))?;
    let cell = line.trim_end_matches([' ', '|']).rsplit([' ', '|']).next()?;
    Some(cell.to_owned())
}

#[test]
fn a_difference_beyond_the_corrected_interval_is_told() {
    let (first, second) = (copy_of_results(), copy_of_results());
    let file = "lookups.random.500.100.json";
    let base = [100.0, 100.2, 99.8, 100.1, 99.9, 100.0, 100.2, 99.8, 100.1, 99.9];
    let times = |factor: f64| base.map(|value| value * factor);
    set(second.path(), file, "active", &base);
    for (factor, expected) in
        [(1.0, None), (1.02, None), (0.98, None), (1.1, Some("worse")), (0.9, Some("better")), (1.2, Some("worse"))]
    {
        set(first.path(), file, "active", &times(factor));
        assert_eq!(verdict(first.path(), second.path(), " active ").as_deref(), expected, "{factor}");
    }
    // 10 % apart, of rounds that differ by a third of their values.
    let noisy = [80.0, 140.0, 95.0, 125.0, 70.0, 150.0, 100.0, 120.0, 85.0, 135.0];
    set(first.path(), file, "active", &noisy);
    assert_eq!(verdict(first.path(), second.path(), " active "), None);
    // Of rates, more is better.
    let stacks = "stacks.tcp.2.json";
    set(second.path(), stacks, "message adaptive Mbit/s", &base);
    set(first.path(), stacks, "message adaptive Mbit/s", &times(1.2));
    let output = lab(&["compare", text(first.path()), text(second.path())]);
    assert!(stdout(&output).contains("series compared: 1 better, 0 worse, "), "{}", stdout(&output));
    // 5 % apart with a deviation of 2 %: alone a difference, among hundreds of comparisons chance.
    set(first.path(), file, "active", &[105.0, 107.0, 103.0, 105.0]);
    set(second.path(), file, "active", &[100.0, 102.0, 98.0, 100.0]);
    assert_eq!(verdict(first.path(), second.path(), " active "), None);
    for folder in [&first, &second] {
        for entry in fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.file_name() != file) {
            fs::remove_file(entry.path()).unwrap();
        }
        let path = folder.path().join(file);
        let mut result: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        result["series"].as_array_mut().unwrap().retain(|series| series["name"] == "active");
        fs::write(&path, result.to_string()).unwrap();
    }
    assert_eq!(verdict(first.path(), second.path(), " active ").as_deref(), Some("worse"));
    // A single round shows no variance.
    set(first.path(), file, "active", &[105.0]);
    let output = lab(&["compare", text(first.path()), text(second.path())]);
    assert!(stdout(&output).contains("1 with too few rounds"), "{}", stdout(&output));
}

#[test]
fn points_of_one_folder_are_named() {
    let second = copy_of_results();
    fs::remove_file(second.path().join("definitions.json")).unwrap();
    let output = lab(&["compare", text(results()), text(second.path())]);
    check_code(&output, 0);
    assert!(stdout(&output).contains("not compared: definitions: only in"), "{}", stdout(&output));
    let output = lab(&["compare", text(results()), text(&second.path().join("nowhere"))]);
    check_code(&output, 1);
    assert!(stderr(&output).starts_with("error: cannot compare: cannot read the folder"), "{}", stderr(&output));
}
