//! Our TCP against that of the kernel, over a TAP device.
//!
//! The kernel has the address [`SENDER`] on the device, and our stack [`RECEIVER`], whose link address the kernel has to
//! know (`ip neigh`), since this stack answers no ARP.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use smoltcp::phy::{self, Device as _, Medium, RxToken as _, TunTapInterface, TxToken as _};
use spandrel_message::MessageBlock;

use crate::capture::Capture;
use crate::device::{PORT, RECEIVER, SENDER};
use crate::frame;
use crate::ip::{self, Ipv4Header};
use crate::tcp::{Config, Segment, State, Statistics, Tcb, TcpHeader};

const LIMIT: Duration = Duration::from_secs(60);
/// The link address of the kernel's side, which the device is given.
pub const KERNEL_LINK: &str = "02:00:00:00:77:01";
/// The link address of this stack; see [`KERNEL_LINK`].
pub const OWN_LINK: &str = "02:00:00:00:77:02";

/// The octets, the time and the counts of an exchange with the kernel's TCP.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The octets of data that went in each direction.
    pub octets: usize,
    /// The time from the first segment to the end.
    pub elapsed: Duration,
    /// The events of our connection.
    pub statistics: Statistics,
}

/// Sends so many octets in both directions between the kernel's TCP and ours. `we_open` says which opens the connection.
/// Of the frames of either side, every one whose number is a multiple of `lose` is lost; 0 loses none. All frames are
/// written to `capture`.
///
/// # Errors
/// If the device cannot be opened, or the octets are not those that were sent.
pub fn exchange(device: &str, octets: usize, we_open: bool, lose: u64, capture: &Path) -> io::Result<Exchange> {
    let mut tap = TunTapInterface::new(device, Medium::Ethernet)?;
    let mut capture = Capture::create(capture)?;
    let random = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..octets).map(|_| random.u8(..)).collect::<Vec<u8>>()
    };
    let (ours, theirs) = (random(1), random(2));
    let config = Config { initial_sequence: fastrand::u32(..), segment_lifetime: Duration::ZERO, ..Config::default() };
    let kernel_data = theirs.clone();
    let mut tcb = Tcb::listen(PORT, config);
    let kernel = if we_open {
        let listener = TcpListener::bind((SENDER, 0))?;
        let local = fastrand::u16(20_000..60_000);
        tcb = Tcb::connect(local, listener.local_addr()?.port(), config);
        std::thread::spawn(move || talk(&listener.accept()?.0, &kernel_data, octets))
    } else {
        std::thread::spawn(move || talk(&TcpStream::connect((RECEIVER, PORT))?, &kernel_data, octets))
    };
    let (begin, mut handed, mut received, mut frames) = (Instant::now(), 0, Vec::new(), 0u64);
    while tcb.state() != State::Closed {
        let now = begin.elapsed();
        if now > LIMIT {
            return Err(io::Error::new(io::ErrorKind::TimedOut, unfinished(octets, handed, received.len(), &tcb)));
        }
        if tcb.next_timer().is_some_and(|at| at <= now) {
            tcb.on_timer(now);
        }
        while handed < ours.len() {
            let end = ours.len().min(handed + 4096);
            if tcb.send(ours[handed..end].into()).is_err() {
                break;
            }
            handed = end;
        }
        if handed == ours.len() && !matches!(tcb.state(), State::Listen | State::SynSent) {
            tcb.close();
        }
        while let Some(block) = tcb.receive() {
            received.extend_from_slice(&block);
        }
        let at = smoltcp::time::Instant::from_micros(now.as_micros() as i64);
        while let Some(segment) = tcb.transmit(now) {
            let packet = segment.packet(RECEIVER, SENDER).map_err(io::Error::other)?;
            // From our address to that of the kernel.
            let mut frame = frame::frame(&packet);
            frame[5] = 0x01;
            frame[11] = 0x02;
            capture.add(&frame)?;
            frames += 1;
            if lose == 0 || !frames.is_multiple_of(lose) {
                let Some(token) = tap.transmit(at) else { continue };
                token.consume(frame.len(), |octets| octets.copy_from_slice(&frame));
            }
        }
        let Some((token, _)) = tap.receive(at) else {
            let wait = tcb.next_timer().map_or(Duration::from_millis(5), |at| at.saturating_sub(begin.elapsed()));
            let wait = smoltcp::time::Duration::from_micros(wait.as_micros().clamp(100, 5000) as u64);
            phy::wait(tap.as_raw_fd(), Some(wait))?;
            continue;
        };
        let frame = token.consume(<[u8]>::to_vec);
        let Some(packet) = frame::packet(&frame) else { continue };
        let Ok((ip, length)) = Ipv4Header::decode(packet) else { continue };
        if ip.protocol != ip::TCP || ip.destination != RECEIVER {
            continue;
        }
        capture.add(&frame)?;
        frames += 1;
        if lose > 0 && frames.is_multiple_of(lose) {
            continue;
        }
        let (header, offset) = TcpHeader::decode(&ip, &packet[length..]).map_err(io::Error::other)?;
        let data = MessageBlock::from(&packet[length + offset..length + ip.payload]);
        tcb.on_segment(Segment { header, data }, begin.elapsed());
    }
    let elapsed = begin.elapsed();
    while let Some(block) = tcb.receive() {
        received.extend_from_slice(&block);
    }
    let at_kernel = kernel.join().map_err(|_| io::Error::other("the thread of the kernel's side has panicked"))??;
    if let Some(reason) = tcb.end_reason() {
        return Err(io::Error::other(reason));
    }
    if at_kernel != ours || received != theirs {
        return Err(io::Error::other(format!(
            "{} of {octets} octets came to the kernel and {} to us, or others than were sent",
            at_kernel.len(),
            received.len()
        )));
    }
    Ok(Exchange { octets, elapsed, statistics: tcb.statistics() })
}

/// The state of an exchange that has not ended in time.
fn unfinished(octets: usize, handed: usize, received: usize, tcb: &Tcb) -> String {
    let (limit, state, counts) = (LIMIT.as_secs(), tcb.state(), tcb.statistics());
    format!(
        "the exchange did not end within {limit} s: of {octets} octets, TCP took {handed} and delivered {received}; its \
         state is {state:?}, with {} segments received, {} sent, {} again, {} time-outs",
        counts.received, counts.sent, counts.retransmitted, counts.timeouts
    )
}

/// The kernel's side: sends, and receives to the end.
fn talk(stream: &TcpStream, data: &[u8], expected: usize) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut stream = stream;
            stream.write_all(data)?;
            stream.shutdown(std::net::Shutdown::Write)
        });
        let mut received = Vec::with_capacity(expected);
        let mut reader = stream;
        reader.read_to_end(&mut received)?;
        sender.join().map_err(|_| io::Error::other("the sender has panicked"))??;
        Ok(received)
    })
}
