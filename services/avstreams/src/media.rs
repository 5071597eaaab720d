//! The application's side of flows: sources, sinks, and the definitions of a device's flows.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use spandrel::net::sync::Arc;

use crate::flow_spec::{Carrier, FlowProtocol};
use crate::statistics::FlowStatistics;

/// A frame that a source sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The octets of the frame, as the format has them.
    pub data: Vec<u8>,
    /// The time of the frame by the clock of the media ([`FlowDefinition::clock_rate`]).
    pub timestamp: u32,
}

/// A frame with the times that the carrier gives it, as a sink receives it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedFrame {
    /// The octets of the frame, as the format has them.
    pub data: Vec<u8>,
    /// The time of the frame by the clock of the media. Zero by protocols without timestamps.
    pub timestamp: u32,
    /// The time by which the frame was later than the earliest one, measured by timestamps.
    pub lateness: Duration,
    /// The variation of the time between packets at this frame (RFC 3550, 6.4.1).
    pub jitter: Duration,
    /// The packets that were lost since the frame before.
    pub lost: u64,
    /// The time of arrival of its last packet.
    pub arrival: Instant,
}

/// The producer of a flow's frames. One thread at a time calls it.
///
/// A source with a pace should not wait for its frames: it shares a thread with others, until it has held them up once.
/// One that waits for frames, such as those of a camera, paces itself ([`FlowDefinition::frame_rate`]).
pub trait MediaSource: Send {
    /// The next frame; `None` ends the flow.
    fn next_frame(&mut self) -> Option<Frame>;

    /// The reason why there are no further frames, such as a file that cannot be read. A flow with such a
    /// reason is not connected; a running flow ends with it in place of `the source has ended`.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Takes the reason why the flow has ended, and its counts. No frame is asked for after it.
    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        _ = (reason, statistics);
    }
}

impl<F: FnMut() -> Option<Frame> + Send> MediaSource for F {
    fn next_frame(&mut self) -> Option<Frame> {
        self()
    }
}

/// The consumer of a flow's frames. One thread calls it.
pub trait MediaSink: Send {
    /// Takes the next frame of the flow.
    fn take_frame(&mut self, frame: ReceivedFrame);

    /// The reason why the sink takes no frames, such as a file that cannot be written. A flow with such a
    /// reason is not connected; a running flow ends with it after the frame that has failed.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Takes the reason why the flow has ended, and its counts. No frame comes after it.
    fn flow_ended(&mut self, reason: &str, statistics: &FlowStatistics) {
        _ = (reason, statistics);
    }
}

impl<F: FnMut(ReceivedFrame) + Send> MediaSink for F {
    fn take_frame(&mut self, frame: ReceivedFrame) {
        self(frame);
    }
}

/// The role of a device in a flow, with the function that makes the source or sink of each stream.
#[derive(Clone)]
pub enum Medium {
    /// The device sends the frames of new sources.
    Source(Arc<dyn Fn() -> Box<dyn MediaSource> + Send + Sync>),
    /// The device receives frames into new sinks.
    Sink(Arc<dyn Fn() -> Box<dyn MediaSink> + Send + Sync>),
}

impl Medium {
    /// A device that sends the frames of new sources.
    pub fn source<S: MediaSource + 'static>(create: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self::Source(Arc::new(move || Box::new(create())))
    }

    /// A device that receives frames into new sinks.
    pub fn sink<S: MediaSink + 'static>(create: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self::Sink(Arc::new(move || Box::new(create())))
    }

    /// Whether the device sends.
    #[must_use]
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Source(_))
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_source() { "Source" } else { "Sink" })
    }
}

/// The values that a device accepts for a parameter of the quality of service.
#[derive(Clone, Debug, PartialEq)]
pub struct QosRange {
    /// The name of the parameter, such as `frame_rate`.
    pub name: String,
    /// The least value. Requests of less fail.
    pub min: u32,
    /// The greatest value. Requests of more get this one.
    pub max: u32,
}

impl QosRange {
    /// A range that includes both ends.
    #[must_use]
    pub fn new(name: &str, min: u32, max: u32) -> Self {
        Self { name: name.to_owned(), min, max }
    }
}

/// A flow that a device has in each of its streams.
#[derive(Clone, Debug)]
pub struct FlowDefinition {
    /// The name, by which controls choose the flow.
    pub name: String,
    /// Whether the device sends or receives.
    pub medium: Medium,
    /// The formats of the frames, the preferred one first. Empty for any.
    pub formats: Vec<String>,
    /// The carriers that the device offers, the preferred one first.
    pub carriers: Vec<Carrier>,
    /// The flow protocol of connections that request none.
    pub protocol: FlowProtocol,
    /// Ticks of the media's clock in a second (default 90,000).
    pub clock_rate: u32,
    /// Frames in a second (default 25). Zero for a source that paces itself.
    pub frame_rate: u32,
    /// The payload type of RTP (default 96).
    pub payload_type: u8,
    /// The class of service in IP headers, as DSCP (default 0).
    pub dscp: u8,
    /// The parameters of the quality of service that can be asked for. `frame_rate` changes the pace of a source, `dscp` the
    /// class of its packets.
    pub qos: Vec<QosRange>,
    /// Whether a receiver admits only the sender that shows its token (default). If not, it admits the first
    /// sender of a valid packet, which may be a party that knows no tokens.
    pub needs_token: bool,
    /// The IPv4 address of the interface by which groups are joined and sent to (default: the choice of the system).
    pub multicast_interface: Option<Ipv4Addr>,
}

impl FlowDefinition {
    /// A flow with defaults for all the rest: any format, and all carriers.
    #[must_use]
    pub fn new(name: &str, medium: Medium) -> Self {
        Self {
            name: name.to_owned(),
            medium,
            formats: Vec::new(),
            carriers: Carrier::ALL.to_vec(),
            protocol: FlowProtocol::None,
            clock_rate: 90_000,
            frame_rate: 25,
            payload_type: 96,
            dscp: 0,
            qos: Vec::new(),
            needs_token: true,
            multicast_interface: None,
        }
    }
}
