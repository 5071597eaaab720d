//! Senders of TCP connections, whose segments were prepared.

use std::time::Instant;

use spandrel_message::MessageBlock;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Guarded, Monitor};

use super::{Device, Faults, PORT, RECEIVER, Received, SENDER, TICK};
use crate::frame;
use crate::ip::Ipv4Header;
use crate::tcp::{Flags, Segment, TcpHeader};
use crate::xdr::{self, Content};

/// The initial sequence number of each sender; the numbers wrap during the experiment.
const SENDER_SEQUENCE: u32 = u32::MAX - 100_000;
/// The window scale of each sender.
const SENDER_SCALE: u8 = 7;

/// The senders of one or more TCP connections. Each obeys its receiver's window, and sends again what was lost: after
/// three duplicate acknowledgements, or when nothing came for a millisecond. Connections that can send take turns.
pub struct PreparedConnections<L: Monitor> {
    /// The segments of each connection, with consecutive ports.
    prepared: Vec<Vec<PreparedSegment>>,
    first_port: u16,
    faults: Faults,
    line: Guarded<Line, L>,
    changed: L::Condition,
    is_stopped: AtomicBool,
}

struct PreparedSegment {
    /// The position behind its last octet; the SYN is at 0.
    end: u64,
    frame: Vec<u8>,
}

/// The state of all senders.
#[derive(Debug)]
struct Line {
    senders: Vec<Sending>,
    /// The connection that sends next, if it can.
    turn: usize,
    /// Frames delivered and received.
    events: u64,
    random: fastrand::Rng,
}

/// The state of a sender.
#[derive(Debug, Default)]
struct Sending {
    /// The first frame that was not acknowledged, and the next to send.
    first: usize,
    next: usize,
    window_end: u64,
    scale: u8,
    acknowledged: u64,
    duplicates: u32,
    /// Frames that the device delivers later: duplicates, and those that come after others.
    late: Vec<usize>,
    /// A frame to send again after duplicate acknowledgements.
    again: Option<usize>,
    /// The time at which it was found to wait for an acknowledgement, without one since then.
    waits_since: Option<Instant>,
    counts: SenderCounts,
}

/// Counts of the events of a connection of [`PreparedConnections`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Frames that the device delivered.
    pub delivered: u64,
    /// Frames that the device dropped, as a network that loses them.
    pub lost: u64,
    /// Frames that were sent again after duplicate acknowledgements.
    pub fast_retransmissions: u64,
    /// Frames that were sent again after a time without progress.
    pub timeouts: u64,
    /// Acknowledgements received from the receiver.
    pub acknowledgments: u64,
    /// Frames from the receiver that were not valid segments of the connection.
    pub invalid: u64,
}

/// The parameters of [`PreparedConnections`].
#[derive(Clone, Copy, Debug)]
pub struct PreparedSettings {
    /// The number of connections.
    pub connections: usize,
    /// The number of messages of each.
    pub messages: usize,
    /// The data of which messages consist.
    pub content: Content,
    /// The octets of data in a segment.
    pub segment: usize,
    /// The sender's port of the first connection; the others have the following ones.
    pub first_port: u16,
    /// The initial sequence number that the receiver will choose.
    pub receiver_sequence: u32,
    /// The percentages of frames that the device loses, repeats and reorders.
    pub faults: Faults,
    /// The seed that repeats the same faults.
    pub seed: u64,
}

impl PreparedSettings {
    /// Prepares the segments of a connection.
    fn segments(&self, connection: usize) -> Vec<PreparedSegment> {
        let header = TcpHeader {
            source: self.first_port + connection as u16,
            destination: PORT,
            sequence: SENDER_SEQUENCE,
            window: 0xffff,
            ..TcpHeader::default()
        };
        let size = self.segment.clamp(1, 60_000);
        let options = (Some(size as u16), Some(SENDER_SCALE));
        let syn = TcpHeader { flags: Flags::SYN, max_segment: options.0, window_scale: options.1, ..header };
        let prepared = |header, data: MessageBlock, end| {
            let packet = Segment { header, data }.packet(SENDER, RECEIVER);
            PreparedSegment { end, frame: frame::frame(&packet.unwrap_or_default()) }
        };
        let mut segments = vec![prepared(syn, MessageBlock::default(), 1)];
        let mut position = 1;
        let mut waiting: Vec<u8> = Vec::new();
        for number in 0..self.messages {
            waiting.extend(xdr::encode(&self.content.message(number)));
            let is_last = number + 1 == self.messages;
            while waiting.len() >= size || (is_last && !waiting.is_empty()) {
                let rest = waiting.split_off(size.min(waiting.len()));
                let header = TcpHeader {
                    sequence: SENDER_SEQUENCE.wrapping_add(position as u32),
                    acknowledgment: self.receiver_sequence.wrapping_add(1),
                    flags: Flags::ACK | Flags::PSH,
                    ..header
                };
                position += waiting.len() as u64;
                segments.push(prepared(header, waiting[..].into(), position));
                waiting = rest;
            }
        }
        segments
    }
}

impl Sending {
    /// The next of its segments to deliver, if the window allows one.
    fn next_segment(
        &mut self,
        segments: &[PreparedSegment],
        faults: Faults,
        random: &mut fastrand::Rng,
    ) -> Option<usize> {
        loop {
            let may_send = segments.get(self.next).is_some_and(|segment| segment.end <= self.window_end);
            if let Some(number) = self.again.take() {
                if number >= self.first {
                    return Some(number);
                }
                continue;
            }
            if !self.late.is_empty() && (random.bool() || !may_send) {
                return Some(self.late.swap_remove(0));
            }
            if !may_send {
                if self.is_timed_out() {
                    self.counts.timeouts += 1;
                    return Some(self.first);
                }
                return None;
            }
            let number = self.next;
            self.next += 1;
            let mut happens = |percent: u8| percent > 0 && random.u8(0..100) < percent;
            if happens(faults.loss) {
                self.counts.lost += 1;
            } else if happens(faults.reordering) {
                self.late.push(number);
            } else {
                if happens(faults.duplication) {
                    self.late.push(number);
                }
                return Some(number);
            }
        }
    }

    /// Whether nothing has come for a millisecond, although segments were sent. The time begins anew then.
    fn is_timed_out(&mut self) -> bool {
        if self.first >= self.next {
            return false;
        }
        let now = Instant::now();
        let since = *self.waits_since.get_or_insert(now);
        let is_over = now.duration_since(since) >= TICK;
        if is_over {
            self.waits_since = None;
        }
        is_over
    }

    fn on_acknowledgment(&mut self, header: &TcpHeader, segments: &[PreparedSegment]) {
        let near = SENDER_SEQUENCE.wrapping_add(self.acknowledged as u32);
        let distance = header.acknowledgment.wrapping_sub(near) as i32;
        let position = self.acknowledged.saturating_add_signed(i64::from(distance));
        let sent = self.next.checked_sub(1).map_or(0, |last| segments[last].end);
        if !header.flags.has(Flags::ACK) || position > sent || header.flags.has(Flags::RST) {
            self.counts.invalid += 1;
            return;
        }
        self.counts.acknowledgments += 1;
        let is_syn = header.flags.has(Flags::SYN);
        if is_syn {
            self.scale = header.window_scale.unwrap_or(0);
        }
        let window_end = position + (u64::from(header.window) << if is_syn { 0 } else { self.scale });
        if position > self.acknowledged || window_end > self.window_end {
            self.waits_since = None;
        }
        self.window_end = self.window_end.max(window_end);
        if position > self.acknowledged {
            self.acknowledged = position;
            self.duplicates = 0;
            while segments.get(self.first).is_some_and(|segment| segment.end <= position) {
                self.first += 1;
            }
            self.next = self.next.max(self.first);
        } else if position == self.acknowledged && sent > position {
            self.duplicates += 1;
            if self.duplicates == 3 {
                self.counts.fast_retransmissions += 1;
                self.again = Some(self.first);
            }
        }
    }
}

impl<L: Monitor> PreparedConnections<L> {
    /// Prepares the segments of all connections, before the measurement.
    #[must_use]
    pub fn new(settings: &PreparedSettings) -> Self {
        let line = Line {
            senders: (0..settings.connections).map(|_| Sending { window_end: 1, ..Sending::default() }).collect(),
            turn: 0,
            events: 0,
            random: fastrand::Rng::with_seed(settings.seed),
        };
        Self {
            prepared: (0..settings.connections).map(|connection| settings.segments(connection)).collect(),
            first_port: settings.first_port,
            faults: settings.faults,
            line: Guarded::new(line),
            changed: L::Condition::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Makes the device end.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        drop(self.line.lock());
        L::notify_all(&self.changed);
    }

    /// The events of each connection until now, in the order of their ports.
    #[must_use]
    pub fn counts(&self) -> Vec<SenderCounts> {
        self.line.lock().senders.iter().map(|sender| sender.counts).collect()
    }

    /// The number of frames of all connections.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.prepared.iter().map(Vec::len).sum()
    }

    /// The next frame to deliver, of the first connection in turn that can send.
    fn next_frame(&self, line: &mut Line) -> Option<&[u8]> {
        let connections = line.senders.len();
        for index in (0..connections).map(|offset| (line.turn + offset) % connections) {
            let (sender, segments) = (&mut line.senders[index], &self.prepared[index]);
            if let Some(number) = sender.next_segment(segments, self.faults, &mut line.random) {
                sender.counts.delivered += 1;
                line.events += 1;
                line.turn = index + 1;
                return Some(&segments[number].frame);
            }
        }
        None
    }

    /// The connection to whose port a segment goes.
    fn connection_of(&self, header: &TcpHeader) -> Option<usize> {
        let index = usize::from(header.destination.checked_sub(self.first_port)?);
        (index < self.prepared.len()).then_some(index)
    }
}

impl<L: Monitor> Device for PreparedConnections<L>
where
    Self: Send + Sync,
{
    fn receive(&self) -> Received {
        let mut line = self.line.lock();
        let frame = loop {
            if self.is_stopped.load(Ordering::SeqCst) {
                return Received::End;
            }
            if let Some(frame) = self.next_frame(&mut line) {
                break frame;
            }
            let before = line.events;
            let timed_out = L::wait_for(&self.changed, &mut line, TICK).timed_out();
            if timed_out && before == line.events {
                return Received::Nothing;
            }
        };
        drop(line);
        Received::Frame(MessageBlock::from(frame))
    }

    fn send(&self, frame: &MessageBlock) {
        let octets: Vec<u8> = frame.links().flat_map(|link| link.iter().copied()).collect();
        let header = frame::packet(&octets).and_then(|packet| {
            let (ip, length) = Ipv4Header::decode(packet).ok()?;
            Some(TcpHeader::decode(&ip, &packet[length..]).ok()?.0)
        });
        let connection = header.and_then(|header| Some((header, self.connection_of(&header)?)));
        let mut line = self.line.lock();
        line.events += 1;
        match connection {
            Some((header, index)) => line.senders[index].on_acknowledgment(&header, &self.prepared[index]),
            None => line.senders[0].counts.invalid += 1,
        }
        drop(line);
        L::notify_all(&self.changed);
    }
}

impl<L: Monitor> std::fmt::Debug for PreparedConnections<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedConnections").field("frames", &self.frames()).finish_non_exhaustive()
    }
}
