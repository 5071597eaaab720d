//! Packets of RTP and reports of RTCP (RFC 3550).

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rtcp_types::{
    Bye, Compound, Packet, ReceiverReport, ReportBlock, ReportBlockBuilder, RtcpPacketWriter, RtcpPacketWriterExt,
    Sdes, SdesChunk, SdesItem, SenderReport,
};
use rtp_types::{RtpPacket, RtpPacketBuilder};

/// The octets of the header of a packet without contributing sources.
const HEADER_OCTETS: usize = 12;
/// Seconds from the epoch of NTP to that of UNIX.
const NTP_OFFSET: u64 = 2_208_988_800;
/// The most octets of a compound packet of ours.
const REPORT_OCTETS: usize = 512;

/// A packet of RTP as it was received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MediaPacket {
    pub(crate) sequence: u16,
    pub(crate) timestamp: u32,
    pub(crate) source: u32,
    pub(crate) is_last: bool,
    pub(crate) data: Vec<u8>,
}

/// The packet in a datagram; `None` if it is none of RTP.
pub(crate) fn parse(datagram: &[u8]) -> Option<MediaPacket> {
    let packet = RtpPacket::parse(datagram).ok()?;
    Some(MediaPacket {
        sequence: packet.sequence_number(),
        timestamp: packet.timestamp(),
        source: packet.ssrc(),
        is_last: packet.marker_bit(),
        data: packet.payload().to_vec(),
    })
}

/// The state of a sender of RTP.
#[derive(Debug)]
pub(crate) struct RtpSender {
    pub(crate) source: u32,
    pub(crate) payload_type: u8,
    sequence: u16,
    packets: u32,
    octets: u32,
}

impl RtpSender {
    pub(crate) fn new(source: u32, first_sequence: u16, payload_type: u8) -> Self {
        Self { source, payload_type, sequence: first_sequence, packets: 0, octets: 0 }
    }

    /// The packets of a frame, none of them larger than `most` octets. The last one has the marker.
    pub(crate) fn frame(&mut self, timestamp: u32, data: &[u8], most: usize) -> Vec<Vec<u8>> {
        let room = most.saturating_sub(HEADER_OCTETS).max(1);
        let parts: Vec<&[u8]> = if data.is_empty() { vec![data] } else { data.chunks(room).collect() };
        let last = parts.len() - 1;
        let packets = parts.into_iter().enumerate().map(|(index, part)| {
            let packet = RtpPacketBuilder::<&[u8], &[u8]>::new()
                .payload_type(self.payload_type)
                .sequence_number(self.sequence)
                .timestamp(timestamp)
                .ssrc(self.source)
                .marker_bit(index == last)
                .payload(part);
            self.sequence = self.sequence.wrapping_add(1);
            self.packets = self.packets.wrapping_add(1);
            self.octets = self.octets.wrapping_add(part.len() as u32);
            packet.write_vec_unchecked()
        });
        packets.collect()
    }

    /// A sender report with the name of this party.
    pub(crate) fn report(&self, timestamp: u32, name: &str) -> Vec<u8> {
        let report = SenderReport::builder(self.source)
            .ntp_timestamp(ntp_now())
            .rtp_timestamp(timestamp)
            .packet_count(self.packets)
            .octet_count(self.octets);
        compound(self.source, name, report)
    }
}

/// The report of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reception {
    pub(crate) source: u32,
    pub(crate) fraction_lost: u8,
    pub(crate) lost: u64,
    pub(crate) highest: u64,
    pub(crate) jitter: u32,
    /// The middle 32 bits of the last sender report's time, and its arrival.
    pub(crate) last_report: Option<(u32, Instant)>,
}

/// A receiver report with the name of this party.
pub(crate) fn receiver_report(own: u32, reception: &Reception, name: &str) -> Vec<u8> {
    let (time, delay) = reception.last_report.map_or((0, 0), |(time, arrival)| {
        let delay = arrival.elapsed();
        (time, u32::try_from(delay.as_nanos() * 65_536 / 1_000_000_000).unwrap_or(u32::MAX))
    });
    let block: ReportBlockBuilder = ReportBlock::builder(reception.source)
        .fraction_lost(reception.fraction_lost)
        .cumulative_lost(u32::try_from(reception.lost).unwrap_or(u32::MAX).min(0x7f_ffff))
        .extended_sequence_number(reception.highest as u32)
        .interarrival_jitter(reception.jitter)
        .last_sender_report_timestamp(time)
        .delay_since_last_sender_report_timestamp(delay);
    compound(own, name, ReceiverReport::builder(own).add_report_block(block))
}

/// The farewell of a party.
pub(crate) fn bye(own: u32, reason: &str) -> Vec<u8> {
    let bye = Bye::builder().add_source(own).reason(reason.chars().take(60).collect::<String>());
    written(&Compound::builder().add_packet(ReceiverReport::builder(own)).add_packet(bye))
}

fn compound(own: u32, name: &str, report: impl RtcpPacketWriter) -> Vec<u8> {
    let name = SdesChunk::builder(own).add_item(SdesItem::builder(SdesItem::CNAME, name));
    written(&Compound::builder().add_packet(report).add_packet(Sdes::builder().add_chunk(name)))
}

fn written(packet: &impl RtcpPacketWriter) -> Vec<u8> {
    let mut buffer = vec![0; REPORT_OCTETS];
    let length = packet.write_into(&mut buffer).unwrap_or(0);
    buffer.truncate(length);
    buffer
}

/// An event in a compound packet of the other party.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControlEvent {
    /// A sender report: its source and the middle 32 bits of its time.
    SenderReport { source: u32, time: u32 },
    /// The packets that a receiver lost of this source.
    Reception { source: u32, lost: u32, jitter: u32 },
    /// Sources leave the session; the reason has no control characters.
    Bye { sources: Vec<u32>, reason: String },
}

/// The events in a datagram; `None` if it is none of RTCP.
pub(crate) fn parse_control(datagram: &[u8]) -> Option<Vec<ControlEvent>> {
    let mut events = Vec::new();
    let block = |block: ReportBlock<'_>| ControlEvent::Reception {
        source: block.ssrc(),
        lost: block.cumulative_lost(),
        jitter: block.interarrival_jitter(),
    };
    for packet in Compound::parse(datagram).ok()? {
        match packet.ok()? {
            Packet::Sr(report) => {
                let time = (report.ntp_timestamp() >> 16) as u32;
                events.push(ControlEvent::SenderReport { source: report.ssrc(), time });
                events.extend(report.report_blocks().map(block));
            }
            Packet::Rr(report) => events.extend(report.report_blocks().map(block)),
            Packet::Bye(bye) => {
                let reason = String::from_utf8_lossy(bye.reason().unwrap_or_default());
                let reason = reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
                events.push(ControlEvent::Bye { sources: bye.ssrcs().collect(), reason });
            }
            _ => {}
        }
    }
    Some(events)
}

/// The variation of the transit time (RFC 3550, A.8), and the lateness of frames.
#[derive(Debug)]
pub(crate) struct Clock {
    rate: u32,
    begin: Instant,
    /// The transit time with the arrival in ticks, and the timestamp, of the last packet.
    last: Option<((i64, i64), u32)>,
    earliest: i64,
    jitter: f64,
}

impl Clock {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), begin: Instant::now(), last: None, earliest: i64::MAX, jitter: 0.0 }
    }

    /// Takes the timestamp of a packet. Returns by how much it was later than the earliest one.
    pub(crate) fn arrival(&mut self, now: Instant, timestamp: u32) -> Duration {
        let ticks = now.duration_since(self.begin).as_micros() as i64 * i64::from(self.rate) / 1_000_000;
        let transit = match self.last {
            // The difference of timestamps counts, since they wrap around.
            Some((transit, last)) => {
                let progress = i64::from(timestamp.wrapping_sub(last).cast_signed());
                (transit.0 + ticks - transit.1 - progress, ticks)
            }
            None => (0, ticks),
        };
        if let Some((last, _)) = self.last {
            let variation = (transit.0 - last.0).unsigned_abs() as f64;
            self.jitter += (variation - self.jitter) / 16.0;
        }
        self.last = Some((transit, timestamp));
        self.earliest = self.earliest.min(transit.0);
        let late = (transit.0 - self.earliest).unsigned_abs();
        Duration::from_micros(late.saturating_mul(1_000_000) / u64::from(self.rate))
    }

    pub(crate) fn jitter_ticks(&self) -> u32 {
        self.jitter as u32
    }

    pub(crate) fn jitter_micros(&self) -> u64 {
        (self.jitter * 1_000_000.0 / f64::from(self.rate)) as u64
    }
}

fn ntp_now() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let fraction = u64::from(time.subsec_nanos()) * (1 << 32) / 1_000_000_000;
    (time.as_secs() + NTP_OFFSET) << 32 | fraction
}

/// Sends to all; a receiver that is not there is not the others' loss.
pub(crate) fn send_control(socket: &UdpSocket, packet: &[u8], to: impl IntoIterator<Item = SocketAddr>) {
    for address in to {
        _ = socket.send_to(packet, address);
    }
}
