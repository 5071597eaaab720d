//! Pseudo-devices: network interfaces in loop-back mode, with one copy for each frame (paper 002, 3.2).
//!
//! Frames are Ethernet frames. Those of the experiments are prepared before the measurement; the device copies each into
//! the memory of the receiving stack. Losses, duplicates and another order are part of the device.

mod connections;

use std::net::Ipv4Addr;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_sync::atomic::{AtomicUsize, Ordering};

use crate::frame;
use crate::udp::UdpHeader;
use crate::xdr::{self, Content};

pub use connections::{PreparedConnections, PreparedSettings, SenderCounts};

/// The address of the sending peer, which the device plays.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The address of the receiving stack.
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The port to which the messages of the experiments go.
pub const PORT: u16 = 5010;
/// The port from which the messages of the first connection come; further connections have the following
/// ports.
pub const FIRST_SENDER_PORT: u16 = 40_000;

/// The time for which a receiver waits for a frame before it looks at timers.
const TICK: Duration = Duration::from_millis(1);

/// An interface from which frames are received, and to which they are sent.
pub trait Device: Send + Sync + 'static {
    /// Waits for a frame for a short time. Several threads may wait.
    fn receive(&self) -> Received;
    /// Sends a frame: its blocks, one behind the other. A device may lose it.
    fn send(&self, frame: &MessageBlock);
}

/// The outcome of [`Device::receive`].
#[derive(Debug)]
pub enum Received {
    /// A frame in one block of memory.
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
