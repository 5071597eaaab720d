//! The command line: the flows of a device, limits, and the commands.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Parser, Subcommand};
use spandrel::ssliop::Ssliop;
use spandrel_avstreams::{
    AvLimits, AvOptions, Carrier, DSCP, DeviceDefinition, FRAME_RATE, FlowDefinition, FlowEntry, FlowProtocol, QosRange,
};
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure};

use crate::media::{FileSink, FileSource, TestPattern};
use crate::position::Playback;

/// The default port of a device, beside that of the image store.
pub(crate) const PORT: u16 = 2814;
/// The plain key of a device, and its name in the naming service.
pub(crate) const DEVICE_KEY: &str = "MMDevice";
/// The plain key of the control of `play`.
pub(crate) const CONTROL_KEY: &str = "StreamCtrl";
/// The plain key of the control of a device's position.
pub(crate) const MEDIA_KEY: &str = "MediaControl";
/// The greatest pace that a stream can ask for by `frame_rate`.
const MAX_FRAME_RATE: u32 = 1_000;

/// Audio and video streams: serves a device whose flows are files, or binds devices of any ORB, and starts and stops
/// their flows.
#[derive(Debug, Parser)]
#[command(name = "spandrel-av", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Bind the device in the naming service, as `MMDevice` unless another name is given (--orb
    /// `-ORBInitRef NameService=…`)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = DEVICE_KEY)]
    pub(crate) publish: Option<String>,
    /// Show the numbers of objects and flows, and those of the ORB, to Prometheus: http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write the counts of running flows to standard error at this interval; 0 for never [default: 1 on a terminal, else 0]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) progress: Option<Duration>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The flows of the device, and what they have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct DeviceArgs {
    /// A flow that sends the octets of a file, in frames of --frame-octets
    #[arg(long, value_name = "FLOW=FILE")]
    source: Vec<String>,
    /// A flow that sends numbered frames
    #[arg(long, value_name = "FLOW")]
    pattern: Vec<String>,
    /// A flow that is received, into a file if one is given. A second stream replaces the file of the first one
    #[arg(long, value_name = "FLOW[=FILE]")]
    sink: Vec<String>,
    /// The folder for a picture of each received flow: FLOW.svg, with lateness, jitter and losses over the time
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
    /// The frames of a test pattern; 0 for no end
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    frames: u64,
    /// The frames that a source sends in a second; streams may ask for another pace up to 1,000
    #[arg(long, value_name = "NUMBER", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_FRAME_RATE)))]
    frame_rate: u32,
    /// The octets of a frame
    #[arg(long, value_name = "OCTETS", default_value_t = 1_200, value_parser = clap::value_parser!(u32).range(8..=4_194_304))]
    frame_octets: u32,
    /// A carrier of the flows, the preferred one first: `RTP/UDP`, `UDP`, `TCP` or `TLS`, for which a receiver has --cert and
    /// --key, and its sender --ca [default: all in this order]
    #[arg(long, value_name = "CARRIER")]
    carrier: Vec<String>,
    /// The flow protocol if a stream asks for none: `SFP:1.0`, or `SFP:1.0:credit=N` with flow control
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// A format of the frames, the preferred one first [default: any]
    #[arg(long, value_name = "FORMAT")]
    format: Vec<String>,
    /// The class of service of packets (DSCP), which streams may change
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Take and send flows without tokens, for parties that know none
    #[arg(long)]
    without_tokens: bool,
    /// The address at which flows are received
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    flow_host: IpAddr,
}

/// Times after which peers that do not act lose their flow or stream.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// The time for the connection of a flow and its token
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10", global = true)]
    connect: Duration,
    /// The longest time without progress of a started flow
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10", global = true)]
    idle: Duration,
    /// The time for one call of another party
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30", global = true)]
    call: Duration,
    /// The time for which a control or a party may not answer, after which the stream ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30", global = true)]
    absence: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bind two devices, start their flows, and end the stream at Ctrl-C or when all flows have ended. The control is in
    /// this process, and so is the second device if it is not named
    Play(Devices),
    /// Bind two devices by a control in the process of the first one, and print the reference of the control
    Bind(Devices),
    /// Start flows of a stream
    Start(Stream),
    /// Stop flows of a stream, until they are started again
    Stop(Stream),
    /// End flows of a stream for good; without flows, the whole stream and its control
    Destroy(Stream),
    /// Print the properties of a device or a control, such as its flows with their states
    Show {
        /// The object: HOST:PORT of a device, or the URL or reference of any object of streams
        object: String,
    },
    /// Print the position of a device's sources in octets, frames and milliseconds, after a change if one is named
    Medium {
        /// The control of the position: HOST:PORT of a device, or the URL of a `MediaControl`
        control: String,
        /// The change: at a position, or the present one without --at
        #[arg(value_enum)]
        change: Option<Change>,
        /// The frame at which the change happens; with a sign, so many frames from the present one
        #[arg(long, value_name = "FRAME", allow_hyphen_values = true)]
        at: Option<String>,
    },
}

/// A change of a position.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Change {
    /// Go there, paused or not as before
    Seek,
    /// Go there, and repeat the frame
    Pause,
    /// Go there, and go on
    Resume,
}

/// Devices that are bound, with the wishes for their flows.
#[derive(Debug, clap::Args)]
pub(crate) struct Devices {
    /// The A party: HOST:PORT, or the URL of a device
    pub(crate) a_device: String,
    /// The B party; for `play` it may be the device of this process, by --sink, --source and --pattern
    pub(crate) b_device: Option<String>,
    /// A flow of the stream: its name, or a flow specification such as `video\in\\SFP:1.0\UDP` [default: all]
    #[arg(long, value_name = "SPECIFICATION")]
    pub(crate) flow: Vec<String>,
    /// A wish for the quality of service of all flows, `frame_rate` or `dscp`
    #[arg(long, value_name = "NAME=NUMBER")]
    pub(crate) qos: Vec<String>,
}

/// A stream and some of its flows.
#[derive(Debug, clap::Args)]
pub(crate) struct Stream {
    /// The control: HOST:PORT of `spandrel av play`, or its URL or reference
    pub(crate) control: String,
    /// The names of flows [default: all]
    pub(crate) flows: Vec<String>,
}

/// A time in seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.0..=86_400.0).contains(number));
    number.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds from 0 to 86400, such as 2.5".to_owned())
}

impl LimitArgs {
    /// The time limit of a call of another party.
    pub(crate) fn call(&self) -> Duration {
        self.call
    }
}

impl Args {
    /// The settings of the service, with the certificates of the ORB.
    pub(crate) fn options(&self, ssliop: &Ssliop) -> AvOptions {
        let LimitArgs { connect, idle, call, absence } = self.limits;
        AvOptions {
            host: self.device.flow_host,
            limits: AvLimits { connect, idle, call, absence, ..AvLimits::default() },
            tls: Some(ssliop.clone()),
        }
    }

    /// The position of the device's sources, at their beginning.
    pub(crate) fn playback(&self) -> Arc<Playback> {
        Playback::new(self.device.frame_octets, self.device.frame_rate)
    }

    /// The device with its flows; `None` without flows.
    ///
    /// # Errors
    /// A flow, carrier or protocol that is none; a file that cannot be opened.
    pub(crate) fn definition(&self, playback: &Arc<Playback>) -> Result<Option<DeviceDefinition>, Failure> {
        let definition = self.device.definition(playback).map_err(Failure::usage)?;
        Ok((!definition.flows.is_empty()).then_some(definition))
    }
}

impl DeviceArgs {
    fn definition(&self, playback: &Arc<Playback>) -> anyhow::Result<DeviceDefinition> {
        let mut flows = Vec::new();
        let octets = self.frame_octets;
        for text in &self.source {
            let (name, file) = text.split_once('=').ok_or_else(|| {
                anyhow!("invalid value `{text}` for --source: expected FLOW=FILE, such as video=film.mpg")
            })?;
            let source = FileSource::new(name, PathBuf::from(file), octets);
            flows.push(FlowDefinition::new(
                name,
                source.medium(playback).context("no source without its file (--source)")?,
            ));
        }
        for name in &self.pattern {
            flows.push(FlowDefinition::new(name, TestPattern::medium(name, octets, self.frames, playback)));
        }
        for text in &self.sink {
            let (name, file) = text.split_once('=').map_or((&**text, None), |(name, file)| (name, Some(file)));
            let picture = self.pictures.as_ref().map(|folder| folder.join(format!("{name}.svg")));
            let sink = FileSink::new(name, file.map(PathBuf::from), picture);
            flows.push(FlowDefinition::new(name, sink.medium().context("no sink without its file (--sink)")?));
        }
        let (carriers, protocol) = (self.carriers()?, self.protocol()?);
        for flow in &mut flows {
            FlowEntry::parse(&flow.name).ok().filter(|entry| entry.name == flow.name).ok_or_else(|| {
                anyhow!("`{}` is no name of a flow: expected a short name without `\\` and `=`", flow.name)
            })?;
            flow.carriers.clone_from(&carriers);
            flow.protocol = protocol;
            flow.formats.clone_from(&self.format);
            flow.frame_rate = self.frame_rate;
            flow.dscp = self.dscp;
            flow.needs_token = !self.without_tokens;
            flow.qos = vec![QosRange::new(FRAME_RATE, 1, MAX_FRAME_RATE), QosRange::new(DSCP, 0, 63)];
        }
        let mut names: Vec<&str> = flows.iter().map(|flow| &*flow.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(anyhow!("the flow `{}` is named twice: each flow has a name of its own", twice[0]));
        }
        Ok(DeviceDefinition { flows, ..DeviceDefinition::default() })
    }

    fn carriers(&self) -> anyhow::Result<Vec<Carrier>> {
        let carrier = |text: &String| {
            let named = Carrier::ALL.into_iter().find(|carrier| carrier.to_string().eq_ignore_ascii_case(text));
            named.ok_or_else(|| anyhow!("invalid value `{text}` for --carrier: expected RTP/UDP, UDP, TCP or TLS"))
        };
        let carriers = self.carrier.iter().map(carrier).collect::<Result<Vec<_>, _>>()?;
        Ok(if carriers.is_empty() { Carrier::ALL.to_vec() } else { carriers })
    }

    fn protocol(&self) -> anyhow::Result<FlowProtocol> {
        let Some(text) = &self.protocol else { return Ok(FlowProtocol::None) };
        FlowProtocol::parse(text)
            .ok_or_else(|| anyhow!("invalid value `{text}` for --protocol: expected SFP:1.0 or SFP:1.0:credit=NUMBER"))
    }
}
