//! Pseudo-devices: network interfaces in loop-back mode, with one copy for each frame (paper 002, 3.2).
//!
//! Frames are Ethernet frames. Those of the experiments are prepared before the measurement; the device copies each into
//! the memory of the receiving stack. Losses, duplicates and another order are part of the device.

use std::net::Ipv4Addr;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel_sync::{Guarded, Monitor};

use crate::frame;
use crate::ip::Ipv4Header;
use crate::tcp::{Flags, Segment, TcpHeader};
use crate::udp::UdpHeader;
use crate::xdr::{self, Content};

/// The address of the peer that sends.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The address of the stack that receives.
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The port to which the messages of the experiments go.
pub const PORT: u16 = 5010;
/// The port from which they come; further connections come from the following ones.
pub const FIRST_SENDER_PORT: u16 = 40_000;

/// The time for which a receiver waits for a frame before it looks at timers.
const TICK: Duration = Duration::from_millis(1);

/// A network interface.
pub trait Device: Send + Sync + 'static {
    /// Waits for a frame for a short time. Several threads may wait.
    fn receive(&self) -> Received;
    /// Sends a frame: its blocks, one behind the other. A device may lose it.
    fn send(&self, frame: &MessageBlock);
}

/// The outcome of [`Device::receive`].
#[derive(Debug)]
pub enum Received {
    /// A frame.
    Frame(MessageBlock),
    /// None came in time.
    Nothing,
    /// None will come any more.
    End,
}

/// The faults of a device, in percent of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Frames that are lost.
    pub loss: u8,
    /// Frames that come twice.
    pub duplication: u8,
    /// Frames that come after up to four later ones.
    pub reordering: u8,
}

/// Datagrams that were prepared. It has no lock: threads take the next one by an atomic addition.
#[derive(Debug)]
pub struct PreparedDatagrams {
    frames: Vec<Vec<u8>>,
    /// The frames in the order in which they come.
    schedule: Vec<usize>,
    next: AtomicUsize,
}

impl PreparedDatagrams {
    /// So many messages, each in a datagram.
    #[must_use]
    pub fn new(messages: usize, content: Content, faults: Faults, seed: u64) -> Self {
        let header = UdpHeader { source: FIRST_SENDER_PORT, destination: PORT };
        let frame = |number| {
            let data = MessageBlock::from(&xdr::encode(&content.message(number))[..]);
            let packet = header.packet(SENDER, RECEIVER, &data);
            frame::frame(&packet.unwrap_or_default())
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut schedule: Vec<(usize, usize)> = Vec::with_capacity(messages);
        for number in 0..messages {
            if random.u8(0..100) < faults.loss {
                continue;
            }
            for _ in 0..1 + usize::from(random.u8(0..100) < faults.duplication) {
                let is_late = random.u8(0..100) < faults.reordering;
                schedule.push((number + if is_late { random.usize(1..=4) } else { 0 }, number));
            }
        }
        schedule.sort_by_key(|(place, _)| *place);
        let schedule = schedule.into_iter().map(|(_, number)| number).collect();
        Self { frames: (0..messages).map(frame).collect(), schedule, next: AtomicUsize::new(0) }
    }

    /// The numbers of the messages in the order in which they come.
    #[must_use]
    pub fn schedule(&self) -> &[usize] {
        &self.schedule
    }
}

impl Device for PreparedDatagrams {
    fn receive(&self) -> Received {
        match self.schedule.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            Some(number) => Received::Frame(MessageBlock::from(&self.frames[*number][..])),
            None => Received::End,
        }
    }

    fn send(&self, _: &MessageBlock) {}
}

/// The sender of a TCP connection, whose segments were prepared. It obeys the receiver's window, and sends again what was
/// lost: after three duplicate acknowledgements, or when nothing came for a millisecond.
pub struct PreparedConnection<L: Monitor> {
    frames: Vec<PreparedSegment>,
    faults: Faults,
    sending: Guarded<Sending, L>,
    changed: L::Condition,
    is_stopped: AtomicBool,
}

struct PreparedSegment {
    /// The position behind its last octet; the SYN is at 0.
    end: u64,
    frame: Vec<u8>,
}

/// The state of the sender.
#[derive(Debug)]
struct Sending {
    /// The first frame that was not acknowledged, and the next to send.
    first: usize,
    next: usize,
    window_end: u64,
    scale: u8,
    acknowledged: u64,
    duplicates: u32,
    /// Frames to send once more, or later.
    extra: Vec<usize>,
    random: fastrand::Rng,
    counts: SenderCounts,
}

/// Counts of the events of a [`PreparedConnection`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Frames that the device delivered.
    pub delivered: u64,
    /// Frames that it lost.
    pub lost: u64,
    /// Frames that were sent again after duplicate acknowledgements.
    pub fast_retransmissions: u64,
    /// Frames that were sent again after a time without progress.
    pub timeouts: u64,
    /// Acknowledgements.
    pub acknowledgments: u64,
    /// Frames from the receiver that were not valid segments of the connection.
    pub invalid: u64,
}

/// The parameters of a [`PreparedConnection`].
#[derive(Clone, Copy, Debug)]
pub struct PreparedSettings {
    /// The number of messages.
    pub messages: usize,
    /// The messages.
    pub content: Content,
    /// The octets of data in a segment.
    pub segment: usize,
    /// The sender's port.
    pub port: u16,
    /// The initial sequence number that the receiver will choose.
    pub receiver_sequence: u32,
    /// The faults of the device.
    pub faults: Faults,
    /// The seed of the faults.
    pub seed: u64,
}

/// The initial sequence number of a [`PreparedConnection`]; the numbers wrap during the experiment.
const SENDER_SEQUENCE: u32 = u32::MAX - 100_000;
/// The window scale of the sender.
const SENDER_SCALE: u8 = 7;

impl<L: Monitor> PreparedConnection<L> {
    /// Prepares the segments.
    #[must_use]
    pub fn new(settings: &PreparedSettings) -> Self {
        let header = TcpHeader {
            source: settings.port,
            destination: PORT,
            sequence: SENDER_SEQUENCE,
            window: 0xffff,
            ..TcpHeader::default()
        };
        let size = settings.segment.clamp(1, 60_000);
        let options = (Some(size as u16), Some(SENDER_SCALE));
        let syn = TcpHeader { flags: Flags::SYN, max_segment: options.0, window_scale: options.1, ..header };
        let prepared = |header, data: MessageBlock, end| {
            let packet = Segment { header, data }.packet(SENDER, RECEIVER);
            PreparedSegment { end, frame: frame::frame(&packet.unwrap_or_default()) }
        };
        let mut frames = vec![prepared(syn, MessageBlock::default(), 1)];
        let mut position = 1;
        let mut waiting: Vec<u8> = Vec::new();
        for number in 0..settings.messages {
            waiting.extend(xdr::encode(&settings.content.message(number)));
            let is_last = number + 1 == settings.messages;
            while waiting.len() >= size || (is_last && !waiting.is_empty()) {
                let rest = waiting.split_off(size.min(waiting.len()));
                let header = TcpHeader {
                    sequence: SENDER_SEQUENCE.wrapping_add(position as u32),
                    acknowledgment: settings.receiver_sequence.wrapping_add(1),
                    flags: Flags::ACK | Flags::PSH,
                    ..header
                };
                position += waiting.len() as u64;
                frames.push(prepared(header, waiting[..].into(), position));
                waiting = rest;
            }
        }
        let sending = Sending {
            first: 0,
            next: 0,
            window_end: 1,
            scale: 0,
            acknowledged: 0,
            duplicates: 0,
            extra: Vec::new(),
            random: fastrand::Rng::with_seed(settings.seed),
            counts: SenderCounts::default(),
        };
        Self {
            frames,
            faults: settings.faults,
            sending: Guarded::new(sending),
            changed: L::Condition::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Makes the device end.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        drop(self.sending.lock());
        L::notify_all(&self.changed);
    }

    /// The counts of its events.
    #[must_use]
    pub fn counts(&self) -> SenderCounts {
        self.sending.lock().counts
    }

    /// The number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The next frame to deliver, if the window allows one.
    fn next_frame(&self, sending: &mut Sending) -> Option<usize> {
        loop {
            if !sending.extra.is_empty() && (sending.random.bool() || !self.may_send(sending)) {
                let number = sending.extra.swap_remove(0);
                if number >= sending.first {
                    return Some(number);
                }
                continue;
            }
            if !self.may_send(sending) {
                return None;
            }
            let number = sending.next;
            sending.next += 1;
            let mut happens = |percent: u8| percent > 0 && sending.random.u8(0..100) < percent;
            if happens(self.faults.loss) {
                sending.counts.lost += 1;
            } else if happens(self.faults.reordering) {
                sending.extra.push(number);
            } else {
                if happens(self.faults.duplication) {
                    sending.extra.push(number);
                }
                return Some(number);
            }
        }
    }

    fn may_send(&self, sending: &Sending) -> bool {
        self.frames.get(sending.next).is_some_and(|frame| frame.end <= sending.window_end)
    }

    fn on_acknowledgment(&self, header: &TcpHeader, sending: &mut Sending) {
        let near = SENDER_SEQUENCE.wrapping_add(sending.acknowledged as u32);
        let distance = header.acknowledgment.wrapping_sub(near) as i32;
        let position = sending.acknowledged.saturating_add_signed(i64::from(distance));
        let sent = sending.next.checked_sub(1).map_or(0, |last| self.frames[last].end);
        if !header.flags.has(Flags::ACK) || position > sent || header.flags.has(Flags::RST) {
            sending.counts.invalid += 1;
            return;
        }
        sending.counts.acknowledgments += 1;
        let is_syn = header.flags.has(Flags::SYN);
        if is_syn {
            sending.scale = header.window_scale.unwrap_or(0);
        }
        let window = u64::from(header.window) << if is_syn { 0 } else { sending.scale };
        sending.window_end = sending.window_end.max(position + window);
        if position > sending.acknowledged {
            sending.acknowledged = position;
            sending.duplicates = 0;
            while self.frames.get(sending.first).is_some_and(|frame| frame.end <= position) {
                sending.first += 1;
            }
            sending.next = sending.next.max(sending.first);
        } else if position == sending.acknowledged && sent > position {
            sending.duplicates += 1;
            if sending.duplicates == 3 {
                sending.counts.fast_retransmissions += 1;
                let first = sending.first;
                sending.extra.push(first);
            }
        }
    }
}

impl<L: Monitor> Device for PreparedConnection<L>
where
    Self: Send + Sync,
{
    fn receive(&self) -> Received {
        let mut sending = self.sending.lock();
        let number = loop {
            if self.is_stopped.load(Ordering::SeqCst) {
                return Received::End;
            }
            if let Some(number) = self.next_frame(&mut sending) {
                break number;
            }
            let before = (sending.acknowledged, sending.window_end, sending.counts.delivered);
            let timed_out = L::wait_for(&self.changed, &mut sending, TICK).timed_out();
            let has_progress = before != (sending.acknowledged, sending.window_end, sending.counts.delivered);
            if timed_out && !has_progress {
                if sending.first < sending.next {
                    sending.counts.timeouts += 1;
                    let first = sending.first;
                    sending.extra.push(first);
                }
                return Received::Nothing;
            }
        };
        sending.counts.delivered += 1;
        drop(sending);
        Received::Frame(MessageBlock::from(&self.frames[number].frame[..]))
    }

    fn send(&self, frame: &MessageBlock) {
        let octets: Vec<u8> = frame.links().flat_map(|link| link.iter().copied()).collect();
        let header = frame::packet(&octets).and_then(|packet| {
            let (ip, length) = Ipv4Header::decode(packet).ok()?;
            Some(TcpHeader::decode(&ip, &packet[length..]).ok()?.0)
        });
        let mut sending = self.sending.lock();
        match header {
            Some(header) => self.on_acknowledgment(&header, &mut sending),
            None => sending.counts.invalid += 1,
        }
        drop(sending);
        L::notify_all(&self.changed);
    }
}

impl<L: Monitor> std::fmt::Debug for PreparedConnection<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedConnection").field("frames", &self.frames.len()).finish_non_exhaustive()
    }
}
