//! `spandrel ttcp` from its command line to the files that it writes.

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use support::{Running, check_code, check_width, spandrel, stderr, stdout};

/// A series small enough for a test, with all parts.
const TINY: [&str; 13] = [
    "ttcp",
    "--types",
    "octet,struct",
    "--sizes",
    "1K..2K",
    "--bytes",
    "64K",
    "--repetitions",
    "2",
    "--call",
    "both",
    "--placement",
    "free",
];

/// The mechanisms of this platform.
const MECHANISMS: [&str; 10] =
    ["c", "ipc", "c-unix", "unix", "spipe", "shm", "orb", "orb-reactor", "orb-interpretive", "orb-padded"];

#[test]
fn a_series_writes_tables_and_readable_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = spandrel(&[&TINY[..], &["--out", out]].concat());
    check_code(&output, 0);

    let text = stdout(&output);
    for words in ["octet sequences, one-way", "BinStruct sequences, two-way", "orb/c", "scalars hi", out] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }
    let count = 2 * 2 * 2 * 2 * MECHANISMS.len(); // calls, types, sizes, rounds, mechanisms
    assert!(stderr(&output).contains(&format!("{count}/{count}")), "progress is shown: {}", stderr(&output));

    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("ttcp.json")).unwrap()).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), count);
    let mechanisms: BTreeSet<&str> = runs.iter().map(|run| run["mechanism"].as_str().unwrap()).collect();
    assert_eq!(mechanisms, BTreeSet::from(MECHANISMS));
    for run in runs {
        assert!(run["outcome"]["octets"].as_u64().unwrap() >= 64 << 10, "{run}");
        assert!(run["outcome"]["seconds"].as_f64().unwrap() > 0.0, "{run}");
    }

    let csv = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + runs.len());
    let summary = fs::read_to_string(folder.path().join("summary.csv")).unwrap();
    let columns: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(columns.len(), 1 + 2 * 2 * 2 * MECHANISMS.len());
    let median = columns[0].iter().position(|name| *name == "mbps_median").unwrap();
    assert!(columns[1..].iter().all(|row| row[median].parse::<f64>().unwrap() > 0.0), "{summary}");

    for plot in ["oneway-octet", "oneway-struct", "twoway-octet", "twoway-struct"] {
        let svg = fs::read_to_string(folder.path().join(format!("{plot}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{plot}");
        let circles = MECHANISMS.len() * (2 + 1); // a point for each size, and one in the legend
        assert_eq!(svg.matches("<circle").count(), circles, "{plot}");
    }
}

#[test]
fn every_data_type_passes_through_every_mechanism() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let args = [
        "ttcp",
        "--sizes",
        "3,1000",
        "--bytes",
        "8K",
        "--repetitions",
        "1",
        "--call",
        "both",
        "--placement",
        "free",
        "--out",
        out,
    ];
    let output = spandrel(&args);
    check_code(&output, 0); // each run checks that all octets arrived
    for data in ["short", "char", "long", "octet", "double", "struct"] {
        assert!(folder.path().join(format!("twoway-{data}.svg")).is_file(), "{data}");
    }
}

#[test]
fn a_quick_series_fits_a_terminal_and_says_what_it_means() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = spandrel(&["ttcp", "--quick", "--bytes", "256K", "--repetitions", "1", "--out", out]);
    check_code(&output, 0);
    let text = stdout(&output);
    check_width(&text);
    assert!(!text.contains('\u{1b}'), "no escape sequences:\n{text}");

    // A bar for each mechanism in each of the three sections, and its line of the legend.
    for mechanism in ["c", "ipc", "c-unix", "orb", "orb-padded", "orb-reactor", "orb-uds"] {
        let own: Vec<&str> = text.lines().filter(|line| line.split_whitespace().next() == Some(mechanism)).collect();
        assert_eq!(own.len(), 4, "{mechanism} in:\n{text}");
        assert_eq!(own.iter().filter(|line| line.ends_with(['█', '▌'])).count(), 3, "{mechanism} in:\n{text}");
    }
    for words in ["one-way octets in buffers of 64K", "one-way structs", "a call without parameters", "Mechanisms"] {
        assert!(text.contains(words), "`{words}` is missing in:\n{text}");
    }

    // The last sentence has the figures of the ORB's rows.
    let sentence = text.lines().last().unwrap();
    assert!(sentence.starts_with("The ORB moves octets at ") && sentence.ends_with(" of a raw ping."), "{text}");
    let ratios = |line: &str| {
        let numbers = line.split([' ', ',', ';']).filter_map(|word| word.parse::<f64>().ok());
        numbers.collect::<Vec<_>>()
    };
    let rows = text.lines().filter(|line| line.trim_start().starts_with("orb ") && line.contains('('));
    let rows: Vec<f64> = rows.map(|row| ratios(row.split('%').nth(1).unwrap())[0]).collect();
    assert_eq!(ratios(sentence), rows, "{text}");

    for name in ["report.txt", "ttcp.json", "runs.csv", "summary.csv", "calls.txt", "calls.json", "oneway-octet.svg"] {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
    let report = fs::read_to_string(folder.path().join("report.txt")).unwrap();
    assert!(report.contains("| buffer |") && report.contains("orb/c"), "{report}");
}

#[test]
fn the_two_roles_can_be_started_apart() {
    let mut receive = Command::new(env!("CARGO_BIN_EXE_spandrel"));
    receive.args(["ttcp", "--receive", "127.0.0.1:0"]);
    let receiver = Running::start(receive);
    let line = receiver.line();
    let addr = line.rsplit(' ').next().unwrap();

    // Other protocols and broken peers cost the receiver nothing but their own connections.
    for octets in [&b"GET / HTTP/1.0\r\n\r\n"[..], b"{\"open\":{}}\n", &[0xff; 200_000], b""] {
        let mut foreign_peer = std::net::TcpStream::connect(addr).unwrap();
        _ = std::io::Write::write_all(&mut foreign_peer, octets);
    }

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for _ in 0..2 {
        // The receiver serves one transmitter after the other.
        let args = [&["ttcp", "--transmit", addr], &TINY[1..], &["--mechanisms", "c,orb", "--out", out]].concat();
        let output = spandrel(&args);
        check_code(&output, 0);
        assert!(stdout(&output).contains("orb/c"), "{}", stdout(&output));
    }
    let args = ["latency", "--connect", addr, "--calls", "20", "--rounds", "1", "--case", "void", "--out", out];
    let output = spandrel(&args);
    check_code(&output, 0);
    assert!(stdout(&output).contains("absent: it is run on this machine only"), "{}", stdout(&output));
}

#[test]
fn a_missing_receiver_is_reported_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    // Bound and never listening: connections are refused for the lifetime of the socket.
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = unused.local_addr().unwrap().to_string();
    let output = spandrel(&["ttcp", "--transmit", &addr, "--out", out]);
    check_code(&output, 1);
    let text = stderr(&output);
    assert!(text.starts_with("error: the transmitter failed: cannot connect to the receiver at 127.0.0.1:"), "{text}");
    assert!(text.contains("refused"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_foreign_server_is_reported_as_no_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let foreign_peer = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut peer, b"220 mail.example ESMTP\r\n").unwrap();
    });
    let output = spandrel(&["ttcp", "--transmit", &addr, "--out", out]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("cannot hear the receiver"), "{}", stderr(&output));
    foreign_peer.join().unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_cause() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside = file.path().join("results");
    let output = spandrel(&["ttcp", "--quick", "--out", inside.to_str().unwrap()]);
    check_code(&output, 1);
    let text = stderr(&output);
    assert!(text.starts_with("error: cannot write ") && text.contains("\n  cause: "), "{text}");
}

#[test]
fn invalid_arguments_are_wrong_usage() {
    for (args, words) in [
        (&["ttcp", "--types", "float"][..], "not a data type; there are short, char"),
        (&["ttcp", "--mechanisms", "carrier-pigeon"], "not a mechanism; there are c, ipc, "),
        (&["ttcp", "--sizes", "8K..1K"], "not a range"),
        (&["ttcp", "--bytes", "many"], "not a size"),
        (&["ttcp", "--repetitions", "0", "--placement", "free"], "nothing to run"),
        (&["ttcp", "--sizes", "1G", "--placement", "free"], "cannot be used"),
        (&["ttcp", "--queue-size", "huge"], "not a size"),
        (&["ttcp", "--receive", "--transmit", "host:1"], "cannot be used with"),
        (&["latency", "--mechanisms", "telegraph"], "not a mechanism"),
        (&["ttcp", "--transmit", "host:1", "--mechanisms", "unix"], "cannot reach another machine"),
        (&["latency", "--calls", "0", "--placement", "free"], "nothing to run"),
        (&["no-such-command"], "unrecognized subcommand"),
    ] {
        let output = spandrel(args);
        check_code(&output, 2);
        assert!(stderr(&output).contains(words), "{args:?}: `{words}` is missing in:\n{}", stderr(&output));
    }
}

#[test]
fn a_child_leaves_when_its_parent_has_gone() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel"));
    command.args(["peer", "receive", "127.0.0.1:0"]);
    let child = Running::start(command);
    assert!(child.line().contains("listening"));
    assert_eq!(child.finish(), Some(0));
}
