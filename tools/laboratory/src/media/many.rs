//! Many flows of one process, and of a sender in C: how late their packets are.

use std::collections::BTreeMap;
use std::env;
use std::io::BufRead as _;
use std::net::UdpSocket;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use spandrel::services::av_streams::QoS;
use spandrel_avstreams::{AvLimits, Carrier, FlowDefinition};
use spandrel_error::output;
use spandrel_lab::peer::child::ChildHandle;
use spandrel_lab::peer_programs;
use spandrel_measure::table::{self, Align};
use spandrel_orchestra::agent::processor_times;

use super::parties::{Party, source};
use super::times::{millis, percentile};

/// The packets of a flow in a second.
const RATE: u32 = 25;
/// The octets of a packet behind its header of RTP.
const OCTETS: usize = 160;
/// A packet that comes this much after its time is late.
const LATE: Duration = Duration::from_millis(5);
/// The longest start of a sender.
const START: Duration = Duration::from_secs(60);

/// Send flows by RTP to a port of the loopback interface, from the first line of standard input on to its end.
#[derive(Debug, clap::Args)]
pub(crate) struct SenderArgs {
    /// The port to which all flows go
    port: u16,
    /// The number of flows
    flows: u32,
}

impl SenderArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let flows = self.flows as usize;
        let party = Party::start(AvLimits { flows, objects: 2 * flows + 16, ..AvLimits::default() })?;
        // Reports of RTCP go to the port as well, and are no frames there.
        let address = format!("{}=127.0.0.1:{};{}", Carrier::RtpUdp, self.port, self.port);
        let producer = |number: u32| {
            let flow = FlowDefinition::new(&format!("flow{number}"), source(RATE, OCTETS, u32::MAX));
            let (carriers, needs_token) = (vec![Carrier::RtpUdp], false);
            let device = party.flow_device(FlowDefinition { frame_rate: RATE, carriers, needs_token, ..flow })?;
            let (producer, _) = device.create_producer(None, &mut QoS::default(), &mut String::new())?;
            let producer = producer.context("no producer")?;
            producer.connect_to_peer(&mut QoS::default(), &address, "RTP")?;
            Ok(producer)
        };
        let producers = (0..self.flows).map(producer).collect::<anyhow::Result<Vec<_>>>()?;
        output::print("ready\n")?;
        let mut lines = std::io::stdin().lock().lines();
        if lines.next().is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        // As the sender in C does: one flow after the other within a period.
        let begin = Instant::now();
        for (number, producer) in (0..).zip(&producers) {
            let due = Duration::from_secs(1) * number / (RATE * self.flows);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            producer.start()?;
        }
        lines.for_each(drop);
        Ok(ExitCode::SUCCESS)
    }
}

/// Packets by their source, with their numbers and arrivals.
#[derive(Default)]
struct Arrivals(BTreeMap<u32, Vec<(u16, Duration)>>);

impl Arrivals {
    fn add(&mut self, packet: &[u8], arrival: Duration) {
        // Payload types from 72 to 76 with a marker are packets of RTCP (RFC 5761, 4).
        let is_media = packet.len() >= 12 && packet[0] >> 6 == 2 && !(200..=204).contains(&packet[1]);
        if is_media {
            let source = u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]);
            self.0.entry(source).or_default().push((u16::from_be_bytes([packet[2], packet[3]]), arrival));
        }
    }

    /// How much later than the earliest packet of its flow each packet has come, by the times of their numbers; sorted.
    fn lateness(&self) -> Vec<Duration> {
        let period = Duration::from_secs(1) / RATE;
        let of_flow = |packets: &Vec<(u16, Duration)>| {
            let first = packets[0].0;
            let after_first = |(number, arrival): &(u16, Duration)| {
                let steps = number.wrapping_sub(first).cast_signed();
                arrival.as_nanos() as i128 - i128::from(steps) * period.as_nanos() as i128
            };
            let offsets: Vec<i128> = packets.iter().map(after_first).collect();
            let earliest = offsets.iter().min().copied().unwrap_or_default();
            offsets.into_iter().map(move |offset| Duration::from_nanos((offset - earliest) as u64))
        };
        let mut all: Vec<Duration> = self.0.values().flat_map(of_flow).collect();
        all.sort_unstable();
        all
    }
}

/// The packets of one sender.
#[derive(Default)]
struct Outcome {
    flows: usize,
    lateness: Vec<Duration>,
    processor: f64,
}

/// Receives the packets of a sender for this time.
fn measure(name: &'static str, mut command: Command, socket: &UdpSocket, time: Duration) -> anyhow::Result<Outcome> {
    command.stdin(std::process::Stdio::piped());
    let mut sender = ChildHandle::start(name, command)?;
    let line = sender.line(START)?;
    if line != "ready" {
        bail!("the {name} says {line}");
    }
    let before = processor_times(sender.id());
    sender.send_line("go")?;
    let (begin, mut arrivals, mut buffer) = (Instant::now(), Arrivals::default(), [0; 2_048]);
    while begin.elapsed() < time {
        match socket.recv(&mut buffer) {
            Ok(length) => arrivals.add(&buffer[..length], begin.elapsed()),
            Err(error) if spandrel_ipc::is_timeout(&error) => {}
            Err(error) => return Err(error).context("cannot receive packets"),
        }
    }
    let after = processor_times(sender.id());
    drop(sender);
    let processor = (after.0 + after.1) - (before.0 + before.1);
    Ok(Outcome { flows: arrivals.0.len(), lateness: arrivals.lateness(), processor })
}

/// Measures both senders in turn.
pub(super) fn run(flows: u32, rounds: u32, time: Duration) -> anyhow::Result<table::Table> {
    let plain = peer_programs::find("media-c", None).map_err(|reason| anyhow!("the sender in C: {reason}"))?;
    let senders = ["spandrel", "plain C"];
    let mut outcomes = senders.map(|_| Outcome::default());
    for round in 0..rounds {
        for (name, outcome) in senders.into_iter().zip(&mut outcomes) {
            output::remark(&format!("many: {name}, {flows} flows, round {}\n", round + 1));
            // Packets of an earlier sender do not come to a new port.
            let socket = UdpSocket::bind(("127.0.0.1", 0))?;
            socket.set_read_timeout(Some(Duration::from_millis(50)))?;
            let port = socket.local_addr()?.port().to_string();
            let command = if name == "plain C" {
                let mut command = Command::new(&plain);
                command.args([&port, &flows.to_string(), &RATE.to_string(), &OCTETS.to_string()]);
                command
            } else {
                let mut command = Command::new(env::current_exe()?);
                command.args(["media-sender", &port, &flows.to_string()]);
                command
            };
            let measured = measure(name, command, &socket, time)?;
            outcome.flows = outcome.flows.max(measured.flows);
            outcome.lateness.extend(measured.lateness);
            outcome.processor += measured.processor;
        }
    }
    use Align::{Left, Right};
    let columns = [
        ("sender", Left),
        ("flows", Right),
        ("packets", Right),
        ("late by more than 5 ms", Right),
        ("of plain C", Right),
        ("median ms", Right),
        ("99 % ms", Right),
        ("greatest ms", Right),
        ("CPU s", Right),
    ];
    let mut table = table::with_columns(&columns);
    let late = |outcome: &Outcome| outcome.lateness.iter().filter(|time| **time > LATE).count();
    let base = late(&outcomes[1]);
    for (name, outcome) in senders.into_iter().zip(&mut outcomes) {
        outcome.lateness.sort_unstable();
        let count = late(outcome);
        let ratio = if base > 0 { format!("{:.2}", count as f64 / base as f64) } else { "-".to_owned() };
        let times = [50, 99, 100].map(|percent| millis(percentile(&outcome.lateness, percent)));
        let counts = [outcome.flows, outcome.lateness.len(), count].map(|number| number.to_string());
        let row = [name.to_owned()].into_iter().chain(counts).chain([ratio]).chain(times);
        table.add_row(row.chain([format!("{:.2}", outcome.processor)]));
    }
    Ok(table)
}
