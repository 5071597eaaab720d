//! `spandrel soak` from its command line to the files that it writes.

use crate::support;

use std::fs;

use support::{check_code, spandrel, stderr, stdout};

/// Whether there were calls of (almost) each kind in this time; on a loaded machine, it may be too short.
fn is_right_in_every_octet(orb: &str, seconds: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = ["soak", "--seconds", seconds, "--clients", "3", "--seed", "5", "--max-octets", "100000"];
    let output = spandrel(&[&args[..], &["--orb", orb, "--out", out]].concat());
    let (text, json) = (stdout(&output), fs::read_to_string(folder.path().join("soak.json")).unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["failures"], 0, "{text}");
    assert_eq!(json["processes"][0]["looks"].as_array().unwrap().len(), 12);
    // So short a time does not tell growth from warm-up; but the report must agree with the exit code.
    let is_content = text.contains("nothing grew");
    check_code(&output, if is_content { 0 } else { 1 });
    assert_eq!(is_content, !stderr(&output).contains("has grown by"));
    let rows = json["rows"].as_array().unwrap();
    rows.iter().filter(|row| row["calls"].as_u64().unwrap() > 0).count() >= 11
}

#[test]
fn mixed_traffic_of_a_second_is_right_in_every_octet() {
    for orb in ["", "-ORBConcurrency leader-followers -ORBByteOrder big"] {
        assert!(
            ["1", "5", "25"].iter().any(|seconds| is_right_in_every_octet(orb, seconds)),
            "{orb}: calls are missing"
        );
    }
}

#[test]
fn invalid_settings_are_refused() {
    for (args, words) in [
        (&["soak", "--seconds", "0"][..], "expected a number of seconds, at least 0.5"),
        (&["soak", "--seconds", "0.1"], "from 0.5 to 10,000,000 seconds, not 0.1"),
        (&["soak", "--clients", "0"], "from 1 to 64 clients, not 0"),
        (&["soak", "--orb", "-ORBNonsense 1"], "-ORBNonsense"),
        (&["soak", "--orb", "nonsense"], "expected an option of an ORB"),
    ] {
        let output = spandrel(args);
        assert!(!output.status.success(), "{args:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}
