//! The modules of the transport layer: UDP and TCP.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use spandrel_message::MessageBlock;
use spandrel_stream::{Context, Message, MessageKind, PutError, PutFailure, QueueStrategy, Service, Side};
use spandrel_sync::{Arc, Condition, Mutex};

use crate::connections::{Connection, Connections, Output, TcpAddr};
use crate::dlp::Tick;
use crate::ip::{self, Ipv4Header};
use crate::measurement::{LIMIT, Run};
use crate::tcp::{Config, Segment, SendError, State, Statistics, Tcb, TcpHeader, reset_for};
use crate::udp::UdpHeader;

/// The reader of the UDP module: passes on the data of datagrams for one port. Threads share nothing in it.
pub(crate) struct UdpReader {
    pub(crate) port: u16,
    pub(crate) run: Arc<Run>,
}

impl<Q: QueueStrategy> Service<Q> for UdpReader {
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        if matches!(message.kind(), MessageKind::Protocol) {
            return Ok(());
        }
        match message.take_block().and_then(|packet| datagram(packet, self.port)) {
            Some(data) => message.set_block(data),
            None => {
                self.run.dropped();
                return Ok(());
            }
        }
        context.put_next(message)
    }
}

/// The data of a datagram to the port.
fn datagram(mut packet: MessageBlock, port: u16) -> Option<MessageBlock> {
    let (ip, length) = Ipv4Header::decode(&packet).ok().filter(|(ip, _)| ip.protocol == ip::UDP)?;
    let (header, data) = UdpHeader::decode(&ip, &packet[length..][..ip.payload]).ok()?;
    packet.advance(length + crate::udp::HEADER);
    drop(packet.split_off(data));
    (header.destination == port).then_some(packet)
}

/// The part that both sides of a TCP module share.
pub(crate) struct Tcp<C> {
    connections: C,
    address: Ipv4Addr,
    /// The port on which peers open connections, if any.
    listening: Option<u16>,
    config: Config,
    /// The octets of a message.
    message: usize,
    epoch: Instant,
    /// The counts of connections that have ended.
    ended: Mutex<HashMap<TcpAddr, Statistics>>,
    run: Arc<Run>,
    /// Counts the segments received, for applications that wait for room to send.
    segments: Mutex<u64>,
    received: Condition,
}

impl<C: Connections> Tcp<C> {
    pub(crate) fn new(
        connections: C,
        address: Ipv4Addr,
        listening: Option<u16>,
        config: Config,
        message: usize,
        run: Arc<Run>,
    ) -> Self {
        let (epoch, ended) = (Instant::now(), Mutex::default());
        let (segments, received) = (Mutex::new(0), Condition::new());
        Self { connections, address, listening, config, message, epoch, ended, run, segments, received }
    }

    /// The number of segments received.
    fn progress(&self) -> u64 {
        *self.segments.lock()
    }

    /// Waits until more segments were received, for a millisecond at most.
    fn wait_for_progress(&self, before: u64) {
        let mut segments = self.segments.lock();
        if *segments == before {
            self.received.wait_for(&mut segments, Duration::from_millis(1));
        }
    }

    /// The counts of all connections that have ended.
    pub(crate) fn statistics(&self) -> Vec<Statistics> {
        self.ended.lock().values().copied().collect()
    }

    fn connection_for(&self, segment: &Segment) -> Option<Connection> {
        let port = self.listening.filter(|port| *port == segment.header.destination)?;
        let is_opening = segment.header.flags.has(crate::tcp::Flags::SYN);
        is_opening.then(|| Connection::new(Tcb::listen(port, self.config), self.message))
    }

    fn segment_received<Q: QueueStrategy>(
        &self,
        context: &Context<'_, Q>,
        packet: MessageBlock,
    ) -> Result<(), PutError> {
        let Some((address, segment)) = decode(packet).filter(|(address, _)| *address.local.ip() == self.address) else {
            self.run.dropped();
            return Ok(());
        };
        let (now, mut output) = (self.epoch.elapsed(), Output::default());
        let answer = reset_for(&segment);
        let is_reset = segment.header.flags.has(crate::tcp::Flags::RST);
        let create = || self.connection_for(&segment);
        let connection = give(&self.connections, address, create, &segment, now, &mut output);
        match connection {
            None if !is_reset => output.down.push(Segment { header: answer, data: MessageBlock::default() }),
            Some((State::Closed, statistics)) => {
                self.connections.remove(address);
                self.ended.lock().insert(address, statistics);
            }
            _ => {}
        }
        if self.listening.is_none() {
            *self.segments.lock() += 1;
            self.received.notify_all();
        }
        self.deliver(context, address, output)
    }

    /// Sends segments down and messages up, without a lock.
    fn deliver<Q: QueueStrategy>(
        &self,
        context: &Context<'_, Q>,
        address: TcpAddr,
        output: Output,
    ) -> Result<(), PutError> {
        for segment in output.down {
            if let Ok(packet) = segment.packet(*address.local.ip(), *address.remote.ip()) {
                // A packet that a lower layer does not take is lost as on a network.
                let message = Message::data(MessageBlock::from(&packet[..]));
                _ = match context.side() {
                    Side::Reader => context.reply(message),
                    Side::Writer => context.put_next(message),
                };
            }
        }
        output.up.into_iter().try_for_each(|message| context.put_next(message))
    }

    fn tick<Q: QueueStrategy>(&self, context: &Context<'_, Q>, tick: Tick) -> Result<(), PutError> {
        let now = self.epoch.elapsed();
        let mut outputs = Vec::new();
        self.connections.for_each(|address, connection| {
            if tick == Tick::End {
                self.ended.lock().insert(address, connection.tcb.statistics());
                return;
            }
            if connection.tcb.next_timer().is_some_and(|at| at <= now) {
                connection.tcb.on_timer(now);
            }
            let mut output = Output::default();
            connection.exchange(address, now, &mut output);
            outputs.push((address, output));
        });
        outputs.into_iter().try_for_each(|(address, output)| self.deliver(context, address, output))
    }
}

/// Gives the segment to its connection; returns the state and the counts of that.
fn give<C: Connections>(
    connections: &C,
    address: TcpAddr,
    create: impl FnOnce() -> Option<Connection>,
    segment: &Segment,
    now: Duration,
    output: &mut Output,
) -> Option<(State, Statistics)> {
    connections.with(address, create, |connection| {
        connection.tcb.on_segment(segment.clone(), now);
        connection.exchange(address, now, output);
        (connection.tcb.state(), connection.tcb.statistics())
    })
}

fn decode(mut packet: MessageBlock) -> Option<(TcpAddr, Segment)> {
    let (ip, length) = Ipv4Header::decode(&packet).ok().filter(|(ip, _)| ip.protocol == ip::TCP)?;
    let (header, data) = TcpHeader::decode(&ip, &packet[length..]).ok()?;
    packet.advance(length + data);
    drop(packet.split_off(ip.payload - data));
    let local = SocketAddrV4::new(ip.destination, header.destination);
    let remote = SocketAddrV4::new(ip.source, header.source);
    Some((TcpAddr { local, remote }, Segment { header, data: packet }))
}

/// The reader of the TCP module: passes on the messages of connections in order of their octets. Threads that escort
/// messages of the same connection may overtake each other above this module; the [`Record`](crate::connections::Record) has the order.
pub(crate) struct TcpReader<C>(pub(crate) Arc<Tcp<C>>);

impl<C: Connections, Q: QueueStrategy> Service<Q> for TcpReader<C> {
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        if let Some(tick) = message.control::<Tick>() {
            return self.0.tick(context, *tick);
        }
        match message.take_block() {
            Some(packet) => self.0.segment_received(context, packet),
            None => Ok(()),
        }
    }
}

/// A [`TcpWriter`] that waits until the send buffer takes a message: in the thread that sends it, or in that of the task.
pub(crate) struct PersistentTcpWriter<C>(pub(crate) Arc<Tcp<C>>);

impl<C: Connections, Q: QueueStrategy> Service<Q> for PersistentTcpWriter<C> {
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        let writer = TcpWriter(Arc::clone(&self.0));
        let deadline = Instant::now() + LIMIT;
        loop {
            let before = self.0.progress();
            match writer.process(context, message) {
                Err(error) if error.reason == PutFailure::Refused && Instant::now() < deadline => {
                    message = error.message;
                    self.0.wait_for_progress(before);
                }
                done => return done,
            }
        }
    }
}

/// The writer of the TCP module: sends messages by the connection of their control block, which it opens if there is none.
pub(crate) struct TcpWriter<C>(pub(crate) Arc<Tcp<C>>);

impl<C: Connections, Q: QueueStrategy> Service<Q> for TcpWriter<C> {
    /// A message that the send buffer does not take now is refused, and given back.
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        let Some(address) = message.control::<TcpAddr>().copied() else { return Err(PutError::refused(message)) };
        let Some(data) = message.take_block() else { return Ok(()) };
        let (now, mut output) = (self.0.epoch.elapsed(), Output::default());
        let open = || {
            let tcb = Tcb::connect(address.local.port(), address.remote.port(), self.0.config);
            Some(Connection::new(tcb, self.0.message))
        };
        let sent = self.0.connections.with(address, open, |connection| {
            let sent = connection.tcb.send(data);
            while let Some(segment) = connection.tcb.transmit(now) {
                output.down.push(segment);
            }
            sent
        });
        self.0.deliver(context, address, output)?;
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(SendError::Full(data))) => {
                message.set_block(data);
                Err(PutError::refused(message))
            }
            _ => Err(PutError::refused(message)),
        }
    }
}
