//! The short path, counted: a two-way call is one write and one read on either side (design decision 3), and
//! typed endpoints make the same system calls as plain sockets.
//!
//! Client and server run under `strace -c`, once with N calls and once with 2 N. The difference is the cost
//! of N calls, without that of starting and stopping.
#![cfg(target_os = "linux")]

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::{Running, check_code};

/// Timed calls of the shorter run, and the warm-up calls of the experiment before it.
const CALLS: u64 = 2000;
const WARM_UP: u64 = CALLS / 20;

/// System calls by name.
type Counts = BTreeMap<String, u64>;

/// The number of tries before a count that is too high fails the test: on a busy machine an upcall may be
/// delayed so long that another thread is started to continue reading, which costs further calls.
const TRIES: u32 = 6;

/// System calls of and for a thread, from its start to its end: 24 were observed.
const OF_A_THREAD: f64 = 40.0;

/// Waits per call that are no part of the call: the server's monitor of long upcalls waits at most 35 times a
/// second, and a call takes about a millisecond under strace on a busy machine.
const OTHER_WAITS: f64 = 0.3;

#[test]
fn a_two_way_call_makes_two_system_calls_on_each_side() {
    expect("orb", "void", 0.0);
    expect("orb", "structs", 0.0);
}

#[test]
fn a_reactor_needs_one_wait_per_call() {
    expect("orb-reactor", "void", 1.0);
}

/// The buffers of the shorter run of `ttcp`, and their octets: one segment of the loopback interface.
const BUFFERS: u64 = 500;
const BUFFER_OCTETS: u64 = 2048;
/// The runs of one repetition: it is preceded by a warm-up.
const RUNS: u64 = 2;

#[test]
fn typed_endpoints_make_the_system_calls_of_plain_sockets() {
    for call in ["twoway", "oneway"] {
        let [plain, typed] = ["c", "ipc"].map(|mechanism| data_path(mechanism, call));
        for (side, plain, typed) in [("client", &plain.client, &typed.client), ("server", &plain.server, &typed.server)]
        {
            assert_eq!(plain, typed, "{call}, {side}: plain sockets (left), typed endpoints (right)");
        }
        const SENT: i64 = (RUNS * BUFFERS) as i64;
        // Each buffer is sent by one call; its answer, or the next buffer, is received by one.
        let expected = |name: &str, count| BTreeMap::from([(name.to_owned(), count)]);
        let (sent, received) = (expected("sendto", SENT), expected("recvfrom", SENT));
        let both = sent.iter().chain(&received).map(|(name, count)| (name.clone(), *count)).collect();
        if call == "twoway" {
            assert_eq!((&plain.client, &plain.server), (&both, &both));
        } else {
            assert_eq!((&plain.client, &plain.server), (&sent, &BTreeMap::new()));
        }
    }
}

/// The system calls on the data path for `RUNS` times `BUFFERS` buffers.
struct DataPath {
    client: BTreeMap<String, i64>,
    server: BTreeMap<String, i64>,
}

/// Counts those of two runs of `ttcp`. A one-way receiver takes as many buffers at a time as have arrived, so
/// that only its other calls are counted.
fn data_path(mechanism: &str, call: &str) -> DataPath {
    let [short, long] = [1, 2].map(|times| {
        let octets = (times * BUFFERS * BUFFER_OCTETS).to_string();
        let size = BUFFER_OCTETS.to_string();
        let args = ["--types", "octet", "--sizes", &size, "--bytes", &octets, "--repetitions", "1", "--call", call];
        counted_with("ttcp", "--transmit", mechanism, &args)
    });
    let of = |short: &Counts, long: &Counts, is_receiving: bool| {
        let mut more = difference(short, long);
        more.retain(|name, _| TRANSFERS.contains(&name.as_str()) || WAITS.contains(&name.as_str()));
        if is_receiving {
            more.remove("recvfrom");
        }
        more
    };
    let is_one_way = call == "oneway";
    DataPath { client: of(&short.client, &long.client, false), server: of(&short.server, &long.server, is_one_way) }
}

/// Counts until each side makes two transfers per call, and the server waits as often.
#[track_caller]
fn expect(mechanism: &str, case: &str, server_waits: f64) {
    let mut failure = None;
    for _ in 0..TRIES {
        failure = too_many(mechanism, case, server_waits);
        if failure.is_none() {
            return;
        }
    }
    assert_eq!(failure, None);
}

/// The first count of one case that is too high, if any.
fn too_many(mechanism: &str, case: &str, server_waits: f64) -> Option<String> {
    let short = counted(mechanism, case, CALLS);
    let long = counted(mechanism, case, 2 * CALLS);
    let sides = [("client", 0.0, &short.client, &long.client), ("server", server_waits, &short.server, &long.server)];
    for (side, expected_waits, short, long) in sides {
        let more = difference(short, long);
        let per_call = |count: i64| count as f64 / (CALLS + WARM_UP) as f64;
        let sum = |names: &[&str]| {
            per_call(more.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, n)| n).sum())
        };
        let (transfers, waits) = (sum(&TRANSFERS), sum(&WAITS));
        if !(1.99..2.01).contains(&transfers) {
            return Some(format!("{mechanism}, {case}, {side}: {transfers:.3} transfers per call: {more:?}"));
        }
        // Where other threads continue reading, a reactor waits less often.
        if waits >= expected_waits + OTHER_WAITS || waits < expected_waits / 4.0 {
            return Some(format!("{mechanism}, {case}, {side}: {waits:.3} waits per call: {more:?}"));
        }
        // A hand-off between threads would be at least one more per call. The rest belongs to the server's
        // monitor, which checks for long upcalls (calls are slow under strace), and to growing memory. Where
        // an upcall was delayed, the monitor has started threads to continue reading; a thread for each call
        // would be more than that.
        let others = per_call(more.values().sum()) - transfers - waits;
        let threads = [short, long].map(threads).iter().sum::<u64>() as f64 / (CALLS + WARM_UP) as f64;
        if others >= 0.5 + (OF_A_THREAD * threads).min(4.0) {
            return Some(format!("{mechanism}, {case}, {side}: {others:.3} other system calls per call: {more:?}"));
        }
    }
    None
}

/// The number of threads and processes started.
fn threads(counts: &Counts) -> u64 {
    ["clone", "clone3"].iter().filter_map(|name| counts.get(*name)).sum()
}

/// System calls that move octets through a socket or pipe.
const TRANSFERS: [&str; 12] = [
    "read", "write", "readv", "writev", "send", "recv", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
    "recvmmsg",
];

/// System calls that wait until octets could be moved.
const WAITS: [&str; 6] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait"];

struct Counted {
    client: Counts,
    server: Counts,
}

fn counted(mechanism: &str, case: &str, calls: u64) -> Counted {
    let calls = calls.to_string();
    let args = ["--case", case, "--calls", &calls, "--rounds", "1"];
    counted_with("latency", "--connect", mechanism, &args)
}

/// Counts the calls of an experiment, whose option for the receiver's address is given, and of its receiver.
fn counted_with(experiment: &str, to: &str, mechanism: &str, options: &[&str]) -> Counted {
    let folder = tempfile::tempdir().unwrap();
    let (client, server) = (folder.path().join("client"), folder.path().join("server"));
    let receiver = Running::start(traced(&server, &["peer", "receive", "127.0.0.1:0"]));
    let line: serde_json::Value = serde_json::from_str(&receiver.line()).unwrap();
    let addr = line["listening"].as_str().unwrap();

    let out = folder.path().join("out");
    let args = [experiment, to, addr, "--mechanisms", mechanism, "--out", out.to_str().unwrap()];
    let output = traced(&client, &[&args[..], options].concat()).output().unwrap();
    check_code(&output, 0);
    assert_eq!(receiver.finish(), Some(0));
    Counted { client: read_counts(&client), server: read_counts(&server) }
}

/// The command under `strace`, all its threads and children included.
fn traced(counts: &Path, args: &[&str]) -> Command {
    let there = Command::new("strace").arg("-V").output();
    assert!(there.is_ok_and(|output| output.status.success()), "this test needs strace: apt-get install strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-o"]).arg(counts).arg(env!("CARGO_BIN_EXE_spandrel")).args(args);
    command
}

/// Reads strace's table: `% time | seconds | usecs/call | calls | errors | syscall`, of which errors may be
/// blank.
fn read_counts(path: &Path) -> Counts {
    let table = fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (words.last()?, words.get(3)?.parse().ok()?);
        (*name != "total").then(|| ((*name).to_owned(), calls))
    };
    let counts: Counts = table.lines().filter_map(row).collect();
    assert!(counts.len() > 5, "not strace's table: {table}");
    counts
}

/// The differences of the longer run from the shorter one.
fn difference(short: &Counts, long: &Counts) -> BTreeMap<String, i64> {
    let names = short.keys().chain(long.keys());
    let of = |counts: &Counts, name: &str| counts.get(name).copied().unwrap_or(0) as i64;
    let more = names.map(|name| (name.clone(), of(long, name) - of(short, name)));
    more.filter(|(_, more)| *more != 0).collect()
}
