//! A link with faults between the sender and the receiver of a flow: datagrams by the decisions of the relay of
//! `spandrel-stacks`.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spandrel_stacks::device::Faults;
use spandrel_stacks::relay::{Counts, Impairment, Settings};

/// 2 % of the datagrams are lost, and 2 % come this much later than the others.
const SETTINGS: Settings = Settings {
    faults: Faults { loss: 2, duplication: 0, reordering: 2 },
    delay: Duration::from_millis(2),
    lateness: Duration::from_millis(12),
    seed: 20,
};
/// The longest wait, after which the thread looks whether the link is closed.
const TICK: Duration = Duration::from_millis(20);

/// A link from an address of its own to a receiver.
pub(super) struct FaultyLink {
    pub(super) address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Counts>>>,
}

impl FaultyLink {
    /// Opens a link to a receiver.
    pub(super) fn open(receiver: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        let (address, is_closed) = (socket.local_addr()?, Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&is_closed);
        let thread = std::thread::spawn(move || relay(&socket, receiver, &end));
        Ok(Self { address, is_closed, thread: Some(thread) })
    }

    /// Closes the link. Returns the counts of the datagrams with frames.
    pub(super) fn close(mut self) -> io::Result<Counts> {
        self.is_closed.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or(io::ErrorKind::NotConnected)?;
        thread.join().map_err(|_| io::Error::other("the thread of the link has panicked"))?
    }
}

impl Drop for FaultyLink {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// The octets of the datagram by which a sender of SFP ends its flow: a header alone.
const END_OF_STREAM_OCTETS: usize = 12;

/// Whether the datagram has a frame: the dialogues at the begin and the end of a flow are not disturbed.
fn has_frame(datagram: &[u8]) -> bool {
    let is_end = datagram.starts_with(b"=SFP") && datagram.len() == END_OF_STREAM_OCTETS;
    !(is_end || datagram.starts_with(b"SPTK") || datagram.starts_with(b"=STA"))
}

fn relay(socket: &UdpSocket, receiver: SocketAddr, is_closed: &AtomicBool) -> io::Result<Counts> {
    let (begin, mut link, mut buffer) = (Instant::now(), Impairment::new(SETTINGS), vec![0; 65_536]);
    let mut sender = None;
    while !is_closed.load(Ordering::Relaxed) {
        while let Some((_, datagram)) = link.take(begin.elapsed()) {
            socket.send_to(&datagram, receiver)?;
        }
        let wait = link.next_time().map_or(TICK, |time| time.saturating_sub(begin.elapsed()));
        socket.set_read_timeout(Some(wait.clamp(Duration::from_micros(100), TICK)))?;
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // The receiver has closed its socket.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) if spandrel_ipc::is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let datagram = &buffer[..length];
        if from == receiver {
            if let Some(sender) = sender {
                socket.send_to(datagram, sender)?;
            }
            continue;
        }
        sender = Some(from);
        if has_frame(datagram) {
            link.add(1, datagram, begin.elapsed());
        } else {
            // The end does not overtake frames.
            while let Some((_, datagram)) = link.take(Duration::MAX) {
                socket.send_to(&datagram, receiver)?;
            }
            socket.send_to(datagram, receiver)?;
        }
    }
    Ok(link.counts())
}
