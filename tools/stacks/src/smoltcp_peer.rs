//! `smoltcp` as the TCP of the receiving stack, over the same devices.

use std::time::Instant as SystemInstant;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use spandrel_message::MessageBlock;
use spandrel_sync::{Arc, Mutex};

use crate::architecture::{Protocol, Settings};
use crate::device::{self, Device, PreparedConnections, PreparedSettings, Received};
use crate::frame;
use crate::ip::Ipv4Header;
use crate::measurement::{Outcome, Run, StackError, switches};
use crate::tcp::TcpHeader;
use crate::timed::{Timed, Waits};
use crate::xdr::{self, Content};

/// The seed of its initial sequence number, so that the prepared segments can acknowledge that number.
const SEED: u64 = 7;

/// A device of this crate as one of `smoltcp`, without the Ethernet header.
struct Adapter<D> {
    device: Arc<D>,
    waiting: Option<MessageBlock>,
    max_packet: usize,
    has_ended: bool,
}

impl<D: Device> Adapter<D> {
    /// Waits for a frame.
    fn fill(&mut self) {
        if self.waiting.is_some() {
            return;
        }
        match self.device.receive() {
            Received::Frame(mut frame) => {
                frame.advance(frame::HEADER.min(frame.len()));
                self.waiting = Some(frame);
            }
            Received::Nothing => {}
            Received::End => self.has_ended = true,
        }
    }
}

struct Packet(MessageBlock);

impl phy::RxToken for Packet {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sender<'d, D>(&'d D);

impl<D: Device> phy::TxToken for Sender<'_, D> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        let mut frame = MessageBlock::from(&frame::header());
        frame.append(packet[..].into());
        self.0.send(&frame);
        result
    }
}

impl<D: Device> phy::Device for Adapter<D> {
    type RxToken<'a>
        = Packet
    where
        Self: 'a;
    type TxToken<'a>
        = Sender<'a, D>
    where
        Self: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Packet, Sender<'_, D>)> {
        Some((Packet(self.waiting.take()?), Sender(&*self.device)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sender<'_, D>> {
        Some(Sender(&*self.device))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.max_packet;
        capabilities
    }
}

/// An interface with a socket that listens on the port of the experiments.
struct Stack<D: Device> {
    adapter: Adapter<D>,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    epoch: SystemInstant,
}

impl<D: Device> Stack<D> {
    fn new(device: Arc<D>, window: usize, segment: usize) -> Result<Self, StackError> {
        let mut adapter = Adapter { device, waiting: None, max_packet: segment + 40, has_ended: false };
        let epoch = SystemInstant::now();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = SEED;
        let mut interface = Interface::new(config, &mut adapter, Instant::ZERO);
        let address = IpCidr::new(IpAddress::Ipv4(device::RECEIVER), 24);
        interface.update_ip_addrs(|addresses| _ = addresses.push(address));
        let buffer = |octets| tcp::SocketBuffer::new(vec![0; octets]);
        let mut socket = tcp::Socket::new(buffer(window), buffer(4096));
        socket.listen(device::PORT).map_err(|error| StackError::Settings(error.to_string()))?;
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Ok(Self { adapter, interface, sockets, socket, epoch })
    }

    /// Processes a frame, or the timers; `take` gets the octets that have come.
    fn step(&mut self, mut take: impl FnMut(&[u8])) {
        self.adapter.fill();
        let now = Instant::from_micros(self.epoch.elapsed().as_micros() as i64);
        self.interface.poll(now, &mut self.adapter, &mut self.sockets);
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        while socket.can_recv() {
            let taken = socket.recv(|octets| {
                take(octets);
                (octets.len(), ())
            });
            if taken.is_err() {
                break;
            }
        }
    }
}

/// A device that gives one frame, and keeps the first that is sent.
struct Handshake {
    syn: Mutex<Option<MessageBlock>>,
    answer: Mutex<Option<TcpHeader>>,
}

impl Device for Handshake {
    fn receive(&self) -> Received {
        self.syn.lock().take().map_or(Received::Nothing, Received::Frame)
    }

    fn send(&self, frame: &MessageBlock) {
        let octets: Vec<u8> = frame.links().flat_map(|link| link.iter().copied()).collect();
        let header = frame::packet(&octets).and_then(|packet| {
            let (ip, length) = Ipv4Header::decode(packet).ok()?;
            Some(TcpHeader::decode(&ip, &packet[length..]).ok()?.0)
        });
        if let Some(header) = header {
            self.answer.lock().get_or_insert(header);
        }
    }
}

/// The initial sequence number that `smoltcp` will choose.
fn initial_sequence(settings: &PreparedSettings, window: usize) -> Result<u32, StackError> {
    let one = PreparedSettings { messages: 0, faults: Default::default(), ..*settings };
    let Received::Frame(syn) = PreparedConnections::<Timed<Mutex>>::new(&one).receive() else {
        return Err(StackError::Incorrect("the device has no SYN".to_owned()));
    };
    let device = Arc::new(Handshake { syn: Mutex::new(Some(syn)), answer: Mutex::new(None) });
    Stack::new(Arc::clone(&device), window, settings.segment)?.step(|_| ());
    let answer = device.answer.lock().map(|header| header.sequence);
    answer.ok_or_else(|| StackError::Incorrect("smoltcp does not answer a SYN".to_owned()))
}

/// Runs `smoltcp` with the presentation layer of this crate over a device of prepared segments, in one thread.
///
/// # Errors
/// [`StackError`]: above all, if the application did not get what was sent.
pub fn run(settings: &Settings) -> Result<Outcome, StackError> {
    if settings.protocol != Protocol::Tcp {
        return Err(StackError::Settings("smoltcp is measured as TCP".to_owned()));
    }
    let content = Content::of_octets(settings.octets);
    let mut prepared = PreparedSettings {
        connections: 1,
        messages: settings.messages,
        content,
        segment: settings.segment,
        first_port: device::FIRST_SENDER_PORT,
        receiver_sequence: 0,
        faults: settings.faults,
        seed: settings.seed,
    };
    prepared.receiver_sequence = initial_sequence(&prepared, settings.window)?;
    let device = Arc::new(PreparedConnections::<Timed<Mutex>>::new(&prepared));
    let mut stack = Stack::new(Arc::clone(&device), settings.window, settings.segment)?;
    let run = Run::new(settings.messages, settings.messages as u64, true, false, 0);
    let mut waiting: Vec<u8> = Vec::with_capacity(content.octets());
    let mut next = 0;
    let (before, waits, begin) = (switches(), Waits::so_far(), SystemInstant::now());
    while next < settings.messages {
        if stack.adapter.has_ended || begin.elapsed().as_secs() > 120 {
            return Err(StackError::Incorrect(format!("{next} of {} messages came", settings.messages)));
        }
        stack.step(|mut octets| {
            while !octets.is_empty() {
                let (part, rest) = octets.split_at(octets.len().min(content.octets() - waiting.len()));
                waiting.extend_from_slice(part);
                octets = rest;
                if waiting.len() == content.octets() {
                    let message = xdr::decode(&MessageBlock::from(&waiting[..]));
                    waiting.clear();
                    match message.ok().and_then(|message| content.number_of(&message)) {
                        Some(number) if number == next => run.arrived(number, 1),
                        _ => run.wrong(),
                    }
                    next += 1;
                }
            }
        });
    }
    let (elapsed, after) = (begin.elapsed(), switches());
    let waits = Waits::so_far().since(waits);
    let outcome = run.outcome(elapsed, content.octets())?;
    let senders = device.counts();
    Ok(Outcome { voluntary: after[0] - before[0], involuntary: after[1] - before[1], waits, senders, ..outcome })
}
