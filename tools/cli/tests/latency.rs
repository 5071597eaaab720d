//! `spandrel latency` from its command line to the files that it writes.

mod support;

use std::fs;

use support::{check_code, spandrel, stdout};

#[test]
fn every_mechanism_has_its_row_and_who_is_absent_says_why() {
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
        // A GIOP header and a request header without parameters; 1,024 structs of 24 octets besides, padded to start at 8.
        let (least, most) = if row["case"] == "void" { (12 + 24, 200) } else { (1024 * 24, 1024 * 24 + 200) };
        assert!((least..most).contains(&request), "{row}");
        assert_eq!(reply, 24, "a GIOP header, request id, status and an empty list of contexts");
    }
}
