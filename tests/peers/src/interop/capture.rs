//! A check by an independent decoder: the traffic of a suite is captured and read by tshark's GIOP dissector.
//!
//! tshark must dissect as many messages of each version and type as the capture has (`packets` counts them by
//! their headers), and report no fault in any.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xtask::workspace;

use super::packets::{self, Counts};
use crate::bounded::Bounded;

/// The kernel's buffer for captured packets, in MiB: seconds of the largest transfers of a suite, for which
/// dumpcap may wait for a processor or for the disk.
const BUFFER: &str = "256";

const START_LIMIT: Duration = Duration::from_secs(20);
const READ_LIMIT: Duration = Duration::from_secs(300);

/// Tells a program that its network is isolated.
const ISOLATED: &str = "SPANDREL_INTEROP_ISOLATED";

/// The fields that are read of each packet; the last ones are faults wherever they occur.
const FIELDS: [&str; 15] = [
    "tcp.stream",
    "giop.minor_version",
    "giop.type",
    "giop.request_op",
    "_ws.expert.severity",
    "_ws.malformed",
    "_ws.expert.message",
    "giop.exceptionid",
    "giop.fragment.error",
    "giop.fragment.overlap.conflict",
    "giop.fragment.toolongfragment",
    "giop.unknown_typecode_datatype",
    "giop.unknown_sign_value",
    "giop.unknown_tckind",
    "giop.version_not_supported",
];

/// tshark's number for the severity "error".
const ERROR: &str = "8388608";

/// Dissectors for certain interfaces that claim any operation with one of their names.
const OTHER_DISSECTORS: [&str; 4] = ["giop-parlay", "giop-tango", "giop-gias", "giop-coseventcomm"];

/// Runs this program again in a network namespace of its own, if that is possible and has not been done.
/// `None` if the caller must go on itself.
pub(super) fn isolated() -> Result<Option<bool>> {
    if env::var_os(ISOLATED).is_some() {
        return Ok(None);
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let script = "ip link set lo up && exec \"$0\" \"$@\"";
    for way in ways {
        let mut attempt = Command::new("unshare");
        attempt.args(way).args(["sh", "-c", script, "true"]).stdout(Stdio::null()).stderr(Stdio::null());
        if attempt.status().is_ok_and(|status| status.success()) {
            let mut again = Command::new("unshare");
            again.args(way).args(["sh", "-c", script]).arg(env::current_exe()?).args(env::args_os().skip(1));
            let status = again.env(ISOLATED, "yes").status().context("cannot start this program again")?;
            return Ok(Some(status.success()));
        }
    }
    println!("no network namespace is available: other traffic on the loopback interface is captured, too");
    Ok(None)
}

/// A running dumpcap, and the file to which it writes the packets.
pub(super) struct Capture {
    program: Bounded,
    file: PathBuf,
}

impl Capture {
    /// Starts a capture of the loopback interface.
    pub(super) fn start() -> Result<Self> {
        let folder = workspace::target().join("interop");
        fs::create_dir_all(&folder)?;
        let file = folder.join("suite.pcap");
        // Where the priority cannot be raised, `nice` says so and goes on.
        let mut command = Command::new("nice");
        command.args(["-n", "-10", "dumpcap", "-q", "-i", "lo", "-P", "-B", BUFFER, "-f", "tcp", "-w"]).arg(&file);
        let program = Bounded::start("dumpcap", &mut command)?;
        let deadline = Instant::now() + START_LIMIT;
        while !program.stderr_line(deadline)?.context("dumpcap ended at once")?.starts_with("File:") {}
        Ok(Self { program, file })
    }

    /// Ends it, and returns tshark's verdict.
    pub(super) fn finish(mut self) -> Result<Verdict> {
        // The last packets are on their way to dumpcap.
        thread::sleep(Duration::from_millis(300));
        workspace::run(Command::new("kill").arg("-INT").arg(self.program.id().to_string()))?;
        let deadline = Instant::now() + START_LIMIT;
        let mut lost = None;
        while let Some(line) = self.program.stderr_line(deadline)? {
            lost = lost.or_else(|| lost_packets(&line));
        }
        self.program.finish(START_LIMIT)?;
        let verdict = read(&self.file, lost.context("dumpcap does not report its lost packets")?);
        fs::remove_file(&self.file)?;
        verdict
    }
}

/// Whether tshark agrees with the traffic of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    Yes,
    No,
    /// The machine was too slow to capture each packet. This tells nothing about the traffic.
    Incomplete,
}

/// Ends a capture, which may have failed to start, prints the verdict, and returns whether tshark agrees.
pub(super) fn agreement(capture: Result<Capture>) -> Agreement {
    match capture.and_then(Capture::finish) {
        Ok(verdict) => {
            verdict.print();
            verdict.agreement()
        }
        Err(error) => {
            println!("FAIL tshark: {error:#}");
            Agreement::No
        }
    }
}

/// The number of packets that dumpcap has lost, if this line reports it: `… 'Loopback: lo': 2636/0
/// (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0) (100.0%)`.
fn lost_packets(line: &str) -> Option<u64> {
    line.strip_prefix("Packets received/dropped on interface")?
        .split(": ")
        .last()?
        .split(['/', ' '])
        .nth(1)?
        .parse()
        .ok()
}

/// The result of a capture.
#[derive(Debug)]
pub(super) struct Verdict {
    sent: Counts,
    dissected: Counts,
    faults: Vec<String>,
    /// Faults of tshark itself.
    excused: Vec<String>,
    lost: u64,
}

impl Verdict {
    fn agreement(&self) -> Agreement {
        if self.lost > 0 {
            Agreement::Incomplete
        } else if self.faults.is_empty() && self.sent == self.dissected && !self.sent.is_empty() {
            Agreement::Yes
        } else {
            Agreement::No
        }
    }

    fn print(&self) {
        let sum = |counts: &Counts| counts.values().sum::<u64>();
        let kinds: Vec<_> = self.dissected.iter().map(|(kind, n)| format!("{n} {}", packets::name(*kind))).collect();
        println!(
            "tshark has dissected {} of {} messages ({}), and reports {} faults",
            sum(&self.dissected),
            sum(&self.sent),
            kinds.join(", "),
            self.faults.len()
        );
        for (kind, sent) in &self.sent {
            let dissected = self.dissected.get(kind).copied().unwrap_or(0);
            if dissected != *sent {
                println!("FAIL tshark: {sent} {} are in the capture, {dissected} are dissected", packets::name(*kind));
            }
        }
        for kind in self.dissected.keys().filter(|kind| !self.sent.contains_key(kind)) {
            println!("FAIL tshark: it reports a {} that the capture does not have", packets::name(*kind));
        }
        for excuse in &self.excused {
            println!("known: {excuse}");
        }
        for fault in &self.faults {
            println!("FAIL tshark: {fault}");
        }
        if self.lost > 0 {
            println!("incomplete: {} packets were not captured", self.lost);
        }
    }
}

/// Reads a capture with tshark and with `packets`.
fn read(file: &Path, lost: u64) -> Result<Verdict> {
    let separated = file.with_extension("apart.pcap");
    let sent = packets::count(BufReader::new(File::open(file)?), BufWriter::new(File::create(&separated)?))?;
    let mut dissected = Counts::new();
    let mut faults: BTreeMap<String, u32> = BTreeMap::new();
    let mut excused: BTreeMap<&str, u32> = BTreeMap::new();
    let mut cut = BTreeSet::new();
    let lines = tshark(&separated, "giop || _ws.malformed")?;
    fs::remove_file(&separated)?;
    for line in lines {
        let packet = Packet::of(&line).context("unexpected output of tshark")?;
        let kinds = packet.kinds()?;
        if kinds.contains(&(1, 7)) {
            cut.insert(packet.stream.to_owned());
        }
        for kind in &kinds {
            *dissected.entry(*kind).or_default() += 1;
        }
        if packet.is_faulty() {
            match packet.excuse(&kinds, cut.contains(packet.stream)) {
                Some(reason) => *excused.entry(reason).or_default() += 1,
                None => *faults.entry(packet.describe()).or_default() += 1,
            }
        }
    }
    let describe = |(fault, times): (&dyn std::fmt::Display, &u32)| format!("{times} times: {fault}");
    let faults = faults.iter().map(|(fault, times)| describe((fault, times))).collect();
    let excused = excused.iter().map(|(fault, times)| describe((fault, times))).collect();
    Ok(Verdict { sent, dissected, faults, excused, lost })
}

/// tshark's fields of a packet, in the order of `FIELDS`.
struct Packet<'l> {
    stream: &'l str,
    minors: &'l str,
    types: &'l str,
    operation: &'l str,
    severities: &'l str,
    malformed: &'l str,
    messages: &'l str,
    exception: &'l str,
    others: Vec<&'l str>,
}

impl<'l> Packet<'l> {
    fn of(line: &'l str) -> Option<Self> {
        let mut fields = line.split('\t');
        let stream = fields.next()?;
        // Empty fields at the end of the line are missing.
        let mut next = || fields.next().unwrap_or_default();
        Some(Self {
            stream,
            minors: next(),
            types: next(),
            operation: next(),
            severities: next(),
            malformed: next(),
            messages: next(),
            exception: next(),
            others: fields.collect(),
        })
    }

    /// The messages that end in the packet.
    fn kinds(&self) -> Result<Vec<(u8, u8)>> {
        let of = |text: &str| {
            text.split(',').filter(|word| !word.is_empty()).map(str::parse::<u8>).collect::<Result<Vec<_>, _>>()
        };
        Ok(of(self.minors)?.into_iter().zip(of(self.types)?).collect())
    }

    /// Whether it has a fault. Notes about TCP itself are of lower severity.
    fn is_faulty(&self) -> bool {
        !self.malformed.is_empty()
            || self.severities.split(',').any(|severity| severity == ERROR)
            || self.others.iter().any(|field| !field.is_empty())
    }

    /// The reason for which tshark's fault is none, if it is none. `kinds` are the packet's messages, and
    /// `had_fragments` tells whether its connection has had fragments of GIOP 1.1.
    fn excuse(&self, kinds: &[(u8, u8)], had_fragments: bool) -> Option<&'static str> {
        match kinds {
            _ if had_fragments && kinds.iter().all(|(minor, _)| *minor == 1) => Some(
                "it puts fragments of GIOP 1.1, which have no request ID (CORBA 3.3 Part 2, 9.4.9), together wrongly",
            ),
            [(2, 4)] => Some(
                "it expects the reference in a LocateReply of GIOP 1.2 aligned to eight octets, as if it were a Reply's body",
            ),
            [(_, 1)] if self.exception == "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0" => Some(
                "it reads the exception that a name is not found as the reference that `resolve` might have returned",
            ),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        let Self { minors, types, operation, malformed, messages, others, .. } = self;
        format!("version 1.{minors} type {types} {operation} {malformed} {messages} {}", others.join(" "))
    }
}

/// The fields of the packets that match a filter.
fn tshark(file: &Path, filter: &str) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-d", "tcp.port==1024-65535,giop", "-Y", filter, "-T", "fields"]);
    // Segments are repeated or out of order where the kernel takes one for lost, on the loopback interface,
    // too.
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args(OTHER_DISSECTORS.into_iter().flat_map(|name| ["--disable-protocol", name]));
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let mut program = Bounded::start("tshark", &mut command)?;
    let deadline = Instant::now() + READ_LIMIT;
    let mut lines = Vec::new();
    while let Some(line) = program.line(deadline)? {
        lines.push(line);
    }
    let stderr = program.stderr();
    let status = program.finish(START_LIMIT)?;
    if !status.success() {
        bail!("tshark ended with {status}: {stderr}");
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drop_count_of_dumpcap_is_parsed() {
        let line = "Packets received/dropped on interface 'Loopback: lo': 2636/17 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0) (99.4%)";
        assert_eq!(lost_packets(line), Some(17));
        assert_eq!(lost_packets("Packets captured: 2636"), None);
    }

    #[test]
    fn a_message_that_is_not_dissected_is_a_fault() {
        let sent = Counts::from([((2, 0), 3)]);
        let agreement = |dissected: &Counts, lost| {
            let dissected = dissected.clone();
            Verdict { sent: sent.clone(), dissected, faults: Vec::new(), excused: Vec::new(), lost }.agreement()
        };
        assert_eq!(agreement(&sent, 0), Agreement::Yes);
        assert_eq!(agreement(&Counts::from([((2, 0), 2)]), 0), Agreement::No);
        assert_eq!(agreement(&Counts::new(), 0), Agreement::No);
        assert_eq!(agreement(&sent, 23), Agreement::Incomplete);
    }
}
