//! The wire of an accepted connection: whole messages are written to it, one at a time, and it is ended in an orderly way.
//!
//! What is read from it, and who reads, belongs to the connection.

use std::time::Duration;

use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{MessageType, bare_message};
use spandrel_sync::{
    Mutex,
    atomic::{AtomicU8, Ordering},
};

use crate::{
    reader::Deadline,
    transport::{Transport, send_message, send_octets},
};

/// How long a peer is waited for to take a message that only tells it of the end.
const COURTESY: Duration = Duration::from_millis(200);
/// How long what a peer still sends is read and dropped when its connection ends.
const LINGER: Duration = Duration::from_millis(500);
/// How much of it.
const LINGER_OCTETS: usize = 1 << 20;

/// A client's transport, and how it is written to.
#[derive(Debug)]
pub(super) struct Link {
    /// For messages about it.
    peer: String,
    transport: Box<dyn Transport>,
    /// Order and limits; the version is that of each message.
    wire: Wire,
    writer: Mutex<()>,
    /// Minor version of the last message read: what the peer speaks.
    spoken: AtomicU8,
}

impl Link {
    pub(super) fn new(peer: String, transport: Box<dyn Transport>, wire: Wire) -> Self {
        Self { peer, transport, wire, writer: Mutex::new(()), spoken: AtomicU8::new(GiopVersion::V1_0.minor) }
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// How an answer to a message of this version is written.
    pub(super) fn wire(&self, version: GiopVersion) -> Wire {
        Wire { version, ..self.wire }
    }

    /// Remembers what the peer speaks, for messages that answer none.
    pub(super) fn note_version(&self, version: GiopVersion) {
        self.spoken.store(version.minor, Ordering::Relaxed);
    }

    /// Writes a message. A peer that is gone is noticed by whoever reads.
    pub(super) fn send(&self, message: &Encoder<'_>) {
        let _writer = self.writer.lock();
        if let Err(error) = send_message(&*self.transport, message, || Ok(())) {
            tracing::debug!(peer = %self.peer, %error, "a reply could not be written");
            // Cut inside a message, nothing further would be understood.
            self.transport.close();
        }
    }

    /// Writes a message that is only a header.
    pub(super) fn send_bare(&self, message_type: MessageType) {
        let version = GiopVersion { major: 1, minor: self.spoken.load(Ordering::Relaxed) };
        // Courtesy, on a connection that ends whether or not the peer hears why: one that reads nothing is not waited for.
        let Some(_writer) = self.writer.try_lock_for(COURTESY) else { return };
        let _ = self.transport.set_send_timeout(Some(COURTESY));
        let _ = send_octets(&*self.transport, &bare_message(version, self.wire.order, message_type));
    }

    /// Tells the peer that nothing more will be written.
    pub(super) fn close_writer(&self) {
        self.transport.close_writer();
    }

    /// Cuts it; whoever reads sees the end.
    pub(super) fn cut(&self) {
        self.transport.close();
    }

    /// Half-closes, reads what is still on its way, and closes: so that closing does not destroy what was just written.
    pub(super) fn finish(&self) {
        self.transport.close_writer();
        self.drain();
        self.transport.close();
    }

    fn drain(&self) {
        let deadline = Deadline::after(LINGER);
        let mut room = [0; 4096];
        let mut total = 0;
        while total < LINGER_OCTETS {
            let remaining = deadline.remaining();
            if remaining.is_zero() || self.transport.set_recv_timeout(Some(remaining)).is_err() {
                return;
            }
            match self.transport.recv(&mut room) {
                Ok(count) if count > 0 => total += count,
                _ => return,
            }
        }
    }
}
