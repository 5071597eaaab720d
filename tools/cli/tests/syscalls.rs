//! The short path, counted: a two-way call is one write and one read on either side (design decision 3), and
//! typed endpoints make the same system calls as plain sockets.
//!
//! Client and server run under `strace`. The system calls of one run are counted from the first transfer over its
//! data connection to the last one: the [`Span`] has neither the start of the program nor its end, whose system
//! calls vary by a read or two from run to run.
#![cfg(target_os = "linux")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use support::{Running, check_code};

/// Timed calls, and the warm-up calls of the experiment before them, over the same connection.
const CALLS: u64 = 2000;
const WARM_UP: u64 = CALLS / 20;

/// System calls by name.
type Counts = BTreeMap<String, u64>;

/// The number of tries before a count that is too high fails the test: on a busy machine an upcall may be
/// delayed so long that another thread is started to continue reading, which costs further calls.
const TRIES: u32 = 15;

/// System calls of and for a thread, from its start to its end: 24 were observed.
const OF_A_THREAD: f64 = 40.0;

/// Waits per call, of the threads that make the transfers, that are no part of the call. Those of the server's monitor of
/// long upcalls are not among them, whose number depends on the time that a call takes.
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

/// The buffers of a run of `ttcp`, and their octets: one segment of the loopback interface.
const BUFFERS: u64 = 1000;
const BUFFER_OCTETS: u64 = 2048;

#[test]
fn typed_endpoints_make_the_system_calls_of_plain_sockets() {
    for call in ["twoway", "oneway"] {
        let [plain, typed] = ["c", "ipc"].map(|mechanism| data_path(mechanism, call));
        for (side, plain, typed) in [("client", &plain.client, &typed.client), ("server", &plain.server, &typed.server)]
        {
            assert_eq!(plain, typed, "{call}, {side}: plain sockets (left), typed endpoints (right)");
        }
        let counts = |sent, received| {
            let counts = [("sendto", sent), ("recvfrom", received)];
            counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
        };
        // Each buffer is sent by one call; its answer, or the next buffer, is received by one. The server greets the
        // client by an octet, and finds the end of the connection by a further call.
        let [client, server]: [Counts; 2] = if call == "twoway" {
            [counts(BUFFERS, BUFFERS + 1), counts(BUFFERS + 1, BUFFERS + 1)]
        } else {
            // The buffers are acknowledged together.
            [counts(BUFFERS, 2), counts(2, 0)]
        };
        assert_eq!((&plain.client, &plain.server), (&client, &server), "{call}");
    }
}

/// The system calls on the data path of `BUFFERS` buffers.
struct DataPath {
    client: Counts,
    server: Counts,
}

/// Counts those of a run of `ttcp`. A one-way receiver takes as many buffers at a time as have arrived, so that
/// only its other calls are counted.
fn data_path(mechanism: &str, call: &str) -> DataPath {
    let (octets, size) = ((BUFFERS * BUFFER_OCTETS).to_string(), BUFFER_OCTETS.to_string());
    let args = ["--types", "octet", "--sizes", &size, "--bytes", &octets, "--repetitions", "1", "--call", call];
    let Traced { client, server } = traced("ttcp", "--transmit", mechanism, &args);
    let counts = |span: Span, is_receiving: bool| {
        let mut counts = span.counts_of_data_threads();
        counts.retain(|name, _| TRANSFERS.contains(&name.as_str()) || WAITS.contains(&name.as_str()));
        if is_receiving {
            counts.remove("recvfrom");
        }
        counts
    };
    DataPath { client: counts(client, false), server: counts(server, call == "oneway") }
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
    let calls = CALLS.to_string();
    let args = ["--case", case, "--calls", &calls, "--rounds", "1"];
    let Traced { client, server } = traced("latency", "--connect", mechanism, &args);
    for (side, expected_waits, span) in [("client", 0.0, client), ("server", server_waits, server)] {
        let counts = span.counts_of_data_threads();
        let per_call = |count: u64| count as f64 / (CALLS + WARM_UP) as f64;
        let sum = |counts: &Counts, names: &[&str]| {
            per_call(counts.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, n)| n).sum())
        };
        let (transfers, waits) = (sum(&counts, &TRANSFERS), sum(&counts, &WAITS));
        if !(1.99..2.01).contains(&transfers) {
            return Some(format!("{mechanism}, {case}, {side}: {transfers:.3} transfers per call: {counts:?}"));
        }
        // Where other threads continue reading, a reactor waits less often.
        if waits >= expected_waits + OTHER_WAITS || waits < expected_waits / 4.0 {
            return Some(format!("{mechanism}, {case}, {side}: {waits:.3} waits per call: {counts:?}"));
        }
        // A hand-off between threads would be at least one more per call. The rest belongs to growing memory. Where an
        // upcall was delayed, the server's monitor has started threads to continue reading; a thread for each call
        // would be more than that.
        let others = per_call(counts.values().sum()) - transfers - waits;
        let threads = sum(&span.counts(), &["clone", "clone3"]);
        if others >= 0.5 + (OF_A_THREAD * threads).min(4.0) {
            return Some(format!("{mechanism}, {case}, {side}: {others:.3} other system calls per call: {counts:?}"));
        }
    }
    None
}

/// System calls that move octets through a socket or pipe.
const TRANSFERS: [&str; 12] = [
    "read", "write", "readv", "writev", "send", "recv", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
    "recvmmsg",
];

/// System calls that wait until octets could be moved.
const WAITS: [&str; 6] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait"];

/// The system calls of both sides of an experiment.
struct Traced {
    client: Span,
    server: Span,
}

/// Traces an experiment, whose option for the receiver's address is given, and its receiver.
fn traced(experiment: &str, to: &str, mechanism: &str, options: &[&str]) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let (client, server) = (folder.path().join("client"), folder.path().join("server"));
    let receiver = Running::start(strace(&server, &["peer", "receive", "127.0.0.1:0"]));
    let line: serde_json::Value = serde_json::from_str(&receiver.line()).unwrap();
    let addr = line["listening"].as_str().unwrap();

    let out = folder.path().join("out");
    let args = [experiment, to, addr, "--mechanisms", mechanism, "--out", out.to_str().unwrap()];
    let output = strace(&client, &[&args[..], options].concat()).output().unwrap();
    check_code(&output, 0);
    assert_eq!(receiver.finish(), Some(0));
    let span = |log: &Path| Span::of_data_connection(&calls(&fs::read_to_string(log).unwrap()));
    Traced { client: span(&client), server: span(&server) }
}

/// The command under `strace`, all its threads and children included. The log shows descriptors with their files,
/// and so tells one socket from another.
fn strace(log: &Path, args: &[&str]) -> Command {
    let there = Command::new("strace").arg("-V").output();
    assert!(there.is_ok_and(|output| output.status.success()), "this test needs strace: apt-get install strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "0", "-o"]).arg(log).arg(env!("CARGO_BIN_EXE_spandrel")).args(args);
    command
}

/// A system call that has returned.
#[derive(Clone, Debug)]
struct SystemCall {
    thread: String,
    name: String,
    /// The socket that is its first argument, as `socket:[123]`.
    socket: Option<String>,
}

/// The system calls of a log, in the order in which they returned, without waits that timed out.
///
/// ```text
/// 17 sendto(5<socket:[123]>, ""..., 4, MSG_NOSIGNAL, NULL, 0) = 4
/// 17 recvfrom(5<socket:[123]>,  <unfinished ...>
/// 18 futex(0x7f2a, FUTEX_WAKE_PRIVATE, 1) = 0
/// 17 <... recvfrom resumed>""..., 4, 0, NULL, NULL) = 4
/// ```
fn calls(log: &str) -> Vec<SystemCall> {
    let mut calls = Vec::new();
    let mut unfinished = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, event)) = line.split_once(' ') else { continue };
        let event = event.trim_start();
        let call = if event.starts_with("<... ") {
            unfinished.remove(thread)
        } else {
            event.split_once('(').filter(|(name, _)| is_name(name)).map(|(name, arguments)| {
                let first = arguments.split([',', ')']).next().unwrap_or_default();
                let file = first.split_once('<').and_then(|(_, file)| file.strip_suffix('>'));
                let socket = file.filter(|file| file.starts_with("socket:")).map(str::to_owned);
                SystemCall { thread: thread.to_owned(), name: name.to_owned(), socket }
            })
        };
        let Some(call) = call else { continue };
        if event.ends_with("<unfinished ...>") {
            unfinished.insert(thread, call);
        } else if !event.contains(" = ? ERESTART") && !event.ends_with(" = -1 ETIMEDOUT (Connection timed out)") {
            // Restarted ones, which a stop or a signal has interrupted, come again. Waits that have timed out depend on the
            // time that the calls take: those of a thread that watches the others of its reactor.
            calls.push(call);
        }
    }
    calls
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_')
}

/// The system calls from the first transfer over the data connection to the last one.
struct Span {
    calls: Vec<SystemCall>,
    /// The socket of the connection.
    data: String,
}

impl Span {
    /// The data connection is the first one of those with the most transfers: a warm-up may have one of its own.
    fn of_data_connection(calls: &[SystemCall]) -> Self {
        let mut transfers = BTreeMap::<&str, u64>::new();
        calls.iter().filter_map(transfer).for_each(|socket| *transfers.entry(socket).or_default() += 1);
        let most = transfers.values().max().expect("a log with transfers over sockets");
        let data = calls.iter().filter_map(transfer).find(|socket| transfers[socket] == *most);
        let is_data = |call: &SystemCall| transfer(call) == data;
        let first = calls.iter().position(is_data).expect("it has transfers");
        let last = calls.iter().rposition(is_data).expect("it has transfers");
        Self { calls: calls[first..=last].to_vec(), data: data.expect("it has transfers").to_owned() }
    }

    /// The system calls of all threads.
    fn counts(&self) -> Counts {
        count(self.calls.iter())
    }

    /// The system calls of the threads that make transfers over the connection. Another thread may still return
    /// from a system call before the span, for instance from the answer over the control connection.
    fn counts_of_data_threads(&self) -> Counts {
        let data_calls = self.calls.iter().filter(|call| transfer(call) == Some(&self.data));
        let threads: BTreeSet<&str> = data_calls.map(|call| &*call.thread).collect();
        count(self.calls.iter().filter(|call| threads.contains(&*call.thread)))
    }
}

/// The socket of a transfer.
fn transfer(call: &SystemCall) -> Option<&str> {
    call.socket.as_deref().filter(|_| TRANSFERS.contains(&&*call.name))
}

fn count<'c>(calls: impl Iterator<Item = &'c SystemCall>) -> Counts {
    let mut counts = Counts::new();
    calls.for_each(|call| *counts.entry(call.name.clone()).or_default() += 1);
    counts
}

#[test]
fn a_span_has_no_system_call_of_the_start_and_of_the_end() {
    let log = "1 execve(\"/bin/x\", [\"x\"], 0x7ffe /* 9 vars */) = 0
1 read(3</lib/libc.so.6>, \"\"..., 832) = 832
1 sendto(4<socket:[70]>, \"\"..., 9, 0, NULL, 0) = 9
2 sendto(5<socket:[71]>, \"\"..., 9, 0, NULL, 0) = 9
2 recvfrom(5<socket:[71]>,  <unfinished ...>
1 futex(0x7f2a, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
2 <... recvfrom resumed>0x7f, 9, 0, NULL, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
2 --- stopped by SIGSTOP ---
2 recvfrom(5<socket:[71]>, \"\"..., 9, 0, NULL, NULL) = 9
1 <... futex resumed>) = 0
2 sendto(5<socket:[71]>, \"\"..., 9, 0, NULL, 0) = 9
2 close(5<socket:[71]>) = 0
1 exit_group(0) = ?
2 +++ exited with 0 +++
";
    let span = Span::of_data_connection(&calls(log));
    let counts = |counts: &[(&str, u64)]| counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let data: Counts = counts(&[("recvfrom", 1), ("sendto", 2)]);
    let all: Counts = counts(&[("futex", 1), ("recvfrom", 1), ("sendto", 2)]);
    assert_eq!((span.counts_of_data_threads(), span.counts()), (data, all));
}
