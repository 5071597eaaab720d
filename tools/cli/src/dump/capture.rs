//! Captured packets: pcap and pcapng, from a file or a pipe, read as they are written.

use std::{
    io::{self, Cursor, Read},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use pcap_parser::{
    Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader,
    traits::{PcapNGPacketBlock, PcapReaderIterator},
};

use super::packet::Link;

/// More than any packet has (tcpdump's longest is 256 KiB), and so the largest block that is read.
const CAPACITY: usize = 1 << 20;
/// The pause before checking whether a file has grown.
const PAUSE: Duration = Duration::from_millis(200);
/// The maximum number of interfaces of one section.
const MAX_INTERFACES: usize = 4096;

/// One packet.
#[derive(Debug)]
pub(super) struct Packet<'p> {
    /// Since 1970.
    pub(super) time: Duration,
    pub(super) link: Link,
    pub(super) octets: &'p [u8],
}

/// The callback for each packet.
pub(super) type Each<'e> = &'e mut dyn FnMut(&Packet<'_>) -> anyhow::Result<()>;

/// Reads all packets.
///
/// # Errors
/// If it is not a capture, or is corrupt; earlier packets have been passed on. Those of `each`.
pub(super) fn read(mut input: impl Read + Send, each: Each<'_>) -> anyhow::Result<()> {
    let head = head(&mut input)?;
    let is_new = head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
    let whole = Cursor::new(head).chain(input);
    let unreadable = "the file is neither pcap nor pcapng";
    let mut reader: Box<dyn PcapReaderIterator + Send> = match is_new {
        true => Box::new(PcapNGReader::new(CAPACITY, whole).map_err(|error| describe(&error)).context(unreadable)?),
        false => {
            Box::new(LegacyPcapReader::new(CAPACITY, whole).map_err(|error| describe(&error)).context(unreadable)?)
        }
    };
    let mut clocks = Clocks::default();
    loop {
        match reader.next() {
            Ok((len, block)) => {
                if let Some(packet) = clocks.packet(&block) {
                    each(&packet)?;
                }
                drop(block);
                reader.consume(len);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(|error| describe(&error))?,
            Err(PcapError::UnexpectedEof) => bail!("the capture ends inside a packet"),
            Err(error) => return Err(describe(&error).context("the capture is corrupt")),
        }
    }
}

/// The beginning of the capture, up to the end of its first block.
fn head(input: &mut impl Read) -> anyhow::Result<Vec<u8>> {
    const LONGEST: usize = 1 << 16;
    let mut head = vec![0; 12];
    input.read_exact(&mut head).context("the capture is too short for a header")?;
    let field = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let len = if head[..4] != [0x0a, 0x0d, 0x0d, 0x0a] {
        24
    } else if field(8) == [0x1a, 0x2b, 0x3c, 0x4d] {
        u32::from_be_bytes(field(4)) as usize
    } else {
        u32::from_le_bytes(field(4)) as usize
    };
    if !(24..=LONGEST).contains(&len) {
        bail!("the capture's first block has {len} octets: expected 24 to {LONGEST}");
    }
    head.resize(len, 0);
    input.read_exact(&mut head[12..]).context("the capture ends inside its first block")?;
    Ok(head)
}

fn describe<I: std::fmt::Debug>(error: &PcapError<I>) -> anyhow::Error {
    match error {
        PcapError::BufferTooSmall => anyhow::anyhow!("a block of more than {CAPACITY} octets"),
        PcapError::NomError(_, kind) | PcapError::OwnedNomError(_, kind) => anyhow::anyhow!("malformed ({kind:?})"),
        other => anyhow::anyhow!("{other:?}"),
    }
}

/// The time formats and link types of the packets.
#[derive(Default)]
struct Clocks {
    legacy: Option<(Link, bool)>,
    interfaces: Vec<Interface>,
}

struct Interface {
    link: Link,
    /// Units in a second.
    resolution: u64,
    /// Seconds to be added.
    offset: u64,
}

impl Clocks {
    fn packet<'p>(&mut self, block: &'p PcapBlockOwned<'_>) -> Option<Packet<'p>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.legacy = Some((Link::from(header.network.0), header.is_nanosecond_precision()));
                None
            }
            PcapBlockOwned::Legacy(block) => {
                let (link, is_nano) = self.legacy?;
                let unit = if is_nano { 1 } else { 1000 };
                let fraction = Duration::from_nanos(u64::from(block.ts_usec).saturating_mul(unit));
                let time = Duration::from_secs(block.ts_sec.into()).saturating_add(fraction);
                Some(Packet { time, link, octets: block.data })
            }
            PcapBlockOwned::NG(block) => self.new_packet(block),
        }
    }

    fn new_packet<'p>(&mut self, block: &'p Block<'_>) -> Option<Packet<'p>> {
        match block {
            Block::SectionHeader(_) => self.interfaces.clear(),
            Block::InterfaceDescription(interface) if self.interfaces.len() < MAX_INTERFACES => {
                self.interfaces.push(Interface {
                    link: Link::from(interface.linktype.0),
                    resolution: interface.ts_resolution().unwrap_or(1_000_000).max(1),
                    offset: u64::try_from(interface.ts_offset()).unwrap_or(0),
                });
            }
            Block::EnhancedPacket(block) => {
                let interface = self.interfaces.get(block.if_id as usize)?;
                let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                let seconds = Duration::from_secs((units / interface.resolution).saturating_add(interface.offset));
                let rest = u128::from(units % interface.resolution) * 1_000_000_000 / u128::from(interface.resolution);
                let time = seconds.saturating_add(Duration::from_nanos(u64::try_from(rest).unwrap_or(0)));
                return Some(Packet { time, link: interface.link, octets: block.packet_data() });
            }
            Block::SimplePacket(block) => {
                let link = self.interfaces.first()?.link;
                return Some(Packet { time: Duration::ZERO, link, octets: block.packet_data() });
            }
            _ => {}
        }
        None
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
