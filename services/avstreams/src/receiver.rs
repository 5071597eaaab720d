//! The thread that receives the frames of a sink.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use spandrel::bulk::wire::Token;
use spandrel::net::ipc::Transfer;
use spandrel::net::sync::atomic::Ordering;

use crate::admission::{confirm, is_token, is_wait, new_token, shown_token};
use crate::flow_spec::{Carrier, FlowAddress, FlowProtocol};
use crate::flow_state::{Command, FlowShared};
use crate::limits::AvLimits;
use crate::media::{MediaSink, ReceivedFrame};
use crate::reorder::{Arrival, ReorderBuffer};
use crate::rtp::{
    Clock, ControlEvent, MediaPacket, Reception, bye, parse, parse_control, receiver_report, send_control,
};
use crate::sfp::{self, FramePart, Message};
use crate::statistics::add;
use crate::stream_channel::{StreamListener, without_tls};

/// The longest wait for a packet, after which the thread looks at the state of its flow.
const TICK: Duration = Duration::from_millis(50);
/// The attempts to find two free ports in a row.
const PORT_ATTEMPTS: usize = 64;
/// The frames that are put together from fragments at a time.
const MAX_PARTIAL: usize = 8;
/// The most fragments of a frame.
const MAX_FRAGMENTS: usize = 65_536;

/// A receiver with its address, before its thread runs.
pub(crate) struct Receiver {
    channel: Channel,
    protocol: FlowProtocol,
    token: Option<Token>,
    is_group: bool,
}

enum Channel {
    Ordered(StreamListener),
    Udp { data: UdpSocket, control: Option<UdpSocket> },
}

/// Opens an address for the sender.
///
/// # Errors
/// No free port; a group that cannot be joined.
pub(crate) fn open(
    shared: &FlowShared,
    carrier: Carrier,
    protocol: FlowProtocol,
    host: IpAddr,
    group: Option<&FlowAddress>,
) -> io::Result<(FlowAddress, Receiver)> {
    let token = (shared.definition.needs_token && group.is_none()).then(new_token).transpose()?;
    let has_control = carrier == Carrier::RtpUdp;
    let channel = match (carrier, group) {
        (Carrier::Tcp, _) => Channel::Ordered(StreamListener::open(host, None, shared.limits.connect)?),
        (Carrier::Tls, _) => {
            let ssliop = shared.tls.as_ref().ok_or_else(without_tls)?;
            Channel::Ordered(StreamListener::open(host, Some(ssliop), shared.limits.connect)?)
        }
        (_, Some(group)) => {
            let control =
                has_control.then(|| join(group.control(), shared.definition.multicast_interface)).transpose()?;
            Channel::Udp { data: join(group.data, shared.definition.multicast_interface)?, control }
        }
        (Carrier::RtpUdp, None) => port_pair(host)?,
        (Carrier::Udp, None) => Channel::Udp { data: UdpSocket::bind((host, 0))?, control: None },
    };
    let local = match &channel {
        Channel::Ordered(listener) => listener.local_addr()?,
        Channel::Udp { data, .. } => data.local_addr()?,
    };
    let address = FlowAddress {
        carrier,
        data: group.map_or(local, |group| group.data),
        control_port: has_control.then(|| group.map_or(local.port() + 1, |group| group.control().port())),
        token: token.as_ref().map(|token| Token(token.0)),
    };
    Ok((address, Receiver { channel, protocol, token, is_group: group.is_some() }))
}

/// Sockets for RTP and RTCP at an even port and the next one (RFC 3550, 11).
fn port_pair(host: IpAddr) -> io::Result<Channel> {
    for _ in 0..PORT_ATTEMPTS {
        let first = UdpSocket::bind((host, 0))?;
        let port = first.local_addr()?.port();
        let pair = if port % 2 == 0 {
            UdpSocket::bind((host, port + 1)).map(|control| (first, control))
        } else {
            UdpSocket::bind((host, port - 1)).map(|data| (data, first))
        };
        if let Ok((data, control)) = pair {
            control.set_nonblocking(true)?;
            return Ok(Channel::Udp { data, control: Some(control) });
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no two free ports in a row"))
}

/// A socket in a multicast group.
fn join(group: SocketAddr, interface: Option<Ipv4Addr>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    // Bound to the group, the socket gets nothing that was sent to other addresses.
    socket.bind(&group.into())?;
    let socket = UdpSocket::from(socket);
    match group.ip() {
        IpAddr::V4(ip) => socket.join_multicast_v4(&ip, &interface.unwrap_or(Ipv4Addr::UNSPECIFIED))?,
        IpAddr::V6(ip) => socket.join_multicast_v6(&ip, 0)?,
    }
    Ok(socket)
}

impl Receiver {
    /// Receives until the flow ends. Returns the reason of the end.
    pub(crate) fn run(self, shared: &FlowShared, sink: &mut dyn MediaSink) -> String {
        let clock = Clock::new(shared.definition.clock_rate);
        let mut output = Output { sink, clock, has_clock: true, told_lost: 0 };
        let outcome = match self.channel {
            Channel::Ordered(listener) => listener.accept(shared, self.token.as_ref()).and_then(|channel| {
                let has_frames = matches!(self.protocol, FlowProtocol::Sfp { .. });
                receive_stream(shared, channel.transfer(), has_frames, credit_of(self.protocol), &mut output)
            }),
            Channel::Udp { data, control } => {
                let framing = match (&control, self.protocol) {
                    (Some(_), FlowProtocol::None | FlowProtocol::Rtp) => Framing::Rtp(RtpReceiver::new(&shared.limits)),
                    (_, FlowProtocol::Sfp { .. }) => {
                        Framing::Sfp(SfpReceiver::new(&shared.limits, credit_of(self.protocol)))
                    }
                    _ => Framing::Plain,
                };
                let token = self.token;
                DatagramReceiver { data, control, framing, token, is_group: self.is_group, peer: None }
                    .run(shared, &mut output)
            }
        };
        outcome.unwrap_or_else(|error| error.to_string())
    }
}

fn credit_of(protocol: FlowProtocol) -> Option<u32> {
    if let FlowProtocol::Sfp { credit } = protocol { credit } else { None }
}

/// The sink with the measurements of its frames.
struct Output<'s> {
    sink: &'s mut dyn MediaSink,
    clock: Clock,
    has_clock: bool,
    /// The lost packets of which the sink knows.
    told_lost: u64,
}

impl Output<'_> {
    fn give(&mut self, shared: &FlowShared, data: Vec<u8>, timestamp: u32, lateness: Duration) {
        shared.counters.count_frame(data.len());
        shared.counters.record_lateness(lateness);
        let all_lost = shared.counters.lost.load(Ordering::Relaxed);
        let lost = all_lost - std::mem::replace(&mut self.told_lost, all_lost);
        let jitter = Duration::from_micros(self.clock.jitter_micros());
        self.sink.take_frame(ReceivedFrame { data, timestamp, lateness, jitter, lost, arrival: Instant::now() });
        if let Some(reason) = self.sink.failure() {
            shared.die(&reason);
        }
    }

    fn measure(&mut self, shared: &FlowShared, timestamp: u32) -> Duration {
        if !self.has_clock {
            return Duration::ZERO;
        }
        let lateness = self.clock.arrival(Instant::now(), timestamp);
        shared.counters.jitter_micros.store(self.clock.jitter_micros(), Ordering::Relaxed);
        lateness
    }
}

/// Receives octets in order: as they come, or in the frames of SFP.
fn receive_stream(
    shared: &FlowShared,
    stream: &dyn Transfer,
    has_frames: bool,
    credit: Option<u32>,
    output: &mut Output<'_>,
) -> io::Result<String> {
    let mut input = StreamInput { shared, stream, progress: Instant::now() };
    if !has_frames {
        output.has_clock = false;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Some(length) = input.read_some(&mut buffer)? else {
                return Ok("the flow was closed".into());
            };
            if length == 0 {
                return Ok("the sender has closed the connection".into());
            }
            add(&shared.counters.packets, 1);
            output.give(shared, buffer[..length].to_vec(), 0, Duration::ZERO);
        }
    }
    let mut start = [0; sfp::START_OCTETS];
    input.read_all(&mut start)?;
    let is_known = matches!(sfp::parse(&start), Some(Message::Start { major: 1, .. }));
    stream.send_n_within(&sfp::reply(!is_known), shared.limits.idle)?;
    if !is_known {
        return Err(io::Error::other("the sender does not begin by SFP 1.0"));
    }
    loop {
        let mut header = [0; sfp::HEADER_OCTETS];
        input.read_all(&mut header)?;
        let header = sfp::parse_header(&header).ok_or_else(|| malformed(shared))?;
        if header.size > shared.limits.frame {
            add(&shared.counters.refused, 1);
            let text = format!("a frame of {} octets is longer than allowed ({})", header.size, shared.limits.frame);
            return Err(io::Error::other(text));
        }
        let mut body = Vec::new();
        // Memory grows with what has come, not with what was announced.
        while body.len() < header.size {
            let begin = body.len();
            body.resize((begin + (64 << 10)).min(header.size), 0);
            input.read_all(&mut body[begin..])?;
        }
        match sfp::parse_body(&header, &body).ok_or_else(|| malformed(shared))? {
            Message::EndOfStream => return Ok("the sender has ended the flow".into()),
            Message::Frame(part) if !part.has_fragments => {
                add(&shared.counters.packets, 1);
                let lateness =
                    if part.sequence.is_some() { output.measure(shared, part.timestamp) } else { Duration::ZERO };
                output.give(shared, part.data, part.timestamp, lateness);
                if credit.is_some() {
                    stream.send_n_within(&sfp::credit(1), shared.limits.idle)?;
                }
            }
            _ => return Err(malformed(shared)),
        }
    }
}

fn malformed(shared: &FlowShared) -> io::Error {
    add(&shared.counters.malformed, 1);
    io::Error::other("the sender does not speak SFP 1.0")
}

/// Reads within the time without progress that is allowed.
struct StreamInput<'s> {
    shared: &'s FlowShared,
    stream: &'s dyn Transfer,
    progress: Instant,
}

impl StreamInput<'_> {
    /// The octets that have come; zero at the end, `None` after the end of the flow.
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.stream.recv_within(buffer, TICK) {
                Ok(length) => {
                    self.progress = Instant::now();
                    return Ok(Some(length));
                }
                Err(error) if is_wait(&error) => match self.shared.command() {
                    Command::End => return Ok(None),
                    Command::Pause => self.progress = Instant::now(),
                    Command::Run if self.progress.elapsed() > self.shared.limits.idle => {
                        return Err(silent(self.shared));
                    }
                    Command::Run => {}
                },
                Err(error) => return Err(error),
            }
        }
    }

    fn read_all(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_some(buffer)? {
                None => return Err(io::Error::other("the flow was closed")),
                Some(0) => return Err(io::Error::other("the sender has closed the connection")),
                Some(length) => buffer = &mut buffer[length..],
            }
        }
        Ok(())
    }
}

fn silent(shared: &FlowShared) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the sender is silent for {:?}", shared.limits.idle))
}

enum Framing {
    Plain,
    Rtp(RtpReceiver),
    Sfp(SfpReceiver),
}

struct DatagramReceiver {
    data: UdpSocket,
    control: Option<UdpSocket>,
    framing: Framing,
    token: Option<Token>,
    is_group: bool,
    /// The admitted sender. In a group there is none: its sources are told apart by their numbers.
    peer: Option<SocketAddr>,
}

impl DatagramReceiver {
    fn run(mut self, shared: &FlowShared, output: &mut Output<'_>) -> io::Result<String> {
        output.has_clock = !matches!(self.framing, Framing::Plain);
        let begin = Instant::now();
        let mut progress = begin;
        let mut buffer = vec![0; 65_536];
        // The farewell of the sender may overtake its last packets.
        let mut farewell: Option<(String, Instant)> = None;
        let reason = loop {
            match shared.command() {
                Command::End => break shared.death(),
                Command::Pause => progress = Instant::now(),
                Command::Run => {
                    if progress.elapsed() > shared.limits.idle {
                        return Err(silent(shared));
                    }
                }
            }
            if self.peer.is_none() && self.token.is_some() && begin.elapsed() > shared.limits.connect {
                let text = format!("no sender has shown the token within {:?}", shared.limits.connect);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            let wait = self.wait();
            self.data.set_read_timeout(Some(wait))?;
            match self.data.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    if self.admits(shared, &buffer[..length], from) {
                        if let Some(reason) = self.take(shared, &buffer[..length], from, output) {
                            break reason;
                        }
                        progress = Instant::now();
                    }
                }
                Err(error) if is_wait(&error) => {
                    if let Some((reason, _)) = farewell {
                        self.flush(shared, output);
                        break reason;
                    }
                }
                Err(error) => return Err(error),
            }
            self.release(shared, output);
            if farewell.as_ref().is_some_and(|(_, since)| since.elapsed() > shared.limits.idle) {
                break "the sender has left, and goes on sending".to_owned();
            }
            if let Some(reason) = self.exchange_reports(shared, output)? {
                farewell.get_or_insert((reason, Instant::now()));
            }
        };
        if let (Framing::Rtp(rtp), Some(control), Some(to)) = (&self.framing, &self.control, self.report_address()) {
            send_control(control, &bye(rtp.own, &reason), [to]);
        }
        Ok(reason)
    }

    /// The time until the thread has something to do without a packet.
    fn wait(&self) -> Duration {
        let deadline = match &self.framing {
            Framing::Plain => None,
            Framing::Rtp(rtp) => rtp.order.deadline(),
            Framing::Sfp(sfp) => sfp.order.deadline(),
        };
        let wait = deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
        wait.clamp(Duration::from_millis(1), TICK)
    }

    /// Whether the datagram is one of the admitted sender. Tokens are confirmed here.
    fn admits(&mut self, shared: &FlowShared, datagram: &[u8], from: SocketAddr) -> bool {
        if let (Some(token), Some(shown)) = (&self.token, shown_token(datagram)) {
            // The first one that shows it is the sender; it asks again if the confirmation was lost.
            if is_token(token, shown) && self.peer.is_none_or(|peer| peer == from) {
                self.peer = Some(from);
                confirm(&self.data, from);
            } else {
                add(&shared.counters.refused, 1);
            }
            return false;
        }
        let is_admitted = match self.peer {
            Some(peer) => peer == from,
            None if self.is_group => true,
            None => self.token.is_none() && self.is_valid(datagram),
        };
        if !is_admitted {
            add(&shared.counters.refused, 1);
        } else if !self.is_group {
            self.peer = Some(from);
        }
        is_admitted
    }

    /// Whether the datagram is one of the protocol.
    fn is_valid(&self, datagram: &[u8]) -> bool {
        match &self.framing {
            Framing::Plain => true,
            Framing::Rtp(_) => parse(datagram).is_some(),
            Framing::Sfp(_) => sfp::parse(datagram).is_some(),
        }
    }

    /// Takes a datagram of the sender. Returns the reason if it ends the flow.
    fn take(
        &mut self,
        shared: &FlowShared,
        datagram: &[u8],
        from: SocketAddr,
        output: &mut Output<'_>,
    ) -> Option<String> {
        match &mut self.framing {
            Framing::Plain => {
                add(&shared.counters.packets, 1);
                output.give(shared, datagram.to_vec(), 0, Duration::ZERO);
            }
            Framing::Rtp(rtp) => rtp.take(shared, datagram, output),
            Framing::Sfp(sfp) => match sfp::parse(datagram) {
                None => add(&shared.counters.malformed, 1),
                Some(Message::Start { major, .. }) => {
                    _ = self.data.send_to(&sfp::reply(major != 1), from);
                }
                Some(Message::EndOfStream) => {
                    sfp.order.give_up();
                    self.release(shared, output);
                    return Some("the sender has ended the flow".to_owned());
                }
                Some(message) => sfp.take(shared, message),
            },
        }
        None
    }

    /// Gives the frames that are in order to the sink.
    fn release(&mut self, shared: &FlowShared, output: &mut Output<'_>) {
        match &mut self.framing {
            Framing::Plain => {}
            Framing::Rtp(rtp) => rtp.release(shared, output),
            Framing::Sfp(sfp) => {
                let frames = sfp.release(shared, output);
                if let (true, Some(peer)) = (frames > 0 && sfp.grants_credit, self.peer) {
                    _ = self.data.send_to(&sfp::credit(frames), peer);
                }
            }
        }
    }

    /// Gives all that has come to the sink, although earlier packets are missing.
    fn flush(&mut self, shared: &FlowShared, output: &mut Output<'_>) {
        if let Framing::Rtp(rtp) = &mut self.framing {
            rtp.order.give_up();
            rtp.release(shared, output);
            if let Some((timestamp, whole)) = rtp.partial.take() {
                output.give(shared, whole, timestamp, rtp.lateness);
            }
        }
    }

    fn report_address(&self) -> Option<SocketAddr> {
        let Framing::Rtp(rtp) = &self.framing else { return None };
        let beside = |peer: SocketAddr| SocketAddr::new(peer.ip(), peer.port().wrapping_add(1));
        rtp.control_peer.or_else(|| self.peer.map(beside))
    }

    /// Reads the sender's reports and sends ours when they are due. Returns the reason if the sender leaves.
    fn exchange_reports(&mut self, shared: &FlowShared, output: &Output<'_>) -> io::Result<Option<String>> {
        let to = self.report_address();
        let (Framing::Rtp(rtp), Some(control)) = (&mut self.framing, &self.control) else { return Ok(None) };
        control.set_nonblocking(true)?;
        let mut buffer = [0; 2_048];
        for _ in 0..64 {
            let (length, from) = match control.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_wait(&error) => break,
                Err(error) => return Err(error),
            };
            if !self.is_group && self.peer.is_none_or(|peer| peer.ip() != from.ip()) {
                add(&shared.counters.refused, 1);
                continue;
            }
            let Some(events) = parse_control(&buffer[..length]) else {
                add(&shared.counters.malformed, 1);
                continue;
            };
            for event in events {
                match event {
                    ControlEvent::SenderReport { source, time } if rtp.source.is_none_or(|own| own == source) => {
                        rtp.control_peer = Some(from);
                        rtp.last_report = Some((time, Instant::now()));
                    }
                    // Other members leave a group as well.
                    ControlEvent::Bye { sources, reason }
                        if rtp.control_peer.is_none_or(|peer| peer == from)
                            && rtp.source.map_or(!self.is_group, |own| sources.contains(&own)) =>
                    {
                        return Ok(Some(format!("the sender has left: {reason}")));
                    }
                    ControlEvent::SenderReport { .. } => add(&shared.counters.refused, 1),
                    _ => {}
                }
            }
        }
        if let (Some(to), Some(source)) = (to, rtp.source)
            && Instant::now() >= rtp.next_report
        {
            rtp.next_report = Instant::now() + shared.limits.report_interval;
            let reception = rtp.reception(shared, source, output);
            send_control(control, &receiver_report(rtp.own, &reception, &rtp.name), [to]);
        }
        Ok(None)
    }
}

struct RtpReceiver {
    own: u32,
    name: String,
    /// The source that was admitted.
    source: Option<u32>,
    order: ReorderBuffer<MediaPacket>,
    /// The frame that has begun: its timestamp and octets.
    partial: Option<(u32, Vec<u8>)>,
    /// The timestamp of a frame of which a part is lost.
    damaged: Option<u32>,
    /// Whether a frame had several packets, so that the first one after a loss may belong to a frame that had begun before.
    has_parts: bool,
    lateness: Duration,
    control_peer: Option<SocketAddr>,
    last_report: Option<(u32, Instant)>,
    next_report: Instant,
    /// The highest number and the losses at the last report.
    reported: (u64, u64),
}

impl RtpReceiver {
    fn new(limits: &AvLimits) -> Self {
        let mut own = [0; 4];
        // A number that collides is no danger: it only names this party in its reports.
        _ = getrandom::fill(&mut own);
        let own = u32::from_be_bytes(own);
        Self {
            own,
            name: format!("spandrel-{own:08x}"),
            source: None,
            order: ReorderBuffer::new(16, limits.reordered, limits.reorder_time),
            partial: None,
            damaged: None,
            has_parts: false,
            lateness: Duration::ZERO,
            control_peer: None,
            last_report: None,
            next_report: Instant::now() + limits.report_interval / 2,
            reported: (0, 0),
        }
    }

    fn take(&mut self, shared: &FlowShared, datagram: &[u8], output: &mut Output<'_>) {
        let Some(packet) = parse(datagram) else { return add(&shared.counters.malformed, 1) };
        if *self.source.get_or_insert(packet.source) != packet.source {
            return add(&shared.counters.refused, 1);
        }
        let timestamp = packet.timestamp;
        let arrival = self.order.insert(u32::from(packet.sequence), Instant::now(), packet);
        if count(shared, arrival) {
            self.lateness = output.measure(shared, timestamp);
        }
    }

    fn release(&mut self, shared: &FlowShared, output: &mut Output<'_>) {
        while let Some(ordered) = self.order.pop(Instant::now()) {
            add(&shared.counters.lost, ordered.lost);
            let MediaPacket { timestamp, data, is_last, .. } = ordered.item;
            if ordered.lost > 0 {
                let begun = self.partial.take().map(|(begun, _)| begun);
                // One lost packet is the end of a frame that had begun; then this packet begins the next one.
                let is_first = begun.is_some_and(|begun| begun != timestamp && ordered.lost == 1);
                let is_part = self.has_parts || begun == Some(timestamp);
                let is_damaged = !is_first && is_part && self.damaged != Some(timestamp);
                let is_other = begun.is_some_and(|begun| begun != timestamp);
                add(&shared.counters.incomplete, u64::from(is_other) + u64::from(is_damaged));
                if is_damaged {
                    self.damaged = Some(timestamp);
                }
            }
            if self.damaged == Some(timestamp) {
                continue;
            }
            self.damaged = None;
            // A sender without markers ends a frame by the next timestamp.
            if let Some((begun, whole)) = self.partial.take_if(|(begun, _)| *begun != timestamp) {
                output.give(shared, whole, begun, self.lateness);
            }
            self.has_parts |= self.partial.is_some();
            let (_, mut whole) = self.partial.take().unwrap_or((timestamp, Vec::new()));
            whole.extend_from_slice(&data);
            if whole.len() > shared.limits.frame {
                add(&shared.counters.refused, 1);
                self.damaged = Some(timestamp);
            } else if is_last {
                output.give(shared, whole, timestamp, self.lateness);
            } else {
                self.partial = Some((timestamp, whole));
            }
        }
    }

    fn reception(&mut self, shared: &FlowShared, source: u32, output: &Output<'_>) -> Reception {
        let lost = shared.counters.lost.load(Ordering::Relaxed);
        let highest = self.order.highest();
        let (expected, newly_lost) = (highest.saturating_sub(self.reported.0), lost - self.reported.1);
        let fraction = (newly_lost * 256).checked_div(expected).unwrap_or(0).min(255) as u8;
        self.reported = (highest, lost);
        let jitter = output.clock.jitter_ticks();
        Reception { source, fraction_lost: fraction, lost, highest, jitter, last_report: self.last_report }
    }
}

/// Counts the arrival of a packet. Returns whether it was accepted.
fn count(shared: &FlowShared, arrival: Arrival) -> bool {
    let counters = &shared.counters;
    match arrival {
        Arrival::Accepted { is_reordered } => {
            add(&counters.packets, 1);
            add(&counters.reordered, u64::from(is_reordered));
            return true;
        }
        Arrival::Duplicate => add(&counters.duplicates, 1),
        Arrival::Late => add(&counters.late, 1),
        Arrival::Jump => add(&counters.refused, 1),
    }
    false
}

/// A frame of which fragments are missing.
#[derive(Default)]
struct Partial {
    first: Option<FramePart>,
    fragments: BTreeMap<u32, Vec<u8>>,
    last: Option<u32>,
    octets: usize,
}

struct SfpReceiver {
    order: ReorderBuffer<FramePart>,
    /// Frames in parts by their numbers, and those that came first.
    partial: BTreeMap<u32, Partial>,
    ages: Vec<u32>,
    /// Frames that are given to the sink next.
    output: Vec<crate::reorder::Ordered<FramePart>>,
    grants_credit: bool,
}

impl SfpReceiver {
    fn new(limits: &AvLimits, credit: Option<u32>) -> Self {
        Self {
            order: ReorderBuffer::new(32, limits.reordered, limits.reorder_time),
            partial: BTreeMap::new(),
            ages: Vec::new(),
            output: Vec::new(),
            grants_credit: credit.is_some(),
        }
    }

    fn take(&mut self, shared: &FlowShared, message: Message) {
        match message {
            Message::Frame(part) if !part.has_fragments => self.insert(shared, part),
            Message::Frame(part) => {
                let Some(sequence) = part.sequence else { return add(&shared.counters.malformed, 1) };
                let octets = part.data.len();
                self.add_part(shared, sequence, octets, |partial| {
                    partial.first.get_or_insert(part);
                });
            }
            Message::Fragment { number, sequence, is_last, data } => {
                if number as usize > MAX_FRAGMENTS {
                    return add(&shared.counters.malformed, 1);
                }
                let octets = data.len();
                self.add_part(shared, sequence, octets, |partial| {
                    if is_last {
                        partial.last = Some(number);
                    }
                    partial.fragments.entry(number).or_insert(data);
                });
            }
            _ => add(&shared.counters.malformed, 1),
        }
    }

    fn insert(&mut self, shared: &FlowShared, part: FramePart) {
        match part.sequence {
            Some(number) => {
                _ = count(shared, self.order.insert(number, Instant::now(), part));
            }
            None => {
                add(&shared.counters.packets, 1);
                self.output.push(crate::reorder::Ordered { lost: 0, item: part });
            }
        }
    }

    fn add_part(&mut self, shared: &FlowShared, sequence: u32, octets: usize, put: impl FnOnce(&mut Partial)) {
        if !self.partial.contains_key(&sequence) {
            self.ages.push(sequence);
            if self.ages.len() > MAX_PARTIAL {
                self.partial.remove(&self.ages.remove(0));
                add(&shared.counters.incomplete, 1);
            }
        }
        let partial = self.partial.entry(sequence).or_default();
        partial.octets += octets.max(1);
        if partial.octets > shared.limits.frame {
            add(&shared.counters.refused, 1);
            return self.forget(sequence);
        }
        put(partial);
        let is_complete = partial.first.is_some()
            && partial.last.is_some_and(|last| {
                partial.fragments.len() == last as usize && partial.fragments.keys().copied().eq(1..=last)
            });
        if is_complete && let Some(partial) = self.partial.remove(&sequence) {
            self.forget(sequence);
            let mut whole = partial.first.unwrap_or_default();
            whole.has_fragments = false;
            partial.fragments.values().for_each(|data| whole.data.extend_from_slice(data));
            self.insert(shared, whole);
        }
    }

    fn forget(&mut self, sequence: u32) {
        self.partial.remove(&sequence);
        self.ages.retain(|other| *other != sequence);
    }

    /// Gives frames to the sink. Returns their number, with those that were lost.
    fn release(&mut self, shared: &FlowShared, output: &mut Output<'_>) -> u32 {
        while let Some(ordered) = self.order.pop(Instant::now()) {
            self.output.push(ordered);
        }
        let mut frames = 0;
        for ordered in self.output.drain(..) {
            add(&shared.counters.lost, ordered.lost);
            frames += 1 + ordered.lost as u32;
            let part = ordered.item;
            let lateness =
                if part.sequence.is_some() { output.measure(shared, part.timestamp) } else { Duration::ZERO };
            output.give(shared, part.data, part.timestamp, lateness);
        }
        frames
    }
}
