//! The transmission control block: the state of one connection.

use std::time::Duration;

use spandrel_message::MessageBlock;

use super::buffers::{ReceiveBuffer, SendBuffer};
use super::{Congestion, Flags, RoundTrip, Segment, TcpHeader};

/// The segment size of a peer that does not state one (RFC 9293, 3.7.1).
const DEFAULT_SEGMENT: u16 = 536;
/// The retransmissions of an octet after which the connection ends (RFC 9293, 3.8.3, R2).
const MAX_RETRANSMISSIONS: u32 = 15;

/// The segment size, buffers and times with which a connection is opened.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The greatest segment to receive, in octets of data.
    pub max_segment: u16,
    /// The octets that wait for the application at most; up to 1 GiB. It is the greatest window that is offered.
    pub receive_buffer: usize,
    /// The octets to send that were not acknowledged, at most.
    pub send_buffer: usize,
    /// The initial sequence number. It should not be predictable where connections have other peers than tests.
    pub initial_sequence: u32,
    /// The shortest time-out for a retransmission. RFC 6298 recommends one second; Linux uses 200 ms.
    pub min_timeout: Duration,
    /// The time by which an acknowledgement is delayed at most (RFC 1122, 4.2.3.2); zero for none.
    pub acknowledgment_delay: Duration,
    /// Whether small segments are sent while others are outstanding (Nagle's algorithm off).
    pub no_delay: bool,
    /// The longest time that a segment is in the network (MSL); a closed connection is kept for twice that time.
    pub segment_lifetime: Duration,
    /// Whether the expected segments take the short path (header prediction).
    pub header_prediction: bool,
}

impl Default for Config {
    /// Ethernet's segments, 64 KiB of buffers, and the times of RFC 9293 except for a time-out of 200 ms.
    fn default() -> Self {
        Self {
            max_segment: 1460,
            receive_buffer: 64 << 10,
            send_buffer: 64 << 10,
            initial_sequence: 0,
            min_timeout: Duration::from_millis(200),
            acknowledgment_delay: Duration::from_millis(40),
            no_delay: false,
            segment_lifetime: Duration::from_secs(30),
            header_prediction: true,
        }
    }
}

/// The state of a connection (RFC 9293, 3.3.2).
#[allow(missing_docs, reason = "the names of the standard")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// The reason for which a connection has ended before both sides closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// The peer has answered the SYN with RST.
    #[error("the peer refuses the connection")]
    Refused,
    /// The peer has reset it.
    #[error("the peer has reset the connection")]
    Reset,
    /// The peer has acknowledged nothing for too long.
    #[error("the peer does not answer")]
    TimedOut,
    /// It was aborted here.
    #[error("the connection was aborted")]
    Aborted,
}

/// The reason for which octets were not taken for sending.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full: the octets, for a later attempt.
    #[error("the send buffer is full")]
    Full(MessageBlock),
    /// The connection is not established, or its sending side is closed.
    #[error("the connection takes no data")]
    Closed,
}

/// Counts of the events of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments received from the network.
    pub received: u64,
    /// Acknowledgements that took the short path of header prediction.
    pub predicted_acknowledgments: u64,
    /// Segments of data that took the short path of header prediction.
    pub predicted_data: u64,
    /// Segments of data behind a gap.
    pub early: u64,
    /// Segments that were dropped because they lie outside of the window: duplicates above all.
    pub outside_window: u64,
    /// Segments sent to the network.
    pub sent: u64,
    /// Data segments that were sent again.
    pub retransmitted: u64,
    /// Retransmissions after three duplicate acknowledgements.
    pub fast_retransmissions: u64,
    /// Retransmissions after a time-out.
    pub timeouts: u64,
    /// Segments that ask whether the receiver's window has opened.
    pub window_probes: u64,
}

/// The transmission control block of a connection.
///
/// Positions are 64-bit counts of sequence numbers from the initial one, so that they never wrap: the SYN is at 0, and
/// the first octet of data at 1.
#[derive(Debug)]
pub struct Tcb {
    config: Config,
    state: State,
    end: Option<EndReason>,
    local: u16,
    remote: u16,
    // Sending
    send: SendBuffer,
    /// The first position that was not acknowledged (SND.UNA).
    unacknowledged: u64,
    /// The next position to send (SND.NXT); after a time-out, less than `sent`.
    next: u64,
    /// The end of all positions that were sent.
    sent: u64,
    send_window: usize,
    greatest_send_window: usize,
    send_scale: u8,
    /// The segment by which the window was set last: its sequence number and acknowledgement (SND.WL1, SND.WL2).
    window_from: (u64, u64),
    max_segment: usize,
    is_closing: bool,
    congestion: Congestion,
    resend_first: bool,
    // Receiving
    received: ReceiveBuffer,
    peer_initial: u32,
    /// The next expected position (RCV.NXT).
    expected: u64,
    /// The end of the window that was offered.
    offered: u64,
    receive_scale: u8,
    peer_fin: Option<u64>,
    acknowledge_now: bool,
    /// Segments of data that were not acknowledged yet, and the time by which they have to be.
    delayed: u32,
    acknowledge_at: Option<Duration>,
    // Times
    round_trip: RoundTrip,
    /// The position whose acknowledgement ends the present measurement of the round trip, and its start.
    timed: Option<(u64, Duration)>,
    retransmit_at: Option<Duration>,
    probe_at: Option<Duration>,
    end_at: Option<Duration>,
    probe: bool,
    retransmissions: u32,
    reset: Option<TcpHeader>,
    statistics: Statistics,
}

impl Tcb {
    /// A connection that a peer opens.
    #[must_use]
    pub fn listen(port: u16, config: Config) -> Self {
        let largest = config.receive_buffer.min(1 << 30);
        let receive_scale = (0..14).find(|scale| largest >> scale <= 0xffff).unwrap_or(14);
        Self {
            config,
            state: State::Listen,
            end: None,
            local: port,
            remote: 0,
            send: SendBuffer::default(),
            unacknowledged: 0,
            next: 0,
            sent: 0,
            send_window: 0,
            greatest_send_window: 0,
            send_scale: 0,
            window_from: (0, 0),
            max_segment: usize::from(DEFAULT_SEGMENT),
            is_closing: false,
            congestion: Congestion::new(usize::from(DEFAULT_SEGMENT)),
            resend_first: false,
            received: ReceiveBuffer::default(),
            peer_initial: 0,
            expected: 0,
            offered: 0,
            receive_scale,
            peer_fin: None,
            acknowledge_now: false,
            delayed: 0,
            acknowledge_at: None,
            round_trip: RoundTrip::new(config.min_timeout),
            timed: None,
            retransmit_at: None,
            probe_at: None,
            end_at: None,
            probe: false,
            retransmissions: 0,
            reset: None,
            statistics: Statistics::default(),
        }
    }

    /// A connection that is opened to a peer's port: [`transmit`](Self::transmit) gives the SYN.
    #[must_use]
    pub fn connect(port: u16, remote: u16, config: Config) -> Self {
        Self { state: State::SynSent, remote, ..Self::listen(port, config) }
    }

    /// The state of the connection (RFC 9293, 3.3.2).
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The reason for the end, if it was not closed by both sides.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        self.end
    }

    /// The counts of segments, retransmissions and other events so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The estimate of the round-trip time.
    #[must_use]
    pub fn round_trip(&self) -> RoundTrip {
        self.round_trip
    }

    /// The congestion control of the octets that are sent.
    #[must_use]
    pub fn congestion(&self) -> Congestion {
        self.congestion
    }

    /// The octets of data that can be sent without [`SendError::Full`].
    #[must_use]
    pub fn send_space(&self) -> usize {
        self.config.send_buffer.saturating_sub(self.send.len())
    }

    /// Octets of data that were not acknowledged.
    #[must_use]
    pub fn send_queue(&self) -> usize {
        self.send.len()
    }

    /// Takes octets for sending; [`transmit`](Self::transmit) gives their segments. A buffer that is not full takes all.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&mut self, octets: MessageBlock) -> Result<(), SendError> {
        let is_open = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait | State::Listen
        );
        if !is_open || self.is_closing {
            return Err(SendError::Closed);
        }
        if self.send.len() >= self.config.send_buffer {
            return Err(SendError::Full(octets));
        }
        self.send.push(octets);
        Ok(())
    }

    /// Takes received octets, in order, as they came in one segment. None: there are none at present.
    ///
    /// The window grows by what was taken; the peer learns it by the next [`transmit`](Self::transmit).
    pub fn receive(&mut self) -> Option<MessageBlock> {
        self.received.take()
    }

    /// Whether the peer has closed its sending side, and all of its octets were taken.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        let has_closed = self.peer_fin.is_some_and(|fin| self.expected > fin) || self.state == State::Closed;
        has_closed && self.received.len() == 0
    }

    /// Closes the sending side: the FIN follows what is queued.
    pub fn close(&mut self) {
        match self.state {
            State::Listen | State::SynSent => self.state = State::Closed,
            _ => self.is_closing = true,
        }
    }

    /// Ends the connection at once; the peer gets a RST.
    pub fn abort(&mut self) {
        let is_synchronized = !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        let reset = is_synchronized.then(|| self.header(self.sent, Flags::RST | Flags::ACK));
        self.finish(Some(EndReason::Aborted));
        self.reset = reset;
    }

    /// The time at which [`on_timer`](Self::on_timer) has to be called.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        [self.retransmit_at, self.probe_at, self.acknowledge_at, self.end_at].into_iter().flatten().min()
    }

    /// Carries out the timers that have expired.
    pub fn on_timer(&mut self, now: Duration) {
        let expired = |timer: &mut Option<Duration>| timer.take_if(|at| *at <= now).is_some();
        if expired(&mut self.end_at) {
            self.finish(self.end);
            return;
        }
        if expired(&mut self.acknowledge_at) {
            self.acknowledge_now = true;
        }
        if expired(&mut self.probe_at) {
            self.probe = true;
            self.round_trip.back_off();
        }
        if expired(&mut self.retransmit_at) {
            self.retransmissions += 1;
            if self.retransmissions > MAX_RETRANSMISSIONS {
                self.abort();
                self.end = Some(EndReason::TimedOut);
                return;
            }
            self.statistics.timeouts += 1;
            self.round_trip.back_off();
            self.congestion.timed_out(self.unacknowledged, self.sent);
            self.timed = None; // Karn's algorithm
            self.resend_first = false;
            self.next = self.unacknowledged;
        }
    }

    /// Processes a received segment whose ports are those of this connection (RFC 9293, 3.10.7).
    pub fn on_segment(&mut self, segment: Segment, now: Duration) {
        self.statistics.received += 1;
        match self.state {
            State::Closed => {}
            State::Listen => self.on_segment_in_listen(&segment),
            State::SynSent => self.on_segment_in_syn_sent(&segment, now),
            _ => {
                if !self.config.header_prediction || !self.is_predicted(&segment, now) {
                    self.on_segment_synchronized(segment, now);
                }
            }
        }
    }

    /// The short path for the two segments that are expected most: the next acknowledgement of data that was sent, and
    /// the next data (header prediction).
    #[inline]
    fn is_predicted(&mut self, segment: &Segment, now: Duration) -> bool {
        let header = &segment.header;
        let is_expected = self.state == State::Established
            && header.flags.has(Flags::ACK)
            && !header.flags.has_others_than(Flags::ACK | Flags::PSH)
            && header.sequence == self.peer_sequence(self.expected)
            && usize::from(header.window) << self.send_scale == self.send_window
            && self.next == self.sent
            && self.peer_fin.is_none()
            && self.send_window > 0;
        if !is_expected {
            return false;
        }
        let acknowledged = self.position(header.acknowledgment, self.unacknowledged);
        let octets = segment.data.len();
        if octets == 0 {
            let is_next = acknowledged > self.unacknowledged && acknowledged <= self.sent;
            if !is_next || self.congestion.is_recovering() || self.is_closing {
                return false;
            }
            self.statistics.predicted_acknowledgments += 1;
            self.acknowledged(acknowledged, now);
        } else {
            let room = (self.offered - self.expected) as usize;
            if acknowledged != self.unacknowledged || self.received.has_gap() || octets > room {
                return false;
            }
            self.statistics.predicted_data += 1;
            self.expected += octets as u64;
            self.received.append(segment.data.clone());
            self.data_received(now);
        }
        self.window_from = (self.expected - octets as u64, acknowledged);
        true
    }

    fn on_segment_in_listen(&mut self, segment: &Segment) {
        let header = &segment.header;
        if header.flags.has(Flags::RST) {
            return;
        }
        if header.flags.has(Flags::ACK) {
            self.reset = Some(reset_for(segment));
        } else if header.flags.has(Flags::SYN) {
            self.remote = header.source;
            self.synchronize(header);
            self.state = State::SynReceived;
        }
    }

    fn on_segment_in_syn_sent(&mut self, segment: &Segment, now: Duration) {
        let header = &segment.header;
        let acknowledged = header.flags.has(Flags::ACK).then(|| self.position(header.acknowledgment, 0));
        if acknowledged.is_some_and(|position| position == 0 || position > self.sent) {
            if !header.flags.has(Flags::RST) {
                self.reset = Some(reset_for(segment));
            }
            return;
        }
        if header.flags.has(Flags::RST) {
            if acknowledged.is_some() {
                self.finish(Some(EndReason::Refused));
            }
            return;
        }
        if !header.flags.has(Flags::SYN) {
            return;
        }
        self.synchronize(header);
        match acknowledged {
            Some(position) => {
                self.state = State::Established;
                self.set_send_window(usize::from(header.window), 0, position);
                self.acknowledged(position, now);
                self.acknowledge_now = true;
            }
            None => {
                self.state = State::SynReceived; // both sides open it at the same time
                self.next = 0;
            }
        }
    }

    /// Takes the peer's SYN.
    fn synchronize(&mut self, header: &TcpHeader) {
        self.peer_initial = header.sequence;
        self.expected = 1;
        self.offered = 1 + self.config.receive_buffer.min(0xffff) as u64;
        let peers = header.max_segment.unwrap_or(DEFAULT_SEGMENT).max(64);
        self.max_segment = usize::from(peers.min(self.config.max_segment));
        self.congestion = Congestion::new(self.max_segment);
        match header.window_scale {
            Some(scale) => self.send_scale = scale.min(14),
            None => self.receive_scale = 0,
        }
        self.send_window = usize::from(header.window); // the window of a SYN is not scaled
        self.greatest_send_window = self.send_window;
    }

    fn on_segment_synchronized(&mut self, mut segment: Segment, now: Duration) {
        let is_peers_syn = segment.header.flags.has(Flags::SYN) && segment.header.sequence == self.peer_initial;
        if self.state == State::SynReceived && is_peers_syn {
            if !segment.header.flags.has(Flags::ACK) {
                self.next = 0; // it was sent again: the answer was lost
                return;
            }
            // The answer of a peer that has opened the connection at the same time: the SYN is known.
            segment.header.flags = segment.header.flags.without(Flags::SYN);
            segment.header.sequence = segment.header.sequence.wrapping_add(1);
        }
        let header = segment.header;
        let start = self.peer_position(header.sequence);
        let length = u64::from(segment.sequence_len());
        if !self.is_acceptable(start, length) {
            self.statistics.outside_window += 1;
            if !header.flags.has(Flags::RST) {
                self.acknowledge_now = true;
                if self.state == State::TimeWait {
                    self.wait_for_end(now);
                }
            }
            return;
        }
        if header.flags.has(Flags::RST) {
            if header.sequence == self.peer_sequence(self.expected) {
                let reason = if self.state == State::SynReceived { EndReason::Refused } else { EndReason::Reset };
                self.finish(Some(reason));
            } else {
                self.acknowledge_now = true; // RFC 5961, 3.2
            }
            return;
        }
        if header.flags.has(Flags::SYN) {
            self.acknowledge_now = true; // RFC 5961, 4.2
            return;
        }
        if !header.flags.has(Flags::ACK) {
            return;
        }
        let acknowledged = self.position(header.acknowledgment, self.unacknowledged);
        if self.state == State::SynReceived {
            if acknowledged == 0 || acknowledged > self.sent {
                self.reset = Some(reset_for(&segment));
                return;
            }
            self.state = State::Established;
            self.set_send_window(usize::from(header.window) << self.send_scale, start, acknowledged);
        }
        if acknowledged > self.sent {
            self.acknowledge_now = true;
            return;
        }
        let window = usize::from(header.window) << self.send_scale;
        if acknowledged > self.unacknowledged {
            self.acknowledged(acknowledged, now);
        } else if acknowledged == self.unacknowledged
            && length == 0
            && window == self.send_window
            && self.next > self.unacknowledged
            && self.congestion.duplicate(acknowledged, self.sent)
        {
            self.statistics.fast_retransmissions += 1;
            self.timed = None;
            self.resend_first = true;
        }
        let (sequence, last) = self.window_from;
        if acknowledged >= self.unacknowledged && (start, acknowledged) >= (sequence, last) {
            self.set_send_window(window, start, acknowledged);
        }
        if self.state == State::Closed {
            return;
        }
        self.on_text(segment, start, now);
    }

    /// Processes the data and the FIN of a segment that is acceptable.
    fn on_text(&mut self, segment: Segment, start: u64, now: Duration) {
        let mut data = segment.data;
        let end = start + data.len() as u64;
        let is_fin = segment.header.flags.has(Flags::FIN) && end < self.offered.max(self.expected + 1);
        if is_fin && self.peer_fin.is_none() {
            self.peer_fin = Some(end);
        }
        if !data.is_empty() && self.peer_fin.is_none_or(|fin| self.expected <= fin) {
            // Octets beyond the window or the FIN are dropped.
            let last = self.peer_fin.map_or(self.offered, |fin| self.offered.min(fin));
            let room = last.saturating_sub(start) as usize;
            if data.len() > room {
                drop(data.split_off(room));
            }
            let had_gap = self.received.has_gap();
            let is_early = start > self.expected;
            self.statistics.early += u64::from(is_early);
            let expected = self.received.insert(start, data, self.expected);
            self.expected = expected;
            self.data_received(now);
            // Acknowledged at once: behind a gap, and in one (RFC 5681, 4.2).
            self.acknowledge_now |= is_early || had_gap;
        }
        if is_fin {
            self.acknowledge_now = true;
        }
        if self.peer_fin == Some(self.expected) {
            self.expected += 1;
            self.acknowledge_now = true;
            match self.state {
                State::SynReceived | State::Established => self.state = State::CloseWait,
                State::FinWait1 => self.state = State::Closing,
                State::FinWait2 => self.wait_for_end(now),
                _ => {}
            }
        } else if is_fin && self.state == State::TimeWait {
            self.wait_for_end(now);
        }
    }

    /// Data was received: every second segment is acknowledged at once (RFC 1122, 4.2.3.2).
    #[inline]
    fn data_received(&mut self, now: Duration) {
        self.delayed += 1;
        if self.delayed >= 2 || self.config.acknowledgment_delay.is_zero() {
            self.acknowledge_now = true;
        } else if self.acknowledge_at.is_none() {
            self.acknowledge_at = Some(now + self.config.acknowledgment_delay);
        }
    }

    /// Whether a segment lies within the window (RFC 9293, 3.10.7.4, first).
    fn is_acceptable(&self, start: u64, length: u64) -> bool {
        let window = self.offered.saturating_sub(self.expected);
        let is_within = |position: u64| position >= self.expected && position < self.offered;
        match (length, window) {
            (0, 0) => start == self.expected,
            (0, _) => is_within(start),
            (_, 0) => false,
            (length, _) => is_within(start) || is_within(start + length - 1),
        }
    }

    /// The peer has acknowledged new positions.
    fn acknowledged(&mut self, position: u64, now: Duration) {
        let octets = (position - self.unacknowledged) as usize;
        if let Some((_, begin)) = self.timed.take_if(|(timed, _)| position > *timed) {
            self.round_trip.sample(now.saturating_sub(begin));
        }
        self.retransmissions = 0;
        // The SYN and the FIN are positions, too, but not octets of the buffer.
        let data = octets - usize::from(self.unacknowledged == 0);
        self.send.advance(data);
        self.unacknowledged = position;
        self.next = self.next.max(position);
        if position > 1 {
            self.resend_first |= self.congestion.acknowledged(octets, position);
        }
        self.probe = false;
        self.probe_at = None;
        self.retransmit_at = (self.next > position).then(|| now + self.round_trip.timeout());
        if self.is_fin_acknowledged() {
            match self.state {
                State::FinWait1 => self.state = State::FinWait2,
                State::Closing => self.wait_for_end(now),
                State::LastAck => self.finish(None),
                _ => {}
            }
        }
    }

    fn is_fin_acknowledged(&self) -> bool {
        matches!(self.state, State::FinWait1 | State::Closing | State::LastAck)
            && self.unacknowledged == self.sent
            && self.send.len() == 0
    }

    fn set_send_window(&mut self, window: usize, start: u64, acknowledged: u64) {
        self.send_window = window;
        self.greatest_send_window = self.greatest_send_window.max(window);
        self.window_from = (start, acknowledged);
        if window > 0 {
            self.probe = false;
            self.probe_at = None;
        }
    }

    fn wait_for_end(&mut self, now: Duration) {
        self.state = State::TimeWait;
        self.retransmit_at = None;
        self.end_at = Some(now + self.config.segment_lifetime * 2);
    }

    fn finish(&mut self, reason: Option<EndReason>) {
        self.state = State::Closed;
        self.end = reason;
        self.send = SendBuffer::default();
        [self.retransmit_at, self.probe_at, self.acknowledge_at, self.end_at] = [None; 4];
    }

    /// The next segment to send. After each event, the caller repeats the call until there is none.
    pub fn transmit(&mut self, now: Duration) -> Option<Segment> {
        let segment = self.next_segment(now)?;
        self.statistics.sent += 1;
        Some(segment)
    }

    fn next_segment(&mut self, now: Duration) -> Option<Segment> {
        if let Some(header) = self.reset.take() {
            return Some(Segment { header, data: MessageBlock::default() });
        }
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent | State::SynReceived if self.next == 0 => Some(self.syn(now)),
            State::SynSent => None,
            _ => self.text(now).or_else(|| self.acknowledgment()),
        }
    }

    fn syn(&mut self, now: Duration) -> Segment {
        let is_answer = self.state == State::SynReceived;
        if self.sent == 0 {
            self.timed = Some((0, now));
        } else {
            self.timed = None;
        }
        self.next = 1;
        self.sent = self.sent.max(1);
        self.retransmit_at = Some(now + self.round_trip.timeout());
        let mut header = self.header(0, if is_answer { Flags::SYN | Flags::ACK } else { Flags::SYN });
        header.max_segment = Some(self.config.max_segment);
        // An answer has the option only if the SYN has it (RFC 7323, 2.2).
        let peer_scales = !is_answer || self.receive_scale > 0 || self.send_scale > 0;
        header.window_scale = peer_scales.then_some(self.receive_scale);
        header.window = self.config.receive_buffer.min(0xffff) as u16;
        if is_answer {
            self.acknowledge_now = false;
        }
        Segment { header, data: MessageBlock::default() }
    }

    /// The next segment with data or a FIN.
    fn text(&mut self, now: Duration) -> Option<Segment> {
        if matches!(self.state, State::SynReceived | State::TimeWait | State::FinWait2) {
            return None;
        }
        let data_end = self.unacknowledged.max(1) + self.send.len() as u64;
        if self.resend_first {
            self.resend_first = false;
            let octets = self.max_segment.min(self.send.len());
            let start = self.unacknowledged;
            self.retransmit_at = Some(now + self.round_trip.timeout());
            return Some(self.segment(start, octets, start + octets as u64 == data_end && self.sent > data_end));
        }
        if self.is_fin_acknowledged() {
            return None;
        }
        let window = self.send_window.min(self.congestion.window()) as u64;
        let limit = self.unacknowledged + window;
        let (start, waiting) = (self.next, data_end.saturating_sub(self.next));
        let octets = waiting.min(limit.saturating_sub(start)).min(self.max_segment as u64) as usize;
        let end = start + octets as u64;
        let is_last = end == data_end;
        let has_fin = self.is_closing && is_last && start <= data_end;
        if octets == 0 && waiting > 0 {
            return self.probe(now);
        }
        let is_sent_again = start < self.sent;
        let is_worth = octets == self.max_segment
            || start == self.unacknowledged // nothing is outstanding whose acknowledgement would lead to more
            || (is_last && (self.config.no_delay || self.is_closing))
            || octets * 2 >= self.greatest_send_window
            || is_sent_again;
        if !has_fin && (octets == 0 || !is_worth) {
            return None;
        }
        if is_sent_again {
            self.timed = None;
        } else if self.timed.is_none() {
            self.timed = Some((start, now));
        }
        self.next = end + u64::from(has_fin);
        if has_fin {
            match self.state {
                State::Established => self.state = State::FinWait1,
                State::CloseWait => self.state = State::LastAck,
                _ => {}
            }
        }
        if self.retransmit_at.is_none() {
            self.retransmit_at = Some(now + self.round_trip.timeout());
        }
        Some(self.segment(start, octets, has_fin))
    }

    /// The probe of a closed window, if its time has come: an octet beyond the window (RFC 9293, 3.8.6.1).
    fn probe(&mut self, now: Duration) -> Option<Segment> {
        if self.next > self.unacknowledged || self.send_window > 0 {
            return None; // the acknowledgement of what is outstanding tells the window
        }
        if !std::mem::take(&mut self.probe) {
            if self.probe_at.is_none() {
                self.probe_at = Some(now + self.round_trip.timeout());
            }
            return None;
        }
        self.probe_at = Some(now + self.round_trip.timeout());
        self.retransmit_at = None;
        self.statistics.window_probes += 1;
        Some(self.segment(self.unacknowledged, 1, false))
    }

    fn segment(&mut self, start: u64, octets: usize, has_fin: bool) -> Segment {
        let data = self.send.slice((start - self.unacknowledged) as usize, octets);
        let end = start + octets as u64;
        let mut flags = Flags::ACK;
        if has_fin {
            flags = flags | Flags::FIN;
        }
        if octets > 0 && end == self.unacknowledged + self.send.len() as u64 {
            flags = flags | Flags::PSH;
        }
        self.statistics.retransmitted += u64::from(start < self.sent);
        self.sent = self.sent.max(end + u64::from(has_fin));
        let header = self.header(start, flags);
        self.acknowledgment_sent();
        Segment { header, data }
    }

    /// An acknowledgement without data, if one is due, or if the window has grown by so much that the peer should know.
    fn acknowledgment(&mut self) -> Option<Segment> {
        let growth = self.window_end().saturating_sub(self.offered) as usize;
        let is_open = matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        let step = (2 * usize::from(self.config.max_segment)).min(self.config.receive_buffer / 2);
        let is_worth_telling = is_open && self.peer_fin.is_none() && growth >= step.max(1);
        if !self.acknowledge_now && !is_worth_telling {
            return None;
        }
        let header = self.header(self.sent, Flags::ACK);
        self.acknowledgment_sent();
        Some(Segment { header, data: MessageBlock::default() })
    }

    fn acknowledgment_sent(&mut self) {
        self.acknowledge_now = false;
        self.delayed = 0;
        self.acknowledge_at = None;
    }

    /// The end of the window that could be offered.
    fn window_end(&self) -> u64 {
        let room = self.config.receive_buffer.saturating_sub(self.received.len());
        let room = (room >> self.receive_scale).min(0xffff) << self.receive_scale;
        let end = self.expected + room as u64;
        // It grows by whole segments, or half the buffer (RFC 9293, 3.8.6.2.2), and never shrinks.
        let step = usize::from(self.config.max_segment).min(self.config.receive_buffer / 2) as u64;
        if end >= self.offered + step { end } else { self.offered }
    }

    /// A header for the position, with the present acknowledgement and window.
    fn header(&mut self, position: u64, flags: Flags) -> TcpHeader {
        let mut header = TcpHeader {
            source: self.local,
            destination: self.remote,
            sequence: self.config.initial_sequence.wrapping_add(position as u32),
            flags,
            ..TcpHeader::default()
        };
        if flags.has(Flags::ACK) {
            self.offered = self.window_end().max(self.expected);
            header.acknowledgment = self.peer_sequence(self.expected);
            // Rounded up: the window never shrinks by the units of its scale.
            let window = self.offered - self.expected;
            header.window = window.div_ceil(1 << self.receive_scale).min(0xffff) as u16;
            self.offered = self.offered.max(self.expected + (u64::from(header.window) << self.receive_scale));
        }
        header
    }

    /// The peer's sequence number for a position.
    #[inline]
    fn peer_sequence(&self, position: u64) -> u32 {
        self.peer_initial.wrapping_add(position as u32)
    }

    /// The position of the peer's sequence number, near the expected one. Numbers before the start count as the start.
    fn peer_position(&self, sequence: u32) -> u64 {
        let distance = sequence.wrapping_sub(self.peer_sequence(self.expected)) as i32;
        self.expected.saturating_add_signed(i64::from(distance))
    }

    /// The position of our own sequence number, near another position.
    #[inline]
    fn position(&self, sequence: u32, near: u64) -> u64 {
        let distance = sequence.wrapping_sub(self.config.initial_sequence.wrapping_add(near as u32)) as i32;
        near.saturating_add_signed(i64::from(distance))
    }
}

/// The RST that answers a segment for which there is no connection (RFC 9293, 3.10.7.1). A RST must not be answered.
#[must_use]
pub fn reset_for(segment: &Segment) -> TcpHeader {
    let header = &segment.header;
    let reset = TcpHeader { source: header.destination, destination: header.source, ..TcpHeader::default() };
    if header.flags.has(Flags::ACK) {
        TcpHeader { sequence: header.acknowledgment, flags: Flags::RST, ..reset }
    } else {
        let acknowledgment = header.sequence.wrapping_add(segment.sequence_len());
        TcpHeader { acknowledgment, flags: Flags::RST | Flags::ACK, ..reset }
    }
}
