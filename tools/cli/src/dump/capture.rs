//! Captured packets: pcap and pcapng, from a file or a pipe, read as they are written.

use std::io::{self, BufReader, Read};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::packet::Link;

/// The longest packet or block: tcpdump's longest packet has 256 KiB.
const MAX_OCTETS: usize = 1 << 20;
/// The pause before checking whether a file has grown.
const PAUSE: Duration = Duration::from_millis(200);
/// The maximum number of interfaces of one section.
const MAX_INTERFACES: usize = 4096;

/// A packet of a capture, without its header.
#[derive(Debug)]
pub(super) struct Packet<'p> {
    /// The time of capture, since 1970.
    pub(super) time: Duration,
    pub(super) link: Link,
    pub(super) octets: &'p [u8],
    /// It was longer than the snapshot length.
    pub(super) is_cut: bool,
}

/// The callback for each packet.
pub(super) type Each<'e> = &'e mut dyn FnMut(&Packet<'_>) -> anyhow::Result<()>;

/// Reads all packets.
///
/// # Errors
/// If it is not a capture, or is corrupt; earlier packets have been passed on. Those of `each`.
pub(super) fn read(input: impl Read, each: Each<'_>) -> anyhow::Result<()> {
    let mut input = BufReader::new(input);
    let mut magic = [0; 4];
    input.read_exact(&mut magic).context("the capture is too short for a header")?;
    match magic {
        SECTION_HEADER_MAGIC => read_new(&mut input, each),
        [0xd4, 0xc3, 0xb2, 0xa1] => read_old(&mut input, Order::Little, Precision::Micros, each),
        [0xa1, 0xb2, 0xc3, 0xd4] => read_old(&mut input, Order::Big, Precision::Micros, each),
        [0x4d, 0x3c, 0xb2, 0xa1] => read_old(&mut input, Order::Little, Precision::Nanos, each),
        [0xa1, 0xb2, 0x3c, 0x4d] => read_old(&mut input, Order::Big, Precision::Nanos, each),
        _ => bail!("the file is neither pcap nor pcapng"),
    }
}

/// The byte order of a capture's numbers.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }

    fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    /// A number in the middle of some octets; none if they are too short.
    fn u16_at(self, octets: &[u8], at: usize) -> Option<u16> {
        Some(self.u16(octets.get(at..at + 2)?.try_into().ok()?))
    }

    fn u32_at(self, octets: &[u8], at: usize) -> Option<u32> {
        Some(self.u32(octets.get(at..at + 4)?.try_into().ok()?))
    }
}

/// The unit of the fractions of seconds in pcap.
#[derive(Clone, Copy, Debug)]
enum Precision {
    Micros,
    Nanos,
}

/// Reads pcap, behind its magic number (<https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap>).
fn read_old(input: &mut impl Read, order: Order, precision: Precision, each: Each<'_>) -> anyhow::Result<()> {
    let mut header = [0; 20];
    input.read_exact(&mut header).context("the capture is too short for a header")?;
    let [.., a, b, c, d] = header;
    let link = Link::from(order.u32([a, b, c, d]));
    let mut octets = Vec::new();
    while let Some(seconds) = number(input, order)? {
        let mut rest = [0; 12];
        input.read_exact(&mut rest).map_err(truncated)?;
        let [fraction, len, original] = [0, 4, 8].map(|at| order.u32_at(&rest, at).unwrap_or(0));
        read_octets(input, len, &mut octets)?;
        let fraction = match precision {
            Precision::Micros => Duration::from_micros(fraction.into()),
            Precision::Nanos => Duration::from_nanos(fraction.into()),
        };
        let time = Duration::from_secs(seconds.into()).saturating_add(fraction);
        each(&Packet { time, link, octets: &octets, is_cut: original > len })?;
    }
    Ok(())
}

const SECTION_HEADER_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Types of blocks in pcapng.
const SECTION_HEADER: u32 = u32::from_be_bytes(SECTION_HEADER_MAGIC); // the same in both orders
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Reads pcapng, behind the type of its first block (<https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng>).
fn read_new(input: &mut impl Read, each: Each<'_>) -> anyhow::Result<()> {
    /// The octets of a block besides its body: its type, and its length twice.
    const FRAME: u32 = 12;
    let mut section = Section { order: Order::Little, interfaces: Vec::new() };
    let mut next = Some(SECTION_HEADER);
    let mut body = Vec::new();
    while let Some(kind) = next {
        let mut len = [0; 4];
        input.read_exact(&mut len).map_err(truncated)?;
        body.clear();
        if kind == SECTION_HEADER {
            // The length is in the order that the following magic number shows.
            let mut magic = [0; 4];
            input.read_exact(&mut magic).map_err(truncated)?;
            let order = match magic {
                [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
                [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
                _ => bail!("the capture is corrupt: a section has the byte-order magic {magic:02x?}"),
            };
            section = Section { order, interfaces: Vec::new() };
            let len =
                order.u32(len).checked_sub(FRAME + 4).context("the capture is corrupt: a section is too short")?;
            read_octets(input, len, &mut body)?;
        } else {
            let len = section.order.u32(len);
            let len =
                len.checked_sub(FRAME).with_context(|| format!("the capture is corrupt: a block of {len} octets"))?;
            read_octets(input, len, &mut body)?;
            if let Some(packet) = section.packet(kind, &body)? {
                each(&packet)?;
            }
        }
        input.read_exact(&mut [0; 4]).map_err(truncated)?; // the length again
        next = number(input, section.order)?;
    }
    Ok(())
}

/// The byte order and the interfaces of a section of pcapng.
struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

struct Interface {
    link: Link,
    /// The maximum number of captured octets of a packet; 0 for no limit.
    snap_len: u32,
    /// Units in a second.
    resolution: u64,
    /// Seconds to be added.
    offset: u64,
}

impl Section {
    /// The packet in a block. A description of an interface is remembered; blocks of other types are ignored.
    fn packet<'p>(&mut self, kind: u32, body: &'p [u8]) -> anyhow::Result<Option<Packet<'p>>> {
        let short = || format!("the capture is corrupt: a block of type {kind} with {} octets", body.len());
        match kind {
            INTERFACE_DESCRIPTION => {
                if self.interfaces.len() < MAX_INTERFACES {
                    let interface = self.interface(body).with_context(short)?;
                    self.interfaces.push(interface);
                }
                Ok(None)
            }
            ENHANCED_PACKET => self.enhanced_packet(body).with_context(short),
            SIMPLE_PACKET => self.simple_packet(body).with_context(short),
            _ => Ok(None),
        }
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        const RESOLUTION: u16 = 9;
        const OFFSET: u16 = 14;
        let link = Link::from(u32::from(self.order.u16_at(body, 0)?));
        let snap_len = self.order.u32_at(body, 4)?;
        let mut interface = Interface { link, snap_len, resolution: 1_000_000, offset: 0 };
        let mut options = body.get(8..)?;
        while let (Some(code @ 1..), Some(len)) = (self.order.u16_at(options, 0), self.order.u16_at(options, 2)) {
            let len = usize::from(len);
            let Some(value) = options.get(4..4 + len) else { break };
            match (code, value) {
                (RESOLUTION, [exponent]) => interface.resolution = resolution(*exponent),
                (OFFSET, [_, _, _, _, _, _, _, _]) => {
                    let [one, two] = [0, 4].map(|at| u64::from(self.order.u32_at(value, at).unwrap_or(0)));
                    let seconds = match self.order {
                        Order::Little => two << 32 | one,
                        Order::Big => one << 32 | two,
                    };
                    // The offset is signed.
                    interface.offset = if seconds >> 63 == 0 { seconds } else { 0 };
                }
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Some(interface)
    }

    /// `None` for a malformed block, `Some(None)` for a packet of an unknown interface.
    fn enhanced_packet<'p>(&self, body: &'p [u8]) -> Option<Option<Packet<'p>>> {
        let number = |at: usize| self.order.u32_at(body, at);
        let units = u64::from(number(4)?) << 32 | u64::from(number(8)?);
        let octets = body.get(20..)?.get(..number(12)? as usize)?;
        Some(self.interfaces.get(number(0)? as usize).map(|interface| {
            let seconds = Duration::from_secs((units / interface.resolution).saturating_add(interface.offset));
            let rest = u128::from(units % interface.resolution) * 1_000_000_000 / u128::from(interface.resolution);
            let time = seconds.saturating_add(Duration::from_nanos(u64::try_from(rest).unwrap_or(0)));
            let is_cut = number(16).is_some_and(|original| original as usize > octets.len());
            Packet { time, link: interface.link, octets, is_cut }
        }))
    }

    fn simple_packet<'p>(&self, body: &'p [u8]) -> Option<Option<Packet<'p>>> {
        let (len, octets) = (self.order.u32_at(body, 0)?, body.get(4..)?);
        Some(self.interfaces.first().map(|interface| {
            let captured = if interface.snap_len == 0 { len } else { len.min(interface.snap_len) };
            let octets = octets.get(..captured as usize).unwrap_or(octets);
            let is_cut = len as usize > octets.len();
            Packet { time: Duration::ZERO, link: interface.link, octets, is_cut }
        }))
    }
}

/// The units in a second that an option describes: a negative power of ten, or of two with the highest bit.
fn resolution(exponent: u8) -> u64 {
    let (base, power) = if exponent & 0x80 == 0 { (10_u64, exponent) } else { (2, exponent & 0x7f) };
    base.checked_pow(power.into()).unwrap_or(u64::MAX)
}

/// Reads a number; none at the end of the capture.
fn number(input: &mut impl Read, order: Order) -> anyhow::Result<Option<u32>> {
    let mut octets = [0; 4];
    loop {
        match input.read(&mut octets[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(truncated(error)),
        }
    }
    input.read_exact(&mut octets[1..]).map_err(truncated)?;
    Ok(Some(order.u32(octets)))
}

/// Reads octets in place of earlier ones.
fn read_octets(input: &mut impl Read, len: u32, octets: &mut Vec<u8>) -> anyhow::Result<()> {
    if len as usize > MAX_OCTETS {
        bail!("the capture is corrupt: a packet or block of {len} octets, where {MAX_OCTETS} are the most");
    }
    octets.resize(len as usize, 0);
    input.read_exact(octets).map_err(truncated)
}

fn truncated(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow::anyhow!("the capture ends inside a packet"),
        _ => anyhow::Error::new(error).context("cannot read the capture"),
    }
}

/// A file that is still being written: at its end more may follow.
pub(super) struct Growing<R>(pub(super) R);

impl<R: Read> Read for Growing<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(room)? {
                0 if !room.is_empty() => thread::sleep(PAUSE),
                count => return Ok(count),
            }
        }
    }
}
