//! `spandrel orchestra packets`: the packets of one exchange, in the form of appendix D of paper 004.
//!
//! `tshark` dissects the capture. The form is that of tcpdump: the sequence numbers of the SYN segments are absolute,
//! all others count from them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail, ensure};
use spandrel_daemon::Failure;
use spandrel_measure::table::{Align, with_columns};

/// The fields of a packet, as `tshark` names them, in the order of [`Packet::parse`].
const FIELDS: [&str; 18] = [
    "tcp.stream",
    "frame.time_epoch",
    "ip.src",
    "tcp.srcport",
    "ip.dst",
    "tcp.dstport",
    "tcp.flags",
    "tcp.seq",
    "tcp.seq_raw",
    "tcp.ack",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.options.mss_val",
    "tcp.option_kind",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.wscale.shift",
];

/// The flags of a segment (RFC 9293, 3.1), with the letters of tcpdump.
const FLAGS: [(u16, char); 5] = [(2, 'S'), (1, 'F'), (8, 'P'), (4, 'R'), (32, 'U')];
const SYN: u16 = 2;
const ACK: u16 = 16;

/// Print the packets of one exchange from a capture, as in appendix D; needs tshark.
///
/// It is that of the first TCP connection over IPv4 in the capture. The output is a table in Markdown.
#[derive(Clone, Debug, clap::Args)]
pub struct PacketsArgs {
    /// The capture (pcap or pcapng), such as of `tcpdump -w FILE`
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The address that opens the connection
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,
    /// The name of an address, as 10.0.0.1=bobsdell; may be given more than once
    #[arg(long = "name", value_name = "ADDRESS=NAME")]
    names: Vec<String>,
}

impl PacketsArgs {
    /// Prints the table.
    ///
    /// # Errors
    /// A capture that cannot be read, or has no such connection; `tshark` is not installed.
    pub fn run(&self) -> Result<(), Failure> {
        let mut names = BTreeMap::new();
        for name in &self.names {
            let pair = name.split_once('=').and_then(|(address, name)| Some((address.parse().ok()?, name.to_owned())));
            let (address, name): (IpAddr, String) = pair.ok_or_else(|| {
                Failure::usage(anyhow!("invalid value `{name}` for --name: expected an address and a name, as A=N"))
            })?;
            names.insert(address, name);
        }
        let lines = self.dissect().map_err(Failure::failed)?;
        let packets = connection(&lines, self.client).map_err(Failure::failed)?;
        spandrel_daemon::print(&table(&packets, &names))
    }

    /// The TCP packets of the capture, each a line of fields.
    fn dissect(&self) -> anyhow::Result<String> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-Y", "tcp and ip", "-T", "fields", "-r"]).arg(&self.capture);
        FIELDS.iter().for_each(|field| _ = command.args(["-e", field]));
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("cannot start tshark, which dissects captures: install Wireshark's tshark")?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            bail!("tshark cannot read {}: {}", self.capture.display(), reason.trim_end());
        }
        String::from_utf8(output.stdout).context("tshark printed other text than fields")
    }
}

/// The fields of a TCP segment that the lists show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    stream: u32,
    /// The time of capture, in microseconds since 1970.
    micros: u64,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    flags: u16,
    /// Relative to the first of the connection, and absolute.
    sequence: (u32, u32),
    acknowledgment: (u32, u32),
    length: u32,
    window: u16,
    options: Vec<String>,
}

impl Packet {
    /// Parses a line of fields that are separated by tabs, in the order of the command line of `tshark`.
    ///
    /// # Errors
    /// A field that is absent or malformed.
    pub fn parse(line: &str) -> anyhow::Result<Self> {
        let values: Vec<&str> = line.split('\t').collect();
        ensure!(values.len() == FIELDS.len(), "a packet has {} fields instead of {}", values.len(), FIELDS.len());
        let number = |index: usize| -> anyhow::Result<u32> {
            match values[index] {
                "" => Ok(0), // of a segment without ACK
                text => text.parse().with_context(|| format!("invalid {} `{text}`", FIELDS[index])),
            }
        };
        let port = |index: usize| Ok::<_, anyhow::Error>(u16::try_from(number(index)?)?);
        let address = |index: usize| {
            values[index].parse::<IpAddr>().with_context(|| format!("invalid {} `{}`", FIELDS[index], values[index]))
        };
        let seconds: f64 = values[1].parse().with_context(|| format!("invalid time `{}`", values[1]))?;
        let flags = values[6].trim_start_matches("0x");
        Ok(Self {
            stream: number(0)?,
            micros: (seconds * 1e6).round() as u64,
            source: (address(2)?, port(3)?),
            destination: (address(4)?, port(5)?),
            flags: u16::from_str_radix(flags, 16).with_context(|| format!("invalid flags `{flags}`"))?,
            sequence: (number(7)?, number(8)?),
            acknowledgment: (number(9)?, number(10)?),
            length: number(11)?,
            window: port(12)?,
            options: options(values[14], &[values[13], values[15], values[16], values[17]]),
        })
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The letters of the flags besides ACK; `.` for none.
    fn letters(&self) -> String {
        let set: String = FLAGS.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, letter)| letter).collect();
        if set.is_empty() { ".".to_owned() } else { set }
    }

    /// `FIRST:LAST(LENGTH)`, where `LAST` is behind the segment's data; none for a segment that only acknowledges.
    fn octets(&self) -> String {
        if self.length == 0 && self.letters() == "." {
            return String::new();
        }
        let first = if self.has(SYN) { self.sequence.1 } else { self.sequence.0 };
        format!("{first}:{}({})", first.wrapping_add(self.length), self.length)
    }

    fn acknowledged(&self) -> String {
        match (self.has(ACK), self.has(SYN)) {
            (false, _) => String::new(),
            (true, true) => self.acknowledgment.1.to_string(),
            (true, false) => self.acknowledgment.0.to_string(),
        }
    }
}

/// The options of a segment in their order, from the numbers of their kinds and their values: MSS, both timestamps, and
/// the shift of the window.
fn options(kinds: &str, [mss, value, echo, shift]: &[&str; 4]) -> Vec<String> {
    let option = |kind: &str| match kind {
        "0" => "eol".to_owned(),
        "1" => "nop".to_owned(),
        "2" => format!("mss {mss}"),
        "3" => format!("wscale {shift}"),
        "4" => "sackOK".to_owned(),
        "5" => "sack".to_owned(),
        "8" => format!("timestamp {value} {echo}"),
        other => format!("option {other}"),
    };
    kinds.split(',').filter(|kind| !kind.is_empty()).map(option).collect()
}

/// The packets of the first connection that this client opens, or of the first of all.
///
/// # Errors
/// A malformed line; no such connection.
pub fn connection(lines: &str, client: Option<IpAddr>) -> anyhow::Result<Vec<Packet>> {
    let packets: Vec<Packet> = lines.lines().map(Packet::parse).collect::<anyhow::Result<_>>()?;
    let opens =
        |packet: &&Packet| packet.has(SYN) && !packet.has(ACK) && client.is_none_or(|client| packet.source.0 == client);
    let first = packets.iter().find(opens).context("the capture has no such connection from its beginning")?.stream;
    Ok(packets.into_iter().filter(|packet| packet.stream == first).collect())
}

/// The packets as a table in Markdown. Times are those of the day (UTC).
#[must_use]
pub fn table(packets: &[Packet], names: &BTreeMap<IpAddr, String>) -> String {
    let end = |(address, port): &(IpAddr, u16)| match names.get(address) {
        Some(name) => format!("{name}.{port}"),
        None => format!("{address}.{port}"),
    };
    let columns = [
        ("time", Align::Right),
        ("direction", Align::Left),
        ("flags", Align::Left),
        ("sequence", Align::Right),
        ("ack", Align::Right),
        ("window", Align::Right),
        ("options", Align::Left),
    ];
    let mut table = with_columns(&columns);
    for packet in packets {
        let (seconds, micros) = (packet.micros / 1_000_000 % 86_400, packet.micros % 1_000_000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let (source, destination) = (end(&packet.source), end(&packet.destination));
        table.add_row([
            format!("{hours:02}:{minutes:02}:{seconds:02}.{micros:06}"),
            format!("{source} > {destination}"),
            packet.letters(),
            packet.octets(),
            packet.acknowledged(),
            packet.window.to_string(),
            packet.options.join(","),
        ]);
    }
    format!("{table:#}\n")
}
