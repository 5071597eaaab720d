//! The sender of a flow: its connection, its flow protocol, and the steps by which it sends the frames of a source.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::SockRef;
use spandrel::net::ipc::Transfer;

use crate::admission::{exchange, is_wait, show};
use crate::flow_spec::{Carrier, FlowAddress, FlowProtocol};
use crate::flow_state::{Command, FlowShared, Target};
use crate::media::{FlowDefinition, Frame, MediaSource};
use crate::rtp::{ControlEvent, RtpSender, bye, parse_control, send_control};
use crate::sfp::{self, Message};
use crate::statistics::add;
use crate::stream_channel::StreamChannel;

/// The longest time between two looks at the messages of the receiver.
const TICK: Duration = Duration::from_millis(100);
/// The time after which a datagram is sent again for which the system had no room.
const RETRY: Duration = Duration::from_millis(1);
/// The end of a flow whose source has no further frames.
const SOURCE_ENDED: &str = "the source has ended";
/// The datagrams in a row that a receiver's machine refuses before it counts as gone.
const MAX_REFUSED: u32 = 32;

/// The sender of a flow whose connection or address is open.
#[derive(Debug)]
pub(crate) struct Sender {
    channel: Channel,
    framing: Framing,
    dscp: u8,
    /// The time of the next frame; `None` before the first one since a start.
    due: Option<Instant>,
    /// The time of the next look at the messages of the receiver.
    next_control: Instant,
    unsent: Option<Unsent>,
    /// The datagrams in a row that the receiver's machine has refused.
    refused: u32,
    /// The frames in a row that the system has taken.
    accepted: u32,
}

/// The outcome of a step of a sender.
pub(crate) enum Step {
    /// The next step is due at this time, or once the command is another one.
    Next { at: Instant, command: Command },
    /// The flow ends for this reason.
    End(&'static str),
}

/// The datagrams of a frame that the system has not taken yet.
#[derive(Debug)]
struct Unsent {
    messages: Vec<Vec<u8>>,
    targets: Vec<Target>,
    /// The number of the next datagram: all messages for the first receiver come first.
    next: usize,
    /// Whether a receiver got all messages.
    is_sent: bool,
    failure: Option<io::Error>,
}

#[derive(Debug)]
enum Channel {
    Ordered(StreamChannel),
    Udp { data: UdpSocket, control: Option<UdpSocket> },
}

#[derive(Debug)]
enum Framing {
    Plain,
    Rtp {
        sender: RtpSender,
        name: String,
        next_report: Instant,
    },
    Sfp {
        sequence: u32,
        source: u32,
        credit: Option<u32>,
        /// The octets of a message of the receiver that has not come whole.
        begun: Vec<u8>,
    },
}

/// Connects to a receiver, shows its token, and begins the flow protocol.
///
/// # Errors
/// A receiver that cannot be reached, or does not answer within the limit.
pub(crate) fn open(
    shared: &FlowShared,
    to: &FlowAddress,
    protocol: FlowProtocol,
    is_multipoint: bool,
) -> io::Result<Sender> {
    let within = shared.limits.connect;
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    let [a, b, c, d, e, f, ..] = number;
    let source = shared.source_id().unwrap_or(u32::from_be_bytes([a, b, c, d]));
    let mut framing = match protocol {
        FlowProtocol::Sfp { credit } => Framing::Sfp { sequence: 1, source, credit, begun: Vec::new() },
        _ if to.carrier == Carrier::RtpUdp => Framing::Rtp {
            sender: RtpSender::new(source, u16::from_be_bytes([e, f]), shared.definition.payload_type),
            name: format!("spandrel-{source:08x}"),
            next_report: Instant::now(),
        },
        _ => Framing::Plain,
    };
    let channel = if !to.carrier.is_datagram() {
        let stream = StreamChannel::connect(shared, to)?;
        if matches!(framing, Framing::Sfp { .. }) {
            stream.transfer().send_n_within(&sfp::start(), within)?;
            let mut reply = [0; sfp::REPLY_OCTETS];
            stream.transfer().recv_n_within(&mut reply, within)?;
            require_reply(sfp::parse(&reply))?;
        }
        Channel::Ordered(stream)
    } else {
        let data = socket_for(to, &shared.definition)?;
        if !is_multipoint {
            // The system tells of a receiver that is gone. Further receivers are sent to by their addresses.
            data.connect(to.data)?;
        }
        if let (Some(token), false) = (&to.token, to.is_multicast()) {
            show(&data, to.data, token, within)?;
        }
        if let (Framing::Sfp { .. }, false) = (&framing, to.is_multicast()) {
            let reply = exchange(&data, to.data, &sfp::start(), within, |answer| match sfp::parse(answer) {
                Some(Message::Reply { is_refused }) => Some(is_refused),
                _ => None,
            })?;
            require_reply(Some(Message::Reply { is_refused: reply }))?;
        }
        let control = matches!(framing, Framing::Rtp { .. })
            .then(|| control_socket(&data, to, &shared.definition))
            .transpose()?;
        Channel::Udp { data, control }
    };
    if let (Framing::Sfp { credit, .. }, true) = (&mut framing, is_multipoint) {
        // One of several receivers does not hold up the others.
        *credit = None;
    }
    let next_control = Instant::now();
    Ok(Sender { channel, framing, dscp: 0, due: None, next_control, unsent: None, refused: 0, accepted: 0 })
}

/// Sets the class of traffic of IPv6 packets. Returns the class that the system has.
#[cfg(unix)]
fn set_class_v6(socket: &SockRef<'_>, class: u32) -> io::Result<u32> {
    socket.set_tclass_v6(class)?;
    socket.tclass_v6()
}

/// Windows leaves the class to the policies of the system.
#[cfg(not(unix))]
fn set_class_v6(_: &SockRef<'_>, _: u32) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

fn require_reply(reply: Option<Message>) -> io::Result<()> {
    match reply {
        Some(Message::Reply { is_refused: false }) => Ok(()),
        Some(Message::Reply { is_refused: true }) => Err(io::Error::other("the receiver refuses SFP 1.0")),
        _ => Err(io::Error::other("the receiver does not answer by SFP")),
    }
}

/// A socket by which datagrams go to this address.
fn socket_for(to: &FlowAddress, flow: &FlowDefinition) -> io::Result<UdpSocket> {
    let is_ipv4 = to.data.is_ipv4();
    let any = if is_ipv4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    if to.is_multicast() && is_ipv4 {
        socket.set_multicast_loop_v4(true)?;
        if let Some(interface) = flow.multicast_interface {
            SockRef::from(&socket).set_multicast_if_v4(&interface)?;
        }
    }
    Ok(socket)
}

/// The socket of RTCP: at the port after that of the frames, if it is free.
fn control_socket(data: &UdpSocket, to: &FlowAddress, flow: &FlowDefinition) -> io::Result<UdpSocket> {
    let local = data.local_addr()?;
    let beside = UdpSocket::bind(SocketAddr::new(local.ip(), local.port().wrapping_add(1)));
    let socket = beside.or_else(|_| socket_for(to, flow))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Sender {
    /// The socket of the frames, for the admission of further receivers.
    pub(crate) fn socket(&self) -> io::Result<Option<UdpSocket>> {
        match &self.channel {
            Channel::Ordered(_) => Ok(None),
            Channel::Udp { data, .. } => data.try_clone().map(Some),
        }
    }

    /// Whether the flow needs no thread of its own, since its steps wait neither for the receiver nor for the source.
    pub(crate) fn is_paced(&self, shared: &FlowShared) -> bool {
        let waits_for_credit = matches!(self.framing, Framing::Sfp { credit: Some(_), .. });
        matches!(self.channel, Channel::Udp { .. }) && !waits_for_credit && shared.frame_interval().is_some()
    }

    /// Sets whether datagrams wait for room in the system.
    pub(crate) fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match &self.channel {
            Channel::Ordered(_) => Ok(()),
            Channel::Udp { data, .. } => data.set_nonblocking(is_nonblocking),
        }
    }

    /// Sends until the source or the flow ends, and waits for the times of the frames.
    pub(crate) fn run(mut self, shared: &FlowShared, mut source: Box<dyn MediaSource>) {
        let outcome = self.set_nonblocking(false).and_then(|()| {
            loop {
                match self.step(shared, source.as_mut())? {
                    Step::Next { at, command } => _ = shared.wait_until(at, command),
                    Step::End(reason) => return Ok(reason),
                }
            }
        });
        self.finish(shared, source, outcome);
    }

    /// Ends the flow, and tells the receiver, the control and the source the reason.
    pub(crate) fn finish(
        mut self,
        shared: &FlowShared,
        mut source: Box<dyn MediaSource>,
        outcome: io::Result<&'static str>,
    ) {
        let reason = match outcome {
            Ok(SOURCE_ENDED) => source.failure().unwrap_or_else(|| SOURCE_ENDED.to_owned()),
            Ok(reason) => reason.to_owned(),
            Err(error) => error.to_string(),
        };
        self.say_farewell(shared, &reason);
        shared.die(&reason);
        source.flow_ended(&shared.death(), &shared.counters.snapshot());
    }

    /// Sends the frame that is due, if there is one. A [paced](Self::is_paced) flow does not wait here.
    pub(crate) fn step(&mut self, shared: &FlowShared, source: &mut dyn MediaSource) -> io::Result<Step> {
        let command = shared.command();
        let now = Instant::now();
        match command {
            Command::End => return Ok(Step::End("the flow was closed")),
            Command::Pause => {
                self.read_control(shared)?;
                // The times of the frames begin with the end of the pause.
                self.due = None;
                return Ok(Step::Next { at: now + TICK, command });
            }
            Command::Run => {}
        }
        if now >= self.next_control {
            self.next_control = now + TICK;
            self.read_control(shared)?;
        }
        if !self.send_unsent()? {
            return Ok(Step::Next { at: now + RETRY, command });
        }
        let due = *self.due.get_or_insert(now);
        if now < due {
            return Ok(Step::Next { at: due.min(now + TICK), command });
        }
        let next = shared.frame_interval().map_or(due, |interval| {
            // A sender that was held up does not send all at once what is too late.
            let is_held_up = now.duration_since(due) > shared.limits.idle;
            (if is_held_up { now } else { due }) + interval
        });
        self.due = Some(next);
        let Some(frame) = source.next_frame() else { return Ok(Step::End(SOURCE_ENDED)) };
        self.set_class(shared);
        self.wait_for_credit(shared)?;
        let is_sent = self.send_frame(shared, &frame)?;
        self.report(shared, frame.timestamp);
        let at = if is_sent { next.min(now + TICK) } else { now + RETRY };
        Ok(Step::Next { at, command })
    }

    /// The class of service in the headers of packets.
    fn set_class(&mut self, shared: &FlowShared) {
        let dscp = shared.dscp();
        if dscp == self.dscp {
            return;
        }
        self.dscp = dscp;
        let class = u32::from(dscp) << 2;
        let set = |socket: SockRef<'_>, is_v4: bool| {
            let set = if is_v4 {
                socket.set_tos_v4(class).and_then(|()| socket.tos_v4())
            } else {
                set_class_v6(&socket, class)
            };
            match set {
                Ok(class) => store(&shared.counters.dscp, u64::from(class >> 2)),
                Err(error) => tracing::warn!(%error, dscp, "the class of service of a flow could not be set"),
            }
        };
        match &self.channel {
            Channel::Ordered(stream) => set(stream.socket(), stream.is_ipv4()),
            Channel::Udp { data, .. } => set(data.into(), data.local_addr().is_ok_and(|addr| addr.is_ipv4())),
        }
    }

    /// Sends a frame. Returns whether the system has taken all of it.
    fn send_frame(&mut self, shared: &FlowShared, frame: &Frame) -> io::Result<bool> {
        let is_ordered = matches!(self.channel, Channel::Ordered(_));
        let most = if is_ordered { usize::MAX } else { shared.limits.datagram };
        let messages = match &mut self.framing {
            Framing::Plain => {
                if !is_ordered && frame.data.len() > MAX_DATAGRAM {
                    return Err(io::Error::other("a frame without a flow protocol must fit into one datagram"));
                }
                vec![frame.data.clone()]
            }
            Framing::Rtp { sender, .. } => sender.frame(frame.timestamp, &frame.data, most),
            Framing::Sfp { sequence, source, .. } => {
                let messages = sfp::frame(shared.fields(), *sequence, frame.timestamp, *source, &frame.data, most);
                *sequence = sequence.wrapping_add(1);
                messages
            }
        };
        add(&shared.counters.packets, messages.len() as u64);
        match &self.channel {
            Channel::Ordered(stream) => {
                messages.iter().try_for_each(|message| write_within(stream.transfer(), message, shared))?;
            }
            Channel::Udp { .. } => {
                let targets = shared.targets();
                self.unsent = Some(Unsent { messages, targets, next: 0, is_sent: false, failure: None });
            }
        }
        let is_sent = self.send_unsent()?;
        shared.counters.count_frame(frame.data.len());
        Ok(is_sent)
    }

    /// Sends the rest of a frame by datagrams. Returns whether none is left.
    ///
    /// # Errors
    /// No receiver takes the datagrams; the receiver's machine has refused many in a row.
    fn send_unsent(&mut self) -> io::Result<bool> {
        let (Some(unsent), Channel::Udp { data, .. }) = (&mut self.unsent, &self.channel) else { return Ok(true) };
        if !unsent.send(data) {
            return Ok(false);
        }
        let failure = self.unsent.take().filter(|unsent| !unsent.is_sent).and_then(|unsent| unsent.failure);
        match failure {
            Some(error) if is_gone(&error) => {
                self.refused += 1;
                self.accepted = 0;
                if self.refused > MAX_REFUSED {
                    return Err(io::Error::other(format!("the receiver is gone: {error}")));
                }
            }
            Some(error) => return Err(error),
            None => {
                self.accepted += 1;
                // The system tells of a datagram that was refused at the next one, and takes that after it.
                if self.accepted > 2 {
                    self.refused = 0;
                }
            }
        }
        Ok(true)
    }

    /// Waits until the receiver takes a further frame.
    fn wait_for_credit(&mut self, shared: &FlowShared) -> io::Result<()> {
        let mut begin = Instant::now();
        loop {
            self.read_control(shared)?;
            match &mut self.framing {
                Framing::Sfp { credit: Some(credit), .. } if *credit == 0 => {}
                Framing::Sfp { credit: Some(credit), .. } => {
                    *credit -= 1;
                    return Ok(());
                }
                _ => return Ok(()),
            }
            match shared.command() {
                Command::End => return Ok(()),
                // The receiver of a flow that is stopped need not grant any.
                Command::Pause => {
                    begin = Instant::now();
                    shared.wait_until(begin + TICK, Command::Pause);
                    continue;
                }
                Command::Run => {}
            }
            if begin.elapsed() > shared.limits.idle {
                let message = format!("the receiver has granted no credit for {:?}", shared.limits.idle);
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            shared.wait_until(Instant::now() + Duration::from_millis(2), Command::Run);
        }
    }

    /// Reads the messages of the receiver that are there.
    fn read_control(&mut self, shared: &FlowShared) -> io::Result<()> {
        let mut buffer = [0; 2_048];
        match (&mut self.channel, &mut self.framing) {
            (Channel::Udp { control: Some(control), .. }, Framing::Rtp { sender, .. }) => {
                for _ in 0..64 {
                    let (length, from) = match control.recv_from(&mut buffer) {
                        Ok(received) => received,
                        Err(error) if is_wait(&error) => return Ok(()),
                        Err(error) => return Err(error),
                    };
                    let targets = shared.targets();
                    if !targets.iter().any(|target| target.data.ip() == from.ip() || target.data.ip().is_multicast()) {
                        add(&shared.counters.refused, 1);
                        continue;
                    }
                    let Some(events) = parse_control(&buffer[..length]) else {
                        add(&shared.counters.malformed, 1);
                        continue;
                    };
                    for event in events {
                        match event {
                            ControlEvent::Reception { source, lost, jitter } if source == sender.source => {
                                let counters = &shared.counters;
                                let micros =
                                    u64::from(jitter) * 1_000_000 / u64::from(shared.definition.clock_rate.max(1));
                                store(&counters.lost, u64::from(lost));
                                store(&counters.jitter_micros, micros);
                            }
                            // One of several receivers that leaves does not end the flow.
                            ControlEvent::Bye { reason, .. } if is_single(&targets) => {
                                return Err(io::Error::other(format!("the receiver has left: {reason}")));
                            }
                            _ => {}
                        }
                    }
                }
                Ok(())
            }
            (Channel::Udp { data, .. }, Framing::Sfp { credit: Some(credit), .. }) => {
                data.set_nonblocking(true)?;
                let targets = shared.targets();
                let mut outcome = Ok(());
                for _ in 0..64 {
                    match data.recv_from(&mut buffer) {
                        Ok((_, from)) if !targets.iter().any(|target| target.data == from) => {
                            add(&shared.counters.refused, 1);
                        }
                        Ok((length, _)) => take_credit(credit, &buffer[..length], shared),
                        Err(error) if is_wait(&error) => break,
                        Err(error) => {
                            outcome = Err(error);
                            break;
                        }
                    }
                }
                data.set_nonblocking(false)?;
                outcome
            }
            (Channel::Ordered(stream), Framing::Sfp { credit: Some(credit), begun, .. }) => loop {
                let missing = sfp::CREDIT_OCTETS - begun.len();
                match stream.transfer().try_recv(&mut buffer[..missing]) {
                    Ok(0) => return Err(io::Error::other("the receiver has closed the connection")),
                    Ok(length) => begun.extend_from_slice(&buffer[..length]),
                    Err(error) if is_wait(&error) => return Ok(()),
                    Err(error) => return Err(error),
                }
                if begun.len() == sfp::CREDIT_OCTETS {
                    take_credit(credit, begun, shared);
                    begun.clear();
                }
            },
            _ => Ok(()),
        }
    }

    /// Sends a report when it is due.
    fn report(&mut self, shared: &FlowShared, timestamp: u32) {
        if let (Channel::Udp { control: Some(control), .. }, Framing::Rtp { sender, name, next_report }) =
            (&self.channel, &mut self.framing)
            && Instant::now() >= *next_report
        {
            *next_report = Instant::now() + shared.limits.report_interval;
            let report = sender.report(timestamp, name);
            send_control(control, &report, shared.targets().into_iter().map(|target| target.control));
        }
    }

    fn say_farewell(&mut self, shared: &FlowShared, reason: &str) {
        let targets = shared.targets();
        match (&mut self.channel, &self.framing) {
            (Channel::Udp { control: Some(control), .. }, Framing::Rtp { sender, .. }) => {
                send_control(control, &bye(sender.source, reason), targets.iter().map(|target| target.control));
            }
            (Channel::Udp { data, .. }, Framing::Sfp { .. }) => {
                // The last message of the flow may wait for room.
                _ = data.set_nonblocking(false);
                send_control(data, &sfp::end_of_stream(), targets.iter().map(|target| target.data));
            }
            (Channel::Ordered(stream), framing) => {
                if matches!(framing, Framing::Sfp { .. }) {
                    _ = stream.transfer().send_n_within(&sfp::end_of_stream(), TICK);
                }
                stream.close_after_reading(shared.limits.idle);
            }
            _ => {}
        }
    }
}

/// The most octets of a datagram by IPv4.
const MAX_DATAGRAM: usize = 65_507;
/// The most frames that a receiver can grant.
const MAX_CREDIT: u32 = 1 << 20;

fn take_credit(credit: &mut u32, message: &[u8], shared: &FlowShared) {
    match sfp::parse(message) {
        Some(Message::Credit(more)) => *credit = credit.saturating_add(more).min(MAX_CREDIT),
        // A repeated answer to Start.
        Some(Message::Reply { .. }) => {}
        _ => add(&shared.counters.malformed, 1),
    }
}

fn store(count: &spandrel::net::sync::atomic::AtomicU64, value: u64) {
    count.store(value, spandrel::net::sync::atomic::Ordering::Relaxed);
}

impl Unsent {
    /// Sends until all is sent (true) or the system has no room. A receiver that cannot be sent to is left out.
    fn send(&mut self, socket: &UdpSocket) -> bool {
        let count = self.messages.len().max(1);
        while let (Some(target), Some(message)) =
            (self.targets.get(self.next / count), self.messages.get(self.next % count))
        {
            match socket.send_to(message, target.data) {
                Ok(_) => {
                    self.next += 1;
                    self.is_sent |= self.next.is_multiple_of(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    self.failure = Some(error);
                    self.next = (self.next / count + 1) * count;
                }
            }
        }
        true
    }
}

/// Writes all, within the time without progress that is allowed.
fn write_within(stream: &dyn Transfer, mut message: &[u8], shared: &FlowShared) -> io::Result<()> {
    let mut progress = Instant::now();
    while !message.is_empty() {
        match stream.send_within(message, TICK) {
            Ok(0) => return Err(io::Error::other("the receiver has closed the connection")),
            Ok(length) => {
                message = &message[length..];
                progress = Instant::now();
            }
            Err(error) if is_wait(&error) && error.kind() != io::ErrorKind::ConnectionRefused => {
                if shared.command() == Command::End {
                    return Ok(());
                }
                if progress.elapsed() > shared.limits.idle {
                    let text = format!("the receiver has taken no octets for {:?}", shared.limits.idle);
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether one receiver alone gets the flow, and no group.
fn is_single(targets: &[Target]) -> bool {
    targets.len() < 2 && targets.iter().all(|target| !target.data.ip().is_multicast())
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused)
}
