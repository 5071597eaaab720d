//! The GIOP messages in a capture, counted by their headers alone, for comparison with an independent
//! decoder.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use anyhow::{Result, bail};

/// The number of messages of each minor version and type.
pub(super) type Counts = BTreeMap<(u8, u8), u64>;

/// The names of message types, by number (CORBA 3.3 Part 2, 9.4.1).
const TYPES: [&str; 8] = [
    "Request",
    "Reply",
    "CancelRequest",
    "LocateRequest",
    "LocateReply",
    "CloseConnection",
    "MessageError",
    "Fragment",
];

/// A message type as text.
pub(super) fn name((minor, kind): (u8, u8)) -> String {
    format!("{} 1.{minor}", TYPES.get(usize::from(kind)).unwrap_or(&"unknown"))
}

/// Reads a capture in pcap's format, of Ethernet frames as loopback has them, and counts.
///
/// The output is the same capture with distinct addresses for each connection of IPv4. tshark identifies
/// fragments by addresses and request IDs, which are the same in all connections of one machine.
pub(super) fn count(mut file: impl Read, mut separated: impl Write) -> Result<Counts> {
    let mut head = [0; 24];
    file.read_exact(&mut head)?;
    if head[..4] != 0xa1b2_c3d4_u32.to_le_bytes() || head[20..24] != 1_u32.to_le_bytes() {
        bail!("not a capture of Ethernet frames in this machine's byte order");
    }
    let mut counts = Counts::new();
    let mut streams: BTreeMap<Vec<u8>, Stream> = BTreeMap::new();
    let mut frame = Vec::new();
    let mut connections: BTreeMap<[Vec<u8>; 2], u32> = BTreeMap::new();
    let mut opened = 0;
    separated.write_all(&head)?;
    while let Some(about) = next_frame(&mut file, &mut frame)? {
        let mut moved = frame.clone();
        if let Some((sides, is_new)) = sides(&frame) {
            let mut both = sides.clone();
            both.sort_unstable();
            if is_new || !connections.contains_key(&both) {
                opened += 1;
                connections.insert(both.clone(), opened);
            }
            // 10.0.0.0/8, by the connection's number; its sides differ in the last bit.
            let address = |side: &Vec<u8>| 10 << 24 | connections[&both] << 1 & 0xff_ffff | u32::from(*side == both[1]);
            moved[26..30].copy_from_slice(&address(&sides[0]).to_be_bytes());
            moved[30..34].copy_from_slice(&address(&sides[1]).to_be_bytes());
        }
        separated.write_all(&about)?;
        separated.write_all(&moved)?;
        let Some(Segment { ends, sequence, is_first, payload }) = Segment::of(&frame) else { continue };
        if is_first {
            streams.insert(ends, Stream { next: Some(sequence.wrapping_add(1)), ..Stream::default() });
        } else if !payload.is_empty() {
            streams.entry(ends).or_default().take(sequence, payload, &mut counts);
        }
    }
    separated.flush()?;
    Ok(counts)
}

/// The source and the destination of a segment over IPv4 (address and port), and whether it opens a
/// connection.
fn sides(frame: &[u8]) -> Option<([Vec<u8>; 2], bool)> {
    let packet = frame.get(14..).filter(|packet| frame[12..14] == [8, 0] && packet.get(9) == Some(&6))?;
    let tcp = packet.get(usize::from(packet[0] & 15) * 4..)?;
    let side = |address, port| Some([packet.get(address..address + 4)?, tcp.get(port..port + 2)?].concat());
    Some(([side(12, 0)?, side(16, 2)?], tcp.get(13)? & 0x12 == 2))
}

/// The next frame with its record header.
fn next_frame(file: &mut impl Read, frame: &mut Vec<u8>) -> io::Result<Option<[u8; 16]>> {
    let mut head = [0; 16];
    match file.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let size = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    frame.resize(size as usize, 0);
    file.read_exact(frame).map(|()| Some(head))
}

struct Segment<'f> {
    /// Both addresses and both ports.
    ends: Vec<u8>,
    sequence: u32,
    /// Whether it opens its direction of a connection.
    is_first: bool,
    payload: &'f [u8],
}

impl<'f> Segment<'f> {
    fn of(frame: &'f [u8]) -> Option<Self> {
        let (kind, packet) = (frame.get(12..14)?, frame.get(14..)?);
        let (addresses, tcp) = match kind {
            [0x08, 0x00] => {
                let (header, size) = (usize::from(packet.first()? & 15) * 4, usize::from(be16(packet, 2)?));
                // A segment that the kernel hands on in one piece may be larger than the header's length
                // field can tell.
                let end = if size == 0 { packet.len() } else { size };
                (*packet.get(9)? == 6).then_some((packet.get(12..20)?, packet.get(header..end)?))?
            }
            [0x86, 0xdd] => (*packet.get(6)? == 6).then_some((packet.get(8..40)?, packet.get(40..)?))?,
            _ => return None,
        };
        let sequence = u32::from(be16(tcp, 4)?) << 16 | u32::from(be16(tcp, 6)?);
        Some(Self {
            ends: [addresses, tcp.get(..4)?].concat(),
            sequence,
            is_first: tcp.get(13)? & 2 != 0,
            payload: tcp.get(usize::from(tcp[12] >> 4) * 4..)?,
        })
    }
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

/// One direction of a connection.
#[derive(Default)]
struct Stream {
    /// The sequence number of the next octet; unknown before the first segment.
    next: Option<u32>,
    /// Segments that came too early.
    early: Vec<(u32, Vec<u8>)>,
    /// The header that is being read.
    header: Vec<u8>,
    /// The number of octets left of a message's body.
    body: u32,
    /// Whether the stream is not GIOP.
    is_foreign: bool,
}

impl Stream {
    fn take(&mut self, sequence: u32, payload: &[u8], counts: &mut Counts) {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next);
        if ahead > 0 && ahead < u32::MAX / 2 {
            self.early.push((sequence, payload.to_owned()));
            return;
        }
        // Repeated octets have been read.
        let Some(fresh) = payload.get(next.wrapping_sub(sequence) as usize..) else { return };
        self.read(fresh, counts);
        self.next = Some(next.wrapping_add(fresh.len() as u32));
        let due = |early: &(u32, Vec<u8>)| self.next.is_some_and(|next| early.0.wrapping_sub(next) as i32 <= 0);
        if let Some(at) = self.early.iter().position(due) {
            let (sequence, payload) = self.early.swap_remove(at);
            self.take(sequence, &payload, counts);
        }
    }

    fn read(&mut self, mut octets: &[u8], counts: &mut Counts) {
        while !self.is_foreign && !octets.is_empty() {
            let skipped = octets.len().min(self.body as usize);
            self.body -= skipped as u32;
            octets = &octets[skipped..];
            let (more, rest) = octets.split_at(octets.len().min(12 - self.header.len()));
            self.header.extend_from_slice(more);
            octets = rest;
            if self.header.len() == 12 {
                self.is_foreign = !self.header.starts_with(b"GIOP");
                let size = [self.header[8], self.header[9], self.header[10], self.header[11]];
                let is_little = self.header[6] & 1 != 0;
                self.body = if is_little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
                if !self.is_foreign {
                    *counts.entry((self.header[5], self.header[7])).or_default() += 1;
                }
                self.header.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GIOP\x01\x02\x01\x00\x03\x00\x00\x00abc";
    const CLOSE: &[u8] = b"GIOP\x01\x00\x00\x05\x00\x00\x00\x00";

    /// A capture of segments of one connection: numbers, flags and payloads.
    fn capture(segments: &[(u32, u8, &[u8])]) -> Vec<u8> {
        let mut all = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1].map(u32::to_le_bytes).concat();
        for (sequence, flags, payload) in segments {
            let mut frame = vec![0; 12];
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((40 + payload.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, 10, 0, 11, 0]);
            frame.extend(sequence.to_be_bytes());
            frame.extend([0, 0, 0, 0, 5 << 4, *flags, 0, 0, 0, 0, 0, 0]);
            frame.extend_from_slice(payload);
            all.extend([0, 0, frame.len() as u32, frame.len() as u32].map(u32::to_le_bytes).concat());
            all.extend(frame);
        }
        all
    }

    #[test]
    fn messages_are_counted_despite_segmentation_and_reordering() {
        let both = [REQUEST, CLOSE].concat();
        let start = u32::MAX - 5; // the sequence numbers wrap within
        let at = |n: u32| start.wrapping_add(1 + n);
        let expected = Counts::from([((2, 0), 1), ((0, 5), 1)]);
        for cut in 1..both.len() {
            let (first, second) = (&both[..cut], &both[cut..]);
            let in_order = [(start, 2, &b""[..]), (at(0), 0, first), (at(cut as u32), 0, second)];
            assert_eq!(count(&*capture(&in_order), io::sink()).unwrap(), expected, "{cut}");
            let reversed = [in_order[0], in_order[2], in_order[1], in_order[1]];
            assert_eq!(count(&*capture(&reversed), io::sink()).unwrap(), expected, "{cut}");
        }
    }

    #[test]
    fn each_connection_gets_distinct_addresses_for_both_directions() {
        let mut frames = capture(&[(1, 2, b""), (2, 0, REQUEST), (1, 2, b""), (2, 0, CLOSE)]);
        let mut separated = Vec::new();
        assert_eq!(count(&*frames, &mut separated).unwrap().len(), 2);
        let address = |all: &[u8], at: usize| all[at + 26..at + 30].to_owned();
        let starts = [40, 110, 195, 265];
        let [first, second, third, fourth] = starts.map(|at| address(&separated, at));
        assert!(first == second && third == fourth && first != third, "{first:?} {third:?}");
        assert_eq!(frames.len(), separated.len());
        frames.truncate(40);
        assert_eq!(frames, separated[..40]);
    }

    #[test]
    fn foreign_octets_are_not_counted() {
        let segments = [(1, 0, &b"GET / HTTP/1.1\r\n\r\n"[..]), (19, 0, REQUEST)];
        assert!(count(&*capture(&segments), io::sink()).unwrap().is_empty());
    }
}
