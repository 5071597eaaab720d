//! `spandrel latency` from its command line to the files that it writes.

use crate::support;

use std::fs;

use support::{check_code, check_width, spandrel, stdout};

#[test]
fn every_mechanism_has_its_row_and_absent_ones_their_reason() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = folder.path().to_str().unwrap();
    let args = [
        "latency",
        "--placement",
        "free",
        "--calls",
        "40",
        "--rounds",
        "2",
        "--out",
        out,
        "--omniorb",
        nowhere.path().to_str().unwrap(),
    ];
    let output = spandrel(&args);
    check_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("absent: ") && text.contains("has no latency-server"), "{text}");

    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("latency.json")).unwrap()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 11, "two kinds of call, ten mechanisms and omniORB");
    for row in rows {
        let absent = row["contender"] == "omniorb";
        assert_eq!(row["median_us"].is_null(), absent, "{row}");
        assert_eq!(row["absent"].is_null(), !absent, "{row}");
        assert!(absent || row["ratio"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let rounds = fs::read_to_string(folder.path().join("rounds.csv")).unwrap();
    assert_eq!(rounds.lines().count(), 1 + 2 * 2 * 10);
}

#[test]
fn sockets_send_as_many_octets_as_the_orb_does() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = spandrel(&[
        "latency",
        "--mechanisms",
        "c,orb",
        "--placement",
        "free",
        "--calls",
        "10",
        "--rounds",
        "1",
        "--out",
        out,
    ]);
    check_code(&output, 0);
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("latency.json")).unwrap()).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let (request, reply) = (row["wire"][0].as_u64().unwrap(), row["wire"][1].as_u64().unwrap());
        // A GIOP header and a request header without parameters; also 1,024 structs of 24 octets, padded to
        // start at 8.
        let (least, most) = if row["case"] == "void" { (12 + 24, 200) } else { (1024 * 24, 1024 * 24 + 200) };
        assert!((least..most).contains(&request), "{row}");
        assert_eq!(reply, 24, "a GIOP header, request id, status and an empty list of contexts");
    }
}

fn servants(out: &std::path::Path, args: &[&str]) -> (String, serde_json::Value) {
    let usual =
        ["latency", "--mechanisms", "orb", "--call", "twoway", "--case", "void", "--placement", "free", "--out"];
    let output = spandrel(&[&usual[..], &[out.to_str().unwrap()], args].concat());
    check_code(&output, 0);
    let json = fs::read_to_string(out.join("servants.json")).unwrap();
    (stdout(&output), serde_json::from_str(&json).unwrap())
}

/// As in chapter 4 of paper 001: the server counts the servants that the timed calls have reached.
#[test]
fn all_servants_are_called_in_each_round() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--servants", "1,7", "--style", "static,dii,dsi", "--calls", "50", "--rounds", "2"];
    let (text, json) = servants(folder.path(), &args);
    let measured = json["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 2 * 4 * 3 * 2, "numbers of servants, algorithms, styles, rounds");
    for one in measured {
        let servants = one["servants"].as_u64().unwrap();
        assert_eq!(one["times"]["calls"], servants * 100, "{one}");
        let called = if one["job"]["algorithm"] == "worst-case" { 1 } else { servants };
        assert_eq!(one["servants_called"], called, "{one}");
    }
    assert!(text.contains("| orb: servants called |"), "{text}");
    assert!(!text.contains("A round calls a part"), "{text}");
}

#[test]
fn each_round_calls_different_servants_of_too_many_and_reports_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--servants", "1,5000", "--style", "static", "--calls", "50", "--most-calls", "300", "--rounds", "2"];
    let (text, json) = servants(folder.path(), &args);
    let rows = json["measured"].as_array().unwrap().iter().filter(|one| one["servants"] == 5000);
    let mut begins = Vec::new();
    for one in rows {
        assert_eq!(one["times"]["calls"], 300, "{one}");
        let called = one["servants_called"].as_u64().unwrap();
        let expected = match one["job"]["algorithm"].as_str().unwrap() {
            "train" => 3..=3,
            "round-robin" => 300..=300,
            "random" => 270..=300,
            _ => 1..=1,
        };
        assert!(expected.contains(&called), "{one}");
        begins.push(one["begin"].as_u64().unwrap());
    }
    begins.sort_unstable();
    begins.dedup();
    assert_eq!(begins.len(), 2, "each round begins elsewhere");
    assert!(text.contains("A round calls a part of 5,000 servants") && text.contains("orb: servants called"), "{text}");
}

#[test]
fn a_quick_series_fits_a_terminal_and_says_what_it_means() {
    let (folder, nowhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (out, nowhere) = (folder.path().to_str().unwrap(), nowhere.path().to_str().unwrap());
    let sizes = ["--calls", "40", "--rounds", "1", "--placement", "free"];
    let output = spandrel(&[&["latency", "--quick", "--omniorb", nowhere, "--out", out][..], &sizes].concat());
    check_code(&output, 0);
    let text = stdout(&output);
    check_width(&text);
    for mechanism in ["c", "ipc", "c-unix", "orb", "orb-padded", "orb-reactor", "orb-uds"] {
        let own: Vec<&str> = text.lines().filter(|line| line.split_whitespace().next() == Some(mechanism)).collect();
        assert_eq!(own.len(), 3, "two kinds of call, and the legend: {mechanism} in:\n{text}");
        assert_eq!(own.iter().filter(|line| line.ends_with(['█', '▌'])).count(), 2, "{mechanism} in:\n{text}");
    }
    assert!(!text.contains("omniorb"), "an absent contender is in the full report only:\n{text}");
    let sentence = "The time of a call through the ORB, as a multiple of that of raw sockets: without parameters ";
    assert!(text.replace('\n', " ").contains(sentence), "{text}");
    let report = fs::read_to_string(folder.path().join("report.txt")).unwrap();
    assert!(report.contains("omniorb is absent: ") && report.contains("| p99.9 ratio |"), "{report}");
}
