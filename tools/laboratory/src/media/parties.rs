//! A party of flows with its ORB, and one flow over a link with faults.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use spandrel::services::av_streams::{FDev, QoS};
use spandrel::{Endpoint, ObjectRef, Orb};
use spandrel_avstreams::{
    AvLimits, AvOptions, AvStreams, Carrier, FlowAddress, FlowDefinition, FlowProtocol, FlowStatistics, Frame,
    MediaSink, Medium, ReceivedFrame,
};
use spandrel_stacks::relay::Counts;

use super::link::FaultyLink;

/// The longest time until the end of a flow after its last frame.
const END: Duration = Duration::from_secs(60);
/// The frames in a second over the link: many, so that there are many losses in a short time.
const LINK_RATE: u32 = 250;

/// Audio and video streams on an ORB of their own.
pub(super) struct Party {
    streams: Option<AvStreams>,
    pub(super) orb: Orb,
}

impl Party {
    pub(super) fn start(limits: AvLimits) -> anyhow::Result<Self> {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
        let streams = AvStreams::start(&orb, AvOptions { limits, ..AvOptions::default() })?;
        Ok(Self { streams: Some(streams), orb })
    }

    pub(super) fn streams(&self) -> anyhow::Result<&AvStreams> {
        self.streams.as_ref().context("the streams were stopped")
    }

    /// The device of one flow.
    pub(super) fn flow_device(&self, flow: FlowDefinition) -> anyhow::Result<FDev> {
        Ok(self.streams()?.add_flow_device(flow)?.narrow()?)
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if let Some(streams) = self.streams.take() {
            _ = streams.stop();
        }
        _ = self.orb.shutdown();
    }
}

/// A source of frames with the times of their numbers, which ends after so many. Ticks are those of a clock of 90,000 a
/// second.
pub(super) fn source(rate: u32, octets: usize, frames: u32) -> Medium {
    Medium::source(move || {
        let mut number = 0;
        move || {
            let frame = Frame { data: vec![number as u8; octets], timestamp: number * (90_000 / rate) };
            number += 1;
            (number <= frames).then_some(frame)
        }
    })
}

/// A sink that sends the counts at the end of its flow.
struct CountingSink(Sender<FlowStatistics>);

impl MediaSink for CountingSink {
    fn take_frame(&mut self, _: ReceivedFrame) {}

    fn flow_ended(&mut self, _: &str, statistics: &FlowStatistics) {
        _ = self.0.send(*statistics);
    }
}

/// The counts of a flow over the link.
pub(super) struct LinkOutcome {
    /// The frames that were sent.
    pub(super) sent: u64,
    pub(super) link: Counts,
    pub(super) received: FlowStatistics,
    has_packets: bool,
}

impl LinkOutcome {
    /// The packets that the system has dropped, since a thread did not run and its socket was full: before the link, and behind
    /// it if the receiver counts packets; by SFP it counts frames.
    pub(super) fn dropped(&self, packets_per_frame: u64) -> u64 {
        let before = (self.sent * packets_per_frame).saturating_sub(self.link.received);
        let arrived = self.received.packets + self.received.late + self.received.duplicates;
        before + if self.has_packets { self.link.sent.saturating_sub(arrived) } else { 0 }
    }
}

/// Sends frames over a link with faults for this time.
pub(super) fn over_link(
    carrier: Carrier,
    protocol: FlowProtocol,
    octets: usize,
    time: Duration,
) -> anyhow::Result<LinkOutcome> {
    let party = Party::start(AvLimits::default())?;
    let frames = LINK_RATE * time.as_secs() as u32;
    let (sender, counts) = channel();
    let sender = Mutex::new(sender);
    let sink = Medium::sink(move || CountingSink(sender.lock().unwrap_or_else(PoisonError::into_inner).clone()));
    let definition = |medium| {
        let flow = FlowDefinition::new("video", medium);
        FlowDefinition { carriers: vec![carrier], protocol, frame_rate: LINK_RATE, ..flow }
    };
    let sending = party.flow_device(definition(source(LINK_RATE, octets, frames)))?;
    let receiving = party.flow_device(definition(sink))?;
    let (producer, _) = sending.create_producer(None, &mut QoS::default(), &mut String::new())?;
    let (consumer, _) = receiving.create_consumer(None, &mut QoS::default(), &mut String::new())?;
    let (producer, consumer) = (producer.context("no producer")?, consumer.context("no consumer")?);
    let mut chosen = String::new();
    let address = consumer.go_to_listen(&mut QoS::default(), false, None, &mut chosen)?;
    let address = FlowAddress::parse(&address)?;
    let link = FaultyLink::open(address.data)?;
    // Reports of RTCP go beside the link.
    let over_link = FlowAddress { data: link.address, ..address };
    producer.connect_to_peer(&mut QoS::default(), &over_link.to_string(), &chosen)?;
    consumer.start()?;
    producer.start()?;
    let received = counts.recv_timeout(time + END).context("the flow does not end")?;
    Ok(LinkOutcome { sent: frames.into(), link: link.close()?, received, has_packets: carrier == Carrier::RtpUdp })
}

/// The object as a client of another ORB has it.
pub(super) fn at(client: &Orb, object: &ObjectRef) -> anyhow::Result<ObjectRef> {
    Ok(client.string_to_object(&object.to_string())?)
}
