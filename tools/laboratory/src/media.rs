//! Media flows (OMG Audio/Video Streams): over a link with losses and another order, two flows that belong together, and many
//! flows of one process beside a sender in C.

mod link;
mod many;
mod parties;
mod sync;
mod times;

use std::process::ExitCode;
use std::time::Duration;

use spandrel_avstreams::{Carrier, FlowProtocol};
use spandrel_error::output;
use spandrel_measure::table::{self, Align};

pub(crate) use self::many::SenderArgs;
use self::times::{millis, percentile};

/// Measure media flows: losses and another order of packets, lip synchronism, and many flows beside a sender in C.
#[derive(Debug, clap::Args)]
pub(crate) struct MediaArgs {
    /// The measurements: losses, lip-sync, many, or all in turn
    #[arg(value_name = "NAME", value_enum, default_values_t = [Measurement::Losses, Measurement::LipSync, Measurement::Many])]
    measurements: Vec<Measurement>,
    /// The seconds of each flow
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// The flows of `many`, of 25 packets a second
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    flows: u32,
    /// The rounds of `many`: each has both senders in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Two seconds, 20 flows, one round: shows that everything runs
    #[arg(long)]
    short: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Measurement {
    /// Flows by RTP and by SFP over a link that loses 2 % of the datagrams and delays 2 % beyond later ones.
    Losses,
    /// An audio and a video flow of one stream: the time between the arrivals of frames with the same time.
    LipSync,
    /// Flows of 25 packets a second by one process, and by a sender in C: packets that are late by more than 5 ms.
    Many,
}

impl MediaArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let (seconds, flows, rounds) = if self.short { (2, 20, 1) } else { (self.seconds, self.flows, self.rounds) };
        let time = Duration::from_secs(seconds.into());
        for measurement in &self.measurements {
            let table = match measurement {
                Measurement::Losses => losses(time)?,
                Measurement::LipSync => lip_sync(time)?,
                Measurement::Many => many::run(flows, rounds, time)?,
            };
            output::print(&format!("{table}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The octets of a frame of one packet, and of three.
const FRAMES: [(usize, u64); 2] = [(1_000, 1), (3_000, 3)];

fn losses(time: Duration) -> anyhow::Result<table::Table> {
    use Align::{Left, Right};
    let columns = [
        ("protocol", Left),
        ("packets/frame", Right),
        ("frames sent", Right),
        ("packets lost by the link", Right),
        ("reordered by it", Right),
        ("dropped by the system", Right),
        ("frames received", Right),
        ("packets lost", Right),
        ("recovered", Right),
        ("late", Right),
        ("frames incomplete", Right),
    ];
    let mut table = table::with_columns(&columns);
    for (carrier, protocol) in
        [(Carrier::RtpUdp, FlowProtocol::Rtp), (Carrier::Udp, FlowProtocol::Sfp { credit: None })]
    {
        for (octets, packets) in FRAMES {
            output::remark(&format!("losses: {protocol}, {packets} packets in a frame\n"));
            let outcome = parties::over_link(carrier, protocol, octets, time)?;
            let (link, received) = (outcome.link, outcome.received);
            let numbers = [
                packets,
                outcome.sent,
                link.lost,
                link.reordered,
                outcome.dropped(packets),
                received.frames,
                received.lost,
                received.reordered,
                received.late,
                received.incomplete,
            ];
            table.add_row([protocol.to_string()].into_iter().chain(numbers.map(|number| number.to_string())));
        }
    }
    Ok(table)
}

/// The greatest time between frames with the same time that counts as lip synchronism.
const SYNCHRONOUS: Duration = Duration::from_millis(20);

fn lip_sync(time: Duration) -> anyhow::Result<table::Table> {
    use Align::Right;
    let columns = [
        ("pairs of frames", Right),
        ("median ms", Right),
        ("99 % ms", Right),
        ("greatest ms", Right),
        ("beyond 20 ms", Right),
    ];
    output::remark("lip-sync: 25 video and 50 audio frames a second\n");
    let mut apart = sync::measure(time)?;
    apart.sort_unstable();
    let beyond = apart.iter().filter(|time| **time > SYNCHRONOUS).count();
    let mut table = table::with_columns(&columns);
    let times = [50, 99, 100].map(|percent| millis(percentile(&apart, percent)));
    table.add_row([apart.len().to_string()].into_iter().chain(times).chain([beyond.to_string()]));
    Ok(table)
}
